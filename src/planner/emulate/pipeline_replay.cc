// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "emulate/pipeline_replay.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <tuple>

#include "model/iteration_energy.h"
#include "switching/clock_replay.h"

namespace perseus::emulate {
void RankLimits::Add(StragglerKind kind, double value) {
  switch (kind) {
    case StragglerKind::kSlow:
      slow *= value;
      break;
    case StragglerKind::kClockCap:
      most_mhz = std::min(most_mhz, value);
      break;
    case StragglerKind::kPowerCap:
      most_watts = std::min(most_watts, value);
      break;
    case StragglerKind::kDataStall:
      stall_seconds = std::max(stall_seconds, value);
      break;
  }
}

OptionsByKnob::OptionsByKnob(const CostedPipeline& pipeline, const model::FixedNoise& noise,
                             std::span<const double> true_times)
    : knobs_(pipeline.knobs.size()), table_of_(pipeline.table_of), true_times_(true_times) {
  for (std::size_t t = 0; t < pipeline.tables.size(); ++t) {
    const CostTable& table = pipeline.tables[t];
    const int first = static_cast<int>(options_.size());
    stage_noise_.push_back(noise.stage[table.stage]);
    for (const CostOption& option : table.all_options) {
      options_.push_back(TimedIn(static_cast<int>(t), option));
    }
    for (const CostOption* nearest : model::NearestOptions(pipeline, table)) {
      const auto place = nearest == nullptr ? -1 - first : nearest - table.all_options.data();
      index_.push_back(first + static_cast<int>(place));
    }
  }
}

CostOption LimitedOption(const CostedPipeline& pipeline, const CostTable& table,
                         const CostOption& planned, const RankLimits& limits) {
  CostOption option = planned;
  const auto mhz = [&](const CostOption& o) { return pipeline.knobs[o.knob].number; };
  if (std::isfinite(limits.most_mhz) && mhz(option) > limits.most_mhz) {
    const auto allowed =
        std::find_if(table.all_options.begin(), table.all_options.end(),
                     [&](const CostOption& o) { return mhz(o) <= limits.most_mhz; });
    option = allowed == table.all_options.end() ? table.all_options.back() : *allowed;
  }
  const auto watts = [&](const CostOption& o) {
    return o.energy_joules / o.time_seconds / pipeline.tensor_parallel;
  };
  if (watts(option) <= limits.most_watts) return option;
  // Fastest first; where none is allowed, of least power first.
  const auto rank = [&](const CostOption& o) {
    const bool allowed = watts(o) <= limits.most_watts;
    return std::tuple(!allowed, allowed ? 0 : watts(o), o.time_seconds, o.energy_joules);
  };
  const CostOption before = option;
  for (const CostOption& other : table.all_options) {
    const bool above = pipeline.knobs_are_numbers && mhz(other) > mhz(before);
    if (!above && rank(other) < rank(option)) option = other;
  }
  return option;
}

const LimitedPlan& LimitedPlans::Get(int plan_index, const Plan& plan,
                                     const std::vector<RankLimits>& limits) {
  std::unique_ptr<LimitedPlan>& limited = plans_[{plan_index, limits}];
  if (!limited) limited = Make(plan, limits);
  return *limited;
}

std::unique_ptr<LimitedPlan> LimitedPlans::Make(const Plan& plan,
                                                const std::vector<RankLimits>& limits) {
  const PipelineDag& dag = pipeline_.dag;
  auto limited = std::make_unique<LimitedPlan>();
  limited->serial = next_serial_++;
  limited->straggles = !limits.empty();
  for (int rank = 0; rank < dag.num_ranks; ++rank) {
    limited->slow.push_back(limits.empty() ? 1 : limits[rank].slow);
    limited->stall_seconds.push_back(limits.empty() ? 0 : limits[rank].stall_seconds);
  }
  std::vector<double> durations(dag.size());
  std::vector<double> busy_seconds(dag.num_ranks, 0);
  for (int i = 0; i < dag.size(); ++i) {
    const int rank = dag.computations[i].rank;
    const CostOption option = limits.empty() ? plan.options[i]
                                             : LimitedOption(pipeline_, pipeline_.TableOf(i),
                                                             plan.options[i], limits[rank]);
    durations[i] = option.time_seconds;
    busy_seconds[rank] += option.time_seconds;
    limited->computing_joules += option.energy_joules;
    limited->computations.push_back(
        {.option = options_.Timed(i, option), .knob = option.knob, .rank = rank});
  }
  for (int rank = 0; rank < dag.num_ranks; ++rank) {
    limited->busy_joules += pipeline_.rank_blocking_power_watts[rank] * busy_seconds[rank];
  }
  std::vector<int> knobs;
  for (const LimitedComputation& computation : limited->computations) {
    knobs.push_back(computation.knob);
  }
  switching::PlannedRows rows = switching::MakeRows(dag, knobs, durations);
  rows.waiting_knobs = switching::WaitingKnobsOf(pipeline_, plan.waiting, rules_);
  limited->waiting = rows.waiting_knobs.empty() ? Waiting::kSetClock : Waiting::kCheapest;
  limited->rows = std::make_shared<const switching::PlannedRows>(std::move(rows));
  limited->time_seconds = Replay(dag, durations).iteration_time_seconds;
  Timing timing;
  const auto run = [&](int i, double ready, double* start, double* end) {
    const Computation& computation = dag.computations[i];
    *start = computation.position == 0 ? std::max(ready, limited->stall_seconds[computation.rank])
                                       : ready;
    *end = *start + durations[i] * limited->slow[computation.rank];
  };
  ReplayBy(dag, run, &timing);
  limited->nominal_seconds = timing.iteration_time_seconds;
  return limited;
}

PipelineReplay::PipelineReplay(const CostedPipeline& pipeline, const EmulationSpec& spec,
                               const OptionsByKnob& options, const model::FixedNoise& noise)
    : pipeline_(pipeline),
      spec_(spec),
      options_(options),
      noise_(noise),
      iteration_noise_(spec.noise, pipeline.dag.num_ranks),
      rules_(spec.switching, pipeline),
      ranks_(pipeline.dag.num_ranks),
      joules_(pipeline.dag.size()) {}

void PipelineReplay::Run(const LimitedPlan& plan, int pipeline, std::int64_t iteration,
                         std::span<const switching::ClockState> clocks,
                         const switching::Forecast* forecast, PipelineRun* run) {
  const int num_ranks = pipeline_.dag.num_ranks;
  for (int r = 0; r < num_ranks; ++r) {
    RankFactors& rank = ranks_[r];
    rank = {};
    rank.slow = plan.slow[r];
    rank.stall_seconds = plan.stall_seconds[r];
    rank.blocking_watts = pipeline_.rank_blocking_power_watts[r];
    if (!noise_.gpus_of_rank.empty()) {
      const model::GpuNoise& gpus =
          noise_.gpus_of_rank[static_cast<std::size_t>(pipeline) * num_ranks + r];
      rank.gpu_noise = gpus.slowest;
      rank.gpu_mean = gpus.mean;
      rank.computing_share = gpus.mean / gpus.slowest;
    }
  }
  run->totals = {};
  run->segments.clear();
  run->clocks.assign(clocks.begin(), clocks.end());

  const bool noisy = spec_.noise.each_iteration();
  const bool late = rules_.late();
  if (late) {
    if (forecast != nullptr) run->forecast = *forecast;
    switching::StartCallers(rules_, plan.rows, spec_.seed, pipeline, iteration,
                            forecast == nullptr ? nullptr : &run->forecast, run->clocks, &callers_);
  }
  if (noisy) iteration_noise_.Begin(spec_.seed, pipeline, iteration);
  if (noisy && late) {
    RunAs<true, true>(plan, run);
  } else if (noisy) {
    RunAs<true, false>(plan, run);
  } else if (late) {
    RunAs<false, true>(plan, run);
  } else {
    RunAs<false, false>(plan, run);
  }
  run->totals.time_seconds = timing_.iteration_time_seconds;
  for (const RankFactors& rank : ranks_) {
    run->totals.busy_joules += rank.blocking_watts * (rank.computing_share * rank.busy_seconds);
  }
  run->last_ends.clear();
  if (pipeline_.waiting_depends_on_clock()) {
    for (const RankFactors& rank : ranks_) run->last_ends.push_back(rank.last_end_seconds);
  }
  run->totals.peak_gpu_watts /= pipeline_.tensor_parallel;
}

// Costs of the computations of one pipeline.
template <bool kNoisy>
class PipelineReplay::Books {
 public:
  Books(PipelineReplay* replay, const LimitedPlan& plan, PipelineRun* run)
      : replay_(*replay), plan_(plan), run_(*run) {}

