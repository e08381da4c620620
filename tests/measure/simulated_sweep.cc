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

#include "model/saving_interval.h"
#include "perseus/planner.h"
#include "perseus/schedule.h"
#include "profile/rows.h"

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

namespace {

constexpr double kSigmas = 1.96;

Result<Planner> PlannerOf(const Profile& profile, const SimulatedPipeline& pipeline,
                          const std::vector<double>& blocking) {
  CostSpec costs;
  costs.blocking_power_watts = blocking;
  return Planner::Create(CostPipeline(profile, DagOf(pipeline).value(), costs).value(), {});
}

// Times of the card at the end of a sweep over those of the cold one; powers are higher by as much.
double WarmthOf(const SimulatedPipeline& pipeline, const SimulatedResult& result) {
  return 1 + pipeline.heat * (1 - std::exp(-result.seconds / pipeline.heat_seconds));
}

// The plan of the recovered profile, its interval, and what it saves in truth.
void JudgeSaving(const SimulatedPipeline& pipeline, const SimulatedResult& result,
                 Coverage* coverage) {
  Profile truth = pipeline.truth;
  for (OptionTable& table : truth.tables) {
    for (Option& option : table.options) {
      option.time_seconds *= pipeline.scale;
      option.energy_joules *= pipeline.scale;
    }
  }
  std::vector<double> blocking;
  std::string csv = "stage,instruction,frequency,time,energy,error_sources\n";
  for (const SimulatedRank& rank : result.ranks) {
    const BlockingPower power = rank.blocking.value_or(BlockingPower{pipeline.blocking_watts, 0});
    blocking.push_back(power.watts);
    for (const Estimate& row : rank.rows) {
      const double time = row.seconds_std / row.seconds;
      const double energy = row.joules_std / row.joules;
      csv += fmt::format("{},{},{},{},{},{}\n", row.kind.stage, ComputationTypeName(row.kind.type),
                         row.mhz, row.seconds, row.joules,
                         profile::FormatErrorSources(
                             {.time_std = time,
                              .power_std = std::sqrt(std::max(0.0, energy * energy - time * time)),
                              .blocking_std = power.watts_std / power.watts,
                              .time_sources = row.time_errors,
                              .power_sources = row.power_errors}));
    }
  }
  const Profile recovered = ParseProfile(csv, "recovered").value();
  const auto planner = PlannerOf(recovered, pipeline, blocking);
  const auto truth_planner = PlannerOf(truth, pipeline, {pipeline.blocking_watts});
  const auto plan = planner->PlanFor(planner->baseline().iteration_time_seconds,
                                     {.constraints = {}, .effort = 0.001});
  const auto interval = model::IntervalOfSaving(planner->pipeline(), plan->options, plan->waiting);
  std::vector<CostOption> options;
  for (int i = 0; i < planner->pipeline().dag.size(); ++i) {
    const auto knob = static_cast<std::size_t>(plan->options[static_cast<std::size_t>(i)].knob);
    const double mhz = planner->pipeline().knobs[knob].number;
    for (const CostOption& option : truth_planner->pipeline().TableOf(i).all_options) {
      const auto other = static_cast<std::size_t>(option.knob);
      if (truth_planner->pipeline().knobs[other].number == mhz) options.push_back(option);
    }
  }
  const double saving = truth_planner->Evaluate(std::move(options))->saving_percent;
  coverage->savings.Count(interval && interval->least_percent <= saving &&
                          saving <= interval->most_percent);
  if (interval) coverage->widths += interval->most_percent - interval->least_percent;
  coverage->errors += plan->saving_percent - saving;
}

}  // namespace

std::vector<Noise> Noises() {
  return {{.name = "normal, no drift"},
          {.name = "heavy tails, no drift", .heavy_tails = true},
          {.name = "heavy tails, 0.3 % drift over 2 s",
           .heavy_tails = true,
           .drift = 0.003,
           .drift_seconds = 2},
          {.name = "heavy tails, 0.3 % drift over 10 s",
           .heavy_tails = true,
           .drift = 0.003,
           .drift_seconds = 10},
          {.name = "heavy tails, 0.6 % drift over 30 s",
           .heavy_tails = true,
           .drift = 0.006,
           .drift_seconds = 30}};
}

std::vector<Noise> Disturbances() {
  return {{.name = "none"},
          {.name = "heat 1 % in 2 min", .heat = 0.01, .heat_seconds = 120},
          {.name = "heat 1 % in 10 min", .heat = 0.01, .heat_seconds = 600},
          {.name = "counter 0.1 s late", .counter_lag_seconds = 0.1},
          {.name = "counter 0.5 s late", .counter_lag_seconds = 0.5},
          {.name = "counter looks 1/4 of the time", .counter_duty = 0.25},
          {.name = "throttled above 95 %", .throttles_above = 0.95}};
}

void Disturb(const Noise& noise, SimulatedPipeline* pipeline) {
  pipeline->heavy_tails = noise.heavy_tails;
  pipeline->time_drift = noise.drift;
  pipeline->power_drift = 2 * noise.drift;
  pipeline->drift_seconds = noise.drift_seconds;
  pipeline->heat = noise.heat;
  pipeline->heat_seconds = noise.heat_seconds;
  pipeline->counter_lag_seconds = noise.counter_lag_seconds;
  pipeline->counter_duty = noise.counter_duty;
  if (noise.throttles_above == 0) return;
  double highest = 0;
  for (const Knob& knob : pipeline->truth.knobs) highest = std::max(highest, knob.number);
  double most = 0;
  for (const Knob& knob : pipeline->truth.knobs) {
    if (knob.number <= noise.throttles_above * highest) most = std::max(most, knob.number);
  }
  pipeline->throttles_above_mhz = static_cast<int>(std::lround(most));
}

