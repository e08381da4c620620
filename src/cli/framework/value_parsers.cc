// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/framework/value_parsers.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include "common/input_limits.h"
#include "common/nearest_name.h"
#include "common/numbers.h"
#include "job/job_fields.h"
#include "job/setting_text.h"

namespace perseus::cli {
namespace {

using job::kMaxWatts;

bool ReadNumber(std::string_view text, double* number) {
  const std::optional<double> value = ParseFinite(text);
  if (value) *number = *value;
  return value.has_value();
}

template <typename T, typename Parser>
Result<std::vector<T>> ParseList(std::string_view text, const Parser& parse) {
  std::vector<T> values;
  while (true) {
    const std::size_t comma = text.find(',');
    Result<T> value = parse(Trimmed(text.substr(0, comma)));
    if (!value) return tl::unexpected(value.error());
    values.push_back(*value);
    if (comma == std::string_view::npos) return values;
    text.remove_prefix(comma + 1);
  }
}

template <typename Integer>
Result<Integer> ParseWithin(std::string_view text, Integer least, Integer most) {
  const std::optional<Integer> value = ParseInteger<Integer>(text);
  if (value && *value >= least && *value <= most) return *value;
  return InvalidInput(
      fmt::format("expected a whole number from {} to {}, got '{}'", least, most, text));
}

}  // namespace

Result<int> ParseCount(std::string_view text, int least, int most) {
  return ParseWithin(text, least, most);
}

Result<std::int64_t> ParseLongCount(std::string_view text, std::int64_t least, std::int64_t most) {
  return ParseWithin(text, least, most);
}

Result<std::uint64_t> ParseSeed(std::string_view text) {
  return ParseWithin(text, std::uint64_t{0}, ~std::uint64_t{0});
}

Result<double> ParseShare(std::string_view text, double most) {
  return job::ParseShare(text, {.least = 0, .most = most});
}

Result<Price> ParsePrice(std::string_view text) {
  constexpr double kMostPrice = 1e9;
  constexpr std::size_t kLongestLabel = 12;
  Price price;
  const std::size_t space = text.find(' ');
  std::string_view label = space == std::string_view::npos ? "" : text.substr(space + 1);
  while (label.starts_with(' ')) label.remove_prefix(1);
  price.currency = label;
  if (!ReadNumber(text.substr(0, space), &price.amount) || price.amount < 0 ||
      price.amount > kMostPrice || label.size() > kLongestLabel) {
    return InvalidInput(fmt::format(
        "expected the price of a kWh, a number with or without a currency ('0.12 EUR'), got '{}'",
        text));
  }
  price.amount += 0.0;  // No "-0" for a user to read.
  return price;
}

Result<double> ParseCarbon(std::string_view text) {
  constexpr double kMostGrams = 1e6;
  constexpr UnitScale kMassUnits[] = {{"kg", 1e3}, {"g", 1}};
  std::string_view mass = text;
  TakeUnit(&mass, "/kWh");
  const std::optional<double> value = ParseWithUnit(mass, kMassUnits);
  // No grid emits so few grams: such a bare number is one of kilograms.
  constexpr double kFewestGrams = 2;
  const bool meant_kilograms = value && *value > 0 && *value < kFewestGrams && ParseFinite(mass);
  if (value && *value >= 0 && *value <= kMostGrams && !meant_kilograms) return *value;
  return InvalidInput(fmt::format(
      "expected grams of CO2 a kWh (380), or a number with a unit (380g, 0.38kg), from 0 to {} g, "
      "got {}{}",
      kMostGrams, Shown(text), meant_kilograms ? fmt::format("; did you mean {}kg?", mass) : ""));
}

Result<PlanTarget> ParseTarget(std::string_view text) {
  std::string name(text);
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (name == "t_min" || name == "tmin") name = "fastest";
  if (name == "t_min_energy" || name == "min energy") name = "min-energy";
  if (name == "t*" || name == "t_star") name = "tstar";
  Result<PlanTarget> target = ParsePlanTarget(name);
  // The error quotes what was given.
  return target ? target : ParsePlanTarget(text);
}

Result<std::vector<double>> ParseWatts(std::string_view text) {
  return ParseList<double>(text, [](std::string_view item) {
    return ParseQuantity(item, {.least = 0, .most = kMaxWatts}, job::kInWatts);
  });
}

Result<std::vector<double>> ParseDurations(std::string_view text) {
  return ParseList<double>(text, ParseDuration);
}

namespace {

void FillFromEnvironment(std::string* text, const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread.
  if (text->empty() && value != nullptr) *text = value;
}

}  // namespace

ServerFlags WithEnvironment(ServerFlags flags) {
  FillFromEnvironment(&flags.server, "PERSEUS_SERVER");
  FillFromEnvironment(&flags.token_file, "PERSEUS_TOKEN_FILE");
  FillFromEnvironment(&flags.ca_file, "PERSEUS_CA_FILE");
  return flags;
}

}  // namespace perseus::cli
