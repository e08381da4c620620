// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_PLANNING_DOUBTS_H_
#define PERSEUS_SERVER_PLANNING_DOUBTS_H_

#include <string>

#include "perseus/job.h"

namespace perseus::server {

// Why measurements that made this job's profile should be taken again: cells that do not fit their
// curve, powers that no GPU has, waiting that draws more than computing, errors too wide to plan
// by. Empty: nothing is doubtful.
std::string DoubtOf(const Job& job);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_PLANNING_DOUBTS_H_
