// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "trace/operation_kind.h"

#include "common/enum_names.h"

namespace perseus::trace {
namespace {

constexpr EnumNames<OperationKind, kNumOperationKinds> kKindNames = {{
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
}};

}  // namespace

std::string_view OperationKindName(OperationKind kind) { return kKindNames.Of(kind); }

std::optional<OperationKind> ParseOperationKind(std::string_view name) {
  return kKindNames.Parse(name);
}

std::vector<std::string> OperationKindNames() {
  return {kKindNames.names.begin(), kKindNames.names.end()};
}

std::string_view OperationName(OperationKind kind) {
  if (!IsTransfer(kind)) return OperationKindName(kind);
  return IsForward(kind) ? "forward-pp-comm" : "backward-pp-comm";
}

}  // namespace perseus::trace
