// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SWITCHING_RANK_CALLER_H_
#define PERSEUS_SWITCHING_RANK_CALLER_H_

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "common/word_hash.h"
#include "switching/clock_state.h"
#include "switching/forecast.h"
#include "switching/look_ahead.h"

namespace perseus::switching {

// Calls for the clocks of one rank during one iteration, event by event: which
// knob is in effect when (docs/explanation/emulation.md, "Clocks" and "Calls ahead of time").
// For each computation in the rank's order: Start(), Run(), End(); then, when the
// job's iteration has ended, EndIteration(). Times never go back. One thread.
class RankCaller {
 public:
  // `knobs`: of the rank's computations, in order. `latency_draws`: the hash to
  // which the number of a call is added; looked at where latencies spread. All
  // that is pointed to must outlive it.
  RankCaller(const SwitchingRules& rules, std::span<const int> knobs, WordHash latency_draws,
             ClockState* clock);
  // The same where calls are predicted: learns as it goes.
  RankCaller(const SwitchingRules& rules, int rank, WordHash latency_draws, Forecast* forecast,
             ClockState* clock);

  // The next computation starts. True: later than its clock, which is another.
  bool Start(double seconds);

  // Runs the computation that started at `start`, which takes `seconds_at(knob)`
  // at a knob; tells `piece(knob, from, to, share of the work)` of each part at one
  // knob. Returns its end.
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
      piece(knob, now, changed, done);
      left = std::max(0.0, left - done);
      now = changed;
    }
  }

  void End(double seconds);

 private:
  friend int EndIteration(const SwitchingRules& rules, WordHash latency_draws,
                          double iteration_seconds, ClockState* clock);

  static constexpr double kNever = std::numeric_limits<double>::infinity();

  double NextSeconds() const {
    return clock_->calling() ? clock_->call_end_seconds : wake_seconds_;
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
  Forecast* forecast_ = nullptr;  // Where calls are predicted.
  std::span<Row> rows_;           // Of the rank.
  int rank_ = 0;

  int row_ = -1;  // Started last.
  bool running_ = false;
  double begin_seconds_ = 0;  // Of that row.
  double end_seconds_ = 0;    // Of the last that ended.
  int called_row_ = -1;       // Ahead of time.
  // [row] Of gaps and durations of rows before it, when it was first needed.
  std::vector<double> seconds_before_;
  double wake_seconds_ = kNever;  // To decide anew while no call is under way.
};

// The job's iteration has ended: calls that end or begin after the rank's last
// computation, and times from the start of the next. Returns how many began.
int EndIteration(const SwitchingRules& rules, WordHash latency_draws, double iteration_seconds,
                 ClockState* clock);

}  // namespace perseus::switching

#endif  // PERSEUS_SWITCHING_RANK_CALLER_H_
