// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_ROUNDED_NUMBERS_H_
#define PERSEUS_COMMON_ROUNDED_NUMBERS_H_

#include <string>

// Numbers for messages, with as few digits as possible.
namespace perseus {

// Whether a and b differ only by rounding errors.
bool SameButRounding(double a, double b);

// `value` > 0 with six digits, or more if it would otherwise become less than `value`. For advice
// in messages, which must work when followed.
std::string RoundedUp(double value);

// `value` with six digits, or more if it would otherwise look equal to `limit`, which is greater.
std::string RoundedBelow(double value, double limit);

}  // namespace perseus

#endif  // PERSEUS_COMMON_ROUNDED_NUMBERS_H_
