// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/conditions.h"

#include "common/enum_names.h"

namespace perseus {
inline namespace v0 {
namespace {

constexpr EnumNames<CallAhead, 3> kCallAheadNames = {{"none", "end", "predicted"}};

}  // namespace

std::string_view CallAheadName(CallAhead call_ahead) { return kCallAheadNames.Of(call_ahead); }

std::optional<CallAhead> ParseCallAhead(std::string_view name) {
  return kCallAheadNames.Parse(name);
}

}  // namespace v0
}  // namespace perseus
