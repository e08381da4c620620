// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_PLANNING_FRONTIER_COMPARISON_H_
#define PERSEUS_CLI_PLANNING_FRONTIER_COMPARISON_H_

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/framework/terminal.h"
#include "perseus/note.h"
#include "perseus/plan.h"
#include "perseus/result.h"

// Frontiers of several plans beside each other, also of different jobs.
namespace perseus::cli {

// As many as the chart has colours.
inline constexpr std::size_t kMostFrontiers = 6;

// An iteration of one pipeline.
struct TimeAndEnergy {
  double seconds = 0;
  double joules = 0;
};

struct NamedFrontier {
  std::string name;
  Frontier frontier;
  TimeAndEnergy plan;
  TimeAndEnergy full_speed;  // At maximum clocks.
  std::string modelled;      // Of the profile, as in plan.json.
  std::vector<Note> notes;
};

// Reads plan.json and the frontier.csv beside it, as `perseus plan -o` wrote them; `path` names the
// plan or the folder.
Result<NamedFrontier> ReadFrontier(const std::string& path);

std::string FrontiersText(const std::vector<NamedFrontier>& frontiers, const Style& style);
nlohmann::ordered_json FrontiersJson(const std::vector<NamedFrontier>& frontiers);
// A page that needs no network.
std::string FrontiersHtml(const std::vector<NamedFrontier>& frontiers);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_PLANNING_FRONTIER_COMPARISON_H_
