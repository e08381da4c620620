// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_STORE_CELLS_H_
#define PERSEUS_STORE_CELLS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/facts.h"

// Lists as text, for one cell of a table each. The readers give nullopt for
// what no writer wrote.
namespace perseus::store {

std::string FormatIntegers(const std::vector<int>& values);
std::optional<std::vector<int>> ParseIntegers(std::string_view text);

// Shortest digits that read back to the same bits.
std::string FormatNumbers(const std::vector<double>& values);
std::optional<std::vector<double>> ParseNumbers(std::string_view text);

// Two letters a knob.
std::string FormatKnobs(const std::vector<int>& knobs);
std::optional<std::vector<int>> ParseKnobs(std::string_view text);

// "0 F 1410 0.025 11.9 12;..."
std::string FormatRows(const std::vector<MeasuredRow>& rows);
std::optional<std::vector<MeasuredRow>> ParseRows(std::string_view text);

// Empty: none. ParseSweep() says whether the text is one.
std::string FormatSweep(const std::optional<SweepCost>& sweep);
bool ParseSweep(std::string_view text, std::optional<SweepCost>* sweep);

// One a line; none of them may be empty or hold a line's end.
std::string FormatLines(const std::vector<std::string>& lines);
std::vector<std::string> ParseLines(std::string_view text);

// "3 17;5 17": pipeline and plan.
std::string FormatExceptions(const std::map<int, std::int64_t>& exceptions);
std::optional<std::map<int, std::int64_t>> ParseExceptions(std::string_view text);

}  // namespace perseus::store

#endif  // PERSEUS_STORE_CELLS_H_
