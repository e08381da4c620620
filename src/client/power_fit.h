// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLIENT_POWER_FIT_H_
#define PERSEUS_CLIENT_POWER_FIT_H_

#include <cstddef>
#include <optional>
#include <vector>

namespace perseus::client {

// Splits the joules of stretches of time among what ran in them: least squares
// of  joules = sum over kinds of (watts of the kind x its seconds).  An energy
// counter steps every 20 to 100 ms, longer than many computations, so no single
// one can be metered; stretches between two of its steps, of different mixes
// (warm-up, steady, waiting), can. Plain data; one thread.
class PowerFit {
 public:
  explicit PowerFit(std::size_t kinds) : kinds_(kinds), normal_(kinds * kinds), right_(kinds) {}

  // One stretch: `seconds` of each kind.
  void Add(const std::vector<double>& seconds, double joules);

  std::size_t count() const { return count_; }

  // Watts of each kind. None: too few stretches, their mixes are too alike to
  // tell the kinds apart, or a result is not positive.
  std::optional<std::vector<double>> Solve() const;

 private:
  std::size_t kinds_;
  std::size_t count_ = 0;
  std::vector<double> normal_;  // kinds x kinds, of the normal equations.
  std::vector<double> right_;
};

}  // namespace perseus::client

#endif  // PERSEUS_CLIENT_POWER_FIT_H_
