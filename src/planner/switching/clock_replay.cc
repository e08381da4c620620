// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "switching/clock_replay.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "model/noise.h"

namespace perseus::switching {

void FindNextOthers(PlannedRows* rows) {
  rows->next_other.resize(rows->knobs.size());
  for (std::size_t rank = 0; rank + 1 < rows->first_row.size(); ++rank) {
    const int first = rows->first_row[rank];
    const int size = rows->first_row[rank + 1] - first;
    for (int k = size; k-- > 0;) {
      const int knob = rows->knobs[first + k];
      if (k + 1 == size) {
        rows->next_other[first + k] = rows->knobs[first] != knob ? size : size + 1;
      } else {
        rows->next_other[first + k] =
            rows->knobs[first + k + 1] != knob ? k + 1 : rows->next_other[first + k + 1];
      }
    }
  }
}

std::vector<double> LatenciesOf(const ClockSwitching& switching, const CostedPipeline& pipeline) {
  std::vector<double> latencies(pipeline.knobs.size(), switching.latency_seconds);
  for (const ClockLatency& own : switching.latency_at) {
    for (std::size_t knob = 0; knob < latencies.size(); ++knob) {
      if (pipeline.knobs[knob].number == own.clock) latencies[knob] = own.seconds;
    }
  }
  return latencies;
}

std::vector<int> WaitingKnobsOf(const CostedPipeline& pipeline, Waiting waiting,
                                const SwitchingRules& rules) {
  std::vector<int> knobs;
  if (waiting != Waiting::kCheapest || !pipeline.waiting_depends_on_clock() ||
      !rules.may_wait_cheaply()) {
    return knobs;
  }
  knobs.reserve(pipeline.dag.rank_order.size());
  for (int rank = 0; rank < pipeline.dag.num_ranks; ++rank) {
    knobs.push_back(*pipeline.WaitingKnob(rank));
  }
  return knobs;
}

PlannedRows MakeRows(const PipelineDag& dag, std::span<const int> knobs,
                     std::span<const double> durations_seconds) {
  const Timing timing = Replay(dag, durations_seconds);
  PlannedRows planned;
  planned.knobs.reserve(dag.computations.size());
  planned.rows.reserve(dag.computations.size());
  for (const std::vector<int>& order : dag.rank_order) {
    planned.first_row.push_back(static_cast<int>(planned.rows.size()));
    double end = 0;
    for (const int i : order) {
      const double gap = std::max(0.0, timing.start_seconds[i] - end);
      planned.knobs.push_back(knobs[i]);
      planned.rows.push_back(
          {.duration_seconds = durations_seconds[i], .gap_seconds = gap, .doubt_seconds = gap});
      end = timing.end_seconds[i];
    }
  }
  planned.first_row.push_back(static_cast<int>(planned.rows.size()));
  FindNextOthers(&planned);
  return planned;
}

void Forecast::Follow(const std::shared_ptr<const PlannedRows>& next) {
  const std::shared_ptr<const PlannedRows> old = std::exchange(plan, next);
  if (old == nullptr) {
    const std::size_t ranks = next->first_row.size() - 1;
    rows = next->rows;
    wrap_gap_seconds.assign(ranks, 0);
    last_end_seconds.assign(ranks, 0);
    return;
  }
  if (old == next || old->knobs == next->knobs) return;
  const std::vector<Row> learned = std::exchange(rows, next->rows);
  if (!std::exchange(measured, false)) return;
  for (std::size_t rank = 0; rank + 1 < next->first_row.size(); ++rank) {
    double planned_seconds = 0;
    double measured_seconds = 0;
    for (int k = next->first_row[rank]; k < next->first_row[rank + 1]; ++k) {
      planned_seconds += old->rows[k].duration_seconds;
      measured_seconds += learned[k].duration_seconds;
    }
    const double overall = planned_seconds > 0 ? measured_seconds / planned_seconds : 1;
    for (int k = next->first_row[rank]; k < next->first_row[rank + 1]; ++k) {
      const double predicted = old->rows[k].duration_seconds;
      rows[k].duration_seconds *= predicted > 0 ? learned[k].duration_seconds / predicted : overall;
      rows[k].gap_seconds *= overall;
    }
  }
}

void Forecast::EndIteration(double iteration_seconds) {
  for (double& end : last_end_seconds) end -= iteration_seconds;
  measured = true;
  has_last = true;
}

RankCaller::RankCaller(const SwitchingRules& rules, std::span<const int> knobs,
                       WordHash latency_draws, ClockState* clock)
    : rules_(&rules), knobs_(knobs), latency_draws_(latency_draws), clock_(clock) {
  if (clock_->calling()) return;
  Decide(0);
}

RankCaller::RankCaller(const SwitchingRules& rules, int rank, WordHash latency_draws,
                       Forecast* forecast, ClockState* clock)
    : rules_(&rules),
      knobs_(forecast->plan->KnobsOf(rank)),
      latency_draws_(latency_draws),
      clock_(clock),
      forecast_(forecast),
      rows_(std::span(forecast->rows).subspan(forecast->plan->first_row[rank], knobs_.size())),
      waiting_knob_(forecast->plan->waiting_knobs.empty() ? kNoCall
                                                          : forecast->plan->waiting_knobs[rank]),
      rank_(rank) {
  if (!clock_->calling()) DecideAhead(0);
}

// The clock of the first of an iteration; those of others when the one before ended.
void RankCaller::AskBeforeFirst() {
  if (forecast_ != nullptr || row_ >= 0) return;
  if (rules_->switching.call_ahead == CallAhead::kEnd) Ask(knobs_.front(), 0);
}

bool RankCaller::Started(double seconds) {
  const int knob = knobs_[row_ + 1];
  if (forecast_ == nullptr && rules_->switching.call_ahead == CallAhead::kNone) {
    Ask(knob, seconds);
    Advance(seconds);
  }
  ++row_;
  running_ = true;
  begin_seconds_ = seconds;
  clock_->planned = knob;
  if (forecast_ != nullptr) {
    Row& row = rows_[row_];
    if (waiting_knob_ >= 0) {
      row.doubt_seconds = LearnedDoubt(row.doubt_seconds, row.gap_seconds, seconds - end_seconds_,
                                       forecast_->measured);
    }
    Learn(seconds - end_seconds_, &row.gap_seconds);
    if (row_ == 0 && forecast_->has_last) {
      double& gap = forecast_->wrap_gap_seconds[rank_];
      const double measured = seconds - forecast_->last_end_seconds[rank_];
      gap = gap > 0 ? (gap + measured) / 2 : measured;
    }
    if (!clock_->calling()) DecideAhead(seconds);
  }
  const bool comes =
      clock_->target == knob && clock_->call_end_seconds <= seconds + rules_->tolerance_seconds();
  return clock_->in_effect != knob && !comes;
}

void RankCaller::End(double seconds) {
  running_ = false;
  end_seconds_ = seconds;
  const bool last = row_ + 1 == static_cast<int>(knobs_.size());
  if (forecast_ != nullptr) {
    Learn(seconds - begin_seconds_, &rows_[row_].duration_seconds);
    if (last) {
      forecast_->last_end_seconds[rank_] = seconds;
      forecast_ = nullptr;  // What is left is to ask for the first clock of the next iteration.
      Ask(knobs_.front(), seconds);
    } else if (!clock_->calling()) {
      DecideAhead(seconds);
    }
  } else if (!last && rules_->switching.call_ahead == CallAhead::kEnd) {
    Ask(knobs_[row_ + 1], seconds);
  }
}

// When another knob than this one comes into effect, where it is before `end`.
double RankCaller::NextChange(int knob, double end) {
  while (true) {
    const double next = NextSeconds();
    if (next >= end) return next;
    Step();
    if (clock_->in_effect != knob) return next;
  }
}

void RankCaller::Advance(double seconds) {
  while (NextSeconds() <= seconds) Step();
}

// The next event: a call ends, or it is time to decide.
void RankCaller::Step() {
  const double now = NextSeconds();
  if (clock_->calling()) {
    clock_->in_effect = clock_->target;
    clock_->target = kNoCall;
  }
  if (forecast_ != nullptr) {
    DecideAhead(now);
  } else {
    Decide(now);
  }
}

void RankCaller::Ask(int knob, double seconds) {
  Advance(seconds);
  clock_->newest = knob;
  if (!clock_->calling()) Decide(seconds);
}

// Calls for the newest knob as soon as a call may begin.
void RankCaller::Decide(double now) {
  wake_seconds_ = kNever;
  if (clock_->newest == clock_->in_effect) return;
  if (now < clock_->allowed_seconds) {
    wake_seconds_ = clock_->allowed_seconds;
  } else {
    Begin(clock_->newest, now);
  }
}

// Whether the walk of LookAhead() over the rows after `row`, which ends at `end`, would find no
// call to make or wait for: it would stop before the next row with another knob. Certain rows
// only; without it every decision would walk as far as a latency reaches.
bool RankCaller::NothingIsDue(int row, double end, double soon) {
  const PlannedRows& plan = *forecast_->plan;
  if (plan.next_other.empty()) return false;
  const int size = static_cast<int>(knobs_.size());
  const int other = plan.next_other[plan.first_row[rank_] + row];
  if (other > size) return true;
  constexpr int kShortWalk = 8;
  if (other <= called_row_ || other - row < kShortWalk) return false;
  // Rows ahead are learned in later iterations.
  if (seconds_before_.empty()) {
    seconds_before_.reserve(knobs_.size() + 1);
    seconds_before_.push_back(0);
    for (const Row& each : rows_) {
      seconds_before_.push_back(seconds_before_.back() + each.gap_seconds + each.duration_seconds);
    }
  }
  const double end_before_other = end + (seconds_before_[other] - seconds_before_[row + 1]);
  constexpr double kRounding = 1e-9;  // More than that of sums in another order.
  const double surely = end_before_other - kRounding * (end_before_other + seconds_before_[size]);
  return surely - rules_->most_high_seconds > soon;
}

// Expected times of this iteration, in seconds, as LookAhead() asks for them.
struct RankCaller::Ahead {
  RankCaller* self;

