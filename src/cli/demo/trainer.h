// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_DEMO_TRAINER_H_
#define PERSEUS_CLI_DEMO_TRAINER_H_

#include <string>

#include "perseus/result.h"

namespace perseus::demo {

// The first argument of a process that is a trainer; the second is the folder
// of the demonstration, the third its rank.
inline constexpr const char* kTrainerArgument = "--demo-trainer";

// One rank of the modelled job, to its end: runs its computations in the order
// of its schedule on its simulated GPU, waits for its neighbours, and tells the
// client what it does, as a real trainer would.
Result<void> RunTrainer(const std::string& folder, int rank);

}  // namespace perseus::demo

#endif  // PERSEUS_CLI_DEMO_TRAINER_H_
