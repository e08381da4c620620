// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_DRAWS_H_
#define PERSEUS_ROBUST_DRAWS_H_

#include <cstdint>
#include <numbers>

namespace perseus::robust {

// The hash of docs/emulation.md ("Noise"): of a seed and words, the same on
// every machine.
class Draw {
 public:
  explicit constexpr Draw(std::uint64_t seed) : state_(seed) {}

  constexpr Draw With(std::uint64_t word) const { return Draw(SplitMix64(state_ ^ word)); }
  constexpr std::uint64_t value() const { return state_; }
  // Mean 0, variance 1, never beyond 3.47.
  constexpr double Standard() const {
    constexpr std::uint64_t kWord = 0xFFFF;
    const std::uint64_t sum =
        (state_ & kWord) + ((state_ >> 16) & kWord) + ((state_ >> 32) & kWord) + (state_ >> 48);
    return std::numbers::sqrt3 * (static_cast<double>(sum + 2) * 0x1p-16 - 2);
  }

 private:
  static constexpr std::uint64_t SplitMix64(std::uint64_t x) {
    x += 0x9E3779B97F4A7C15U;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31);
  }

  std::uint64_t state_;
};

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
  Draw seed_;
  std::uint64_t count_ = 0;
};

}  // namespace perseus::robust

#endif  // PERSEUS_ROBUST_DRAWS_H_
