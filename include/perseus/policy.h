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

// A way to choose the clocks of a pipeline: Perseus, or what an operator could
// do instead. Const members may be called from several threads at once.
class Policy {
 public:
  Policy() = default;
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;
  virtual ~Policy() = default;

  // As on the command line: "max-clocks", "zeus-global", ...
  virtual std::string_view name() const = 0;

  // Whether it makes another plan for the healthy pipelines when one falls behind.
  virtual bool reacts() const = 0;

  // Its plan for an iteration of `seconds`: of its plans that end in time, the one of least
  // *effective* energy, since the iteration lasts `seconds` anyway. kInfeasible if none ends in
  // time. A policy with a single plan returns it for any time.
  virtual Result<Plan> PlanFor(double seconds) const = 0;
};

// Which policy.
struct PolicySpec {
  // See PolicyNames().
  std::string name = {};
  // For "perseus" alone: what its plans must keep to, and how long to search.
  PlanConstraints constraints = {};
  double effort = 1;
};

// "max-clocks"      every computation at its highest clock.
// "zeus-global"     one clock for all (You et al., NSDI'23, as the baseline of
//                   the Perseus paper, section 6.1).
// "zeus-per-stage"  one clock per stage that balances forward times (same).
// "envpipe"         inner computations at their least-energy clock, the outer
//                   envelope at maximum (Choi et al., ATC'23). One plan; it
//                   cannot slow down.
// "power-cap"       one power limit for all GPUs.
// "perseus"         our plans.
std::vector<std::string_view> PolicyNames();

// One sentence on what a policy does, for tables; empty for an unknown name.
std::string_view PolicySummary(std::string_view name);

// The policy keeps a handle of `planner`. Errors: an unknown name, constraints for a policy that
// knows none, a power cap for which no computation has a knob.
Result<std::unique_ptr<Policy>> MakePolicy(const PolicySpec& spec, const Planner& planner);

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
