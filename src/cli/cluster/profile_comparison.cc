// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/cluster/profile_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/framework/table.h"
#include "common/printable.h"

namespace perseus::cli {
namespace {

struct Ratio {
  double value = 1;
  std::string knob;
};

// How far from 1 a ratio is, whichever way.
double Distance(double ratio) { return ratio > 0 ? std::abs(std::log(ratio)) : HUGE_VAL; }

RatioSummary Summary(std::vector<Ratio> ratios) {
  RatioSummary summary;
  if (ratios.empty()) return summary;
  const auto farthest = std::max_element(
      ratios.begin(), ratios.end(),
      [](const Ratio& a, const Ratio& b) { return Distance(a.value) < Distance(b.value); });
  summary.most = farthest->value;
  summary.knob = farthest->knob;
  const std::size_t middle = ratios.size() / 2;
  std::sort(ratios.begin(), ratios.end(),
            [](const Ratio& a, const Ratio& b) { return a.value < b.value; });
  summary.median = ratios.size() % 2 == 1 ? ratios[middle].value
                                          : (ratios[middle - 1].value + ratios[middle].value) / 2;
  return summary;
}

const std::string& KnobLabelOf(const Profile& profile, const Option& option) {
  return profile.knobs[static_cast<std::size_t>(option.knob)].label;
}

std::string ChangeText(double ratio) { return FormatSignedPercent(100 * (ratio - 1), 2); }

nlohmann::ordered_json SummaryJson(const RatioSummary& summary) {
  return {{"median", summary.median}, {"most", summary.most}, {"at", summary.knob}};
}

}  // namespace

ProfileComparison CompareProfiles(const Profile& first, const Profile& second) {
  ProfileComparison comparison;
  int matched = 0;
  int second_rows = 0;
  for (const OptionTable& table : second.tables) {
    second_rows += static_cast<int>(table.options.size());
  }
  for (const OptionTable& table : first.tables) {
    const OptionTable* const other = second.Find(table.stage, table.type);
    std::map<std::string, const Option*> others;
    if (other != nullptr) {
      for (const Option& option : other->options) others[KnobLabelOf(second, option)] = &option;
    }
    std::vector<Ratio> times;
    std::vector<Ratio> energies;
    for (const Option& option : table.options) {
      const std::string& knob = KnobLabelOf(first, option);
      const auto found = others.find(knob);
      if (found == others.end()) {
        ++comparison.only_first;
        continue;
      }
      times.push_back({found->second->time_seconds / option.time_seconds, knob});
      if (option.energy_joules > 0) {
        energies.push_back({found->second->energy_joules / option.energy_joules, knob});
      }
    }
    matched += static_cast<int>(times.size());
    if (times.empty()) continue;
    comparison.kinds.push_back({.stage = table.stage,
                                .type = table.type,
                                .knobs = static_cast<int>(times.size()),
                                .time = Summary(std::move(times)),
                                .energy = Summary(std::move(energies))});
  }
  comparison.only_second = second_rows - matched;
  return comparison;
}

std::string ComparisonText(const ProfileComparison& comparison, const std::string& first,
                           const std::string& second, const Style& style) {
  std::string text =
      fmt::format("{} against {}: what changes\n", Printable(second), Printable(first));
  if (comparison.kinds.empty()) return text + "They have no stage, type and clock in common.\n";
  Table table({"stage", "computation", "clocks", "time", "most", "at", "energy", "most", "at"},
              {Align::kRight, Align::kLeft, Align::kRight, Align::kRight, Align::kRight,
               Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  for (const KindComparison& kind : comparison.kinds) {
    table.AddRow({std::to_string(kind.stage), std::string(ComputationTypeName(kind.type)),
                  std::to_string(kind.knobs), ChangeText(kind.time.median),
                  ChangeText(kind.time.most), kind.time.knob, ChangeText(kind.energy.median),
                  ChangeText(kind.energy.most), kind.energy.knob});
  }
  text += table.Format(style.rule());
  const auto only = [&](int rows, const std::string& name) {
    if (rows > 0) text += fmt::format("Only in {}: {}.\n", Printable(name), CountOf(rows, "row"));
  };
  only(comparison.only_first, first);
  only(comparison.only_second, second);
  return text;
}

nlohmann::ordered_json ComparisonJson(const ProfileComparison& comparison, const std::string& first,
                                      const std::string& second) {
  nlohmann::ordered_json json = {{"first", first},
                                 {"second", second},
                                 {"kinds", nlohmann::ordered_json::array()},
                                 {"only_first", comparison.only_first},
                                 {"only_second", comparison.only_second}};
  for (const KindComparison& kind : comparison.kinds) {
    json["kinds"].push_back({{"stage", kind.stage},
                             {"instruction", ComputationTypeName(kind.type)},
                             {"clocks", kind.knobs},
                             {"time_ratio", SummaryJson(kind.time)},
                             {"energy_ratio", SummaryJson(kind.energy)}});
  }
  return json;
}

}  // namespace perseus::cli
