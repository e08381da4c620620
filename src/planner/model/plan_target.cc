// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <optional>
#include <string>

#include "common/enum_names.h"
#include "common/numbers.h"
#include "perseus/plan.h"

namespace perseus {
inline namespace v0 {
namespace {

constexpr EnumNames<Granularity, 4> kGranularityNames = {
    {"computation", "phase", "stage-type", "stage"}};

// The number before `suffix`, where there is a positive one.
std::optional<double> NumberBefore(std::string_view text, std::string_view suffix) {
  if (!TakeUnit(&text, suffix)) return std::nullopt;
  const std::optional<double> value = ParseFinite(text);
  return value && *value > 0 ? value : std::nullopt;
}

// What was probably meant by a unit that is not read so, for the end of a message.
std::string UnitHint(std::string_view text) {
  if (const auto minutes = NumberBefore(text, "min")) {
    return fmt::format("; write {:.6g}s", 60 * *minutes);
  }
  if (const auto hours = NumberBefore(text, "h")) {
    return fmt::format("; write {:.6g}s", 3600 * *hours);
  }
  return "";
}

// What was probably meant, for the end of a message.
std::string TargetHint(std::string_view text) {
  if (!text.ends_with('%')) return UnitHint(text);
  const std::optional<double> value = NumberBefore(text, "%");
  constexpr double kMostPercent = 100;
  if (!value || *value > kMostPercent) return "";
  return fmt::format("; did you mean {:.6g}x?", 1 + *value / 100);
}

}  // namespace

std::string_view GranularityName(Granularity granularity) {
  return kGranularityNames.Of(granularity);
}

std::optional<Granularity> ParseGranularity(std::string_view name) {
  return kGranularityNames.Parse(name);
}

Result<PlanTarget> ParsePlanTarget(std::string_view text) {
  using Kind = PlanTarget::Kind;
  if (text == "economic") return PlanTarget{Kind::kEconomic, 0};
  if (text == "fastest") return PlanTarget{Kind::kFastest, 0};
  if (text == "tstar") return PlanTarget{Kind::kTStar, 0};
  std::string_view number = text;
  const bool factor = TakeUnit(&number, "x");
  const std::optional<double> bare = ParseFinite(number);
  if (!factor && bare && *bare > 0) {
    return InvalidInput(fmt::format(
        "the target {0} may mean two things: write {0}x for a factor of the all-maximum-clock "
        "time, {0}s for seconds",
        text.substr(0, 40)));
  }
  const std::optional<double> value = factor ? bare : ParseWithUnit(number, kTimeUnits);
  // A time may be too short for a number once it is in seconds.
  if (!value || !(*value > 0)) {
    return InvalidInput(
        fmt::format("'{}' is no point of the frontier; expected a factor of the all-maximum-clock "
                    "time (1.02x), seconds (5.3s), economic, fastest or tstar{}",
                    text.substr(0, 40), TargetHint(text)));
  }
  return PlanTarget{factor ? Kind::kBaselineFactor : Kind::kSeconds, *value};
}

std::string PlanTargetText(const PlanTarget& target) {
  switch (target.kind) {
    case PlanTarget::Kind::kBaselineFactor:
      return target.value == 1 ? "1.0x" : fmt::format("{}x", target.value);
    case PlanTarget::Kind::kSeconds:
      return fmt::format("{}s", target.value);
    case PlanTarget::Kind::kEconomic:
      return "economic";
    case PlanTarget::Kind::kFastest:
      return "fastest";
    case PlanTarget::Kind::kTStar:
      break;
  }
  return "tstar";
}

}  // namespace v0
}  // namespace perseus
