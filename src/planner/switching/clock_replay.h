// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SWITCHING_CLOCK_REPLAY_H_
#define PERSEUS_SWITCHING_CLOCK_REPLAY_H_

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "common/word_hash.h"
#include "perseus/conditions.h"
#include "perseus/costed_pipeline.h"
#include "perseus/pipeline.h"
#include "perseus/plan.h"
#include "switching/look_ahead.h"

namespace perseus::switching {

inline constexpr int kNoCall = -1;

// The state of one rank's clock, which carries over from one iteration to the next. Only one clock
// call is under way at a time. Knobs are indices into CostedPipeline::knobs; times count from the
// start of the iteration.
struct ClockState {
  int in_effect = 0;
  int newest = 0;        // The last knob that was requested; its call begins as soon as allowed.
  int planned = 0;       // Planned knob of the computation that started last.
  int target = kNoCall;  // Knob of the call under way.
  int calls = 0;         // Number of calls that began in this iteration.
  double call_end_seconds = 0;
  double allowed_seconds = 0;  // No call may begin before this time.

  bool calling() const { return target != kNoCall; }

  friend auto operator<=>(const ClockState&, const ClockState&) = default;
};

// The state of a rank whose clock has been at `knob` for long.
inline ClockState SettledAt(int knob) {
  return {.in_effect = knob, .newest = knob, .planned = knob};
}

// [knob] How long calls for it take in the mean.
std::vector<double> LatenciesOf(const ClockSwitching& switching, const CostedPipeline& pipeline);

// ClockSwitching, with values derived from it (docs/explanation/emulation.md, "Clocks").
struct SwitchingRules {
  SwitchingRules(const ClockSwitching& conditions, const CostedPipeline& pipeline)
      : switching(conditions),
        knobs_are_numbers(pipeline.knobs_are_numbers),
        latencies(LatenciesOf(conditions, pipeline)) {
    for (std::size_t knob = 0; knob < latencies.size(); ++knob) {
      most_high_seconds = std::max(most_high_seconds, high_seconds(static_cast<int>(knob)));
    }
  }

  ClockSwitching switching;
  // Knobs are numbers in descending order. If false, every change counts as one to a lower clock.
  bool knobs_are_numbers = true;
  std::vector<double> latencies;  // [knob] Mean, in seconds.
  double most_high_seconds = 0;   // high_seconds() of any knob.

  // False: every clock takes effect at the moment of its request.
  bool late() const { return switching.latency_seconds > 0 || switching.min_interval_seconds > 0; }
  // Whether a rank may wait at a clock of its own: nobody stalls for it, and where clocks come late
  // it is known when to call.
  bool may_wait_cheaply() const { return switching.stall_seconds == 0 && (!late() || predicts()); }
  bool predicts() const { return switching.call_ahead == CallAhead::kPredicted; }
  double latency_seconds(int knob) const { return latencies[static_cast<std::size_t>(knob)]; }
  double spread_seconds(int knob) const {
    return std::min(switching.latency_spread_seconds, latency_seconds(knob));
  }
  // The latencies that the client measures; see CallTime.
  double high_seconds(int knob) const {
    return latency_seconds(knob) + kHighSpreads * spread_seconds(knob);
  }
  double least_seconds(int knob) const {
    return std::max(0.0, latency_seconds(knob) - kLeastSpreads * spread_seconds(knob));
  }
  // A clock that takes effect within this time after a start is not late. Predicted starts are
  // often exact, so rounding errors alone must not make a clock late.
  double tolerance_seconds() const { return 1e-6 * switching.latency_seconds; }
  bool Lowers(int from, int to) const { return !knobs_are_numbers || to > from; }
};

// A computation of a rank: its duration, and the gap before it since the end of the computation
// before (for the first: since the start of the iteration).
struct Row {
  double duration_seconds = 0;
  double gap_seconds = 0;
  double doubt_seconds = 0;  // How far `gap_seconds` is usually off; learned where ranks wait.

