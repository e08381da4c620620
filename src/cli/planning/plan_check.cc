// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/planning/plan_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string_view>

#include "formats/knob_counts.h"
#include "model/plan_figures.h"

namespace perseus::cli {
namespace {

constexpr double kRelative = 1e-6;
constexpr double kPoints = 1e-4;  // Of percentages.
// A gap to a bound that is not more than so many roundings says nothing.
constexpr double kRoundingOfGap = 1e7;

constexpr std::string_view kWasChanged =
    "the file was changed after it was written; write it again with 'perseus plan -o DIR'";

// The energies of both plans as their computations make them.
struct MadeEnergies {
  double baseline_joules = 0;
  double joules = 0;
  double rounding = 0;  // Of the sums, whose terms may cancel out.
};

MadeEnergies EnergiesOf(const ExplainInput& input) {
  constexpr double kRounding = 1e-12;
  MadeEnergies made;
  made.baseline_joules = input.total_blocking_power_watts * input.baseline_iteration_seconds;
  made.joules = input.total_blocking_power_watts * input.iteration_seconds;
  double magnitude = made.baseline_joules + made.joules;
  for (const ExplainedComputation& each : input.computations) {
    magnitude += each.baseline_joules + each.joules +
                 each.blocking_power_watts * (each.baseline_seconds + each.seconds);
    made.baseline_joules +=
        each.baseline_joules - each.blocking_power_watts * each.baseline_seconds;
    made.joules += each.joules - each.blocking_power_watts * each.seconds;
  }
  made.baseline_joules += input.baseline_dearer_waiting_joules;
  made.joules += input.dearer_waiting_joules;
  magnitude += input.baseline_dearer_waiting_joules + input.dearer_waiting_joules;
  made.rounding = kRounding * magnitude;
  return made;
}

bool Differ(double a, double b, double error) {
  return !(std::abs(a - b) <= kRelative * std::max(std::abs(a), std::abs(b)) + error);
}

class OwnFigures {
 public:
  OwnFigures(const PlanDocument& plan, const ExplainInput& input, const std::string& path)
      : plan_(plan), input_(input), path_(path), made_(EnergiesOf(input)) {}

  Result<void> CheckSums() const {
    const PlanBaseline& baseline = plan_.baseline;
    const double before = input_.baseline_iteration_seconds;
    const double after = input_.iteration_seconds;
    const struct {
      std::string_view field;
      double said;
      double made;
      double error;
    } figures[] = {
        {"baseline.iteration_time_s", baseline.iteration_time_seconds, before, 0},
        {"baseline.energy_j", baseline.energy_joules, made_.baseline_joules, made_.rounding},
        {"baseline.average_power_w", baseline.average_power_watts,
         before > 0 ? made_.baseline_joules / before : 0, before > 0 ? made_.rounding / before : 0},
        {"iteration_time_s", plan_.iteration_time_seconds, after, 0},
        {"energy_j", plan_.energy_joules, made_.joules, made_.rounding},
        {"average_power_w", plan_.average_power_watts, after > 0 ? made_.joules / after : 0,
         after > 0 ? made_.rounding / after : 0},
    };
    for (const auto& figure : figures) {
      if (Differ(figure.said, figure.made, figure.error)) {
        return Wrong(figure.field, figure.said, figure.made);
      }
    }
    if (auto good = CheckPercentages(); !good) return good;
    if (auto good = CheckBound("", plan_.lower_bound_joules, plan_.gap_percent); !good) return good;
    if (!plan_.shared_knobs) return {};
    return CheckBound("shared_clocks.", plan_.shared_knobs->lower_bound_joules,
                      plan_.shared_knobs->gap_percent);
  }

  Result<void> CheckChanges() const {
    const formats::KnobCounts counts = formats::CountKnobs(plan_);
    for (const auto& figure : model::Figures<PlanFigures>()) {
      const auto count = figure.count();
      if (count && plan_.*count != counts.figures.*count) {
        return Wrong(figure.name, plan_.*count, counts.figures.*count);
      }
    }
    if (!plan_.conditions || !plan_.conditions->max_changes) return {};
    const auto most = static_cast<double>(*plan_.conditions->max_changes);
    const int all = counts.changes.all();
    return all > most ? Wrong("conditions.max_changes", most, all) : Result<void>();
  }

