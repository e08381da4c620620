// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "model/iteration_energy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "perseus/pipeline.h"

namespace perseus::model {

std::vector<const CostOption*> NearestOptions(const CostedPipeline& pipeline,
                                              const CostTable& table) {
  std::vector<const CostOption*> nearest(pipeline.knobs.size(), nullptr);
  for (const CostOption& option : table.all_options) nearest[option.knob] = &option;
  if (!pipeline.knobs_are_numbers) return nearest;
  const std::vector<const CostOption*> own = nearest;
  for (std::size_t knob = 0; knob < nearest.size(); ++knob) {
    if (own[knob] != nullptr) continue;
    double least = 0;
    for (const CostOption& option : table.all_options) {
      const double away =
          std::abs(pipeline.knobs[option.knob].number - pipeline.knobs[knob].number);
      const bool lower = nearest[knob] != nullptr && pipeline.knobs[option.knob].number <
                                                         pipeline.knobs[nearest[knob]->knob].number;
      if (nearest[knob] == nullptr || away < least || (away == least && lower)) {
        nearest[knob] = &option;
        least = away;
      }
    }
  }
  return nearest;
}

std::vector<double> DearerWaitingJoules(const CostedPipeline& pipeline,
                                        const std::vector<CostOption>& options, Waiting waiting,
                                        const Timing& timing) {
  std::vector<double> joules;
  if (!pipeline.waiting_depends_on_clock() || waiting == Waiting::kCheapest) return joules;
  joules.reserve(pipeline.dag.rank_order.size());
  for (std::size_t rank = 0; rank < pipeline.dag.rank_order.size(); ++rank) {
    const std::vector<int>& order = pipeline.dag.rank_order[rank];
    double& sum = joules.emplace_back(0);
    if (order.empty()) continue;
    const auto add = [&](int set_by, double from, double to) {
      sum += pipeline.DearerWatts(static_cast<int>(rank), options[set_by].knob) *
             std::max(0.0, to - from);
    };
    int before = order.back();
    double end = 0;
    for (const int i : order) {
      add(before, end, timing.start_seconds[i]);
      before = i;
      end = timing.end_seconds[i];
    }
    add(before, end, timing.iteration_time_seconds);
  }
  return joules;
}

double IterationEnergy(const CostedPipeline& pipeline, const std::vector<CostOption>& chosen,
                       double iteration_time_seconds) {
  std::vector<double> busy(pipeline.dag.num_ranks, 0);
  double energy = 0;
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    energy += chosen[i].energy_joules;
    busy[pipeline.dag.computations[i].rank] += chosen[i].time_seconds;
  }
  for (int rank = 0; rank < pipeline.dag.num_ranks; ++rank) {
    energy += pipeline.rank_blocking_power_watts[rank] * (iteration_time_seconds - busy[rank]);
  }
  return energy;
}

double IterationEnergy(const CostedPipeline& pipeline, const std::vector<CostOption>& chosen,
                       Waiting waiting, const Timing& timing) {
  double energy = IterationEnergy(pipeline, chosen, timing.iteration_time_seconds);
  for (const double joules : DearerWaitingJoules(pipeline, chosen, waiting, timing)) {
    energy += joules;
  }
  return energy;
}

