// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_TRACE_OPERATION_KIND_H_
#define PERSEUS_SRC_TRACE_OPERATION_KIND_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace perseus::trace {

// What a row of a trace is. The names are those of its column optype.
enum class OperationKind : std::uint8_t {
  kForward,
  kBackward,
  kForwardSend,
  kForwardReceive,
  kBackwardSend,
  kBackwardReceive,
  kGather,             // params-all-gather
  kCollectGarbage,     // gc
  kLayerNorm,          // layernorm-grads-all-reduce
  kEmbedding,          // embedding-grads-all-reduce
  kScatter,            // grads-reduce-scatter
  kSeparateGradients,  // separate-grads-all-reduce
  kClip,               // optimizer-clip-main-grad
  kOptimizer,
};
inline constexpr int kNumOperationKinds = 14;

std::string_view OperationKindName(OperationKind kind);
std::optional<OperationKind> ParseOperationKind(std::string_view name);
std::vector<std::string> OperationKindNames();

// The name under which slowdowns are stated: both sides of a transfer are one,
// "forward-pp-comm" or "backward-pp-comm".
std::string_view OperationName(OperationKind kind);

inline bool IsComputation(OperationKind kind) {
  return kind == OperationKind::kForward || kind == OperationKind::kBackward;
}
inline bool IsTransfer(OperationKind kind) {
  return kind >= OperationKind::kForwardSend && kind <= OperationKind::kBackwardReceive;
}
inline bool IsSend(OperationKind kind) {
  return kind == OperationKind::kForwardSend || kind == OperationKind::kBackwardSend;
}
// Of a computation or a transfer.
inline bool IsForward(OperationKind kind) {
  return kind == OperationKind::kForward || kind == OperationKind::kForwardSend ||
         kind == OperationKind::kForwardReceive;
}
// Whether it waits for others, so that what is usual is a median: one that came
// late has waited less.
inline bool IsCommunication(OperationKind kind) {
  return !IsComputation(kind) && kind != OperationKind::kCollectGarbage &&
         kind != OperationKind::kOptimizer;
}

}  // namespace perseus::trace

#endif  // PERSEUS_SRC_TRACE_OPERATION_KIND_H_
