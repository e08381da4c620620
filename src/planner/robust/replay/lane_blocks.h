// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_REPLAY_LANE_BLOCKS_H_
#define PERSEUS_ROBUST_REPLAY_LANE_BLOCKS_H_

#include <cstring>

namespace perseus::robust {

// Lanes that are computed together: a block of kParts times kLanes. Each lane sees the same
// operations in the same order, so the width changes no bit of a result.
struct OneLane {
  using Part = double;
  static constexpr int kLanes = 1;
  static constexpr int kParts = 1;
};
struct EightInTwos {
  using Part __attribute__((vector_size(16))) = double;
  static constexpr int kLanes = 2;
  static constexpr int kParts = 4;
};
struct EightInFours {
  using Part __attribute__((vector_size(32))) = double;
  static constexpr int kLanes = 4;
  static constexpr int kParts = 2;
};
template <typename Block>
inline constexpr int kBlockLanes = Block::kLanes* Block::kParts;

// A function marked with it may use registers of four doubles; call it only if HasFourWide().
#if defined(__x86_64__)
#define PERSEUS_FOUR_WIDE __attribute__((target("avx2")))
inline bool HasFourWide() { return __builtin_cpu_supports("avx2") != 0; }
#else
#define PERSEUS_FOUR_WIDE
inline bool HasFourWide() { return false; }
#endif
// Takes over the registers of the function that it is called from.
#define PERSEUS_LANE_LOOP __attribute__((always_inline)) inline

// Reads or writes part `s` of the block that begins at `lanes`. By pointers: the registers in which
// a function would return four doubles depend on what it is compiled for.
template <typename Block>
PERSEUS_LANE_LOOP void Load(const double* lanes, int s, typename Block::Part* part) {
  std::memcpy(part, lanes + s * Block::kLanes, sizeof(*part));
}
template <typename Block>
PERSEUS_LANE_LOOP void Store(const typename Block::Part& part, int s, double* lanes) {
  std::memcpy(lanes + s * Block::kLanes, &part, sizeof(part));
}

// Whether the largest of some parts is above zero in any lane.
template <typename Block>
PERSEUS_LANE_LOOP bool AnyAboveZero(const typename Block::Part* parts) {
  double lanes[kBlockLanes<Block>];
  for (int s = 0; s < Block::kParts; ++s) Store<Block>(parts[s], s, lanes);
  bool any = false;
  for (const double lane : lanes) any |= lane > 0;
  return any;
}

}  // namespace perseus::robust

#endif  // PERSEUS_ROBUST_REPLAY_LANE_BLOCKS_H_
