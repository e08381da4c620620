// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EFFORT_H_
#define PERSEUS_EFFORT_H_

// Link perseus::model (pkg-config: perseus-model).

#include "perseus/export.h"

// How much work a search for a plan may do. 1 is right for a plan that will be used: about a second
// of CPU up to 8 stages x 96 microbatches, in proportion to the computations beyond. Work is
// counted in steps, not in seconds, so the same effort gives the same plan on every machine. More
// effort never gives a plan with more energy.
//
// Every `effort` in these headers is 1 unless you say otherwise. The exceptions have a name
// here.
PERSEUS_EXPORT_BEGIN
namespace perseus {
inline namespace v0 {

// A plan that is one of many: a row of a table beside the chosen plan, and what `perseus emulate`
// compares.
inline constexpr double kTableEffort = 0.2;

// A plan of a server's ladder, which answers stragglers.
inline constexpr double kLadderEffort = 0.15;

// A plan that is used for one iteration (StreamPlanner): about 20 ms of CPU up to 128 computations,
// such as 4 stages x 16 microbatches. Larger pipelines get more, up to 1.
inline constexpr double kStreamEffort = 0.02;

}  // namespace v0
}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_EFFORT_H_
