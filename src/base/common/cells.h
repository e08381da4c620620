// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_CELLS_H_
#define PERSEUS_COMMON_CELLS_H_

#include <string_view>

#include "common/csv_records.h"
#include "common/numbers.h"

namespace perseus {

enum class Minimum { kZero, kAboveZero };

// A time, energy or spread. `name` is the column's.
Parsed<double> ParseQuantity(const CsvCell& cell, std::string_view name, Minimum minimum);

// A whole number from 0 to `highest`.
Parsed<int> ParseIndex(const CsvCell& cell, std::string_view name, int highest);

}  // namespace perseus

#endif  // PERSEUS_COMMON_CELLS_H_
