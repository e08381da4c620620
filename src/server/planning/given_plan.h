// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_PLANNING_GIVEN_PLAN_H_
#define PERSEUS_SERVER_PLANNING_GIVEN_PLAN_H_

#include <string>
#include <vector>

#include "perseus/result.h"
#include "server/base/shape.h"

namespace perseus::server {

// One instruction as Zeus' client names it ("forward" or "backward"), and its clock.
struct ZeusStep {
  std::string name;
  int clock_mhz = 0;
};

// The plan that the operator gave the server for jobs that register over Zeus' wire.
class GivenPlan {
 public:
  // Reads a plan.json, or the list that Zeus' PointSolution reads.
  static Result<GivenPlan> Read(const std::string& path);

  // Whether the file has one list per pipeline rank or one per rank of the job.
  bool Fits(const Shape& shape) const;
  // The instructions of a rank. The plan must fit the shape.
  const std::vector<ZeusStep>& StepsOf(const Shape& shape, int rank, int pp_rank) const;

 private:
  std::vector<std::vector<ZeusStep>> ranks_;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_PLANNING_GIVEN_PLAN_H_
