// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/trials.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>

#include "common/word_hash.h"
#include "emulate/pipeline_replay.h"
#include "model/noise.h"
#include "model/saving_interval.h"
#include "perseus/emulator.h"
#include "perseus/pipeline.h"
#include "switching/clock_replay.h"

namespace perseus::robust {
namespace {

EmulationSpec SpecOf(const Conditions& conditions, int pipelines, std::uint64_t seed) {
  EmulationSpec spec;
  spec.pipelines = pipelines;
  spec.noise = conditions.noise;
  spec.switching = conditions.switching;
  spec.seed = seed;
  return spec;
}

Plan PlanOf(const std::vector<CostOption>& options, Waiting waiting) {
  Plan plan;
  plan.options = options;
  plan.waiting = waiting;
  return plan;
}

class JobReplay {
 public:
  JobReplay(const CostedPipeline& pipeline, const std::vector<CostOption>& options, Waiting waiting,
            const Conditions& conditions, int pipelines, std::uint64_t seed,
            const std::vector<double>& true_times)
      : pipeline_(pipeline),
        ranks_(pipeline.dag.num_ranks),
        spec_(SpecOf(conditions, pipelines, seed)),
        rules_(conditions.switching, pipeline),
        noise_(model::DrawFixedNoise(pipeline, conditions.noise, pipelines, seed)),
        options_(pipeline, noise_, true_times),
        plans_(pipeline, options_, conditions.switching),
        plan_(plans_.Get(0, PlanOf(options, waiting), {})),
        replay_(pipeline, spec_, options_, noise_) {
    for (int p = 0; p < pipelines; ++p) {
      for (int rank = 0; rank < ranks_; ++rank) {
        const auto own = plan_.rows->KnobsOf(rank);
        state_.clocks.push_back(switching::SettledAt(own.empty() ? 0 : own.front()));
      }
    }
    if (pipeline.waiting_depends_on_clock()) last_ends_.resize(state_.clocks.size());
    if (rules_.late() && rules_.predicts()) state_.forecasts.resize(pipelines);
  }

  // State that an iteration leaves to the next.
  struct State {
    std::vector<switching::ClockState> clocks;   // [pipeline x ranks + rank]
    std::vector<switching::Forecast> forecasts;  // [pipeline]; where calls are predicted.
  };
  const State& state() const { return state_; }

  void Step(std::int64_t iteration, ReplayedRun* run) {
    double slowest = 0;
    double joules = 0;  // Less the blocking power of the time computed.
    double calls = 0;
    for (int p = 0; p < spec_.pipelines; ++p) {
      const std::span<switching::ClockState> clocks =
          std::span(state_.clocks).subspan(static_cast<std::size_t>(p) * ranks_, ranks_);
      switching::Forecast* const forecast =
          state_.forecasts.empty() ? nullptr : &state_.forecasts[p];
      replay_.Run(plan_, p, iteration, clocks, forecast, &run_);
      std::copy(run_.clocks.begin(), run_.clocks.end(), clocks.begin());
      if (forecast != nullptr) std::swap(*forecast, run_.forecast);
      std::copy(run_.last_ends.begin(), run_.last_ends.end(),
                last_ends_.begin() + static_cast<std::ptrdiff_t>(p) * ranks_);
      slowest = std::max(slowest, run_.totals.time_seconds);
      joules += run_.totals.computing_joules - run_.totals.busy_joules +
                run_.totals.dearer_waiting_joules;
      calls += static_cast<double>(run_.totals.clock_calls);
    }
    for (std::size_t of = 0; of < state_.clocks.size(); ++of) {
      const auto p = static_cast<int>(of / ranks_);
      const auto rank = static_cast<int>(of % ranks_);
      const double since = last_ends_.empty() ? slowest : last_ends_[of];
      const auto waited = [&](int knob, double from, double to) {
        joules += pipeline_.DearerWatts(rank, knob) * (to - from);
      };
      if (rules_.late()) {
        calls +=
            switching::EndIteration(rules_, model::LatencyDraws(spec_.seed, p, iteration, rank),
                                    since, slowest, &state_.clocks[of], waited);
      } else if (plan_.waiting == Waiting::kSetClock && slowest > since) {
        waited(state_.clocks[of].in_effect, since, slowest);
      }
    }
    for (switching::Forecast& forecast : state_.forecasts) forecast.EndIteration(slowest);
    run->seconds.push_back(slowest);
    run->joules.push_back(joules / spec_.pipelines +
                          pipeline_.total_blocking_power_watts * slowest);
    run->clock_calls += calls / spec_.pipelines;
  }

