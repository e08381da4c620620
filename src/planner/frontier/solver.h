// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_FRONTIER_SOLVER_H_
#define PERSEUS_FRONTIER_SOLVER_H_

// The internal interface of this room: what a search for discrete plans in
// another room may use of the solver, beside the public perseus/frontier.h.
// Other rooms include this header and no other of this folder.
//
//   auto network = Network::Build(problem, slope_quantum);   // to integers
//   WalkLadder ladder(*network);                             // one walk, or
//   WalkFrontier(*network, options, &ladder);                // with the frontier
//   DeadlineProgram program = ladder.ProgramAt(deadline);    // any number of times
//   program.Fix(activity, length, cost);
//   program.Optimise(limit); program.objective();
//
// - Network, Curve, Scale: the problem on the grid of integers. Plain data.
// - WalkLadder: an optimal basis at any deadline, from one walk.
// - DeadlineProgram: the optimum at one deadline, while activities are fixed to
//   single options and released again.
//
// All of them borrow the network, which must neither move nor die before them.
// Walk, in walk.h, belongs to the room: ask for programs.

#include <memory>

#include "frontier/deadline_program.h"  // IWYU pragma: export
#include "frontier/network.h"           // IWYU pragma: export
#include "frontier/walk_ladder.h"       // IWYU pragma: export
#include "perseus/frontier.h"
#include "perseus/result.h"

namespace perseus::frontier {

// SolveFrontier() of a network that is there already; its slopes are rounded already. `ladder`:
// made on the way of the same walk; null: not wanted. Precondition: `options` are valid; with a
// ladder, they stop nowhere.
Result<TimeCostFrontier> WalkFrontier(const Network& network, const FrontierOptions& options,
                                      std::unique_ptr<const WalkLadder>* ladder);

}  // namespace perseus::frontier

#endif  // PERSEUS_FRONTIER_SOLVER_H_
