// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/planning/checked_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "common/printable.h"
#include "formats/plan_json.h"
#include "model/iteration_energy.h"
#include "model/plan_figures.h"
#include "perseus/costed_pipeline.h"
#include "perseus/explain.h"
#include "perseus/pipeline.h"
#include "perseus/plan_document.h"
#include "perseus/plan_file.h"
#include "perseus/profile.h"
#include "perseus/result.h"
#include "perseus/schedule.h"

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
    // Rounding error of the share, by both energies.
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

// Whether a schedule with the name of one of ours is that one; other names are those of files.
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

// Checks the plan's own figures against its computations: a file may have been edited since it was
// written. `start_seconds` as replayed, in the order of ranks and computations. Figures under
// conditions (`expected`) cannot be made from the file: late clocks need the costs of clocks that
// the plan does not use.
Result<void> CheckOwnFigures(const PlanDocument& plan, const ExplainInput& input,
                             const std::vector<std::vector<double>>& start_seconds,
                             const std::string& path) {
  const OwnFigures figures(plan, input, path);
  if (auto good = figures.CheckSums(); !good) return good;
  if (auto good = figures.CheckChanges(); !good) return good;
  return figures.CheckStarts(start_seconds);
}

// Adds the energy of waiting in both plans beyond the least, from the file's ranks.
Result<void> AddDearerWaiting(const PlanDocument& plan, const PipelineDag& dag,
                              const std::vector<const Knob*>& baseline_knobs, const Timing& before,
                              const Timing& after, const std::string& path, ExplainInput* input) {
  if (plan.ranks.empty() || plan.ranks.front().waiting.empty()) return {};
  CostedPipeline costs;
  costs.dag = dag;
  for (const PlannedWaiting& each : plan.ranks.front().waiting) costs.knobs.push_back(each.knob);
  for (const PlannedRank& rank : plan.ranks) {
    std::vector<double>& watts = costs.rank_waiting_watts.emplace_back();
    for (const PlannedWaiting& each : rank.waiting) {
      watts.push_back(each.watts * plan.tensor_parallel);
    }
    costs.rank_blocking_power_watts.push_back(rank.blocking_power_watts * plan.tensor_parallel);
    if (watts.size() == costs.knobs.size()) continue;
    return InvalidInput(fmt::format(
        "{}: ranks[{}].waiting lists {} knobs, and that of the first rank {}; write the plan again "
        "with 'perseus plan -o DIR'",
        path, costs.rank_waiting_watts.size() - 1, watts.size(), costs.knobs.size()));
  }
  const auto joules = [&](const auto& knob_of, Waiting waiting,
                          const Timing& timing) -> Result<double> {
    std::vector<CostOption> options;
    for (int node = 0; node < dag.size(); ++node) {
      const Knob& knob = knob_of(node);
      const auto found = std::find_if(costs.knobs.begin(), costs.knobs.end(),
                                      [&](const Knob& known) { return known.label == knob.label; });
      if (found == costs.knobs.end()) {
        return InvalidInput(fmt::format(
            "{}: ranks[].waiting does not say what waiting at {} draws; write the plan again with "
            "'perseus plan -o DIR'",
            path, knob.label));
      }
      options.push_back({.knob = static_cast<int>(found - costs.knobs.begin())});
    }
    double sum = 0;
    for (const double each : model::DearerWaitingJoules(costs, options, waiting, timing)) {
      sum += each;
    }
    return sum;
  };
  const auto planned_knob = [&](int node) -> const Knob& {
    const Computation& computation = dag.computations[node];
    return plan.ranks[computation.rank].computations[computation.position].knob;
  };
  const auto baseline_knob = [&](int node) -> const Knob& { return *baseline_knobs[node]; };
  const Waiting waiting = plan.ranks.front().waiting_knob ? Waiting::kCheapest : Waiting::kSetClock;
  const Result<double> baseline = joules(baseline_knob, Waiting::kSetClock, before);
  if (!baseline) return tl::unexpected(baseline.error());
  const Result<double> planned = joules(planned_knob, waiting, after);
  if (!planned) return tl::unexpected(planned.error());
  input->baseline_dearer_waiting_joules = *baseline;
  input->dearer_waiting_joules = *planned;
  return {};
}

// At which clocks ranks wait; empty where that makes no difference.
std::string WaitingClocksText(const PlanDocument& plan) {
  if (plan.ranks.empty() || plan.ranks.front().waiting.empty()) return "";
  if (!plan.ranks.front().waiting_knob) {
    return "Ranks wait at the clock of the computation before.";
  }
  const std::string unit = plan.knobs_are_numbers ? " MHz" : "";
  std::vector<std::string> labels;
  labels.reserve(plan.ranks.size());
  for (const PlannedRank& rank : plan.ranks) {
    labels.push_back(Printable(rank.waiting_knob ? rank.waiting_knob->label : "-") + unit);
  }
  const bool same = std::all_of(labels.begin(), labels.end(),
                                [&](const std::string& label) { return label == labels.front(); });
  return same ? fmt::format("Ranks wait at {}.", labels.front())
              : fmt::format("Ranks wait at, in their order: {}.", fmt::join(labels, ", "));
}

