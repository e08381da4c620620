// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_INPUT_LIMITS_H_
#define PERSEUS_COMMON_INPUT_LIMITS_H_

#include <cstddef>
#include <cstdint>

// Limits of numbers that several rooms read or check. Errors name them, so callers need no
// constant.
namespace perseus {

// How many times as much work as the profile's a computation may be: sums stay finite.
inline constexpr double kLeastWork = 1e-6;
inline constexpr double kMostWork = 1e6;

// A relative standard deviation.
inline constexpr double kMostNoise = 0.25;

// Half the sampling rate of the longest jobs whose power is followed.
inline constexpr double kMostBandHz = 25;
inline constexpr double kMostRampWattsPerSecond = 1e15;

// Of one emulation; a record of 64 bytes is kept of each.
inline constexpr std::int64_t kMaxIterations = 10'000'000;

}  // namespace perseus

// Limits of a server on one report of a rank, and so the most that a client sends.
namespace perseus {

inline constexpr std::size_t kMostReportedKinds = 4096;  // Of computations, each at one clock.
inline constexpr std::size_t kMostTimelineRows = 4096;
inline constexpr std::size_t kMostReportedNotes = 32;  // Of a sweep: each is one sentence.
inline constexpr std::size_t kMostReportedNoteBytes = 300;
inline constexpr std::size_t kMostVersionBytes = 64;  // Of a program.
// Influences against a GPU's clock. A server shortens longer lists and texts.
inline constexpr std::size_t kMostConflicts = 16;
inline constexpr std::size_t kMostConflictBytes = 512;

}  // namespace perseus

#endif  // PERSEUS_COMMON_INPUT_LIMITS_H_
