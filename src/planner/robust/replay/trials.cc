// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/replay/trials.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "common/word_hash.h"
#include "model/emulated_iterations.h"
#include "switching/clock_state.h"
#include "switching/forecast.h"

namespace perseus::robust {
namespace {

// Mean and standard error of differences that do not know each other.
struct MeanAndError {
  double mean = 0;
  double error = 0;
};

template <typename Value>
MeanAndError MeanOf(std::size_t count, Value&& value) {
  MeanAndError found;
  for (std::size_t k = 0; k < count; ++k) found.mean += value(k);
  found.mean /= static_cast<double>(count);
  if (count < 2) return found;
  double squares = 0;
  for (std::size_t k = 0; k < count; ++k) {
    const double difference = value(k) - found.mean;
    squares += difference * difference;
  }
  const auto n = static_cast<double>(count);
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
      conditions_(conditions),
      pipelines_(pipelines),
      jobs_(jobs),
      iterations_(iterations),
      seed_(seed) {
  baseline_ = Replay(baseline, Waiting::kSetClock);
}

bool Trials::varies() const {
  return conditions_.noise.any() || conditions_.switching.latency_spread_seconds > 0;
}

Trials::Replayed Trials::ReplaySettled(const std::vector<CostOption>& options,
                                       Waiting waiting) const {
  std::array<std::int64_t, kShown.size()> shown = {};
  for (std::size_t k = 0; k < shown.size(); ++k) {
    shown[k] = model::EmulatedIterations(pipeline_.dag.size(), pipelines_, kShown[k]);
  }
  const auto [run, settled] =
      ReplayUntilSettled(pipeline_, options, waiting, conditions_, shown.back());
  const std::size_t count = run.seconds.size();
  // What never settles comes and goes: of what is there, the later half.
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

Trials::Replayed Trials::Replay(const std::vector<CostOption>& options, Waiting waiting) const {
  if (!varies()) return ReplaySettled(options, waiting);
  const bool once = conditions_.noise.per_stage > 0 || conditions_.noise.per_gpu > 0;
  Replayed found;
  for (int job = 0; job < jobs_; ++job) {
    const ReplayedRun run = ReplayJob(pipeline_, options, waiting, conditions_, pipelines_,
                                      iterations_, WordHash(seed_).With(job).value());
    found.calls += run.clock_calls / jobs_;
    Iteration mean;
    for (std::size_t k = 0; k < run.seconds.size(); ++k) {
      if (!once) found.iterations.push_back({run.seconds[k], run.joules[k]});
      mean.seconds += run.seconds[k] / static_cast<double>(iterations_);
      mean.joules += run.joules[k] / static_cast<double>(iterations_);
    }
    if (once) found.iterations.push_back(mean);
  }
  return found;
}

ReplayedFigures Trials::Compare(const Replayed& run) const {
  const std::vector<Iteration>& iterations = run.iterations;
  const std::vector<Iteration>& baseline = baseline_.iterations;
  const std::size_t count = iterations.size();
  const auto of = [count](auto&& value) { return MeanOf(count, value); };
  const double base_seconds = of([&](std::size_t k) { return baseline[k].seconds; }).mean;
  const double base_joules = of([&](std::size_t k) { return baseline[k].joules; }).mean;
  const auto seconds = of([&](std::size_t k) { return iterations[k].seconds; });
  const auto joules = of([&](std::size_t k) { return iterations[k].joules; });
  const auto slower =
      of([&](std::size_t k) { return iterations[k].seconds - baseline[k].seconds; });
  const auto saved = of([&](std::size_t k) { return baseline[k].joules - iterations[k].joules; });
  ReplayedFigures figures;
  figures.iteration_time_seconds = seconds.mean;
  figures.iteration_time_error_seconds = seconds.error;
  figures.energy_joules = joules.mean;
  figures.energy_error_joules = joules.error;
  figures.slowdown_percent = 100 * slower.mean / base_seconds;
  figures.slowdown_error_percent = 100 * slower.error / base_seconds;
  figures.saving_percent = 100 * saved.mean / base_joules;
  figures.saving_error_percent = 100 * saved.error / base_joules;
  figures.clock_calls = run.calls;
  if (!varies()) {
    for (std::size_t k = 0; k < kShown.size(); ++k) {
      const double base = baseline_.first_seconds[k];
      figures.slowdown_percent =
          std::max(figures.slowdown_percent, 100 * (run.first_seconds[k] - base) / base);
    }
  }
  return figures;
}

ReplayedFigures Trials::baseline() const { return Compare(baseline_); }

// What the pipeline draws once its iteration is over and it waits for another pipeline.
double Trials::WattsAtEnd(const std::vector<CostOption>& options, Waiting waiting) const {
  double watts = pipeline_.total_blocking_power_watts;
  const switching::SwitchingRules rules(conditions_.switching, pipeline_.knobs_are_numbers);
  if (!rules.late() && !switching::WaitingKnobsOf(pipeline_, waiting, rules).empty()) return watts;
  const bool has_first_clock =
      rules.late() && conditions_.switching.call_ahead == CallAhead::kPredicted;
  for (int rank = 0; rank < pipeline_.dag.num_ranks; ++rank) {
    const std::vector<int>& order = pipeline_.dag.rank_order[rank];
    if (order.empty()) continue;
    const int set_by = has_first_clock ? order.front() : order.back();
    watts += pipeline_.DearerWatts(rank, options[set_by].knob);
  }
  return watts;
}

ReplayedFigures Trials::Of(const std::vector<CostOption>& options, Waiting waiting) const {
  Replayed run = Replay(options, waiting);
  for (Iteration& each : run.iterations) {
    const double wait = std::max(0.0, least_seconds_ - each.seconds);
    if (wait > 0) each.joules += WattsAtEnd(options, waiting) * wait;
  }
  ReplayedFigures figures = Compare(run);
  if (least_slowdown_) {
    figures.slowdown_percent =
        std::max(figures.slowdown_percent, least_slowdown_(options) - MarginPercent(figures));
  }
  return figures;
}

double Trials::MarginPercent(const ReplayedFigures& figures) const {
  if (!varies()) return 0;
  const bool once = conditions_.noise.per_stage > 0 || conditions_.noise.per_gpu > 0;
  // The spread over jobs, not only the error of its mean.
  const double spread = once ? std::sqrt(1.0 + jobs_) : 1.0;
  return Quantile(conditions_.confidence) * figures.slowdown_error_percent * spread;
}

}  // namespace perseus::robust