 private:
  const CostedPipeline& pipeline_;
  const int ranks_;
  const EmulationSpec spec_;
  switching::SwitchingRules rules_;
  model::FixedNoise noise_;
  emulate::OptionsByKnob options_;
  emulate::LimitedPlans plans_;
  const emulate::LimitedPlan& plan_;
  emulate::PipelineReplay replay_;
  emulate::PipelineRun run_;
  State state_;
  std::vector<double> last_ends_;  // [pipeline x ranks + rank]; empty where waiting is constant.
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

namespace {

// A word that no job has.
constexpr std::uint64_t kTrueTimes = 1ULL << 32;

// Mean and standard error of differences that do not know each other.
struct MeanAndError {
  double mean = 0;
  double error = 0;
};

MeanAndError MeanOf(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  MeanAndError found = {.mean = std::accumulate(values.begin(), values.end(), 0.0) / n};
  if (values.size() < 2) return found;
  double squares = 0;
  for (const double value : values) squares += (value - found.mean) * (value - found.mean);
  found.error = std::sqrt(squares / (n * (n - 1)));
  return found;
}

// How many standard errors leave out less than 1 - confidence on one side: by
// halving, on the normal distribution.
double Quantile(double confidence) {
  double low = 0;
  double high = 8;
  for (int k = 0; k < 60; ++k) {
    const double middle = (low + high) / 2;
    (std::erfc(-middle / std::sqrt(2.0)) / 2 < confidence ? low : high) = middle;
  }
  return high;
}

}  // namespace

Trials::Trials(const CostedPipeline& pipeline, const std::vector<CostOption>& baseline,
               const Conditions& conditions, int pipelines, int jobs, std::int64_t iterations,
               std::uint64_t seed)
    : pipeline_(pipeline),
      pipelines_(pipelines),
      jobs_(jobs),
      iterations_(iterations),
      seed_(seed) {
  if (conditions.profile_errors && !pipeline.errors.empty()) {
    for (int job = 0; job < jobs; ++job) {
      true_times_.push_back(
          model::DrawTrueTimes(pipeline, WordHash(seed).With(kTrueTimes).With(job).value()));
    }
  }
  for (const Conditions& each : CornersOf(conditions)) {
    Corner& corner = corners_.emplace_back();
    corner.conditions = each;
    corner.baseline = Replay(corner, baseline, Waiting::kSetClock);
  }
}

Trials::Replayed Trials::ReplaySettled(const Corner& corner, const std::vector<CostOption>& options,
                                       Waiting waiting) const {
  std::array<std::int64_t, kShown.size()> shown = {};
  for (std::size_t k = 0; k < shown.size(); ++k) {
    shown[k] = model::EmulatedIterations(pipeline_.dag.size(), pipelines_, kShown[k]);
  }
  const auto [run, settled] =
      ReplayUntilSettled(pipeline_, options, waiting, corner.conditions, shown.back());
  const std::size_t count = run.seconds.size();
  // Take the later half of the iterations if they never settle.
  const std::size_t last = settled ? 1 : (count + 1) / 2;
  Iteration mean;
  for (std::size_t k = count - last; k < count; ++k) {
    mean.seconds += run.seconds[k] / static_cast<double>(last);
    mean.joules += run.joules[k] / static_cast<double>(last);
  }
  Replayed found;
  found.iterations.push_back(mean);
  found.calls = run.clock_calls;
  for (std::size_t k = 0; k < shown.size(); ++k) {
    const auto of = static_cast<std::size_t>(shown[k]);
    const auto replayed = run.seconds.begin() + static_cast<std::ptrdiff_t>(std::min(of, count));
    const double rest = static_cast<double>(of - std::min(of, count)) * run.seconds.back();
    found.first_seconds[k] =
        (std::accumulate(run.seconds.begin(), replayed, 0.0) + rest) / static_cast<double>(of);
  }
  return found;
}

Trials::Replayed Trials::Replay(const Corner& corner, const std::vector<CostOption>& options,
                                Waiting waiting) const {
  if (!Varies(corner)) return ReplaySettled(corner, options, waiting);
  const std::vector<double> as_measured;
  const std::int64_t skipped = jobs_ > 1 && once() ? kSkippedIterations : 0;
  Replayed found;
  for (int job = 0; job < jobs_; ++job) {
    const ReplayedRun run = ReplayJob(pipeline_, options, waiting, corner.conditions, pipelines_,
                                      skipped + iterations_, WordHash(seed_).With(job).value(),
                                      true_times_.empty() ? as_measured : true_times_[job]);
    found.calls += run.clock_calls / jobs_;
    for (auto k = static_cast<std::size_t>(skipped); k < run.seconds.size(); ++k) {
      found.iterations.push_back({run.seconds[k], run.joules[k]});
    }
  }
  return found;
}

Trials::Compared Trials::Compare(const Corner& corner, const Replayed& run) const {
  const std::vector<Iteration>& iterations = run.iterations;
  const std::vector<Iteration>& baseline = corner.baseline.iterations;
  // Iterations of a job are not independent where something is drawn once per job.
  const std::size_t together = once() && Varies(corner) ? static_cast<std::size_t>(iterations_) : 1;
  double within = 0;  // Variance of the mean of one job of what was asked for last.
  const auto of = [&](auto&& value) {
    std::vector<double> means;
    within = 0;
    for (std::size_t first = 0; first < iterations.size(); first += together) {
      std::vector<double> job(together);
      for (std::size_t k = 0; k < together; ++k) job[k] = value(first + k);
      const MeanAndError mean = MeanOf(job);
      means.push_back(mean.mean);
      within += mean.error * mean.error;
    }
    within /= static_cast<double>(means.size());
    return MeanOf(means);
  };
  const double base_seconds = of([&](std::size_t k) { return baseline[k].seconds; }).mean;
  const double base_joules = of([&](std::size_t k) { return baseline[k].joules; }).mean;
  const auto seconds = of([&](std::size_t k) { return iterations[k].seconds; });
  const auto joules = of([&](std::size_t k) { return iterations[k].joules; });
  const auto saved = of([&](std::size_t k) { return baseline[k].joules - iterations[k].joules; });
  const auto slower =
      of([&](std::size_t k) { return iterations[k].seconds - baseline[k].seconds; });
  Compared compared;
  // Differences between jobs, and the error of their mean. The error of a job's mean over its few
  // iterations does not count: a real job has many.
  const double jobs = once() && Varies(corner) ? jobs_ : 0;
  const double variance = slower.error * slower.error;
  compared.margin_percent = 100 * Quantile(corner.conditions.confidence) / base_seconds *
                            std::sqrt(variance + std::max(0.0, variance * jobs - within));
  ReplayedFigures& figures = compared.figures;
  figures.iteration_time_seconds = seconds.mean;
  figures.iteration_time_error_seconds = seconds.error;
  figures.energy_joules = joules.mean;
  figures.energy_error_joules = joules.error;
  figures.slowdown_percent = 100 * slower.mean / base_seconds;
  figures.slowdown_error_percent = 100 * slower.error / base_seconds;
  figures.saving_percent = 100 * saved.mean / base_joules;
  figures.saving_error_percent = 100 * saved.error / base_joules;
  figures.clock_calls = run.calls;
  if (!Varies(corner)) {
    for (std::size_t k = 0; k < kShown.size(); ++k) {
      const double base = corner.baseline.first_seconds[k];
      figures.slowdown_percent =
          std::max(figures.slowdown_percent, 100 * (run.first_seconds[k] - base) / base);
    }
  }
  return compared;
}

// Power of the pipeline once its iteration is over and it waits for another pipeline.
double Trials::WattsAtEnd(const Corner& corner, const std::vector<CostOption>& options,
                          Waiting waiting) const {
  double watts = pipeline_.total_blocking_power_watts;
  const switching::SwitchingRules rules(corner.conditions.switching, pipeline_);
  if (!rules.late() && !switching::WaitingKnobsOf(pipeline_, waiting, rules).empty()) return watts;
  const bool has_first_clock =
      rules.late() && corner.conditions.switching.call_ahead == CallAhead::kPredicted;
  for (int rank = 0; rank < pipeline_.dag.num_ranks; ++rank) {
    const std::vector<int>& order = pipeline_.dag.rank_order[rank];
    if (order.empty()) continue;
    const int set_by = has_first_clock ? order.front() : order.back();
    watts += pipeline_.DearerWatts(rank, options[set_by].knob);
  }
  return watts;
}

Trials::Compared Trials::At(const Corner& corner, const std::vector<CostOption>& options,
                            Waiting waiting) const {
  Replayed run = Replay(corner, options, waiting);
  if (least_seconds_ > 0) {
    const double least = Compare(corner, corner.baseline).figures.iteration_time_seconds *
                         least_seconds_ / base_seconds_;
    const double watts = WattsAtEnd(corner, options, waiting);
    for (Iteration& each : run.iterations) {
      each.joules += watts * std::max(0.0, least - each.seconds);
    }
  }
  Compared compared = Compare(corner, run);
  if (least_slowdown_) {
    compared.figures.slowdown_percent = std::max(
        compared.figures.slowdown_percent, least_slowdown_(options) - compared.margin_percent);
  }
  return compared;
}

Trials::Judged Trials::Judge(const std::vector<CostOption>& options, Waiting waiting) const {
  Judged judged;
  double squares = 0;
  for (int k = 0; k < corners(); ++k) {
    const Compared compared = At(corners_[k], options, waiting);
    const ReplayedFigures& figures = compared.figures;
    judged.slower_at.push_back(figures.slowdown_percent + compared.margin_percent);
    judged.saving_percent += figures.saving_percent / corners();
    judged.clock_calls = std::max(judged.clock_calls, figures.clock_calls);
    squares += figures.saving_error_percent * figures.saving_error_percent / corners();
  }
  judged.slower_percent = *std::max_element(judged.slower_at.begin(), judged.slower_at.end());
  // Corners see the same draws, so their errors do not cancel.
  judged.saving_error_percent = std::sqrt(squares);
  return judged;
}

}  // namespace perseus::robust
