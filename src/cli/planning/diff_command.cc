// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/planning/checked_plan.h"
#include "cli/planning/plan_diff.h"
#include "cli/planning/plan_notes.h"
#include "common/belief.h"
#include "common/json_text.h"

namespace perseus::cli {

Result<Printout> RunDiff(const DiffFlags& flags, const Style& style) {
  if (flags.before.empty() || flags.after.empty()) {
    return InvalidInput(
        "two plans are needed, as in 'perseus diff old/plan.json new/plan.json' ('perseus plan -o "
        "DIR' writes one)");
  }
  const Result<CheckedPlan> before = ReadCheckedPlan(flags.before);
  if (!before) return tl::unexpected(before.error());
  const Result<CheckedPlan> after = ReadCheckedPlan(flags.after);
  if (!after) return tl::unexpected(after.error());
  const NamedPlan old_plan = {flags.before, &before->plan};
  const NamedPlan new_plan = {flags.after, &after->plan};
  const Result<PlanDiff> diff = ComparePlans(old_plan, new_plan);
  if (!diff) return tl::unexpected(diff.error());
  if (flags.json) return Printout(FormatIndented(PlanDiffJson(*diff, old_plan, new_plan)));
  std::string notes = FormatNotes(old_plan.plan->notes, style);
  const std::string new_notes = FormatNotes(new_plan.plan->notes, style);
  if (new_notes != notes) notes += new_notes;
  for (const NamedPlan* side : {&old_plan, &new_plan}) {
    if (!AreBelievable(side->plan->notes)) return Printout(notes + InsteadOfFigures(style));
  }
  if (!notes.empty()) notes += '\n';
  return Printout(notes + PlanDiffText(*diff, old_plan, new_plan, style));
}

}  // namespace perseus::cli
