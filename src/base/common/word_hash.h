// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_WORD_HASH_H_
#define PERSEUS_COMMON_WORD_HASH_H_

#include <cstdint>
#include <numbers>
#include <string_view>

namespace perseus {

// FNV-1a, to notice damage.
constexpr std::uint64_t Fnv1a(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
  return hash;
}

// A hash of a seed and a list of words (docs/explanation/emulation.md). It is the same on every
// machine. With() continues it cheaply with one more word.
class WordHash {
 public:
  explicit constexpr WordHash(std::uint64_t seed) : state_(seed) {}

  constexpr WordHash With(std::uint64_t word) const { return WordHash(SplitMix64(state_ ^ word)); }
  constexpr std::uint64_t value() const { return state_; }
  // In [0, 1).
  constexpr double Share() const { return static_cast<double>(state_ >> 11) * 0x1p-53; }
  // A random number with mean 0 and variance 1: a sum of four uniform numbers of 16 bits each.
  constexpr double StandardDraw() const {
    constexpr std::uint64_t kWord = 0xFFFF;
    const std::uint64_t sum =
        (state_ & kWord) + ((state_ >> 16) & kWord) + ((state_ >> 32) & kWord) + (state_ >> 48);
    // Each word counts half a step more; 4 x 0.5 = 2.
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

}  // namespace perseus

#endif  // PERSEUS_COMMON_WORD_HASH_H_
