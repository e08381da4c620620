// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "common/nearest_name.h"
#include "perseus/policy.h"
#include "plan/named_times.h"
#include "policy/envpipe.h"
#include "policy/policy_family.h"
#include "policy/power_cap.h"
#include "policy/zeus_policies.h"

namespace perseus {
inline namespace v0 {
namespace {

constexpr std::string_view kMaxClocks = "max-clocks";
constexpr std::string_view kZeusGlobal = "zeus-global";
constexpr std::string_view kZeusPerStage = "zeus-per-stage";
constexpr std::string_view kEnvPipe = "envpipe";
constexpr std::string_view kPowerCap = "power-cap";
constexpr std::string_view kPerseus = "perseus";

struct KnownPolicy {
  std::string_view name;
  std::string_view summary;
};

constexpr std::array<KnownPolicy, 6> kPolicies = {{
    {kMaxClocks, "Every computation runs at its highest clock."},
    {kZeusGlobal, "All GPUs run at one clock."},
    {kZeusPerStage, "Each stage has one clock, which balances the forward times of the stages."},
    {kEnvPipe,
     "The outer envelope of the pipeline runs at maximum clocks, what is inside at the clock of "
     "least energy that does not make the iteration longer."},
    {kPowerCap, "All GPUs have one power limit."},
    {kPerseus, "Each computation has the clock of the plan of least energy for the time."},
}};

// Our plans, made when they are asked for.
class PerseusPolicy : public Policy {
 public:
  PerseusPolicy(const Planner& planner, const PlanConstraints& constraints, double effort)
      : planner_(planner), constraints_(constraints), effort_(effort) {}

  std::string_view name() const override { return kPerseus; }
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

}  // namespace

std::vector<std::string_view> PolicyNames() {
  std::vector<std::string_view> names;
  names.reserve(kPolicies.size());
  for (const KnownPolicy& policy : kPolicies) names.push_back(policy.name);
  return names;
}

std::string_view PolicySummary(std::string_view name) {
  const auto* const found =
      std::find_if(kPolicies.begin(), kPolicies.end(),
                   [name](const KnownPolicy& policy) { return policy.name == name; });
  return found != kPolicies.end() ? found->summary : std::string_view();
}

Result<std::unique_ptr<Policy>> MakePolicy(const PolicySpec& spec, const Planner& planner) {
  const auto known = PolicyNames();
  if (std::find(known.begin(), known.end(), spec.name) == known.end()) {
    const std::vector<std::string> names(known.begin(), known.end());
    return InvalidInput(fmt::format("there is no policy {}{}; expected one of {}", Shown(spec.name),
                                    NearestHint(spec.name, names), fmt::join(names, ", ")));
  }
  if (spec.name == kPerseus) {
    return std::make_unique<PerseusPolicy>(planner, spec.constraints, spec.effort);
  }
  if (spec.constraints.any()) {
    return InvalidInput(
        fmt::format("the policy {} knows no constraints (granularity, time margin): only perseus "
                    "does; leave them out",
                    spec.name));
  }
  const CostedPipeline& pipeline = planner.pipeline();
  if (spec.name == kMaxClocks) {
    return MakeSinglePlanPolicy(kMaxClocks, planner.baseline());
  }
  if (spec.name == kEnvPipe) {
    Result<Plan> plan = planner.Evaluate(policy::EnvPipeOptions(pipeline));
    if (!plan) return tl::unexpected(plan.error());
    return MakeSinglePlanPolicy(kEnvPipe, *std::move(plan));
  }
  if (spec.name == kZeusGlobal) {
    return policy::MakePolicyFamily(kZeusGlobal, planner, policy::ZeusGlobalMembers(pipeline));
  }
  if (spec.name == kZeusPerStage) {
    return policy::MakePolicyFamily(kZeusPerStage, planner, policy::ZeusPerStageMembers(pipeline));
  }
  return policy::MakePolicyFamily(kPowerCap, planner, policy::PowerCapMembers(pipeline));
}

}  // namespace v0
}  // namespace perseus
