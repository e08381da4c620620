// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_PLANNING_CURVE_RECORD_H_
#define PERSEUS_SERVER_PLANNING_CURVE_RECORD_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "perseus/frontier.h"
#include "perseus/plan.h"
#include "perseus/plan_document.h"
#include "perseus/result.h"
#include "server/planning/held_plan.h"
#include "store/facts.h"

// What the store keeps of a curve.
namespace perseus::server {

// What is expected of maximum clocks under the job's conditions, and of plans by id; without
// conditions nothing.
struct ExpectedOfAll {
  std::optional<ExpectedFigures> baseline;
  std::map<std::int64_t, ExpectedFigures> plans;
};

// CurveRecord::frontier_json. `target`: that one of the plans was made for.
std::string FrontierText(const Frontier& frontier, const std::string& target,
                         const ExpectedOfAll& expected);
// Errors: a text that FrontierText() does not write.
Result<Frontier> ParseFrontier(const std::string& text, std::string* target,
                               ExpectedOfAll* expected);

store::PlanRecord PlanRecordOf(const Plan& plan, std::int64_t id);

// The record of a frontier and plans on it, whose ids begin at `first_id`; one
// of them is for `target`.
store::CurveRecord MakeCurveRecord(const std::string& job, int revision, const std::string& target,
                                   const Frontier& frontier, const HeldPlans& plans,
                                   std::int64_t first_id);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_PLANNING_CURVE_RECORD_H_
