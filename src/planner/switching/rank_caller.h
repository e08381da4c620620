// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SWITCHING_RANK_CALLER_H_
#define PERSEUS_SWITCHING_RANK_CALLER_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "common/word_hash.h"
#include "switching/clock_state.h"
#include "switching/forecast.h"
#include "switching/look_ahead.h"

namespace perseus::switching {

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

}  // namespace perseus::switching

#endif  // PERSEUS_SWITCHING_RANK_CALLER_H_
