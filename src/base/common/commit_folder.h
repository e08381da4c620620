// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_COMMIT_FOLDER_H_
#define PERSEUS_COMMON_COMMIT_FOLDER_H_

#include <string>

#include "perseus/result.h"

namespace perseus {

// The name, in an output directory, of the folder of a set that counts.
inline constexpr const char* kCommitName = ".perseus-commit";

// Moves the files of that set, if there is one, to their places; one caller at a
// time. `owned` is the descriptor by which the caller has locked the folder, -1:
// it is another writer's, perhaps a killed one's. On an error all files are as
// they were before the set and the folder is gone; where that cannot be had (no
// hard links), the folder stays, and the next call tries again.
Result<void> FinishCommit(const std::string& directory, int owned);

}  // namespace perseus

#endif  // PERSEUS_COMMON_COMMIT_FOLDER_H_
