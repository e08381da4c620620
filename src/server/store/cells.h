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

#include "server/store/facts.h"

// Values as text, each for one cell of a table. ReadCell() returns false for text that CellOf()
// does not write. Numbers have the fewest digits that read back to the same bits.
namespace perseus::store {

std::string CellOf(const std::vector<int>& values);
bool ReadCell(std::string_view text, std::vector<int>* values);

std::string CellOf(const std::vector<double>& values);
bool ReadCell(std::string_view text, std::vector<double>* values);

// "0 F 1410 0.025 11.9 12;..."
std::string CellOf(const std::vector<MeasuredRow>& rows);
bool ReadCell(std::string_view text, std::vector<MeasuredRow>* rows);

// Empty text: no sweep.
std::string CellOf(const std::optional<SweepCost>& sweep);
bool ReadCell(std::string_view text, std::optional<SweepCost>* sweep);

// "1410 83.5 0.4;..."
std::string CellOf(const std::vector<MeasuredWaiting>& rows);
bool ReadCell(std::string_view text, std::vector<MeasuredWaiting>* rows);

// One text per line. No text may be empty or contain a line end.
std::string CellOf(const std::vector<std::string>& lines);
bool ReadCell(std::string_view text, std::vector<std::string>* lines);

// "project=x team=vision"
std::string CellOf(const JobLabels& labels);
bool ReadCell(std::string_view text, JobLabels* labels);

// "3 17;5 17": pipelines 3 and 5 run plan 17.
std::string CellOf(const std::map<int, std::int64_t>& exceptions);
bool ReadCell(std::string_view text, std::map<int, std::int64_t>* exceptions);

std::string CellOf(JobState state);
bool ReadCell(std::string_view text, JobState* state);

}  // namespace perseus::store

#endif  // PERSEUS_STORE_CELLS_H_
