// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/simulated_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <random>
#include <utility>

#include "perseus/schedule.h"

namespace perseus::measure {
namespace {

constexpr double kNsPerSecond = 1e9;
constexpr std::int64_t kFirstNs = 3'000'000'000;

std::int64_t Ns(double seconds) { return kFirstNs + std::llround(seconds * kNsPerSecond); }

struct RunSpan {
  Kind kind;
  double begin = 0;
  double end = 0;
  double watts = 0;
  double work = 0;
};

// An Ornstein-Uhlenbeck process of standard deviation 1.
class Wander {
 public:
  double At(double seconds, double memory_seconds, std::mt19937_64* random) {
    std::normal_distribution<double> normal;
    const double kept = at_ < 0 ? 0 : std::exp(-std::max(0.0, seconds - at_) / memory_seconds);
    value_ = kept * value_ + std::sqrt(1 - kept * kept) * normal(*random);
    at_ = seconds;
    return value_;
  }

 private:
  double at_ = -1;
  double value_ = 0;
};

// One rank's card and its sweep.
class Rank {
 public:
  Rank(const SimulatedPipeline& pipeline, const std::vector<int>& clocks, std::uint64_t seed)
      : pipeline_(pipeline), sweep_(clocks, pipeline.sweep), random_(seed) {
    clock_ = clocks.back();
    phase_ = pipeline.counter_seconds * Uniform();
    next_tick_ = phase_;
  }

  bool done() const { return sweep_.done(); }
  Sweep& sweep() { return sweep_; }

  // Of standard deviation 1.
  double Noise() {
    if (!pipeline_.heavy_tails) return normal_(random_);
    constexpr double kFreedom = 3;
    return std::student_t_distribution<double>(kFreedom)(random_) / std::sqrt(kFreedom);
  }
  bool Stalls() { return pipeline_.heavy_tails && Uniform() < 1.0 / 300; }
  double TimeDrift(double at) {
    return Heat(at) + pipeline_.time_drift * time_drift_.At(at, pipeline_.drift_seconds, &random_);
  }
  double PowerDrift(double at) {
    return Heat(at) +
           pipeline_.power_drift * power_drift_.At(at, pipeline_.drift_seconds, &random_);
  }

  // The clock of a computation that begins then.
  int ClockAt(double seconds) {
    if (change_ && seconds >= change_->first) {
      clock_ = change_->second;
      change_.reset();
    }
    return ActualClock();
  }

  void BeginIteration(double begin) {
    const int wanted = sweep_.done() ? 0 : sweep_.clock_mhz();
    const bool wants = wanted != 0 || sweep_.measures_default_clocks();
    if (wants && (wanted != asked_ || !sweep_.clock_in_effect())) {
      asked_ = wanted;
      change_ = {begin + pipeline_.change_seconds, wanted};
      in_effect_ = begin + pipeline_.change_seconds;
      sweep_.ClockInEffect(Ns(*in_effect_));
    }
  }

  void EndIteration(std::int64_t number, double begin, double end, double compute_end,
                    const std::vector<RunSpan>& spans) {
    // The whole iteration at the clock of its end: those that a clock changes in do not count.
    const double waiting_watts = WaitingWatts(pipeline_, ActualClock());
    sweep_.BeginIteration(number, Ns(begin));
    double at = begin;
    for (const RunSpan& span : spans) {
      Draw(at, span.begin, waiting_watts);
      Show(span.begin);
      if (span.work > 0) sweep_.SetWork(span.work);
      sweep_.Begin(span.kind, Ns(span.begin));
      Draw(span.begin, span.end, span.watts);
      Show(span.end);
      sweep_.End(Ns(span.end));
      at = span.end;
    }
    Draw(at, compute_end, waiting_watts);
    Draw(compute_end, end, pipeline_.rest_watts);
    Show(end);
    sweep_.EndIteration(Ns(end));
    if (sweep_.ended() && !sweep_.done()) sweep_.Finish();
    for (Estimate& row : sweep_.TakeRows()) rows_[{row.kind, row.mhz}] = row;
  }

