// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// One call at least of every public header of perseus::model, which is all that
// this program links.

#include <type_traits>

#include "check.h"
#include "perseus/computation.h"
#include "perseus/conditions.h"
#include "perseus/cost_curve.h"
#include "perseus/costed_pipeline.h"
#include "perseus/effort.h"
#include "perseus/export.h"
#include "perseus/note.h"
#include "perseus/pipeline.h"
#include "perseus/plan.h"
#include "perseus/plan_document.h"
#include "perseus/plan_file.h"
#include "perseus/profile.h"
#include "perseus/progress.h"
#include "perseus/result.h"
#include "perseus/schedule.h"
#include "perseus/version.h"
#include "perseus/work.h"

#ifndef PERSEUS_EXPORT_BEGIN
#error "perseus/export.h defines no PERSEUS_EXPORT_BEGIN"
#endif

int main() {
  Check(perseus::ParseComputationType("backward") == perseus::ComputationType::kBackward,
        "computation.h");
  Check(!perseus::InvalidInput("no").value().message.empty(), "result.h");
  Check(perseus::kTableEffort < 1, "effort.h");
  Check(perseus::SeverityName(perseus::Severity::kOdd) == "odd", "note.h");
  Check(perseus::CallAheadName(perseus::CallAhead::kEnd) == "end", "conditions.h");
  Check(perseus::ParseWork("microbatch,factor\n1,2\n", "work.csv").has_value(), "work.h");
  Check(!perseus::ProgressFunction(), "progress.h");
  // The inline namespace is part of every name that is linked.
  Check(std::is_same_v<perseus::Plan, perseus::v0::Plan>, "perseus::v0");

  const std::vector<perseus::TimeEnergy> points = {{1, 10}, {2, 6}, {3, 5}};
  Check(ValueOf(perseus::FitExponential(points), "FitExponential").a > 0, "cost_curve.h");

  const auto profile = ValueOf(
      perseus::ParseProfile("stage,instruction,frequency,time,energy\n0,forward,1000,0.1,30\n"
                            "0,backward,1000,0.2,60\n",
                            "one.csv"),
      "ParseProfile");
  Check(profile.num_stages == 1, "profile.h");

  const auto schedule =
      ValueOf(perseus::BuildSchedule({.name = "1f1b", .num_stages = 4, .num_microbatches = 8}),
              "BuildSchedule");
  Check(schedule.num_ranks == 4 && schedule.ranks.at(0).size() == 16, "schedule.h");
  Check(!perseus::BuildSchedule({.name = "no such schedule"}), "schedule.h: an unknown name");

  const auto dag = ValueOf(perseus::BuildDag(schedule, {}), "BuildDag");
  const std::vector<int> knobs(static_cast<std::size_t>(dag.size()), 0);
  Check(perseus::CountKnobChanges(dag, knobs)->all() == 0, "plan.h: CountKnobChanges");
  const std::vector<double> durations(static_cast<std::size_t>(dag.size()), 1.0);
  Check(perseus::Replay(dag, durations).iteration_time_seconds == 22, "pipeline.h");

  perseus::CostTable table;
  table.blocking_power_watts = 10;
  Check(perseus::EffectiveEnergy(table, {.time_seconds = 2, .energy_joules = 50}) == 30,
        "costed_pipeline.h");
  Check(perseus::ParseGranularity("stage") == perseus::Granularity::kStage, "plan.h");
  Check(perseus::ScheduleOf(perseus::PlanDocument()).ranks.empty(), "plan_document.h");
  Check(!perseus::ParsePlanJson("[]", "plan.json"), "plan_file.h");
  const auto absent = perseus::ReadPlan("/no/such/file");
  Check(!absent && absent.error().code == perseus::ErrorCode::kIo, "plan_file.h");
  Check(std::string(PERSEUS_VERSION_STRING).find('.') != std::string::npos, "version.h");
  return 0;
}
