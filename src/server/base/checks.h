// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_BASE_CHECKS_H_
#define PERSEUS_SERVER_BASE_CHECKS_H_

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/base/failure.h"

// Checks of values in requests.
namespace perseus::server {

inline bool IsPositive(double value) { return std::isfinite(value) && value > 0; }

// Fails if `value`, the field `name` of a request, is not in 0 .. `limit` - 1. `what` is what the
// job has `limit` of, such as "ranks".
inline Outcome<void> CheckBelow(int value, std::int64_t limit, std::string_view name,
                                std::string_view what) {
  if (value >= 0 && value < limit) return {};
  return Fail(
      FailureCode::kInvalid,
      fmt::format("{} is {}, but the job has {} {}, counted from 0", name, value, limit, what),
      std::string(name));
}

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_BASE_CHECKS_H_
