// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_FILE_H_
#define PERSEUS_PLAN_FILE_H_

// Link perseus::model (pkg-config: perseus-model).

#include <cstddef>
#include <string>
#include <string_view>

#include "perseus/export.h"
#include "perseus/plan.h"
#include "perseus/plan_document.h"
#include "perseus/result.h"

PERSEUS_EXPORT_BEGIN
namespace perseus {
inline namespace v0 {

// The names under which `perseus plan -o` writes.
inline constexpr std::string_view kFrontierFileName = "frontier.csv";
inline constexpr std::string_view kPlanFileName = "plan.json";
inline constexpr std::string_view kZeusPlanFileName = "zeus_plan.py";  // Zeus asks for ".py".

// The version of plan.json that this library writes and reads.
inline constexpr int kPlanSchemaVersion = 1;

// A longer plan.json cannot be read back. The largest schedule that can be built (4,000,000
// computations) has about 700 MB.
inline constexpr std::size_t kMaxPlanFileBytes = std::size_t{1} << 30;
// The same for a plan for Zeus.
inline constexpr std::size_t kMaxZeusPlanFileBytes = std::size_t{128} << 20;

// plan.json: two spaces of indent, one computation a line, shortest numbers
// that read back to the same bits.
std::string FormatPlanJson(const PlanDocument& plan);

// Reads plan.json, from a file or a pipe. Fields that this version does not know are
// ignored. Errors name file:line:column and the field. A file over
// kMaxPlanFileBytes is refused.
Result<PlanDocument> ReadPlan(const std::string& path);

// The same on text in memory; `name` stands for the path in messages.
Result<PlanDocument> ParsePlanJson(std::string_view text, const std::string& name);

// frontier.csv: `iteration_time_s,energy_j,slope_w`, one row per breakpoint.
std::string FormatFrontierCsv(const Frontier& frontier);

// The plan as Zeus' PointSolution scheduler reads it: a Python list with one list of
// ('forward'|'backward', MHz) for each rank. kInfeasible, with the reason, if that cannot hold the
// plan: computations other than F and B, several stages on a rank, fused computations, or knobs
// that are not whole clocks.
Result<std::string> FormatZeusPlan(const PlanDocument& plan);

}  // namespace v0
}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_PLAN_FILE_H_
