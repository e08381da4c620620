// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_FRAMEWORK_VALUE_PARSERS_H_
#define PERSEUS_CLI_FRAMEWORK_VALUE_PARSERS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "job/setting_text.h"
#include "perseus/plan.h"
#include "perseus/result.h"

namespace perseus::cli {

// Values of options, independent of the locale. The error says what was
// expected and what was given; the caller adds the name of the option.

Result<int> ParseCount(std::string_view text, int least, int most);

// "75", and with a unit "75W".
using job::ParseQuantity;

// "0.02", "0.02s", "20ms", "500us".
using job::ParseDuration;

// ParsePlanTarget in any case, and the names of the table: T_min, min energy, T*.
Result<PlanTarget> ParseTarget(std::string_view text);

// A whole number of 64 bits.
Result<std::int64_t> ParseLongCount(std::string_view text, std::int64_t least, std::int64_t most);
Result<std::uint64_t> ParseSeed(std::string_view text);

// "1%" or "0.01", at most `most` (0.25).
Result<double> ParseShare(std::string_view text, double most);

// As ParseDuration, and "2min", "1h", "30d".
using job::ParseLongDuration;

// "0.12", or with a label after it: "0.12 EUR".
struct Price {
  double amount = 0;
  std::string currency;
};
Result<Price> ParsePrice(std::string_view text);

// Grams of CO2 of a kWh: "380", "380g", "0.38kg", "380g/kWh".
Result<double> ParseCarbon(std::string_view text);

// Lists separated by commas, with or without spaces around them.
Result<std::vector<double>> ParseWatts(std::string_view text);
Result<std::vector<double>> ParseDurations(std::string_view text);

// Which server, and as whom; what is empty comes from the environment.
struct ServerFlags {
  std::string server;      // URL; or PERSEUS_SERVER, or this machine.
  std::string token_file;  // Holds one token; or PERSEUS_TOKEN_FILE, or none.
  std::string ca_file;     // To trust; or PERSEUS_CA_FILE, or the system's.
};

// Fills empty flags from the environment.
ServerFlags WithEnvironment(ServerFlags flags);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_FRAMEWORK_VALUE_PARSERS_H_
