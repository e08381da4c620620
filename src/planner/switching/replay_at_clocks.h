// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SWITCHING_REPLAY_AT_CLOCKS_H_
#define PERSEUS_SWITCHING_REPLAY_AT_CLOCKS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "perseus/pipeline.h"
#include "switching/clock_state.h"
#include "switching/rank_caller.h"

namespace perseus::switching {

// What a computation's plan says.
struct Planned {
  int rank = 0;
  int knob = 0;
};

// Where clocks come at once, calls of shorter waits are not counted: these may be rounding.
inline constexpr double kShortestWait = 1e-6;

// When the computation before `i` on its rank ended; 0 for the first.
inline double EndBefore(const PipelineDag& dag, const Timing& timing, int i) {
  const Computation& computation = dag.computations[i];
  return computation.position == 0
             ? 0
             : timing.end_seconds[dag.rank_order[computation.rank][computation.position - 1]];
}

struct ReplayCounts {
  std::int64_t calls = 0;  // Of all ranks.
  std::int64_t late = 0;   // Computations that started before their clock was in effect.
};

// Replays an iteration of one pipeline, whose clocks come late if `kLate`. This defines what the
// emulator and the search of plans replay (docs/explanation/emulation.md, "Time" and "Clocks");
// each has books of its own:
// - `Begin(i, &ready)` returns what is planned for computation i, and may let it wait;
// - `SecondsAt(knob)` is the time of all of that computation at a knob;
// - `Count(from, to, share)` is called for each part of it, at the knob that was asked for last;
// - `Wait(rank, knob, from, to)` is called for each wait before a computation that is not free, at
//   the clock in effect, if `counts_waits()`; what comes after a rank's last computation is left to
//   the caller;
// - `End(start, end)` is called when it is done.
// `callers`: as StartCallers() makes them; not used unless `kLate`. `waiting_knobs`: [rank] Where
// clocks come at once, that of waiting; empty: that of the computation before stays.
template <bool kLate, typename Books>
ReplayCounts ReplayAtClocks(const PipelineDag& dag, double stall_seconds,
                            std::span<ClockState> clocks, std::span<RankCaller> callers,
                            std::span<const int> waiting_knobs, Books* books, Timing* timing) {
  ReplayCounts counts;
  const bool counts_waits = books->counts_waits();
  const auto run = [&](int i, double ready, double* start, double* end) {
    const Planned planned = books->Begin(i, &ready);
    ClockState& clock = clocks[planned.rank];
    const bool changes = planned.knob != clock.planned;
    if (changes) ready += stall_seconds;
    *start = ready;
    if constexpr (kLate) {
      RankCaller& caller = callers[planned.rank];
      const bool is_late = counts_waits ? caller.Start(ready,
                                                       [&](int knob, double from, double to) {
                                                         books->Wait(planned.rank, knob, from, to);
                                                       })
                                        : caller.Start(ready);
      if (is_late) ++counts.late;
      *end = caller.Run(
          ready, [books](int knob) { return books->SecondsAt(knob); },
          [books](int /*knob*/, double from, double to, double share) {
            books->Count(from, to, share);
          });
      caller.End(*end);
    } else {
      if (counts_waits) {
        const double since = EndBefore(dag, *timing, i);
        const int knob = waiting_knobs.empty() ? clock.in_effect : waiting_knobs[planned.rank];
        if (!waiting_knobs.empty() && ready - since > kShortestWait) {
          counts.calls += (knob != clock.in_effect) + (knob != planned.knob);
        } else if (changes) {
          ++counts.calls;
        }
        if (ready > since) books->Wait(planned.rank, knob, since, ready);
      } else if (changes) {
        ++counts.calls;
      }
      clock = SettledAt(planned.knob);
      *end = ready + books->SecondsAt(planned.knob);
      books->Count(ready, *end, 1);
    }
    books->End(ready, *end);
  };
  ReplayBy(dag, run, timing);
  if constexpr (kLate) {
    for (const ClockState& clock : clocks) counts.calls += clock.calls;
  }
  return counts;
}

}  // namespace perseus::switching

#endif  // PERSEUS_SWITCHING_REPLAY_AT_CLOCKS_H_
