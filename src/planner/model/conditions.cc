// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/conditions.h"

#include <array>
#include <cstddef>

namespace perseus {
inline namespace v0 {
namespace {

constexpr std::array<std::string_view, 3> kCallAheadNames = {"none", "end", "predicted"};

}  // namespace

std::string_view CallAheadName(CallAhead call_ahead) {
  const auto index = static_cast<std::size_t>(call_ahead);
  return index < kCallAheadNames.size() ? kCallAheadNames[index] : "?";
}

std::optional<CallAhead> ParseCallAhead(std::string_view name) {
  for (std::size_t k = 0; k < kCallAheadNames.size(); ++k) {
    if (kCallAheadNames[k] == name) return static_cast<CallAhead>(k);
  }
  return std::nullopt;
}

}  // namespace v0
}  // namespace perseus
