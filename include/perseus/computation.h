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
};

inline constexpr int kNumComputationTypes = 4;

// "forward", "backward", "backward_input" or "backward_weight", as in profiles and plan files. "?"
// for any other value.
constexpr std::string_view ComputationTypeName(ComputationType type) {
  constexpr std::array<std::string_view, kNumComputationTypes> kNames = {
      "forward", "backward", "backward_input", "backward_weight"};
  const auto index = static_cast<std::size_t>(type);
  return index < kNames.size() ? kNames[index] : "?";
}

// 'F', 'B', 'I' or 'W'.
constexpr char ComputationTypeLetter(ComputationType type) {
  const auto index = static_cast<std::size_t>(type);
  return index < std::size_t{kNumComputationTypes} ? "FBIW"[index] : '?';
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

}  // namespace v0
}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_COMPUTATION_H_
