// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/framework/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cli/framework/table.h"

namespace perseus::cli {
namespace {

std::string_view LevelName(FindingLevel level) {
  switch (level) {
    case FindingLevel::kOk:
      return "ok";
    case FindingLevel::kNote:
      return "note";
    case FindingLevel::kWarning:
      return "warning";
    case FindingLevel::kFault:
      break;
  }
  return "fault";
}

std::string FindingText(const Finding& finding, const Style& style) {
  constexpr int kIndent = 20;
  std::string head = fmt::format("{:<8} {:<10} ", LevelName(finding.level), finding.about);
  if (finding.level == FindingLevel::kFault) head = style.Bold(head);
  std::string text = fmt::format("{}{}\n", head, Wrap(finding.message, style.columns, kIndent));
  if (!finding.fix.empty()) {
    text += fmt::format("{:{}}{}\n", "", kIndent,
                        Wrap("To do: " + finding.fix, style.columns, kIndent));
  }
  return text;
}

}  // namespace

long long CountOfLevel(const std::vector<Finding>& findings, FindingLevel level) {
  return std::count_if(findings.begin(), findings.end(),
                       [&](const Finding& finding) { return finding.level == level; });
}

std::string FormatFindings(const std::vector<Finding>& findings, const Style& style) {
  std::string text;
  for (const Finding& finding : findings) text += FindingText(finding, style);
  return text;
}

nlohmann::ordered_json FindingsJson(const std::vector<Finding>& findings) {
  auto json = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) {
    json.push_back({{"level", LevelName(finding.level)},
                    {"about", finding.about},
                    {"message", finding.message},
                    {"fix", finding.fix}});
  }
  return json;
}

}  // namespace perseus::cli
