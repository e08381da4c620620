// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <vector>

#include "common/json_text.h"

namespace perseus::report {
namespace {

using Json = nlohmann::ordered_json;

struct Prefix {
  double factor;
  std::string_view name;
};

template <std::size_t n>
DisplayUnit ChooseUnit(double value, const Prefix (&prefixes)[n]) {
  const double magnitude = std::abs(value);
  DisplayUnit unit{prefixes[n - 1].factor, prefixes[n - 1].name, 3};
  for (const Prefix& prefix : prefixes) {
    if (magnitude >= prefix.factor) {
      unit.factor = prefix.factor;
      unit.name = prefix.name;
      break;
    }
  }
  unit.decimals = 4;
  for (double bound = 10; magnitude / unit.factor >= bound && unit.decimals > 0; bound *= 10) {
    --unit.decimals;
  }
  return unit;
}

}  // namespace

std::string ScriptJson(const Json& json) {
  std::string safe;
  for (const char c : FormatCompact(json)) {
    switch (c) {
      case '<':
        safe += "\\u003c";
        break;
      case '>':
        safe += "\\u003e";
        break;
      case '&':
        safe += "\\u0026";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

double RoundSignificant(double value, int digits) {
  if (!std::isfinite(value)) return value;
  const std::string text = fmt::format("{:.{}e}", value, digits - 1);
  double rounded = 0;
  std::from_chars(text.data(), text.data() + text.size(), rounded);
  return rounded;
}

std::string FixedText(double value, int decimals) {
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (text.find_first_not_of("-0.") == std::string::npos && text[0] == '-') text.erase(0, 1);
  return text;
}

std::string DisplayUnit::Number(double value) const { return FixedText(value / factor, decimals); }

std::string DisplayUnit::Text(double value) const {
  return fmt::format("{}\u00a0{}", Number(value), name);
}

DisplayUnit TimeUnit(double seconds) {
  return ChooseUnit(seconds, {{1, "s"}, {1e-3, "ms"}, {1e-6, "\u00b5s"}});
}

DisplayUnit EnergyUnit(double joules) {
  return ChooseUnit(joules, {{1e6, "MJ"}, {1e3, "kJ"}, {1, "J"}, {1e-3, "mJ"}, {1e-6, "\u00b5J"}});
}

DisplayUnit PowerUnit(double watts) {
  DisplayUnit unit = ChooseUnit(watts, {{1e6, "MW"}, {1e3, "kW"}, {1, "W"}, {1e-3, "mW"}});
  unit.decimals = std::max(0, unit.decimals - 1);
  return unit;
}

std::string ChangePercent(double change_percent, int decimals) {
  const std::string text = SavingPercent(change_percent, decimals);
  const bool is_zero = text.find_first_of("123456789") == std::string::npos;
  return change_percent > 0 && !is_zero ? "+" + text : text;
}

std::string SavingPercent(double saving_percent, int decimals) {
  const std::string digits = fmt::format("{:.{}f}", std::abs(saving_percent), decimals);
  const bool is_zero = digits.find_first_not_of("0.") == std::string::npos;
  return fmt::format("{}{}\u00a0%", saving_percent < 0 && !is_zero ? "\u2212" : "", digits);
}

std::string IntervalText(const SavingInterval& interval) {
  return fmt::format("95 %: {} to {} %, by the errors of the profile",
                     FixedText(interval.least_percent, 2), FixedText(interval.most_percent, 2));
}

std::string_view ProfileOrigin(std::string_view modelled) {
  return modelled.empty() ? "as the profile says" : "modelled";
}

std::string DefaultClocksText(const DefaultClockFigures& default_clocks, std::string_view iteration,
                              std::string_view origin) {
  const std::string change = FixedText(std::abs(default_clocks.slowdown_percent), 2);
  std::string longer =
      fmt::format("{} % {}", change, default_clocks.slowdown_percent > 0 ? "longer" : "less time");
  if (change == FixedText(0, 2)) longer = "as long";
  const double saved = default_clocks.saving_percent;
  return fmt::format(
      "at default clocks one iteration takes {} ({}); the plan uses {} % {} energy "
      "and takes {}",
      iteration, origin, FixedText(std::abs(saved), 2), saved < 0 ? "more" : "less", longer);
}

std::string SharedKnobText(const SharedKnobBound& bound) {
  const std::string head = "of all plans within these constraints and this time, ";
  if (bound.proven_best) return head + "this one is proven to use the least energy.";
  return head + fmt::format("the best uses at most {:.3f} % less energy than this one.",
                            ShownGap(bound.gap_percent));
}

std::string ModelledWarning(std::string_view modelled) {
  if (modelled.empty()) return "";
  return fmt::format("The profile was not measured on a GPU, so no figure here was: \u201c{}\u201d",
                     modelled);
}

std::string ClassOfSaving(double saving_percent) {
  constexpr double kShown = 0.005;  // Less is written as 0.00 %.
  if (saving_percent >= kShown) return "hero saved";
  return saving_percent <= -kShown ? "hero lost" : "hero";
}

std::string NoteLine(Note note) {
  note.source = FileName(note.source);
  return NoteText(note);
}

std::string Plural(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string ShapeOf(const PipelineDag& dag) {
  return fmt::format("{}, {}, {}, {} microbatch{}", dag.schedule_name,
                     Plural(dag.num_ranks, "rank"), Plural(dag.num_stages, "stage"),
                     dag.num_microbatches, dag.num_microbatches == 1 ? "" : "es");
}

std::string_view FileName(std::string_view path) {
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

double PercentOver(double value, double base) {
  return base == 0 ? 0 : 100 * (value - base) / base;
}

double PercentSaved(double value, double base) {
  return base == 0 ? 0 : 100 * (base - value) / base;
}

double ShownGap(double percent) {
  constexpr double kThousandths = 1e3;
  constexpr double kRounding = 1e-6;
  return std::max(0.0, std::ceil(kThousandths * percent - kRounding) / kThousandths);
}

std::string DistinctText(const Plan& plan, std::string_view noun) {
  return fmt::format("{} distinct {}{}", plan.distinct_knobs, noun,
                     plan.distinct_knobs == 1 ? "" : "s");
}

std::string ChangesText(const KnobChanges& changes) {
  const std::string all =
      fmt::format("{} change{} an iteration", changes.all(), changes.all() == 1 ? "" : "s");
  return changes.back == 0 ? all
                           : fmt::format("{} ({} of them from its end to the next one's start)",
                                         all, changes.back);
}

}  // namespace perseus::report