  friend bool operator==(const Row&, const Row&) = default;
};

// A plan as its ranks' clients get it: the rows of all ranks, rank by rank, in order of execution.
struct PlannedRows {
  std::vector<int> first_row;  // [rank], and the number of rows.
  std::vector<int> knobs;      // [row]
  std::vector<Row> rows;       // From the plan's replay.
  // [rank] The knob at which it waits. Empty: nothing sets a clock for waiting.
  std::vector<int> waiting_knobs;
  // [row] The next row of the same rank that has another knob. Number of the rank's rows: the first
  // row of the next iteration has another knob. One more than that: no row has. Empty: not filled.
  std::vector<int> next_other;

  int RowOf(const Computation& computation) const {
    return first_row[computation.rank] + computation.position;
  }
  std::span<const int> KnobsOf(int rank) const {
    return std::span(knobs).subspan(first_row[rank], first_row[rank + 1] - first_row[rank]);
  }
};

// Fills in rows->next_other.
void FindNextOthers(PlannedRows* rows);

// [rank] The knobs at which the ranks of a plan wait under the rules; empty: nothing sets a clock
// for waiting.
std::vector<int> WaitingKnobsOf(const CostedPipeline& pipeline, Waiting waiting,
                                const SwitchingRules& rules);

// The rows of a plan with these knobs and planned durations, both [computation].
PlannedRows MakeRows(const PipelineDag& dag, std::span<const int> knobs,
                     std::span<const double> durations_seconds);

// Times that the clients of one pipeline's ranks expect of the next iteration: those of the newest
// iterations, at first those of the plan (docs/explanation/emulation.md, "Clocks").
struct Forecast {
  std::shared_ptr<const PlannedRows> plan;
  std::vector<Row> rows;
  // [rank] From a rank's last end to its first start of the next iteration. 0: not known.
  std::vector<double> wrap_gap_seconds;
  // [rank] End of the rank's last computation in the iteration before, relative to the start of
  // this iteration: 0 or less.
  std::vector<double> last_end_seconds;
  bool measured = false;  // `rows` are measured; false: they come from the plan.
  bool has_last = false;  // There was an iteration before.

  // An iteration of the plan `next` begins. If rows were measured under another plan, they correct
  // the times that `next` predicts.
  void Follow(const std::shared_ptr<const PlannedRows>& next);
  // The iteration has ended.
  void EndIteration(double iteration_seconds);

  friend bool operator==(const Forecast&, const Forecast&) = default;
};

// Simulates the clock calls of one rank during one iteration, event by event, and which knob is in
// effect when (docs/explanation/emulation.md, "Clocks"). Call Start(),
// Run() and End() for each computation in the rank's order, then EndIteration() when the job's
// iteration has ended. Times must not decrease. For one thread.
class RankCaller {
 public:
  // `knobs`: those of the rank's computations, in order. `latency_draws`: the hash from which each
  // call draws its latency, with the number of the call; only used if latencies are random. All
  // arguments that are pointers must outlive this object.
  RankCaller(const SwitchingRules& rules, std::span<const int> knobs, WordHash latency_draws,
             ClockState* clock);
  // For calls that are predicted. Updates `forecast` with the times of this iteration.
  RankCaller(const SwitchingRules& rules, int rank, WordHash latency_draws, Forecast* forecast,
             ClockState* clock);

  // The next computation starts. Returns true if it starts before its clock is in effect. Calls
  // `waited(knob, from, to)` for each part of the wait since the computation before (of the first:
  // since the iteration began) at one clock.
  template <typename Waited>
  bool Start(double seconds, Waited&& waited) {
    AskBeforeFirst();
    Wait(end_seconds_, seconds, waited);
    return Started(seconds);
  }
  bool Start(double seconds) {
    return Start(seconds, [](int, double, double) {});
  }

  // Runs the computation that started at `start` and takes `seconds_at(knob)` at each knob. Calls
  // `piece(knob, from, to, share of the work)` for each part that runs at one knob. Returns its
  // end.
  template <typename SecondsAt, typename Piece>
  double Run(double start, SecondsAt&& seconds_at, Piece&& piece) {
    double now = start;
    double left = 1;
    while (true) {
      const int knob = clock_->in_effect;
      const double seconds = seconds_at(knob);
      const double end = now + left * seconds;
      const double changed = NextChange(knob, end);
      if (changed >= end) {
        piece(knob, now, end, left);
        return end;
      }
      const double done = (changed - now) / seconds;
      if (changed > now) piece(knob, now, changed, done);
      left = std::max(0.0, left - done);
      now = changed;
    }
  }

