// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_QUESTIONS_POLICY_RUNS_H_
#define PERSEUS_CLI_QUESTIONS_POLICY_RUNS_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/framework/terminal.h"
#include "cli/questions/emulation_summary.h"
#include "perseus/emulation_report.h"
#include "perseus/emulator.h"
#include "perseus/plan.h"
#include "perseus/planner.h"
#include "perseus/policy.h"
#include "perseus/profile.h"
#include "perseus/result.h"

namespace perseus::cli {

inline constexpr std::string_view kMaxClocks = "max-clocks";
inline constexpr std::string_view kPerseus = "perseus";

// A plan from a file: plan.json, or a Python plan (.py). A note says where it
// is known to be from another profile. `conditions`: that it was made for.
Result<std::unique_ptr<Policy>> ReadPolicy(const std::string& path, const Planner& planner,
                                           const Profile& profile,
                                           std::optional<Conditions>* conditions,
                                           std::vector<std::string>* notes);

// For people: "perseus (phase)".
std::string LabelOf(const PolicySpec& spec);

// One sentence on what it does.
std::string SummaryOf(const PolicySpec& spec);

// One job in one scenario, under one policy after the other. Arguments must
// outlive it.
class Scenario {
 public:
  Scenario(const Planner& planner, const EmulationSpec& spec, ProgressLine* progress)
      : planner_(planner), spec_(spec), progress_(progress) {}

  // `label` is for the progress line.
  Result<Emulation> Run(const std::string& label, const Policy& policy) const;
  Result<Emulation> Run(const PolicySpec& spec) const;

 private:
  const Planner& planner_;
  const EmulationSpec& spec_;
  ProgressLine* progress_;
};

// What a run comes to beside maximum clocks; `says` is a sentence on the policy.
PolicyRow MakeRow(std::string label, std::string_view says, const Emulation& emulation,
                  const Emulation& baseline);

// Rows of all policies, and of perseus at every granularity under the other
// `constraints`. The two runs that `summary` has already are not run again.
Result<std::vector<PolicyRow>> Compare(const Scenario& scenario, const PlanConstraints& constraints,
                                       double effort, const EmulationSummary& summary);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_QUESTIONS_POLICY_RUNS_H_
