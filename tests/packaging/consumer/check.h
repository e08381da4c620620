// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CONSUMER_CHECK_H_
#define PERSEUS_CONSUMER_CHECK_H_

#include <cstdlib>
#include <iostream>
#include <utility>

// Common to all consumers. No test framework: they link Perseus alone.

inline void Check(bool holds, const char* what) {
  if (holds) return;
  std::cerr << "not as expected: " << what << '\n';
  std::exit(1);
}

// The value of a perseus::Result, which must have one.
template <typename Result>
auto ValueOf(Result result, const char* what) {
  if (!result) {
    std::cerr << what << ": " << result.error().message << '\n';
    std::exit(1);
  }
  return *std::move(result);
}

#endif  // PERSEUS_CONSUMER_CHECK_H_
