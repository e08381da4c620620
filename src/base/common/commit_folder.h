// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_COMMIT_FOLDER_H_
#define PERSEUS_COMMON_COMMIT_FOLDER_H_

#include <string>

#include "perseus/result.h"

namespace perseus {

// In an output directory: the folder that holds a complete set of new files.
inline constexpr const char* kCommitName = ".perseus-commit";

// If that folder exists, moves its files to their places. Call it from one thread at a time.
// `owned`: the descriptor with which the caller has locked the folder; -1: another writer, perhaps
// a killed one, made it. On an error all files are as they were before, and the folder is gone. If
// that is impossible (no hard links), the folder stays and the next call tries again.
Result<void> FinishCommit(const std::string& directory, int owned);

}  // namespace perseus

#endif  // PERSEUS_COMMON_COMMIT_FOLDER_H_
