// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/cluster/conditions_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/cluster/json_values.h"
#include "cli/framework/table.h"

namespace perseus::cli {
namespace {

using Json = nlohmann::ordered_json;

// "job j-1f2e, measured on 2026-11-27 08:10 UTC".
std::string FromText(const Json& from) {
  const std::string day = DayText(from, "at");
  return fmt::format("job {}{}", MemberText(from, "job"),
                     day.empty() ? std::string() : fmt::format(", measured on {} UTC", day));
}

std::string PlannedText(const std::string& source, const Json& from) {
  if (source == "library") return fmt::format("those from {}", FromText(from));
  if (source == "assumed") return "values that are assumed until the ranks have measured enough";
  if (source == "measured") return "what was measured";
  if (source == "given") return "what the settings give";
  return "no noise, and clocks that come at once";
}

std::string FigureName(const std::string& name) {
  if (name == "rank_noise") return "noise of a rank";
  if (name == "noise_correlation") return "correlation";
  if (name == "rare_noise") return "rare computations take longer by";
  if (name == "rare_noise_share") return "their share";
  if (name == "switch_latency") return "latency";
  if (name == "switch_stall") return "pause when the clock changes";
  return name == "switch_latency_spread" ? "its spread" : name;
}

std::string FigureText(const std::string& name, double value) {
  if (name == "noise_correlation") return fmt::format("{:.2f}", value);
  constexpr double kMilli = 1e-3;
  return name.rfind("switch_", 0) == 0 ? fmt::format("{:.1f} ms", value / kMilli)
                                       : FormatPercent(100 * value, 2);
}

// "0.30 ms", or "0.10 to 0.40 ms".
std::string MillisecondsText(const std::vector<double>& seconds) {
  const auto [least, most] = std::minmax_element(seconds.begin(), seconds.end());
  const std::string low = fmt::format("{:.2f}", 1e3 * *least);
  const std::string high = fmt::format("{:.2f}", 1e3 * *most);
  return low == high ? low + " ms" : low + " to " + high + " ms";
}

std::string TransfersText(const Json& transfers) {
  std::vector<double> measured;
  std::vector<double> planned;
  for (const Json& transfer : transfers) {
    if (const auto seconds = NumberOf(transfer, "measured_s")) measured.push_back(*seconds);
    planned.push_back(NumberOf(transfer, "planned_s").value_or(0));
  }
  if (planned.empty()) return "";
  return Line("", fmt::format("transfers between stages: {}; planned for {}",
                              measured.empty() ? std::string("not measured")
                                               : fmt::format("{} (at {} of {} boundaries)",
                                                             MillisecondsText(measured),
                                                             measured.size(), planned.size()),
                              MillisecondsText(planned)));
}

// The clocks whose calls are planned to take another time than `planned_for_all`.
std::string LatenciesText(const Json& latencies, std::optional<double> planned_for_all) {
  std::string text;
  for (const Json& each : latencies) {
    const double planned = NumberOf(each, "planned_s").value_or(0);
    if (planned == planned_for_all) continue;
    text += fmt::format("{}{} MHz {:.1f} ms", text.empty() ? "" : ", ",
                        MemberText(each, "clock_mhz"), 1e3 * planned);
  }
  return text.empty() ? text
                      : Line("", "clocks that are planned with a latency of their own: " + text);
}

}  // namespace

std::string ConditionsText(const Json& conditions) {
  const std::string source = MemberText(conditions, "source");
  const bool has_calls = NumberOf(conditions, "calls").value_or(0) > 0;
  const bool is_measured = has_calls || NumberOf(conditions, "iterations").value_or(0) > 0;
  if (source.empty() || (source == "none" && !is_measured)) return "";
  const std::string seen = is_measured ? fmt::format("measured in {} iterations and {} clock calls",
                                                     MemberText(conditions, "iterations"),
                                                     MemberText(conditions, "calls"))
                                       : std::string("not measured yet");
  std::string text = Line("conditions", seen + "; plans are made for " +
                                            PlannedText(source, ObjectOf(conditions, "from")));
  for (const Json& figure : ListOf(conditions, "figures")) {
    const std::string name = MemberText(figure, "name");
    const double planned = NumberOf(figure, "planned").value_or(0);
    const std::optional<double> measured = NumberOf(figure, "measured");
    if (!measured && planned == 0) continue;
    text += Line(
        "",
        fmt::format(
            "{}: {}{}", FigureName(name),
            measured
                ? fmt::format("{} +- {} (by {})", FigureText(name, *measured),
                              FigureText(name, NumberOf(figure, "measured_std").value_or(0)),
                              CountOf(static_cast<long long>(NumberOf(figure, "ranks").value_or(0)),
                                      "rank"))
                : std::string("not measured"),
            source == "none"
                ? std::string()
                : fmt::format("; planned for {}{}", FigureText(name, planned),
                              MemberText(figure, "assumed") == "true"   ? " (assumed)"
                              : MemberText(figure, "library") == "true" ? " (by that job)"
                                                                        : "")));
  }
  std::optional<double> latency;
  for (const Json& figure : ListOf(conditions, "figures")) {
    if (MemberText(figure, "name") == "switch_latency") latency = NumberOf(figure, "planned");
  }
  text += LatenciesText(ListOf(conditions, "latency_at"), latency);
  const Json& from = ObjectOf(conditions, "from");
  if (source == "measured" && !from.empty()) {
    text += Line("", fmt::format("the first plans were made for those from {}", FromText(from)));
  }
  text += TransfersText(ListOf(conditions, "transfers"));
  if (conditions.value("changing", Json()) == true) {
    text += Line("", "plans for what was measured are being made");
  }
  return text;
}

std::string KeptConditionsText(const Json& kept) {
  if (kept.empty()) return "";
  std::string text =
      Line("conditions", fmt::format("from {}, in {} iterations and {} clock calls", FromText(kept),
                                     MemberText(kept, "iterations"), MemberText(kept, "calls")));
  for (const Json& figure : ListOf(kept, "figures")) {
    const std::string name = MemberText(figure, "name");
    text += Line("", fmt::format("{}: {} +- {}", FigureName(name),
                                 FigureText(name, NumberOf(figure, "measured").value_or(0)),
                                 FigureText(name, NumberOf(figure, "measured_std").value_or(0))));
  }
  return text;
}

}  // namespace perseus::cli
