// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_CELLS_H_
#define PERSEUS_COMMON_CELLS_H_

#include <string_view>

#include "common/csv_records.h"

namespace perseus {

// What a text says as a decimal number.
enum class NumberKind {
  kFinite,
  kNotFinite,  // "nan", "inf", or beyond what a double holds.
  kNone,       // No number at all.
};
struct Number {
  NumberKind kind = NumberKind::kNone;
  double value = 0;  // Where kind is kFinite.
};

// Accepts surrounding spaces and a leading '+'. No locale, no hexadecimal.
Number ParseNumber(std::string_view text);

enum class Minimum { kZero, kAboveZero };

// A time, energy or spread. `name` is the column's.
Parsed<double> ParseQuantity(const CsvCell& cell, std::string_view name, Minimum minimum);

// A whole number from 0 to `highest`.
Parsed<int> ParseIndex(const CsvCell& cell, std::string_view name, int highest);

}  // namespace perseus

#endif  // PERSEUS_COMMON_CELLS_H_