  bool counts_waits() const { return replay_.pipeline_.waiting_depends_on_clock(); }
  void Wait(int rank, int knob, double from, double to) {
    AddDearer(replay_.pipeline_.DearerWatts(rank, knob), from, to);
  }
  switching::Planned Begin(int i, double* ready) {
    i_ = i;
    planned_ = &plan_.computations[i];
    rank_ = &replay_.ranks_[planned_->rank];
    if (!rank_->started) {
      *ready = std::max(*ready, rank_->stall_seconds);
      rank_->started = true;
    }
    if constexpr (kNoisy) noise_ = replay_.iteration_noise_.Of(i, planned_->rank);
    joules_ = 0;
    return {planned_->rank, planned_->knob};
  }
  double SecondsAt(int knob) {
    option_ = knob == planned_->knob ? nullptr : replay_.options_.Find(i_, knob);
    if (option_ == nullptr) option_ = &planned_->option;
    knob_ = knob;
    return option_->time_seconds * rank_->gpu_noise * rank_->slow * noise_;
  }
  void Count(double from, double to, double share) {
    joules_ += share * (option_->energy_joules * rank_->gpu_mean * rank_->slow * noise_);
    const double watts = option_->watts;
    run_.segments.push_back({from, to, (watts - rank_->blocking_watts) * rank_->computing_share});
    RunTotals& totals = run_.totals;
    totals.peak_gpu_watts = std::max(totals.peak_gpu_watts, watts * rank_->computing_share);
    // GPUs of a rank that are done wait for its slowest, at the clock of the computation.
    AddDearer(replay_.pipeline_.DearerWatts(planned_->rank, knob_) * (1 - rank_->computing_share),
              from, to);
  }
  void End(double start, double end) {
    replay_.joules_[i_] = joules_;
    run_.totals.computing_joules += joules_;
    rank_->busy_seconds += end - start;
    rank_->last_end_seconds = end;
  }

 private:
  void AddDearer(double watts, double from, double to) {
    if (watts == 0) return;
    run_.segments.push_back({from, to, watts});
    run_.totals.dearer_waiting_joules += watts * (to - from);
  }

  PipelineReplay& replay_;
  const LimitedPlan& plan_;
  PipelineRun& run_;
  // Of the computation that runs:
  int i_ = 0;
  const LimitedComputation* planned_ = nullptr;
  RankFactors* rank_ = nullptr;
  int knob_ = 0;                         // That was asked for last.
  const TimedOption* option_ = nullptr;  // At this knob.
  double noise_ = 1;
  double joules_ = 0;
};

template <bool kNoisy, bool kLate>
void PipelineReplay::RunAs(const LimitedPlan& plan, PipelineRun* run) {
  Books<kNoisy> books(this, plan, run);
  const switching::ReplayCounts counts =
      switching::ReplayAtClocks<kLate>(pipeline_.dag, spec_.switching.stall_seconds, run->clocks,
                                       callers_, plan.rows->waiting_knobs, &books, &timing_);
  run->totals.clock_calls = counts.calls;
  run->totals.late_computations = counts.late;
}

}  // namespace perseus::emulate