namespace {

// The least gain that deserves a warning, as a share of time and in errors of the profile.
constexpr double kClearlyFaster = 0.005;
constexpr double kFasterSigmas = 3;
// Of a computation. A profile does not say who took its times. Where it was the host, they include
// how long it takes to wake up. That differs from one minute to the next by up to 64 us, which no
// standard error knows (docs/evidence/evidence.md).
constexpr double kHostErrorSeconds = 100e-6;

Timing TimingOf(const CostedPipeline& pipeline, const std::vector<CostOption>& options) {
  std::vector<double> durations;
  durations.reserve(options.size());
  for (const CostOption& option : options) durations.push_back(option.time_seconds);
  return Replay(pipeline.dag, durations);
}

double TimeOf(const std::vector<CostOption>& options) {
  double seconds = 0;
  for (const CostOption& option : options) seconds += option.time_seconds;
  return seconds;
}

// Of the time of an iteration, relative to it, if computations err alike.
double ErrorOf(const std::vector<CostOption>& options) {
  double error = 0;
  for (const CostOption& option : options) error += option.time_std_seconds;
  const double seconds = TimeOf(options);
  return seconds > 0 ? error / seconds : 0;
}

// The share of an iteration's time that its computations gain if each is as much faster as may be
// an error of the profile.
double LeastGain(const std::vector<CostOption>& default_clocks,
                 const std::vector<CostOption>& highest) {
  const double stated = kFasterSigmas * std::hypot(ErrorOf(default_clocks), ErrorOf(highest));
  const double seconds = TimeOf(highest);
  const double by_host =
      seconds > 0 ? kHostErrorSeconds * static_cast<double>(highest.size()) / seconds : 0;
  return std::max({kClearlyFaster, stated, by_host});
}

// Empty where a computation has none.
std::vector<CostOption> DefaultClockOptions(const CostedPipeline& pipeline) {
  std::vector<CostOption> options;
  options.reserve(pipeline.table_of.size());
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    const CostTable& table = pipeline.TableOf(i);
    if (!table.default_clocks) return {};
    options.push_back(*table.default_clocks);
  }
  return options;
}

std::optional<Note> MissingRows(const CostedPipeline& pipeline, const std::string& source) {
  const auto lacks = [](const CostTable& table) { return !table.default_clocks; };
  const auto first = std::find_if(pipeline.tables.begin(), pipeline.tables.end(), lacks);
  const bool none = std::all_of(pipeline.tables.begin(), pipeline.tables.end(), lacks);
  if (none || first == pipeline.tables.end()) return std::nullopt;
  return Note{.severity = Severity::kOdd,
              .text = fmt::format("some computations were measured at default clocks (default) and "
                                  "{} of stage {} was not, so no saving against it is stated; add "
                                  "its row",
                                  ComputationTypeName(first->type), first->stage),
              .source = source};
}

}  // namespace

std::optional<DefaultClockIteration> DefaultClockIterationOf(const CostedPipeline& pipeline) {
  const std::vector<CostOption> options = DefaultClockOptions(pipeline);
  if (options.empty()) return std::nullopt;
  const Timing timing = TimingOf(pipeline, options);
  return DefaultClockIteration{
      .seconds = timing.iteration_time_seconds,
      .joules = IterationEnergy(pipeline, options, Waiting::kSetClock, timing)};
}

DefaultClockFigures AgainstDefaultClocks(const DefaultClockIteration& iteration,
                                         const PlanFigures& plan) {
  const auto percent = [](double part, double whole) { return whole > 0 ? 100 * part / whole : 0; };
  return {.iteration_time_seconds = iteration.seconds,
          .energy_joules = iteration.joules,
          .slowdown_percent =
              percent(plan.iteration_time_seconds - iteration.seconds, iteration.seconds),
          .saving_percent = percent(iteration.joules - plan.energy_joules, iteration.joules)};
}

std::optional<Note> DefaultClockNote(const CostedPipeline& pipeline, const std::string& source) {
  const std::vector<CostOption> options = DefaultClockOptions(pipeline);
  if (options.empty()) return MissingRows(pipeline, source);
  std::vector<CostOption> highest;
  highest.reserve(pipeline.table_of.size());
  for (int i = 0; i < pipeline.dag.size(); ++i) highest.push_back(pipeline.TableOf(i).baseline);
  const double seconds = TimingOf(pipeline, options).iteration_time_seconds;
  const double locked = TimingOf(pipeline, highest).iteration_time_seconds;
  if (!(seconds < (1 - LeastGain(options, highest)) * locked)) return std::nullopt;
  return Note{
      .severity = Severity::kOdd,
      .text = fmt::format(
          "at default clocks an iteration takes {:.4g} s, and at the profile's highest clock "
          "{:.4g} s: a plan with no slowdown (1.0x) makes this job {:.2f} % slower than it is "
          "without Perseus; if the GPU can be locked to higher clocks, add their rows",
          seconds, locked, 100 * (locked / seconds - 1)),
      .source = source};
}

}  // namespace perseus::model