  SimulatedRank Result() {
    SimulatedRank result;
    for (const auto& [key, row] : rows_) result.rows.push_back(row);
    result.blocking = sweep_.blocking();
    result.waiting = sweep_.waiting();
    result.cost = sweep_.cost();
    result.counter_period_seconds = sweep_.counter_period_seconds();
    result.notes = sweep_.TakeNotes();
    return result;
  }

 private:
  double Uniform() { return std::uniform_real_distribution<double>(0, 1)(random_); }

  int ActualClock() const {
    const int most = pipeline_.throttles_above_mhz;
    return most > 0 ? std::min(clock_, most) : clock_;
  }

  double Heat(double at) const {
    return pipeline_.heat * (1 - std::exp(-at / pipeline_.heat_seconds));
  }

  // The card draws so much from then to then, and its counter steps.
  void Draw(double begin, double end, double watts) {
    const double sampled = pipeline_.counter_duty * pipeline_.counter_seconds;
    while (next_tick_ < end) {
      Count(begin, next_tick_, sampled, watts);
      begin = std::max(begin, next_tick_);
      steps_.push_back({next_tick_ + pipeline_.counter_lag_seconds, joules_});
      next_tick_ += pipeline_.counter_seconds;
    }
    Count(begin, end, sampled, watts);
  }

  void Count(double begin, double end, double sampled, double watts) {
    const double seconds = end - std::max(begin, next_tick_ - sampled);
    if (seconds > 0) joules_ += watts * seconds / pipeline_.counter_duty;
  }

  // The counter is read until then.
  void Show(double end) {
    for (; !steps_.empty() && steps_.front().at < end; steps_.pop_front()) {
      // Only the reads beside a step matter: all others show what the one before did.
      const double before =
          std::max(last_read_ + 1e-5, steps_.front().at - pipeline_.read_seconds * Uniform());
      const double after = before + pipeline_.read_seconds;
      sweep_.AddRead(counter_, Ns(before - 1e-4), Ns(before));
      counter_ = std::floor(steps_.front().joules * 1000) / 1000;
      sweep_.AddRead(counter_, Ns(after - 1e-4), Ns(after));
      last_read_ = after;
    }
  }

  struct Step {
    double at = 0;  // When it is shown.
    double joules = 0;
  };

