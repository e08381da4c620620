// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_POLICY_H_
#define PERSEUS_POLICY_H_

// Link perseus::core (pkg-config: perseus-core).

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perseus/export.h"
#include "perseus/plan.h"
#include "perseus/plan_document.h"
#include "perseus/planner.h"
#include "perseus/result.h"

PERSEUS_EXPORT_BEGIN
namespace perseus {
inline namespace v0 {

// A way to choose the clocks of a pipeline: plans of ours, or one that anybody made. Const members
// may be called from several threads at once.
class Policy {
 public:
  Policy() = default;
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;
  virtual ~Policy() = default;

  // "perseus", "max-clocks", "plan", ...
  virtual std::string_view name() const = 0;

  // Whether it makes another plan for the healthy pipelines when one falls behind.
  virtual bool reacts() const = 0;

  // Its plan for an iteration of `seconds`: of its plans that end in time, the one of least
  // *effective* energy, since the iteration lasts `seconds` anyway. kInfeasible if none ends in
  // time. A policy with a single plan returns it for any time.
  virtual Result<Plan> PlanFor(double seconds) const = 0;
};

// "perseus": our plans, made when they are asked for. The policy keeps a handle of `planner`.
std::unique_ptr<Policy> MakePlanningPolicy(const Planner& planner,
                                           const PlanConstraints& constraints = {},
                                           double effort = 1);

// A policy that has one plan, for any time. `name` has static storage.
std::unique_ptr<Policy> MakeSinglePlanPolicy(std::string_view name, Plan plan);

// A policy with one plan that was made before: from plan.json, or for Zeus (see FormatZeusPlan();
// `name` stands for the file in messages). It never reacts. Errors: a plan that does not fit the
// planner's pipeline (another shape or order, or a knob without an option).
Result<std::unique_ptr<Policy>> MakePolicyFromPlan(const PlanDocument& plan,
                                                   const Planner& planner);
Result<std::unique_ptr<Policy>> MakePolicyFromZeusPlan(std::string_view text,
                                                       const std::string& name,
                                                       const Planner& planner);

}  // namespace v0
}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_POLICY_H_
