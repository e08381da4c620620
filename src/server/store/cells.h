// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_STORE_CELLS_H_
#define PERSEUS_SERVER_STORE_CELLS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/store/facts.h"

// Lists as text, each for one cell of a table. The Parse functions return nullopt for text that the
// Format functions do not write.
namespace perseus::store {

std::string FormatIntegers(const std::vector<int>& values);
std::optional<std::vector<int>> ParseIntegers(std::string_view text);

// Each number has the fewest digits that read back to the same bits.
std::string FormatNumbers(const std::vector<double>& values);
std::optional<std::vector<double>> ParseNumbers(std::string_view text);

// Two letters for each knob.
std::string FormatKnobs(const std::vector<int>& knobs);
std::optional<std::vector<int>> ParseKnobs(std::string_view text);

// "0 F 1410 0.025 11.9 12;..."
std::string FormatRows(const std::vector<MeasuredRow>& rows);
std::optional<std::vector<MeasuredRow>> ParseRows(std::string_view text);

// Empty text: no sweep. ParseSweep() returns whether the text is valid.
std::string FormatSweep(const std::optional<SweepCost>& sweep);
bool ParseSweep(std::string_view text, std::optional<SweepCost>* sweep);

// "1410 83.5 0.4;..."
std::string FormatWaiting(const std::vector<MeasuredWaiting>& rows);
std::optional<std::vector<MeasuredWaiting>> ParseWaiting(std::string_view text);

// One text per line. No text may be empty or contain a line end.
std::string FormatLines(const std::vector<std::string>& lines);
std::vector<std::string> ParseLines(std::string_view text);

// "project=x team=vision"
std::string FormatLabels(const JobLabels& labels);
std::optional<JobLabels> ParseLabels(std::string_view text);

// "3 17;5 17": pipelines 3 and 5 run plan 17.
std::string FormatExceptions(const std::map<int, std::int64_t>& exceptions);
std::optional<std::map<int, std::int64_t>> ParseExceptions(std::string_view text);

}  // namespace perseus::store

#endif  // PERSEUS_SERVER_STORE_CELLS_H_