  Result<void> CheckStarts(const std::vector<std::vector<double>>& start_seconds) const {
    for (std::size_t r = 0; r < plan_.ranks.size(); ++r) {
      const std::vector<PlannedComputation>& run = plan_.ranks[r].computations;
      for (std::size_t k = 0; k < run.size(); ++k) {
        const double start = start_seconds[r][k];
        if (!Differ(run[k].start_seconds, start, kRelative * input_.iteration_seconds)) continue;
        const ComputationId& id = run[k].id;
        return Wrong(fmt::format("start_s of {} of stage {}, microbatch {},",
                                 ComputationTypeName(id.type), id.stage, id.microbatch),
                     run[k].start_seconds, start);
      }
    }
    return {};
  }

 private:
  // No file can say how a bound was found, but a plan is never below it, and knows how far above.
  Result<void> CheckBound(std::string_view prefix, double bound_joules, double gap_percent) const {
    if (bound_joules > made_.joules && Differ(bound_joules, made_.joules, made_.rounding)) {
      return InvalidInput(
          fmt::format("{}: {}lower_bound_j is {}, but the plan's own computations use less, {}: {}",
                      path_, prefix, bound_joules, made_.joules, kWasChanged));
    }
    if (bound_joules <= kRoundingOfGap * made_.rounding) return {};
    const double gap = 100 * (made_.joules - bound_joules) / bound_joules;
    if (std::abs(gap_percent - gap) <= kPoints) return {};
    return Wrong(fmt::format("{}gap_percent", prefix), gap_percent, gap);
  }

  Result<void> CheckPercentages() const {
    // A share of nothing.
    if (std::abs(made_.baseline_joules) <= made_.rounding) return {};
    const double saving = 100 * (made_.baseline_joules - made_.joules) / made_.baseline_joules;
    // What rounding of both energies makes of a share.
    const double ratio = std::abs(made_.joules / made_.baseline_joules);
    const double error = 100 * (1 + ratio) * made_.rounding / std::abs(made_.baseline_joules);
    if (!(std::abs(plan_.saving_percent - saving) <= kPoints + error)) {
      return Wrong("saving_percent", plan_.saving_percent, saving);
    }
    return {};
  }

  Result<void> Wrong(std::string_view field, double said, double found) const {
    return InvalidInput(fmt::format("{}: {} is {}, but the plan's own computations make {}: {}",
                                    path_, field, said, found, kWasChanged));
  }

  const PlanDocument& plan_;
  const ExplainInput& input_;
  const std::string& path_;
  MadeEnergies made_;
};

// A plan does not say Megatron's group size, but its first rank begins with one.
int GroupSizeOf(const Schedule& schedule) {
  int size = 0;
  int stage = -1;
  for (const ScheduleStep& step : schedule.ranks.front()) {
    if (step.id.type != ComputationType::kForward) continue;
    if (stage >= 0 && step.id.stage != stage) break;
    stage = step.id.stage;
    ++size;
  }
  return size;
}

}  // namespace

Result<void> CheckScheduleName(const PlanDocument& plan, const Schedule& schedule,
                               const std::string& path) {
  const auto name = CanonicalScheduleName(plan.schedule);
  if (!name) return {};
  ScheduleSpec spec;
  spec.name = *name;
  spec.num_stages = plan.stages;
  spec.virtual_stages = plan.virtual_stages;
  spec.num_microbatches = plan.microbatches;
  if (spec.name == "megatron-interleaved") spec.microbatch_group_size = GroupSizeOf(schedule);
  const Result<Schedule> named = BuildSchedule(spec);
  if (named && named->ranks == schedule.ranks) return {};
  return InvalidInput(
      fmt::format("{}: schedule is {}, but the plan's computations run in another order: {}", path,
                  plan.schedule, kWasChanged));
}

Result<void> CheckOwnFigures(const PlanDocument& plan, const ExplainInput& input,
                             const std::vector<std::vector<double>>& start_seconds,
                             const std::string& path) {
  const OwnFigures figures(plan, input, path);
  if (auto good = figures.CheckSums(); !good) return good;
  if (auto good = figures.CheckChanges(); !good) return good;
  return figures.CheckStarts(start_seconds);
}

}  // namespace perseus::cli
