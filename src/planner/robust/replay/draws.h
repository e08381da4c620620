// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_REPLAY_DRAWS_H_
#define PERSEUS_ROBUST_REPLAY_DRAWS_H_

#include <cstdint>

#include "common/word_hash.h"

namespace perseus::robust {

// A stream of draws for a search.
class Stream {
 public:
  explicit constexpr Stream(std::uint64_t seed) : seed_(seed) {}

  constexpr std::uint64_t Next() { return seed_.With(++count_).value(); }
  // In [0, 1).
  constexpr double Share() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  // In [0, count).
  constexpr int Below(int count) {
    return static_cast<int>(((Next() >> 32) * static_cast<std::uint64_t>(count)) >> 32);
  }

 private:
  WordHash seed_;
  std::uint64_t count_ = 0;
};

}  // namespace perseus::robust

#endif  // PERSEUS_ROBUST_REPLAY_DRAWS_H_
