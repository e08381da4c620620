// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/framework/outputs.h"
#include "cli/planning/checked_plan.h"
#include "cli/planning/frontier_comparison.h"
#include "cli/planning/plan_diff.h"
#include "cli/planning/plan_notes.h"
#include "common/belief.h"
#include "common/file.h"
#include "common/json_text.h"

namespace perseus::cli {
namespace {

Result<Printout> CompareFrontiers(const DiffFlags& flags, const Style& style) {
  std::vector<std::string> paths = {flags.before, flags.after};
  paths.insert(paths.end(), flags.others.begin(), flags.others.end());
  if (paths.size() > kMostFrontiers) {
    return InvalidInput(
        fmt::format("--frontiers compares at most {} plans, got {}", kMostFrontiers, paths.size()));
  }
  if (!flags.output_file.empty()) {
    std::vector<InputFile> inputs;
    inputs.reserve(paths.size());
    for (const std::string& path : paths) inputs.push_back({"the plan", PlanPathOf(path)});
    const auto good = CheckOutputFile(flags.output_file, inputs);
    if (!good) return tl::unexpected(good.error());
  }
  std::vector<NamedFrontier> frontiers;
  std::string notes;
  bool are_believable = true;
  for (const std::string& path : paths) {
    Result<NamedFrontier> frontier = ReadFrontier(path);
    if (!frontier) return tl::unexpected(frontier.error());
    const std::string said = FormatNotes(frontier->notes, style);
    if (notes.find(said) == std::string::npos) notes += said;
    are_believable &= AreBelievable(frontier->notes);
    frontiers.push_back(*std::move(frontier));
  }
  if (!are_believable) return InsteadOfFigures(std::move(notes), style);
  if (!flags.output_file.empty()) {
    const auto written = WriteFileAtomically(flags.output_file, FrontiersHtml(frontiers));
    if (!written) return tl::unexpected(written.error());
  }
  if (flags.json) return Printout(FormatIndented(FrontiersJson(frontiers)), flags.output_file);
  std::string text = notes + FrontiersText(frontiers, style);
  if (!flags.output_file.empty()) text += fmt::format("Written to {}.\n", flags.output_file);
  return Printout(std::move(text), flags.output_file);
}

}  // namespace

Result<Printout> RunDiff(const DiffFlags& flags, const Style& style) {
  if (flags.before.empty() || flags.after.empty()) {
    return InvalidInput(
        "two plans are needed, as in 'perseus diff old/plan.json new/plan.json' ('perseus plan -o "
        "DIR' writes one)");
  }
  if (flags.frontiers) return CompareFrontiers(flags, style);
  if (!flags.others.empty() || !flags.output_file.empty()) {
    return InvalidInput("--with and -o are for frontiers; give --frontiers, too");
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
    if (!AreBelievable(side->plan->notes)) return InsteadOfFigures(std::move(notes), style);
  }
  if (!notes.empty()) notes += '\n';
  return Printout(notes + PlanDiffText(*diff, old_plan, new_plan, style));
}

}  // namespace perseus::cli
