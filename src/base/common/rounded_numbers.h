// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_ROUNDED_NUMBERS_H_
#define PERSEUS_COMMON_ROUNDED_NUMBERS_H_

#include <string>

// Numbers for people, with as few digits as still say the right thing.
namespace perseus {

// Whether they differ by a few last bits only.
bool SameButRounding(double a, double b);

// With six digits, or as many more as it takes not to be less than `value` > 0:
// what an error advises must work.
std::string RoundedUp(double value);

// With six digits, or as many as tell it from `limit`, which is greater.
std::string RoundedBelow(double value, double limit);

}  // namespace perseus

#endif  // PERSEUS_COMMON_ROUNDED_NUMBERS_H_
