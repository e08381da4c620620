// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/cluster/sweep_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "cli/cluster/json_values.h"
#include "cli/framework/table.h"

namespace perseus::cli {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

// What a sweep cost, against the highest clock.
std::string SweepText(const Json& sweep) {
  const auto seconds = NumberOf(sweep, "seconds");
  if (!seconds) return "";
  const double extra_seconds = NumberOf(sweep, "extra_seconds").value_or(0);
  const double extra_joules = NumberOf(sweep, "extra_joules").value_or(0);
  return fmt::format("{} iterations, {} and {}; against maximum clocks {}{} and {}{}",
                     MemberText(sweep, "iterations"), FormatSeconds(*seconds),
                     FormatJoules(NumberOf(sweep, "joules").value_or(0)),
                     extra_seconds < 0 ? "" : "+", FormatSeconds(extra_seconds),
                     extra_joules < 0 ? "" : "+", FormatJoules(extra_joules));
}

}  // namespace perseus::cli
