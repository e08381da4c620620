// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/cluster/waiting_text.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "cli/cluster/json_values.h"

namespace perseus::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string WattsText(double watts, std::optional<double> error) {
  return error ? fmt::format("{:.1f} +- {:.1f}", watts, *error) : fmt::format("{:.1f}", watts);
}

// By clock: those of the highest and the lowest.
std::string ByClockText(const Json& rows) {
  std::map<double, std::map<double, std::string>> ranks;  // By clock.
  bool is_doubtful = false;
  for (const Json& row : rows) {
    const auto rank = NumberOf(row, "pp_rank");
    const auto mhz = NumberOf(row, "frequency");
    const auto watts = NumberOf(row, "power_w");
    if (!rank || !mhz || !watts) continue;
    ranks[*rank][*mhz] =
        fmt::format("{} W at {} MHz", WattsText(*watts, NumberOf(row, "power_std_w")), *mhz);
    is_doubtful = is_doubtful || row.value("doubtful", Json()) == true;
  }
  std::vector<std::string> texts;
  texts.reserve(ranks.size());
  for (const auto& [rank, clocks] : ranks) {
    texts.push_back(clocks.size() == 1
                        ? clocks.begin()->second
                        : fmt::format("{} to {}", clocks.rbegin()->second, clocks.begin()->second));
  }
  if (texts.empty()) return "";
  return fmt::format("{}, by rank of the pipeline{}", fmt::join(texts, "; "),
                     is_doubtful ? "; some clocks are doubtful" : "");
}

}  // namespace

std::string WaitingText(const Json& profiling) {
  std::string by_clock = ByClockText(ListOf(profiling, "waiting"));
  if (!by_clock.empty()) return by_clock;
  std::vector<std::string> texts;
  const Json& watts = ListOf(profiling, "blocking_power_w");
  const Json& errors = ListOf(profiling, "blocking_power_std_w");
  for (std::size_t i = 0; i < watts.size(); ++i) {
    if (!watts[i].is_number()) continue;
    const bool has_error = i < errors.size() && errors[i].is_number();
    texts.push_back(WattsText(watts[i].get<double>(),
                              has_error ? std::optional(errors[i].get<double>()) : std::nullopt));
  }
  if (texts.empty()) return "";
  return fmt::format("{} W, by rank of the pipeline; taken as constant over the clocks",
                     fmt::join(texts, ", "));
}

}  // namespace perseus::cli