namespace {

// Type and stage of a computation, then of what is fused with it (or -1), then
// the work of both.
using CostKey = std::tuple<int, int, int, int, double, double>;

CostKey KeyOf(const PlannedComputation& planned) {
  const ComputationId& id = planned.id;
  const std::optional<ComputationId>& fused = planned.fused;
  return {static_cast<int>(id.type), id.stage,     fused ? static_cast<int>(fused->type) : -1,
          fused ? fused->stage : -1, planned.work, planned.fused_work};
}

// Refuses a plan whose figures are not those of its computations.
Result<ExplainInput> MakeInput(const PlanDocument& plan, const std::string& path) {
  const Schedule schedule = ScheduleOf(plan);
  if (auto valid = ValidateSchedule(schedule); !valid) {
    return InvalidInput(fmt::format("{}: {}", path, valid.error().message));
  }
  if (auto good = CheckScheduleName(plan, schedule, path); !good) {
    return tl::unexpected(good.error());
  }
  const Result<PipelineDag> dag = BuildDag(schedule, plan.fixed);
  if (!dag) return InvalidInput(fmt::format("{}: {}", path, dag.error().message));
  std::map<CostKey, const BaselineCost*> costs;
  for (const BaselineCost& cost : plan.baseline.costs) {
    costs[{static_cast<int>(cost.type), cost.stage,
           cost.fused_type ? static_cast<int>(*cost.fused_type) : -1,
           cost.fused_type ? cost.fused_stage : -1, cost.work, cost.fused_work}] = &cost;
  }
  ExplainInput input;
  std::vector<const Knob*> baseline_knobs;
  std::vector<double> baseline_seconds;
  std::vector<double> seconds;
  const std::vector<Phase> phases = ComputationPhases(*dag);
  for (int node = 0; node < dag->size(); ++node) {
    const Computation& computation = dag->computations[node];
    const PlannedRank& rank = plan.ranks[computation.rank];
    const PlannedComputation& planned = rank.computations[computation.position];
    const auto cost = costs.find(KeyOf(planned));
    if (cost == costs.end()) {
      return InvalidInput(fmt::format(
          "{}: baseline.computations lacks {} of stage {}; write the plan again with 'perseus plan "
          "-o DIR'",
          path, TypeText(computation.id, computation.fused), computation.id.stage));
    }
    ExplainedComputation explained;
    explained.type = TypeText(computation.id, computation.fused);
    explained.stage = computation.id.stage;
    explained.phase = phases[node];
    explained.blocking_power_watts = rank.blocking_power_watts * plan.tensor_parallel;
    explained.baseline_seconds = cost->second->duration_seconds;
    explained.baseline_joules = cost->second->energy_joules;
    explained.seconds = planned.duration_seconds;
    explained.joules = planned.energy_joules;
    baseline_knobs.push_back(&cost->second->knob);
    baseline_seconds.push_back(explained.baseline_seconds);
    seconds.push_back(explained.seconds);
    input.computations.push_back(std::move(explained));
  }
  const Timing before = Replay(*dag, baseline_seconds);
  const Timing after = Replay(*dag, seconds);
  const std::vector<bool> critical_before = CriticalComputations(*dag, before);
  const std::vector<bool> critical_after = CriticalComputations(*dag, after);
  for (int node = 0; node < dag->size(); ++node) {
    input.computations[node].baseline_critical = critical_before[node];
    input.computations[node].critical = critical_after[node];
  }
  for (const PlannedRank& rank : plan.ranks) {
    input.total_blocking_power_watts += rank.blocking_power_watts * plan.tensor_parallel;
  }
  input.baseline_iteration_seconds = before.iteration_time_seconds;
  input.iteration_seconds = after.iteration_time_seconds;
  if (auto good = AddDearerWaiting(plan, *dag, baseline_knobs, before, after, path, &input);
      !good) {
    return tl::unexpected(good.error());
  }
  std::vector<std::vector<double>> start_seconds(plan.ranks.size());
  for (std::size_t rank = 0; rank < plan.ranks.size(); ++rank) {
    for (const int node : dag->rank_order[rank]) {
      start_seconds[rank].push_back(after.start_seconds[node]);
    }
  }
  if (auto good = CheckOwnFigures(plan, input, start_seconds, path); !good) {
    return tl::unexpected(good.error());
  }
  return input;
}

}  // namespace

std::string TypeText(const ComputationId& id, const std::optional<ComputationId>& fused) {
  std::string text(ComputationTypeName(id.type));
  if (fused) text += fmt::format("+{}", ComputationTypeName(fused->type));
  return text;
}

std::string PlanPathOf(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  return fs::is_directory(path, error) ? (fs::path(path) / kPlanFileName).string() : path;
}

Result<CheckedPlan> ReadCheckedPlan(const std::string& path) {
  const std::string file = PlanPathOf(path);
  Result<PlanDocument> plan = ReadPlan(file);
  if (!plan) {
    Error fault = plan.error();
    if (fault.code == ErrorCode::kInvalidInput && ReadProfile(file)) {
      return InvalidInput(
          fmt::format("{0}: this is a profile; give the plan.json that 'perseus plan {0} ... -o "
                      "DIR' writes",
                      file));
    }
    if (fault.code == ErrorCode::kInvalidInput) {
      fault.message += "; is it a plan.json that perseus plan wrote?";
    }
    return tl::unexpected(std::move(fault));
  }
  Result<ExplainInput> computations = MakeInput(*plan, file);
  if (!computations) return tl::unexpected(computations.error());
  return CheckedPlan{*std::move(plan), *std::move(computations)};
}

}  // namespace perseus::cli
