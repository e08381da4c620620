// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "trace/operation_kind.h"

#include <array>
#include <cstddef>

namespace perseus::trace {
namespace {

constexpr std::array<std::string_view, kNumOperationKinds> kKindNames = {
    "forward-compute",
    "backward-compute",
    "forward-send",
    "forward-recv",
    "backward-send",
    "backward-recv",
    "params-all-gather",
    "gc",
    "layernorm-grads-all-reduce",
    "embedding-grads-all-reduce",
    "grads-reduce-scatter",
    "separate-grads-all-reduce",
    "optimizer-clip-main-grad",
    "optimizer",
};

}  // namespace

std::string_view OperationKindName(OperationKind kind) {
  return kKindNames[static_cast<std::size_t>(kind)];
}

std::optional<OperationKind> ParseOperationKind(std::string_view name) {
  for (std::size_t i = 0; i < kKindNames.size(); ++i) {
    if (kKindNames[i] == name) return static_cast<OperationKind>(i);
  }
  return std::nullopt;
}

std::vector<std::string> OperationKindNames() { return {kKindNames.begin(), kKindNames.end()}; }

std::string_view OperationName(OperationKind kind) {
  if (!IsTransfer(kind)) return OperationKindName(kind);
  return IsForward(kind) ? "forward-pp-comm" : "backward-pp-comm";
}

}  // namespace perseus::trace