void CountRows(const SimulatedPipeline& pipeline, const SimulatedResult& result,
               Coverage* coverage) {
  const double warm = WarmthOf(pipeline, result);
  for (const SimulatedRank& rank : result.ranks) {
    for (const Estimate& row : rank.rows) {
      if (IsDoubtful(row)) {
        ++coverage->doubtful;
        continue;
      }
      const Option truth = TruthOf(pipeline, row).value();
      coverage->times.Count(std::abs(row.seconds - warm * truth.time_seconds) <=
                            kSigmas * row.seconds_std);
      coverage->energies.Count(std::abs(row.joules - warm * warm * truth.energy_joules) <=
                               kSigmas * row.joules_std);
    }
    for (const WaitingRow& row : rank.waiting) {
      if (IsDoubtful(row)) {
        ++coverage->doubtful_waiting;
        continue;
      }
      coverage->waiting.Count(std::abs(row.power.watts - WaitingWatts(pipeline, row.mhz)) <=
                              kSigmas * row.power.watts_std);
    }
    if (!rank.blocking) continue;
    coverage->blocking.Count(std::abs(rank.blocking->watts - pipeline.blocking_watts) <=
                             kSigmas * rank.blocking->watts_std);
  }
}

Bias BiasOf(const SimulatedPipeline& pipeline, const SimulatedResult& result) {
  struct Error {
    double time = 0;
    double energy = 0;
  };
  const double warm = WarmthOf(pipeline, result);
  Bias bias;
  double rows = 0;
  double lowered = 0;
  for (const SimulatedRank& rank : result.ranks) {
    std::map<Kind, std::map<int, Error>> errors;  // By clock.
    for (const Estimate& row : rank.rows) {
      if (IsDoubtful(row)) continue;
      const Option truth = TruthOf(pipeline, row).value();
      const Error error = {row.seconds / (warm * truth.time_seconds) - 1,
                           row.joules / (warm * warm * truth.energy_joules) - 1};
      bias.times += error.time;
      bias.energies += error.energy;
      ++rows;
      errors[row.kind][row.mhz] = error;
    }
    for (const auto& [kind, by_clock] : errors) {
      const auto& [highest_mhz, highest] = *by_clock.rbegin();
      for (const auto& [mhz, error] : by_clock) {
        if (mhz == highest_mhz || mhz == kDefaultClockMhz) continue;
        bias.lowered_times += error.time - highest.time;
        bias.lowered_energies += error.energy - highest.energy;
        ++lowered;
      }
    }
  }
  bias.times /= std::max(1.0, rows);
  bias.energies /= std::max(1.0, rows);
  bias.lowered_times /= std::max(1.0, lowered);
  bias.lowered_energies /= std::max(1.0, lowered);
  return bias;
}

void Coverage::Add(const Coverage& other) {
  const auto add = [](const Share& from, Share* to) {
    to->within += from.within;
    to->all += from.all;
  };
  sweeps += other.sweeps;
  add(other.times, &times);
  add(other.energies, &energies);
  add(other.blocking, &blocking);
  add(other.waiting, &waiting);
  add(other.savings, &savings);
  doubtful += other.doubtful;
  doubtful_waiting += other.doubtful_waiting;
  widths += other.widths;
  errors += other.errors;
}

SimulatedPipeline Modelled(double seconds, int clocks) {
  std::string csv = "stage,instruction,frequency,time,energy\n";
  for (int stage = 0; stage < 3; ++stage) {
    for (int i = 0; i < clocks; ++i) {
      const double mhz = 1410 - 30 * i;
      const double x = mhz / 1410;
      const double time = seconds * (1 + 0.05 * stage) * (0.2 + 0.8 / x);
      csv += fmt::format("{},forward,{},{},{}\n", stage, mhz, time, time * (90 + 330 * x * x * x));
      csv += fmt::format("{},backward,{},{},{}\n", stage, mhz, 1.9 * time,
                         1.9 * time * (90 + 380 * x * x * x));
    }
  }
  SimulatedPipeline pipeline;
  pipeline.truth = ParseProfile(csv, "modelled").value();
  pipeline.microbatches = 8;
  pipeline.sweep.order.least_mhz = 1410 - 30 * (clocks - 1);
  return pipeline;
}

void AddSweep(const Noise& noise, std::uint64_t seed, Coverage* coverage) {
  SimulatedPipeline pipeline = Modelled(seed % 2 == 0 ? 0.05 : 0.02, 16);
  pipeline.counter_seconds = 0.02 + 0.02 * static_cast<double>(seed % 4);
  Disturb(noise, &pipeline);
  pipeline.seed = seed;
  const auto result = SimulateSweep(pipeline);
  if (!result) return;
  ++coverage->sweeps;
  CountRows(pipeline, *result, coverage);
  JudgeSaving(pipeline, *result, coverage);
}

std::string Row(const std::string& name, const Coverage& coverage) {
  return fmt::format("{:<44} {:>6} {:>7.1f} {:>10.1f} {:>9.1f} {:>8.1f} {:>7.2f} {:>7.3f}", name,
                     coverage.sweeps, coverage.times.percent(), coverage.energies.percent(),
                     coverage.blocking.percent(), coverage.savings.percent(),
                     coverage.sweeps == 0 ? 0 : coverage.widths / coverage.sweeps,
                     coverage.sweeps == 0 ? 0 : coverage.errors / coverage.sweeps);
}

}  // namespace perseus::measure
