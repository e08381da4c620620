// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SITE_DAYS_LOADS_H_
#define PERSEUS_SITE_DAYS_LOADS_H_

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "site/days/days.h"

namespace perseus::site {

// Which nodes carry a job, those above them included, and what part of it.
class LoadTree {
 public:
  explicit LoadTree(const DaysSite& site);

  // At the meters: adds `watts` of a job to each node that carries it.
  void Add(std::size_t job, double watts, std::vector<double>* loads) const;
  std::vector<double> None() const { return std::vector<double>(nodes_, 0.0); }
  bool Carries(std::size_t node, std::size_t job) const;
  // `limits`, but none for nodes that carry none of `jobs`: theirs is settled.
  std::vector<double> LimitsFor(const std::vector<std::size_t>& jobs,
                                const std::vector<bool>& counts, std::vector<double> limits) const;

 private:
  std::size_t nodes_;
  double meter_factor_;
  std::vector<std::vector<std::pair<std::size_t, double>>> parts_;  // [job]: (node, fraction).
};

// Whether no node is over its limit, up to rounding.
bool Fits(const std::vector<double>& loads, const std::vector<double>& limits);

// Raises a level from 0 to 1 for all of `jobs` alike, as far as all limits allow. The jobs below a
// limit that binds stay where they are, and the others go on. `watts_at(k, level)` is what the k-th
// of them gets; it never falls with the level. `others`: loads that do not change. Returns [k]
// watts: those at level 0 where even these do not fit.
std::vector<double> FillAlike(const LoadTree& tree, const std::vector<std::size_t>& jobs,
                              const std::vector<double>& limits, const std::vector<double>& others,
                              const std::function<double(std::size_t, double)>& watts_at);

}  // namespace perseus::site

#endif  // PERSEUS_SITE_DAYS_LOADS_H_
