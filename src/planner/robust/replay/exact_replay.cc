// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/replay/exact_replay.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>

#include "model/nearest_options.h"
#include "model/noise.h"
#include "perseus/pipeline.h"
#include "switching/clock_state.h"
#include "switching/forecast.h"
#include "switching/rank_caller.h"
#include "switching/replay_at_clocks.h"

namespace perseus::robust {
namespace {

class JobReplay {
 public:
  JobReplay(const CostedPipeline& pipeline, const std::vector<CostOption>& options, Waiting waiting,
            const Conditions& conditions, int pipelines, std::uint64_t seed,
            const std::vector<double>& true_times)
      : pipeline_(pipeline),
        options_(options),
        conditions_(conditions),
        true_times_(true_times),
        rules_(conditions.switching, pipeline),
        pipelines_(pipelines),
        seed_(seed),
        noise_(model::DrawFixedNoise(pipeline, conditions.noise, pipelines, seed)),
        iteration_noise_(conditions.noise, pipeline.dag.num_ranks) {
    std::vector<int> knobs;
    std::vector<double> durations;
    for (int i = 0; i < pipeline.dag.size(); ++i) {
      knobs.push_back(options[i].knob);
      durations.push_back(options[i].time_seconds);
    }
    switching::PlannedRows rows = switching::MakeRows(pipeline.dag, knobs, durations);
    rows.waiting_knobs = switching::WaitingKnobsOf(pipeline, waiting, rules_);
    rows_ = std::make_shared<const switching::PlannedRows>(std::move(rows));
    if (pipeline.waiting_depends_on_clock()) {
      last_ends_.assign(static_cast<std::size_t>(pipelines) * pipeline.dag.num_ranks, 0);
    }
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
    for (int p = 0; p < pipelines_; ++p) {
      for (int rank = 0; rank < num_ranks; ++rank) {
        const std::size_t of = static_cast<std::size_t>(p) * num_ranks + rank;
        const double since = last_ends_.empty() ? slowest : last_ends_[of];
        const auto waited = [&](int knob, double from, double to) {
          joules += pipeline_.DearerWatts(rank, knob) * (to - from);
        };
        if (rules_.late()) {
          calls += switching::EndIteration(rules_, model::LatencyDraws(seed_, p, iteration, rank),
                                           since, slowest, &state_.clocks[of], waited);
        } else if (rows_->waiting_knobs.empty() && slowest > since) {
          waited(state_.clocks[of].in_effect, since, slowest);
        }
      }
    }
    if (rules_.late()) {
      for (switching::Forecast& forecast : state_.forecasts) forecast.EndIteration(slowest);
    }
    run->seconds.push_back(slowest);
    run->joules.push_back(joules / pipelines_ + pipeline_.total_blocking_power_watts * slowest);
    run->clock_calls += calls / pipelines_;
  }

 private:
  // What the computations of pipeline `p` cost.
  class Books {
   public:
    Books(JobReplay& job, int p, std::int64_t iteration, double* joules)
        : job_(job),
          first_gpus_(static_cast<std::size_t>(p) * job.pipeline_.dag.num_ranks),
          last_ends_(job.last_ends_.empty() ? nullptr : job.last_ends_.data() + first_gpus_),
          joules_(joules) {
      job.iteration_noise_.Begin(job.seed_, p, iteration);
    }

    bool counts_waits() const { return last_ends_ != nullptr; }
    void Wait(int rank, int knob, double from, double to) {
      *joules_ += job_.pipeline_.DearerWatts(rank, knob) * (to - from);
    }