  const SimulatedPipeline& pipeline_;
  Sweep sweep_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  Wander time_drift_;
  Wander power_drift_;
  int clock_ = 0;
  int asked_ = 0;
  std::optional<std::pair<double, int>> change_;
  std::optional<double> in_effect_;
  double phase_ = 0;
  double next_tick_ = 0;
  double last_read_ = 0;
  double joules_ = 0;
  double counter_ = 0;
  std::deque<Step> steps_;  // Not shown yet.
  std::map<std::pair<Kind, int>, Estimate> rows_;
};

}  // namespace

double WaitingWatts(const SimulatedPipeline& pipeline, double mhz) {
  double highest = 1;
  for (const Knob& knob : pipeline.truth.knobs) highest = std::max(highest, knob.number);
  if (mhz == kDefaultClockMhz) mhz = highest;
  const double below = 1 - std::pow(mhz / highest, pipeline.waiting_power);
  return pipeline.blocking_watts * (1 - pipeline.waiting_share * below);
}

std::optional<Option> TruthOf(const SimulatedPipeline& pipeline, const Estimate& row) {
  if (row.mhz == kDefaultClockMhz) {
    const DefaultClockCost* cost =
        pipeline.truth.FindDefaultClockCost(row.kind.stage, row.kind.type);
    if (cost == nullptr) return std::nullopt;
    return Option{.time_seconds = cost->time_seconds * pipeline.scale,
                  .energy_joules = cost->energy_joules * pipeline.scale};
  }
  const OptionTable* table = pipeline.truth.Find(row.kind.stage, row.kind.type);
  if (table == nullptr) return std::nullopt;
  for (Option option : table->options) {
    if (std::lround(pipeline.truth.knobs[static_cast<std::size_t>(option.knob)].number) !=
        row.mhz) {
      continue;
    }
    option.time_seconds *= pipeline.scale;
    option.energy_joules *= pipeline.scale;
    return option;
  }
  return std::nullopt;
}

Result<PipelineDag> DagOf(const SimulatedPipeline& pipeline) {
  ScheduleSpec spec;
  spec.name = pipeline.schedule;
  spec.num_stages = pipeline.truth.num_stages;
  spec.num_microbatches = pipeline.microbatches;
  Result<Schedule> schedule = BuildSchedule(spec);
  if (!schedule) return tl::unexpected(schedule.error());
  return BuildDag(*schedule, {});
}

Result<SimulatedResult> SimulateSweep(const SimulatedPipeline& pipeline) {
  Result<PipelineDag> dag = DagOf(pipeline);
  if (!dag) return tl::unexpected(dag.error());
  std::vector<int> clocks;
  for (const Knob& knob : pipeline.truth.knobs) {
    clocks.push_back(static_cast<int>(std::lround(knob.number)));
  }
  std::sort(clocks.begin(), clocks.end());
  std::map<std::pair<Kind, int>, Option> truth;
  for (const OptionTable& table : pipeline.truth.tables) {
    for (const Option& option : table.options) {
      Estimate row;
      row.kind = {table.type, table.stage};
      row.mhz = static_cast<int>(
          std::lround(pipeline.truth.knobs[static_cast<std::size_t>(option.knob)].number));
      truth[{row.kind, row.mhz}] = TruthOf(pipeline, row).value_or(option);
    }
  }
  for (const OptionTable& table : pipeline.truth.tables) {
    for (const int mhz : clocks) {
      if (truth.contains({{table.type, table.stage}, mhz})) continue;
      return MakeError(ErrorCode::kInvalidInput,
                       fmt::format("stage {}, {}: the profile has no row at {} MHz; a sweep runs "
                                   "all kinds at each clock",
                                   table.stage, ComputationTypeName(table.type), mhz));
    }
  }
  for (const DefaultClockCost& cost : pipeline.truth.default_clocks) {
    Estimate row;
    row.kind = {cost.type, cost.stage};
    truth[{row.kind, kDefaultClockMhz}] = TruthOf(pipeline, row).value();
  }
  std::vector<Rank> ranks;
  ranks.reserve(static_cast<std::size_t>(dag->num_ranks));
  for (int i = 0; i < dag->num_ranks; ++i) {
    ranks.emplace_back(pipeline, clocks, pipeline.seed * 1000 + static_cast<std::uint64_t>(i));
  }
  SimulatedResult result;
  double begin = 0.1;
  const auto all_done = [&] {
    return std::all_of(ranks.begin(), ranks.end(), [](const Rank& rank) { return rank.done(); });
  };
  for (; result.iterations < pipeline.most_iterations && !all_done(); ++result.iterations) {
    for (Rank& rank : ranks) rank.BeginIteration(begin);
    std::vector<std::vector<RunSpan>> spans(ranks.size());
    Timing timing;
    ReplayBy(
        *dag,
        [&](int i, double ready, double* start, double* end) {
          const Computation& computation = dag->computations[static_cast<std::size_t>(i)];
          Rank& rank = ranks[static_cast<std::size_t>(computation.rank)];
          RunSpan span;
          span.kind = {computation.id.type, computation.id.stage};
          const Option& option = truth.at({span.kind, rank.ClockAt(begin + ready)});
          double cost = 1;
          if (pipeline.work) {
            span.work = pipeline.work(computation.id.microbatch, result.iterations);
            cost = pipeline.cost_of_work(span.work);
          }
          const double seconds =
              option.time_seconds * cost * (rank.Stalls() ? 3 : 1) *
              std::max(0.5, 1 + pipeline.time_noise * rank.Noise() + rank.TimeDrift(begin + ready));
          span.watts = option.energy_joules / option.time_seconds *
                       std::max(0.1, 1 + pipeline.power_noise * rank.Noise() +
                                         rank.PowerDrift(begin + ready));
          *start = ready;
          *end = ready + seconds;
          span.begin = begin + *start;
          span.end = begin + *end;
          spans[static_cast<std::size_t>(computation.rank)].push_back(span);
        },
        &timing);
    const double compute_end = begin + timing.iteration_time_seconds;
    const double end = compute_end + pipeline.rest_seconds;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      ranks[i].EndIteration(result.iterations, begin, end, compute_end, spans[i]);
    }
    begin = end + 0.001;
  }
  result.seconds = begin;
  for (Rank& rank : ranks) result.ranks.push_back(rank.Result());
  return result;
}

}  // namespace perseus::measure