  void End(double seconds);

 private:
  template <typename Waited>
  friend int EndIteration(const SwitchingRules& rules, WordHash latency_draws, double since,
                          double iteration_seconds, ClockState* clock, Waited&& waited);

  static constexpr double kNever = std::numeric_limits<double>::infinity();

  double NextSeconds() const {
    return clock_->calling() ? clock_->call_end_seconds : wake_seconds_;
  }
  void AskBeforeFirst();
  bool Started(double seconds);
  template <typename Waited>
  void Wait(double from, double to, Waited&& waited) {
    int knob = clock_->in_effect;
    while (NextSeconds() <= to) {
      const double now = NextSeconds();
      Step();
      if (clock_->in_effect == knob) continue;
      if (now > from) waited(knob, from, now);
      from = std::max(from, now);
      knob = clock_->in_effect;
    }
    if (to > from) waited(knob, from, to);
  }
  double NextChange(int knob, double end);
  void Advance(double seconds);
  void Step();
  void Ask(int knob, double seconds);
  struct Ahead;
  void Decide(double now);
  void DecideAhead(double now);
  bool NothingIsDue(int row, double end, double soon);
  void Begin(int knob, double now);
  void Learn(double measured, double* value) const {
    *value = Learned(*value, measured, forecast_->measured);
  }

  const SwitchingRules* rules_;
  std::span<const int> knobs_;
  WordHash latency_draws_;
  ClockState* clock_;
  Forecast* forecast_ = nullptr;  // Null unless calls are predicted.
  std::span<Row> rows_;           // The rank's rows.
  int waiting_knob_ = kNoCall;    // kNoCall: nothing sets a clock for waiting.
  int rank_ = 0;

  int row_ = -1;  // The row that started last.
  bool running_ = false;
  double begin_seconds_ = 0;  // Begin of that row.
  double end_seconds_ = 0;    // End of the row that ended last.
  int called_row_ = -1;       // The last row whose clock was called for ahead of time.
  // [row] Sum of gaps and durations of the rows before it, computed when first needed.
  std::vector<double> seconds_before_;
  double wake_seconds_ = kNever;  // When to decide again if no call is under way.
};

// Makes the callers of a pipeline's ranks for an iteration. `forecast`: what its clients expect,
// who follow `rows` from now on; null unless calls are predicted. All must outlive the callers.
void StartCallers(const SwitchingRules& rules, const std::shared_ptr<const PlannedRows>& rows,
                  std::uint64_t seed, int pipeline, std::int64_t iteration, Forecast* forecast,
                  std::span<ClockState> clocks, std::vector<RankCaller>* callers);

// Makes times relative to the start of the next iteration.
void StartNextIteration(double iteration_seconds, ClockState* clock);

// Ends the job's iteration: handles calls that begin or end after the rank's last computation,
// which ended at `since`, and makes times relative to the start of the next iteration. `waited`: as
// RankCaller::Start(). Returns how many calls began.
template <typename Waited>
int EndIteration(const SwitchingRules& rules, WordHash latency_draws, double since,
                 double iteration_seconds, ClockState* clock, Waited&& waited) {
  const int before = clock->calls;
  RankCaller caller(rules, {}, latency_draws, clock);
  caller.Wait(since, iteration_seconds, waited);
  const int began = clock->calls - before;
  StartNextIteration(iteration_seconds, clock);
  return began;
}
inline int EndIteration(const SwitchingRules& rules, WordHash latency_draws,
                        double iteration_seconds, ClockState* clock) {
  return EndIteration(rules, latency_draws, iteration_seconds, iteration_seconds, clock,
                      [](int, double, double) {});
}

// The plan of a computation.
struct Planned {
  int rank = 0;
  int knob = 0;
};

// The shortest wait whose calls count where clocks come at once: others may be rounding.
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

#endif  // PERSEUS_SWITCHING_CLOCK_REPLAY_H_
