// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_PLANNING_GIVEN_PLAN_H_
#define PERSEUS_SERVER_PLANNING_GIVEN_PLAN_H_

#include <string>
#include <vector>

#include "perseus/result.h"
#include "server/base/shape.h"

namespace perseus::server {

// One instruction as Zeus' client knows it: "forward" or "backward", MHz.
struct ZeusStep {
  std::string name;
  int clock_mhz = 0;
};

// A plan that was given to the server for jobs that register over Zeus' wire.
class GivenPlan {
 public:
  // plan.json, or the list that Zeus' PointSolution reads.
  static Result<GivenPlan> Read(const std::string& path);

  // One list a pipeline rank, or one a rank of the world.
  bool Fits(const Shape& shape) const;
  // Of a rank of a job that it fits.
  const std::vector<ZeusStep>& StepsOf(const Shape& shape, int rank, int pp_rank) const;

 private:
  std::vector<std::vector<ZeusStep>> ranks_;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_PLANNING_GIVEN_PLAN_H_
