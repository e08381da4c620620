// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_TRACE_LINKS_H_
#define PERSEUS_SRC_TRACE_LINKS_H_

#include <span>
#include <vector>

#include "perseus/result.h"
#include "trace/recording.h"

namespace perseus::trace {

// What the operations of a recording wait for (docs/explanation/traces.md). There are two kinds of
// waiting. An operation begins when all operations in its `waits` have ended. And the operations of
// a group (both sides of a transfer, or all pipelines of a collective) proceed only when all of
// them have begun. Every operation is in one group; most groups have one member.
struct Links {
  std::vector<int> first_wait;    // [operation] -> waits; one more.
  std::vector<int> waits;         // Operations.
  std::vector<int> group_of;      // [operation]
  std::vector<int> first_member;  // [group] -> members; one more.
  std::vector<int> members;       // Operations. Groups are in an order in which they can run.
  // [operation] -> the computation whose input or output a transfer moves; -1:
  // none, also of one that was recorded and moved nothing.
  std::vector<int> computation_of;

  std::span<const int> WaitsOf(int operation) const {
    return std::span(waits).subspan(first_wait[operation],
                                    first_wait[operation + 1] - first_wait[operation]);
  }
  std::span<const int> MembersOf(int group) const {
    return std::span(members).subspan(first_member[group],
                                      first_member[group + 1] - first_member[group]);
  }
  int num_groups() const { return static_cast<int>(first_member.size()) - 1; }
};

// Each pipeline and step by its own rows. Errors (kInvalidInput): transfers without
// their other side or of another number than the computations, orders that wait
// for each other in a circle.
Result<Links> LinkOperations(const Recording& recording);

}  // namespace perseus::trace

#endif  // PERSEUS_SRC_TRACE_LINKS_H_
