// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_PLANNING_DIFF_H_
#define PERSEUS_CLI_PLANNING_DIFF_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/framework/terminal.h"
#include "perseus/plan_document.h"
#include "perseus/result.h"

// Changes from one plan of a job to another one.
namespace perseus::cli {

// One of the two, as it was named. The plan is not owned.
struct NamedPlan {
  std::string name;
  const PlanDocument* plan = nullptr;
};

// Computations whose clocks differ, and of how many.
struct Moved {
  int of = 0;
  int moved = 0;
  int lower = 0;  // To a lower clock; 0 where clocks are labels.
  int higher = 0;
};

// Computations of one stage and one type.
struct KindDiff : Moved {
  int stage = 0;
  std::string type;          // "forward", or "forward+backward" of two that run as one.
  double old_mean_knob = 0;  // Over all of them; 0 where clocks are labels.
  double new_mean_knob = 0;
  double old_seconds = 0;  // Of all of them together,
  double new_seconds = 0;
  double old_joules = 0;  // all GPUs of the rank.
  double new_joules = 0;
};

struct RankDiff {
  int moved = 0;
  bool waits_elsewhere = false;  // At another clock.
};

struct PlanDiff {
  Moved all;
  std::vector<KindDiff> kinds;  // By stage and type.
  std::vector<RankDiff> ranks;
  int other_work = 0;  // Computations that have another amount of work.
};

// Errors: the plans are not of one job, that is, their ranks do not run the same computations in
// the same order on the same number of GPUs.
Result<PlanDiff> ComparePlans(const NamedPlan& before, const NamedPlan& after);

std::string PlanDiffText(const PlanDiff& diff, const NamedPlan& before, const NamedPlan& after,
                         const Style& style);
nlohmann::ordered_json PlanDiffJson(const PlanDiff& diff, const NamedPlan& before,
                                    const NamedPlan& after);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_PLANNING_DIFF_H_
