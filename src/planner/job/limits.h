// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_JOB_LIMITS_H_
#define PERSEUS_JOB_LIMITS_H_

// The limits of a job's numbers, in job files and flags (docs/reference/files.md). A larger number
// is more likely a typing error than intended. pipeline/limits.h has the limits of a whole
// schedule, perseus/emulator.h those of an emulation.
namespace perseus::job {

inline constexpr int kMaxStages = 65'536;           // stages, virtual_stages
inline constexpr int kMaxMicrobatches = 1'000'000;  // microbatches, microbatch_group_size
inline constexpr int kMaxGpus = 1'000'000;          // tp, dp
inline constexpr double kMaxWatts = 1e6;            // blocking_power, coarse_watts
inline constexpr double kMaxSeconds = 1e6;          // All times; not `at`
inline constexpr double kMaxJoules = 1e12;          // change_price
inline constexpr int kMaxChanges = 1'000'000'000;   // max_changes
inline constexpr double kMinEffort = 0.001;
inline constexpr double kMaxEffort = 1'000;

}  // namespace perseus::job

#endif  // PERSEUS_JOB_LIMITS_H_
