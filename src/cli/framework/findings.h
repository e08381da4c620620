// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_FRAMEWORK_FINDINGS_H_
#define PERSEUS_CLI_FRAMEWORK_FINDINGS_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/framework/terminal.h"

namespace perseus::cli {

enum class FindingLevel : std::uint8_t {
  kOk,
  kNote,     // Good to know.
  kWarning,  // It works, but less well.
  kFault,    // Why it does not.
};

// One thing that was looked at.
struct Finding {
  FindingLevel level = FindingLevel::kOk;
  std::string about;    // "driver", "GPU 3", ...
  std::string message;  // A sentence.
  std::string fix;      // What to do; empty where nothing is to be done.
};

long long CountOfLevel(const std::vector<Finding>& findings, FindingLevel level);

// For people: a paragraph each.
std::string FormatFindings(const std::vector<Finding>& findings, const Style& style);
// For programs: objects with level, about, message and fix.
nlohmann::ordered_json FindingsJson(const std::vector<Finding>& findings);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_FRAMEWORK_FINDINGS_H_