    switching::Planned Begin(int i, double* /*ready*/) {
      const int rank = job_.pipeline_.dag.computations[i].rank;
      rank_ = rank;
      const int table = job_.pipeline_.table_of[i];
      planned_ = &job_.options_[i];
      nearest_ = &job_.nearest_[table];
      first_true_ = static_cast<std::size_t>(table) * job_.pipeline_.knobs.size();
      if (!job_.noise_.gpus_of_rank.empty()) gpus_ = job_.noise_.gpus_of_rank[first_gpus_ + rank];
      drawn_ = job_.iteration_noise_.Of(i, rank);
      stage_ = job_.noise_.stage[job_.pipeline_.tables[table].stage];
      blocked_watts_ =
          job_.pipeline_.rank_blocking_power_watts[rank] * (gpus_.mean / gpus_.slowest);
      return {rank, planned_->knob};
    }
    double SecondsAt(int knob) {
      option_ = knob == planned_->knob ? planned_ : (*nearest_)[knob];
      if (option_ == nullptr) option_ = planned_;
      knob_ = knob;
      true_ = job_.true_times_.empty() ? 1 : job_.true_times_[first_true_ + option_->knob];
      return option_->time_seconds * true_ * stage_ * gpus_.slowest * drawn_;
    }
    void Count(double from, double to, double share) {
      *joules_ += share * (option_->energy_joules * true_) * gpus_.mean * (stage_ * drawn_) -
                  blocked_watts_ * (to - from);
      if (last_ends_ == nullptr) return;
      // GPUs of a rank that are done wait for its slowest, at the clock of the computation.
      const double idle = 1 - gpus_.mean / gpus_.slowest;
      *joules_ += job_.pipeline_.DearerWatts(rank_, knob_) * idle * (to - from);
    }
    void End(double /*start*/, double end) {
      if (last_ends_ != nullptr) last_ends_[rank_] = end;
    }

   private:
    JobReplay& job_;
    std::size_t first_gpus_;
    double* last_ends_;  // [rank] Null where what waiting draws is constant.
    double* joules_;
    int rank_ = 0;
    int knob_ = 0;  // That was asked for last.
    // Of the computation that runs:
    const CostOption* planned_ = nullptr;
    const CostOption* option_ = nullptr;  // At the knob that was asked for last.
    const std::vector<const CostOption*>* nearest_ = nullptr;  // [knob]
    std::size_t first_true_ = 0;                               // Of its table, in true_times_.
    double true_ = 1;                                          // Of option_.
    model::GpuNoise gpus_;
    double drawn_ = 1;
    double stage_ = 1;
    double blocked_watts_ = 0;
  };

  double Pipeline(int p, std::int64_t iteration, double* joules, double* calls) {
    const PipelineDag& dag = pipeline_.dag;
    const std::span<switching::ClockState> clocks =
        std::span(state_.clocks)
            .subspan(static_cast<std::size_t>(p) * dag.num_ranks, dag.num_ranks);
    const double stall = conditions_.switching.stall_seconds;
    Books books(*this, p, iteration, joules);
    switching::ReplayCounts counts;
    if (rules_.late()) {
      switching::StartCallers(rules_, rows_, seed_, p, iteration,
                              state_.forecasts.empty() ? nullptr : &state_.forecasts[p], clocks,
                              &callers_);
      counts = switching::ReplayAtClocks<true>(dag, stall, clocks, callers_, {}, &books, &timing_);
    } else {
      counts = switching::ReplayAtClocks<false>(dag, stall, clocks, {}, rows_->waiting_knobs,
                                                &books, &timing_);
    }
    *calls += static_cast<double>(counts.calls);
    return timing_.iteration_time_seconds;
  }

  const CostedPipeline& pipeline_;
  const std::vector<CostOption>& options_;
  const Conditions& conditions_;
  const std::vector<double>& true_times_;
  switching::SwitchingRules rules_;
  int pipelines_;
  std::uint64_t seed_;
  model::FixedNoise noise_;
  model::IterationNoise iteration_noise_;
  std::shared_ptr<const switching::PlannedRows> rows_;
  State state_;
  std::vector<double> last_ends_;  // [pipeline x ranks + rank]; as Books::last_ends_.
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
                             AreAlike(a.gap_seconds, b.gap_seconds, scale) &&
                             AreAlike(a.doubt_seconds, b.doubt_seconds, scale);
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
                      Waiting waiting, const Conditions& conditions, int pipelines,
                      std::int64_t iterations, std::uint64_t seed,
                      const std::vector<double>& true_times) {
  ReplayedRun run;
  JobReplay replay(pipeline, options, waiting, conditions, pipelines, seed, true_times);
  for (std::int64_t n = 0; n < iterations; ++n) replay.Step(n, &run);
  if (iterations > 0) run.clock_calls /= static_cast<double>(iterations);
  return run;
}

SettledRun ReplayUntilSettled(const CostedPipeline& pipeline,
                              const std::vector<CostOption>& options, Waiting waiting,
                              const Conditions& conditions, std::int64_t most) {
  SettledRun found;
  ReplayedRun& run = found.run;
  const std::vector<double> as_measured;
  JobReplay replay(pipeline, options, waiting, conditions, /*pipelines=*/1, /*seed=*/0,
                   as_measured);
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
