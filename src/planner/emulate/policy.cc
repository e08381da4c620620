// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Ways to choose clocks: our plans as they are needed, or one plan, whoever made it.

#include "perseus/policy.h"

#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/nearest_name.h"
#include "formats/zeus_plan.h"
#include "pipeline/schedule_csv.h"
#include "plan/cost_options.h"
#include "plan/named_times.h"

namespace perseus {
inline namespace v0 {
namespace {

class SinglePlanPolicy : public Policy {
 public:
  SinglePlanPolicy(std::string_view name, Plan plan) : name_(name), plan_(std::move(plan)) {}

  std::string_view name() const override { return name_; }
  bool reacts() const override { return false; }
  Result<Plan> PlanFor(double /*seconds*/) const override { return plan_; }

 private:
  std::string_view name_;
  Plan plan_;
};

class PlanningPolicy : public Policy {
 public:
  PlanningPolicy(const Planner& planner, const PlanConstraints& constraints, double effort)
      : planner_(planner), constraints_(constraints), effort_(effort) {}

  std::string_view name() const override { return "perseus"; }
  bool reacts() const override { return true; }
  Result<Plan> PlanFor(double seconds) const override {
    // Within constraints a search may end above what one for less time found, which is what
    // `perseus plan` gives out then. Without any none was seen to.
    if (constraints_.any()) {
      return plan::PlanAmongNamed(planner_, seconds, constraints_, effort_);
    }
    return planner_.PlanFor(seconds, {.effort = effort_});
  }

 private:
  const Planner planner_;  // A handle: lives as long as the policy.
  PlanConstraints constraints_;
  double effort_;
};

using formats::ParseZeusPlan;
using formats::ZeusInstruction;
using formats::ZeusPlan;
using pipeline::StepText;

constexpr std::string_view kSameJob =
    "; the plan must be for a job of the same schedule, stages and microbatches";

std::string Counted(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// An error if ranks or their computations are not as many as the pipeline's.
template <typename Rank, typename Size>
std::optional<std::string> WrongShape(const PipelineDag& dag, const std::vector<Rank>& ranks,
                                      Size&& size) {
  if (ranks.size() != dag.rank_order.size()) {
    return fmt::format("the plan has {}, the pipeline {}{}", Counted(ranks.size(), "rank"),
                       dag.rank_order.size(), kSameJob);
  }
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (size(ranks[r]) == dag.rank_order[r].size()) continue;
    return fmt::format("rank {}: the plan has {}, the pipeline {}{}", r,
                       Counted(size(ranks[r]), "computation"), dag.rank_order[r].size(), kSameJob);
  }
  return std::nullopt;
}

ScheduleStep StepOf(const Computation& computation) { return {computation.id, computation.fused}; }

// The option of a computation at a knob, or why there is none.
tl::expected<CostOption, std::string> OptionOf(const CostedPipeline& pipeline, int computation,
                                               std::optional<int> knob, std::string_view label) {
  const CostTable& table = pipeline.TableOf(computation);
  const CostOption* const found = knob ? plan::FindOption(table, *knob) : nullptr;
  if (found != nullptr) return *found;
  const auto label_of = [&pipeline](const CostOption& option) {
    return Shown(pipeline.knobs[option.knob].label);
  };
  return tl::unexpected(fmt::format(
      "the profile has no option for knob {} of {} of stage {}; it has {}, from {} to {}",
      Shown(label), ComputationTypeName(table.type), table.stage,
      Counted(table.all_options.size(), "knob"), label_of(table.all_options.front()),
      label_of(table.all_options.back())));
}

std::optional<int> KnobIndex(const CostedPipeline& pipeline, const Knob& knob, bool is_number) {
  for (std::size_t k = 0; k < pipeline.knobs.size(); ++k) {
    const Knob& known = pipeline.knobs[k];
    const bool same_number = is_number && pipeline.knobs_are_numbers && known.number == knob.number;
    if (same_number || known.label == knob.label) return static_cast<int>(k);
  }
  return std::nullopt;
}

}  // namespace

std::unique_ptr<Policy> MakeSinglePlanPolicy(std::string_view name, Plan plan) {
  return std::make_unique<SinglePlanPolicy>(name, std::move(plan));
}

std::unique_ptr<Policy> MakePlanningPolicy(const Planner& planner,
                                           const PlanConstraints& constraints, double effort) {
  return std::make_unique<PlanningPolicy>(planner, constraints, effort);
}

Result<std::unique_ptr<Policy>> MakePolicyFromPlan(const PlanDocument& plan,
                                                   const Planner& planner) {
  const CostedPipeline& pipeline = planner.pipeline();
  const auto size = [](const PlannedRank& rank) { return rank.computations.size(); };
  if (const auto problem = WrongShape(pipeline.dag, plan.ranks, size)) {
    return InvalidInput(*problem);
  }
  std::vector<CostOption> options(pipeline.table_of.size());
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    for (std::size_t k = 0; k < plan.ranks[r].computations.size(); ++k) {
      const PlannedComputation& planned = plan.ranks[r].computations[k];
      const int i = pipeline.dag.rank_order[r][k];
      const ScheduleStep expected = StepOf(pipeline.dag.computations[i]);
      const ScheduleStep found = {planned.id, planned.fused};
      if (found != expected) {
        return InvalidInput(fmt::format("rank {}, position {}: the plan runs {}, the pipeline {}{}",
                                        r, k, StepText(found), StepText(expected), kSameJob));
      }
      const auto knob = KnobIndex(pipeline, planned.knob, plan.knobs_are_numbers);
      const auto option = OptionOf(pipeline, i, knob, planned.knob.label);
      if (!option) {
        return InvalidInput(fmt::format("rank {}, position {}: {}", r, k, option.error()));
      }
      options[i] = *option;
    }
  }
  const bool sets_waiting = !plan.ranks.empty() && plan.ranks.front().waiting_knob.has_value();
  Result<Plan> evaluated =
      planner.Evaluate(std::move(options), sets_waiting ? Waiting::kCheapest : Waiting::kSetClock);
  if (!evaluated) return tl::unexpected(evaluated.error());
  return MakeSinglePlanPolicy("plan", *std::move(evaluated));
}

Result<std::unique_ptr<Policy>> MakePolicyFromZeusPlan(std::string_view text,
                                                       const std::string& name,
                                                       const Planner& planner) {
  const Result<ZeusPlan> plan = ParseZeusPlan(text, name);
  if (!plan) return tl::unexpected(plan.error());
  const CostedPipeline& pipeline = planner.pipeline();
  const auto size = [](const std::vector<ZeusInstruction>& rank) { return rank.size(); };
  if (const auto problem = WrongShape(pipeline.dag, *plan, size)) {
    return InvalidInput(fmt::format("{}: {}", name, *problem));
  }
  if (!pipeline.knobs_are_numbers) {
    return InvalidInput(fmt::format(
        "{}: a plan for Zeus gives clocks in MHz, but the knobs of this profile are labels", name));
  }
  std::vector<CostOption> options(pipeline.table_of.size());
  for (std::size_t r = 0; r < plan->size(); ++r) {
    for (std::size_t k = 0; k < (*plan)[r].size(); ++k) {
      const ZeusInstruction& instruction = (*plan)[r][k];
      const auto fail = [&](std::string_view problem) {
        return InvalidInput(fmt::format("{}:{}:{}: rank {}, position {}: {}", name,
                                        instruction.line, instruction.column, r, k, problem));
      };
      const int i = pipeline.dag.rank_order[r][k];
      const Computation& computation = pipeline.dag.computations[i];
      if (computation.fused || computation.id.type != instruction.type) {
        return fail(fmt::format("the plan runs a {}, the pipeline {}{}",
                                ComputationTypeName(instruction.type),
                                StepText(StepOf(computation)), kSameJob));
      }
      const Knob knob = {std::to_string(instruction.clock_mhz),
                         static_cast<double>(instruction.clock_mhz)};
      const auto option = OptionOf(pipeline, i, KnobIndex(pipeline, knob, true), knob.label);
      if (!option) return fail(option.error());
      options[i] = *option;
    }
  }
  Result<Plan> evaluated = planner.Evaluate(std::move(options));
  if (!evaluated) return tl::unexpected(evaluated.error());
  return MakeSinglePlanPolicy("zeus-plan", *std::move(evaluated));
}

}  // namespace v0
}  // namespace perseus
