// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_FLEET_LEVEL_SEARCH_H_
#define PERSEUS_FLEET_LEVEL_SEARCH_H_

#include <cstddef>
#include <limits>
#include <vector>

#include "fleet/site_state.h"

namespace perseus::fleet {

// How far jobs are filled. By value: all segments whose key is less, and `fraction` of those with
// this key. By ratio: up to this ratio; `fraction` is 1.
struct Level {
  double key = std::numeric_limits<double>::infinity();
  double fraction = 1;

  friend bool operator<(const Level& a, const Level& b) {
    return a.key != b.key ? a.key < b.key : a.fraction < b.fraction;
  }
};

// By value: what a segment costs, in watts for a unit of weighted speed.
struct ValueOrder {
  // The number of segments, from `low` to `high`, whose key is `key` or less.
  static std::size_t Count(const Member& member, double key, std::size_t low, std::size_t high);
  static double Key(const Member& member, std::size_t segment) {
    return member.curve.SlopeAfter(segment) * member.per_speed / member.weight;
  }
  static double FirstKey(const Member& member) {
    return member.curve.size() > 1 ? Key(member, 0) : 0;
  }
  static double LastKey(const Member& member) {
    return member.curve.size() > 1 ? Key(member, member.curve.size() - 2) : 0;
  }
  static double Throughput(const Member& member, double /*key*/, std::size_t count) {
    return member.curve.x[count];
  }
  static double Watts(const Member& member, double /*key*/, std::size_t count) {
    return member.curve.watts[count];
  }
};

// By ratio: speed / weight.
struct RatioOrder {
  static double Key(const Member& member, std::size_t corner) {
    return member.curve.x[corner] / (member.per_speed * member.weight);
  }
  static std::size_t Count(const Member& member, double key, std::size_t low, std::size_t high);
  static double FirstKey(const Member& member) { return Key(member, 0); }
  static double LastKey(const Member& member) { return Key(member, member.curve.size() - 1); }
  static double Throughput(const Member& member, double key, std::size_t count);
  static double Watts(const Member& member, double key, std::size_t count);
};

// A job in the search for the level of one node.
struct Filled {
  const Member* member = nullptr;
  // Where a node below stops it, and what it draws there.
  Level stop = {};
  double stop_watts = 0;
  // Its count at the highest level that is known to keep the limit, and at the lowest known not to.
  std::size_t low = 0;
  std::size_t high = 0;
};

// Where a limit stops jobs: keys are neighbours among all doubles.
struct KeyBracket {
  bool binds = false;  // Else all jobs may have their most.
  double kept = 0;     // The highest key that keeps the limit; all segments up to it are taken.
  double broken = 0;   // The next one.
};

// Halves the doubles between the least key and the most. Leaves the counts at both in `jobs`.
template <typename Order>
KeyBracket FindKey(double limit, std::vector<Filled>* jobs);

}  // namespace perseus::fleet

#endif  // PERSEUS_FLEET_LEVEL_SEARCH_H_
