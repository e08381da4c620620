// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_PLANNING_CURVE_RECORD_H_
#define PERSEUS_SERVER_PLANNING_CURVE_RECORD_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "perseus/frontier.h"
#include "perseus/plan.h"
#include "perseus/plan_document.h"
#include "perseus/result.h"
#include "server/planning/held_plan.h"
#include "server/store/facts.h"

// The form in which the store keeps a curve.
namespace perseus::server {

// What is known of plans under the job's conditions. Empty for a job without conditions.
struct ExpectedOfAll {
  std::optional<ExpectedFigures> baseline;        // Of maximum clocks.
  std::map<std::int64_t, ExpectedFigures> plans;  // By id.
  std::set<std::int64_t> wait_cheaply;            // Ids of plans with Waiting::kCheapest.

  void Add(std::int64_t id, Waiting waiting, const std::optional<ExpectedFigures>& figures) {
    if (figures) plans[id] = *figures;
    if (waiting == Waiting::kCheapest) wait_cheaply.insert(id);
  }
};

// The text of CurveRecord::frontier_json. `target`: the target that one of the plans is for.
std::string FrontierText(const Frontier& frontier, const std::string& target,
                         const ExpectedOfAll& expected);
// Fails on text that FrontierText() would not write.
Result<Frontier> ParseFrontier(const std::string& text, std::string* target,
                               ExpectedOfAll* expected);

store::PlanRecord PlanRecordOf(const Plan& plan, std::int64_t id);

// The record of a frontier and of plans on it. The plans get ids from `first_id` on; one of them is
// for `target`.
store::CurveRecord MakeCurveRecord(const std::string& job, int revision, const std::string& target,
                                   const Frontier& frontier, const HeldPlans& plans,
                                   std::int64_t first_id);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_PLANNING_CURVE_RECORD_H_
