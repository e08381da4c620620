// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "policy/policy_family.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "common/rounded_numbers.h"

namespace perseus::policy {
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

struct Member {
  TableChoice choice;
  double time_seconds = 0;
  double effective_joules = 0;
};

class PolicyFamily : public Policy {
 public:
  PolicyFamily(std::string_view name, const Planner& planner, std::vector<Member> members)
      : name_(name), planner_(planner), members_(std::move(members)) {}

  std::string_view name() const override { return name_; }
  bool reacts() const override { return false; }

  Result<Plan> PlanFor(double seconds) const override {
    // As the planner: a time as it is written may miss the fastest by its last bits.
    if (seconds < Fastest() && SameButRounding(seconds, Fastest())) seconds = Fastest();
    const Member* best = nullptr;
    for (const Member& member : members_) {
      if (!(member.time_seconds <= seconds)) continue;
      if (best == nullptr || member.effective_joules < best->effective_joules) best = &member;
    }
    if (best == nullptr) return TooFast(seconds);
    Result<Plan> plan = planner_.Evaluate(OptionsOf(planner_.pipeline(), best->choice));
    if (plan) plan->requested_time_seconds = seconds;
    return plan;
  }

 private:
  double Fastest() const {
    double fastest = members_.front().time_seconds;
    for (const Member& member : members_) fastest = std::min(fastest, member.time_seconds);
    return fastest;
  }

  Result<Plan> TooFast(double seconds) const {
    const double fastest = Fastest();
    return MakeError(
        ErrorCode::kInfeasible,
        fmt::format("the policy {} has no plan that takes {} s: its fastest takes {} s ({}x of the "
                    "all-maximum-clock time); ask for at least that",
                    name_, RoundedBelow(seconds, fastest), RoundedUp(fastest),
                    RoundedUp(fastest / planner_.baseline().iteration_time_seconds)));
  }

  std::string_view name_;
  const Planner planner_;        // A handle: lives as long as the policy.
  std::vector<Member> members_;  // Not empty.
};

}  // namespace

Result<std::unique_ptr<Policy>> MakePolicyFamily(std::string_view name, const Planner& planner,
                                                 std::vector<TableChoice> choices) {
  if (choices.empty()) {
    return InvalidInput(
        fmt::format("the policy {} has no plan: there is no knob that every computation has; "
                    "measure all of them at the same knobs, or leave this policy out",
                    name));
  }
  std::sort(choices.begin(), choices.end());
  choices.erase(std::unique(choices.begin(), choices.end()), choices.end());
  const CostedPipeline& pipeline = planner.pipeline();
  const std::vector<int> uses = UsesOfTables(pipeline);
  std::vector<Member> members;
  std::vector<double> durations(pipeline.table_of.size());
  for (TableChoice& choice : choices) {
    for (std::size_t i = 0; i < durations.size(); ++i) {
      const int table = pipeline.table_of[i];
      durations[i] = pipeline.tables[table].all_options[choice[table]].time_seconds;
    }
    Member member;
    member.time_seconds = Replay(pipeline.dag, durations).iteration_time_seconds;
    for (std::size_t t = 0; t < pipeline.tables.size(); ++t) {
      const CostTable& table = pipeline.tables[t];
      member.effective_joules += uses[t] * EffectiveEnergy(table, table.all_options[choice[t]]);
    }
    member.choice = std::move(choice);
    members.push_back(std::move(member));
  }
  return std::make_unique<PolicyFamily>(name, planner, std::move(members));
}

}  // namespace perseus::policy

namespace perseus {
inline namespace v0 {

std::unique_ptr<Policy> MakeSinglePlanPolicy(std::string_view name, Plan plan) {
  return std::make_unique<policy::SinglePlanPolicy>(name, std::move(plan));
}

}  // namespace v0
}  // namespace perseus