  // Later calls shift with what is waited for.
  static constexpr bool looks_far() { return false; }
  bool NothingIsDue(int row, double end, double soon) const {
    return self->NothingIsDue(row, end, soon);
  }
  int size() const { return static_cast<int>(self->knobs_.size()); }
  int Clock(int row) const { return row == size() ? self->knobs_.front() : self->knobs_[row]; }
  double Gap(int row) const {
    return row == size() ? self->forecast_->wrap_gap_seconds[self->rank_]
                         : self->rows_[row].gap_seconds;
  }
  double Duration(int row) const { return self->rows_[row].duration_seconds; }
  bool HasWaitingClock() const { return self->waiting_knob_ >= 0; }
  int WaitingClock() const { return self->waiting_knob_; }
  double Doubt(int row) const { return self->rows_[row].doubt_seconds; }
  static bool Changes(int from, int to) { return to != from; }
  bool Lowers(int from, int to) const { return self->rules_->Lowers(from, to); }
  CallTime TimeOf(int knob) const {
    return {.high = self->rules_->high_seconds(knob), .least = self->rules_->least_seconds(knob)};
  }
};

void RankCaller::DecideAhead(double now) {
  const CallRule rule = {.most_high = rules_->most_high_seconds,
                         .max_early_loss = rules_->switching.max_early_loss,
                         .least_interval = rules_->switching.min_interval_seconds};
  const ClockChoice choice = LookAhead(Ahead{this}, rule,
                                       {.now = now,
                                        .row = running_ ? row_ : row_ + 1,
                                        .running = running_,
                                        .since = running_ ? begin_seconds_ : end_seconds_,
                                        .called_row = called_row_,
                                        .waits = clock_->in_effect == waiting_knob_});
  wake_seconds_ = choice.due <= choice.expected ? choice.due : kNever;
  if (choice.clock == clock_->in_effect) return;
  if (now < clock_->allowed_seconds) {
    wake_seconds_ = std::min(wake_seconds_, clock_->allowed_seconds);
    return;
  }
  Begin(choice.clock, now);
  called_row_ = choice.row;
}

void RankCaller::Begin(int knob, double now) {
  const ClockSwitching& switching = rules_->switching;
  double latency = rules_->latency_seconds(knob);
  if (switching.latency_spread_seconds > 0) {
    const double z = latency_draws_.With(clock_->calls).StandardDraw();
    latency = std::max(0.0, latency + rules_->spread_seconds(knob) * z);
  }
  wake_seconds_ = kNever;
  clock_->newest = knob;
  clock_->target = knob;
  clock_->call_end_seconds = now + latency;
  clock_->allowed_seconds = now + switching.min_interval_seconds;
  ++clock_->calls;
}

void StartCallers(const SwitchingRules& rules, const std::shared_ptr<const PlannedRows>& rows,
                  std::uint64_t seed, int pipeline, std::int64_t iteration, Forecast* forecast,
                  std::span<ClockState> clocks, std::vector<RankCaller>* callers) {
  if (forecast != nullptr) forecast->Follow(rows);
  callers->clear();
  for (int rank = 0; rank < static_cast<int>(clocks.size()); ++rank) {
    const WordHash draws = model::LatencyDraws(seed, pipeline, iteration, rank);
    if (forecast != nullptr) {
      callers->emplace_back(rules, rank, draws, forecast, &clocks[rank]);
    } else {
      callers->emplace_back(rules, rows->KnobsOf(rank), draws, &clocks[rank]);
    }
  }
}

void StartNextIteration(double iteration_seconds, ClockState* clock) {
  clock->calls = 0;
  clock->call_end_seconds = clock->calling() ? clock->call_end_seconds - iteration_seconds : 0;
  clock->allowed_seconds = std::max(0.0, clock->allowed_seconds - iteration_seconds);
}

}  // namespace perseus::switching
