// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_REPORT_LIMITS_H_
#define PERSEUS_COMMON_REPORT_LIMITS_H_

#include <cstddef>

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

#endif  // PERSEUS_COMMON_REPORT_LIMITS_H_
