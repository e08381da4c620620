// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <optional>
#include <string>

#include "common/numbers.h"
#include "perseus/plan.h"

namespace perseus {
namespace {

constexpr std::array<std::string_view, 4> kGranularityNames = {"computation", "phase", "stage-type",
                                                               "stage"};

// What was probably meant by a text that is no target, for the end of a message.
std::string TargetHint(std::string_view text) {
  const bool is_percent = text.ends_with('%');
  const bool is_milli = text.ends_with("ms");
  const bool is_micro = text.ends_with("us");
  const bool is_seconds = text.ends_with('s');
  if (!is_percent && !is_seconds) return "";
  text.remove_suffix(is_milli || is_micro ? 2 : 1);
  if (text.ends_with(' ')) text.remove_suffix(1);
  const std::optional<double> value = ParseFinite(text);
  if (!value || *value <= 0) return "";
  constexpr double kMostPercent = 100;
  constexpr double kMilli = 1e-3;
  constexpr double kMicro = 1e-6;
  if (is_milli) return fmt::format("; did you mean {:.6g}?", *value * kMilli);
  if (is_micro) return fmt::format("; did you mean {:.6g}?", *value * kMicro);
  if (is_seconds) return fmt::format("; did you mean {}?", text);
  if (*value > kMostPercent) return "";
  return fmt::format("; did you mean {:.6g}x?", 1 + *value / 100);
}

}  // namespace

std::string_view GranularityName(Granularity granularity) {
  return kGranularityNames[static_cast<std::size_t>(granularity)];
}

std::optional<Granularity> ParseGranularity(std::string_view name) {
  for (std::size_t k = 0; k < kGranularityNames.size(); ++k) {
    if (kGranularityNames[k] == name) return static_cast<Granularity>(k);
  }
  return std::nullopt;
}

Result<PlanTarget> ParsePlanTarget(std::string_view text) {
  using Kind = PlanTarget::Kind;
  if (text == "economic") return PlanTarget{Kind::kEconomic, 0};
  if (text == "fastest") return PlanTarget{Kind::kFastest, 0};
  if (text == "tstar") return PlanTarget{Kind::kTStar, 0};
  std::string_view number = text;
  const bool factor = number.ends_with('x');
  if (factor) number.remove_suffix(1);
  const std::optional<double> value = ParseFinite(number);
  if (!value || *value <= 0) {
    return InvalidInput(
        fmt::format("'{}' is no point of the frontier; expected a factor of the all-maximum-clock "
                    "time (1.02x), seconds (5.3), economic, fastest or tstar{}",
                    text.substr(0, 40), TargetHint(text)));
  }
  return PlanTarget{factor ? Kind::kBaselineFactor : Kind::kSeconds, *value};
}

std::string PlanTargetText(const PlanTarget& target) {
  switch (target.kind) {
    case PlanTarget::Kind::kBaselineFactor:
      return target.value == 1 ? "1.0x" : fmt::format("{}x", target.value);
    case PlanTarget::Kind::kSeconds:
      return fmt::format("{}", target.value);
    case PlanTarget::Kind::kEconomic:
      return "economic";
    case PlanTarget::Kind::kFastest:
      return "fastest";
    case PlanTarget::Kind::kTStar:
      break;
  }
  return "tstar";
}

}  // namespace perseus
