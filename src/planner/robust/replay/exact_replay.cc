// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/replay/exact_replay.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>

#include "common/word_hash.h"
#include "model/nearest_options.h"
#include "model/noise.h"
#include "perseus/pipeline.h"
#include "switching/clock_state.h"
#include "switching/forecast.h"
#include "switching/rank_caller.h"

namespace perseus::robust {
namespace {

class JobReplay {
 public:
  JobReplay(const CostedPipeline& pipeline, const std::vector<CostOption>& options,
            const Conditions& conditions, int pipelines, std::uint64_t seed)
      : pipeline_(pipeline),
        options_(options),
        conditions_(conditions),
        rules_(conditions.switching, pipeline.knobs_are_numbers),
        pipelines_(pipelines),
        seed_(seed),
        noise_(model::DrawFixedNoise(pipeline, conditions.noise, pipelines, seed)) {
    std::vector<int> knobs;
    std::vector<double> durations;
    for (int i = 0; i < pipeline.dag.size(); ++i) {
      knobs.push_back(options[i].knob);
      durations.push_back(options[i].time_seconds);
    }
    rows_ = std::make_shared<const switching::PlannedRows>(
        switching::MakeRows(pipeline.dag, knobs, durations));
    for (int p = 0; p < pipelines; ++p) {
      for (int rank = 0; rank < pipeline.dag.num_ranks; ++rank) {
        const auto own = rows_->KnobsOf(rank);
        state_.clocks.push_back(switching::SettledAt(own.empty() ? 0 : own.front()));
      }
    }
    if (rules_.late() && rules_.predicts()) state_.forecasts.resize(pipelines);
    for (const CostTable& table : pipeline.tables)
      nearest_.push_back(model::NearestOptions(pipeline, table));
  }

  // What an iteration leaves to the next.
  struct State {
    std::vector<switching::ClockState> clocks;   // [pipeline x ranks + rank]
    std::vector<switching::Forecast> forecasts;  // [pipeline]; where calls are predicted.
  };
  const State& state() const { return state_; }

  void Step(std::int64_t iteration, ReplayedRun* run) {
    const int num_ranks = pipeline_.dag.num_ranks;
    double slowest = 0;
    double joules = 0;  // Less the blocking power of the time computed.
    double calls = 0;
    for (int p = 0; p < pipelines_; ++p) {
      slowest = std::max(slowest, Pipeline(p, iteration, &joules, &calls));
    }
    if (rules_.late()) {
      for (int p = 0; p < pipelines_; ++p) {
        for (int rank = 0; rank < num_ranks; ++rank) {
          calls += switching::EndIteration(
              rules_, model::LatencyDraws(seed_, p, iteration, rank), slowest,
              &state_.clocks[static_cast<std::size_t>(p) * num_ranks + rank]);
        }
      }
      for (switching::Forecast& forecast : state_.forecasts) forecast.EndIteration(slowest);
    }
    run->seconds.push_back(slowest);
    run->joules.push_back(joules / pipelines_ + pipeline_.total_blocking_power_watts * slowest);
    run->clock_calls += calls / pipelines_;
  }

 private:
  double Pipeline(int p, std::int64_t iteration, double* joules, double* calls) {
    const PipelineDag& dag = pipeline_.dag;
    const WordHash prefix = WordHash(seed_).With(model::kComputationNoise).With(p).With(iteration);
    const double sigma = conditions_.noise.per_computation;
    switching::ClockState* const clocks =
        state_.clocks.data() + static_cast<std::ptrdiff_t>(p) * dag.num_ranks;
    callers_.clear();
    if (rules_.late()) {
      if (!state_.forecasts.empty()) state_.forecasts[p].Follow(rows_);
      for (int rank = 0; rank < dag.num_ranks; ++rank) {
        const WordHash draws = model::LatencyDraws(seed_, p, iteration, rank);
        if (state_.forecasts.empty()) {
          callers_.emplace_back(rules_, rows_->KnobsOf(rank), draws, &clocks[rank]);
        } else {
          callers_.emplace_back(rules_, rank, draws, &state_.forecasts[p], &clocks[rank]);
        }
      }
    }
    const auto step = [&](int i, double ready, double* start, double* end) {
      const int rank = dag.computations[i].rank;
      const CostOption& planned = options_[i];
      const bool changes = planned.knob != clocks[rank].planned;
      if (changes) ready += conditions_.switching.stall_seconds;
      *start = ready;
      const model::GpuNoise gpus =
          noise_.gpus_of_rank.empty()
              ? model::GpuNoise{}
              : noise_.gpus_of_rank[static_cast<std::size_t>(p) * dag.num_ranks + rank];
      const double watts = pipeline_.rank_blocking_power_watts[rank];
      const double drawn = sigma > 0 ? 1 + sigma * prefix.With(i).StandardDraw() : 1;
      const double stage = noise_.stage[pipeline_.tables[pipeline_.table_of[i]].stage];
      const double noise = stage * drawn;
      const double blocked = watts * (gpus.mean / gpus.slowest);
      if (rules_.late()) {
        const auto& nearest = nearest_[pipeline_.table_of[i]];
        const CostOption* option = nullptr;
        const auto seconds_at = [&](int knob) {
          option = knob == planned.knob ? &planned : nearest[knob];
          if (option == nullptr) option = &planned;
          return option->time_seconds * stage * gpus.slowest * drawn;
        };
        const auto piece = [&](int /*knob*/, double from, double to, double share) {
          *joules += share * option->energy_joules * gpus.mean * noise - blocked * (to - from);
        };
        switching::RankCaller& caller = callers_[rank];
        caller.Start(ready);
        *end = caller.Run(ready, seconds_at, piece);
        caller.End(*end);
      } else {
        if (changes) ++*calls;
        clocks[rank] = switching::SettledAt(planned.knob);
        *end = ready + planned.time_seconds * stage * gpus.slowest * drawn;
        *joules += planned.energy_joules * gpus.mean * noise - blocked * (*end - ready);
      }
    };
    ReplayBy(dag, step, &timing_);
    if (rules_.late()) {
      for (int rank = 0; rank < dag.num_ranks; ++rank) *calls += clocks[rank].calls;
    }
    return timing_.iteration_time_seconds;
  }

