// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DETECT_BUSY_TIMES_H_
#define PERSEUS_SERVER_DETECT_BUSY_TIMES_H_

#include <vector>

#include "server/detect/straggler_detector.h"
#include "server/planning/curve.h"

namespace perseus::server {

// How long each rank of a pipeline computes in one iteration, by type of computation: [pp_rank].
// `plan` null: at maximum clocks.
std::vector<SecondsByType> BusyTimes(const Curve& curve, const CurvePlan* plan);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DETECT_BUSY_TIMES_H_
