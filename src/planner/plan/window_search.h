// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_WINDOW_SEARCH_H_
#define PERSEUS_PLAN_WINDOW_SEARCH_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "frontier/deadline_program.h"
#include "frontier/solver.h"
#include "plan/option_search.h"

namespace perseus::plan {

// When activities may run, at given lengths: as early as what comes before
// allows, as late as what comes after does. In ticks, by activity.
struct Timetable {
  std::vector<std::int64_t> length;
  std::vector<std::int64_t> earliest_end;
  std::vector<std::int64_t> latest_start;
};

// Some activities of a network as a small network of its own.
class PartNetwork {
 public:
  // The part's own; activity k is the k-th that was cut out.
  const frontier::Network& network() const { return network_; }
  // The optimum with everything free, or nullopt where there is too little
  // time. Adds what it costs to `work`.
  std::optional<frontier::DeadlineProgram> Program(std::int64_t* work) const;

 protected:
  // Borrows the whole network and its optimum, from whose prices a part's begins.
  PartNetwork(const frontier::Network& whole, const frontier::DeadlineProgram& relaxation);
  // Begins with `activities`, which have neither arcs nor an order yet.
  void Begin(std::span<const int> activities);

  const frontier::Network& whole_;
  const frontier::DeadlineProgram& relaxation_;
  frontier::Network network_;
  std::vector<frontier::DeadlineProgram::ArcStart> starts_;  // [arc of the part]
  std::int64_t time_ = 0;   // From the first start to the last end.
  std::vector<int> local_;  // [activity of the whole], -1 outside.
};

// A stretch of a network: what comes before ends when it ends, what comes after
// starts when it starts, and the activities between have their curves. The stretch
// is consecutive in a topological order, so no path leaves it and comes back.
class WindowNetwork : public PartNetwork {
 public:
  WindowNetwork(const frontier::Network& whole, const frontier::DeadlineProgram& relaxation)
      : PartNetwork(whole, relaxation) {}

  // Cuts out `activities`, in topological order. Reads earliest_end of the
  // activities before them and latest_start of those after them; the whole
  // ends by `deadline`.
  void Cut(std::span<const int> activities, const Timetable& table, std::int64_t deadline);
};

// Lists the arcs at each node of a network whose activities and arcs are set.
void IndexArcs(frontier::Network* network);

// Recomputes earliest_end of `activities`, which are in topological order.
void PushEarliest(const frontier::Network& network, std::span<const int> activities,
                  Timetable* table);
// The same of latest_start, from the last to the first.
void PullLatest(const frontier::Network& network, std::span<const int> activities,
                std::int64_t deadline, Timetable* table);

// SearchOptions() for many activities, each with a knob of its own: the work of
// each of its steps grows with the activities, not with their square. Chooses
// stretch by stretch; see window_search.cc. `deadline` is that of `program`.
void SearchWindows(const frontier::Network& network, const frontier::DeadlineProgram& program,
                   std::int64_t deadline, const SearchSpace& space, const SearchBudget& budget,
                   const ChoiceReport& report);

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_WINDOW_SEARCH_H_
