// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMPUTATION_H_
#define PERSEUS_COMPUTATION_H_

// Link perseus::model (pkg-config: perseus-model).

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "perseus/export.h"

PERSEUS_EXPORT_BEGIN
namespace perseus {
inline namespace v0 {

// The kinds of computation a pipeline schedule is made of. PyTorch's letters
// in brackets.
enum class ComputationType : std::uint8_t {
  kForward,         // (F)
  kBackward,        // (B) input and weight gradient in one
  kBackwardInput,   // (I)
  kBackwardWeight,  // (W)
  kRecompute,       // (R, not PyTorch's) a forward again, of which only the input was kept
};

inline constexpr int kNumComputationTypes = 5;

// As in profiles and plan files, and as messages list them.
inline constexpr std::array<std::string_view, kNumComputationTypes> kComputationTypeNames = {
    "forward", "backward", "backward_input", "backward_weight", "recompute"};
inline constexpr std::string_view kComputationTypeList =
    "forward, backward, backward_input, backward_weight or recompute";

// One of kComputationTypeNames; "?" for a value that is no type.
constexpr std::string_view ComputationTypeName(ComputationType type) {
  const auto index = static_cast<std::size_t>(type);
  return index < kComputationTypeNames.size() ? kComputationTypeNames[index] : "?";
}

// 'F', 'B', 'I', 'W' or 'R'.
constexpr char ComputationTypeLetter(ComputationType type) {
  const auto index = static_cast<std::size_t>(type);
  return index < std::size_t{kNumComputationTypes} ? "FBIWR"[index] : '?';
}

// The inverse of ComputationTypeName (exact spelling).
constexpr std::optional<ComputationType> ParseComputationType(std::string_view name) {
  for (int i = 0; i < kNumComputationTypes; ++i) {
    const auto type = static_cast<ComputationType>(i);
    if (ComputationTypeName(type) == name) return type;
  }
  return std::nullopt;
}

// Names one computation of an iteration, as PyTorch's `_Action` does. `stage` is the stage of the
// model (from 0, virtual stages counted). `microbatch` counts from 0.
struct ComputationId {
  ComputationType type = ComputationType::kForward;
  int stage = 0;
  int microbatch = 0;

  friend auto operator<=>(const ComputationId&, const ComputationId&) = default;
};

// Whether two may run as one operation: a forward with any backward (B or I), or a recompute with
// the backward that needs it.
constexpr bool MayRunAsOne(const ComputationId& first, const ComputationId& second) {
  using enum ComputationType;
  if (second.type != kBackward && second.type != kBackwardInput) return false;
  return first.type == kForward || (first.type == kRecompute && first.stage == second.stage &&
                                    first.microbatch == second.microbatch);
}

}  // namespace v0
}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_COMPUTATION_H_