  const CostedPipeline& pipeline_;
  const std::vector<CostOption>& options_;
  const Conditions& conditions_;
  switching::SwitchingRules rules_;
  int pipelines_;
  std::uint64_t seed_;
  model::FixedNoise noise_;
  std::shared_ptr<const switching::PlannedRows> rows_;
  State state_;
  std::vector<switching::RankCaller> callers_;
  std::vector<std::vector<const CostOption*>> nearest_;  // [table][knob]
  Timing timing_;
};

bool AreAlike(double one, double other, double scale) {
  constexpr double kAlike = 1e-10;
  return std::abs(one - other) <= kAlike * scale;
}

bool AreAlike(const std::vector<double>& one, const std::vector<double>& other, double scale) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [scale](double a, double b) { return AreAlike(a, b, scale); });
}

bool AreAlike(const switching::ClockState& one, const switching::ClockState& other, double scale) {
  return one.in_effect == other.in_effect && one.newest == other.newest &&
         one.planned == other.planned && one.target == other.target &&
         AreAlike(one.call_end_seconds, other.call_end_seconds, scale) &&
         AreAlike(one.allowed_seconds, other.allowed_seconds, scale);
}

bool AreAlike(const switching::Forecast& one, const switching::Forecast& other, double scale) {
  return one.measured == other.measured && one.has_last == other.has_last &&
         std::equal(one.rows.begin(), one.rows.end(), other.rows.begin(), other.rows.end(),
                    [scale](const switching::Row& a, const switching::Row& b) {
                      return AreAlike(a.duration_seconds, b.duration_seconds, scale) &&
                             AreAlike(a.gap_seconds, b.gap_seconds, scale);
                    }) &&
         AreAlike(one.wrap_gap_seconds, other.wrap_gap_seconds, scale) &&
         AreAlike(one.last_end_seconds, other.last_end_seconds, scale);
}

bool AreAlike(const JobReplay::State& one, const JobReplay::State& other, double scale) {
  const auto alike = [scale](const auto& a, const auto& b) { return AreAlike(a, b, scale); };
  return std::equal(one.clocks.begin(), one.clocks.end(), other.clocks.begin(), other.clocks.end(),
                    alike) &&
         std::equal(one.forecasts.begin(), one.forecasts.end(), other.forecasts.begin(),
                    other.forecasts.end(), alike);
}

}  // namespace

ReplayedRun ReplayJob(const CostedPipeline& pipeline, const std::vector<CostOption>& options,
                      const Conditions& conditions, int pipelines, std::int64_t iterations,
                      std::uint64_t seed) {
  ReplayedRun run;
  JobReplay replay(pipeline, options, conditions, pipelines, seed);
  for (std::int64_t n = 0; n < iterations; ++n) replay.Step(n, &run);
  if (iterations > 0) run.clock_calls /= static_cast<double>(iterations);
  return run;
}

SettledRun ReplayUntilSettled(const CostedPipeline& pipeline,
                              const std::vector<CostOption>& options, const Conditions& conditions,
                              std::int64_t most) {
  SettledRun found;
  ReplayedRun& run = found.run;
  JobReplay replay(pipeline, options, conditions, /*pipelines=*/1, /*seed=*/0);
  for (std::int64_t n = 0; n < most && !found.settled; ++n) {
    const JobReplay::State before = replay.state();
    const double calls_before = run.clock_calls;
    replay.Step(n, &run);
    found.settled = n > 0 && AreAlike(run.seconds[n], run.seconds[n - 1], run.seconds[n]) &&
                    AreAlike(run.joules[n], run.joules[n - 1], run.joules[n]) &&
                    AreAlike(before, replay.state(), run.seconds[n]);
    if (found.settled) run.clock_calls -= calls_before;
  }
  if (!found.settled) run.clock_calls /= static_cast<double>(run.seconds.size());
  return found;
}

}  // namespace perseus::robust
