// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// One call at least of every public header that perseus::core adds to those of
// perseus::model. Writes plan.json into the folder that it is given.

#include <fstream>
#include <string>

#include "check.h"
#include "perseus/conditions.h"
#include "perseus/emulator.h"
#include "perseus/explain.h"
#include "perseus/fleet.h"
#include "perseus/frontier.h"
#include "perseus/job.h"
#include "perseus/job_file.h"
#include "perseus/plan_document.h"
#include "perseus/plan_file.h"
#include "perseus/planner.h"
#include "perseus/policy.h"
#include "perseus/robust_plan.h"
#include "perseus/stream.h"
#include "perseus/work.h"
#include "small_job.h"

namespace {

// The example of perseus/frontier.h: the frontier as a general solver.
void SolveTheHouse() {
  perseus::TimeCostProblem house;
  house.curves = {{{2, 90}, {4, 40}, {5, 30}},  // 2 days cost 90, 4 cost 40, ...
                  {{3, 50}, {6, 20}}};
  house.curve_of = {0, 1, 1};  // Three activities; the last two share a curve.
  house.precedences = {{0, 1, 0.0}, {0, 2, 0.0}};
  const auto frontier = ValueOf(perseus::SolveFrontier(house, {}), "SolveFrontier");
  const auto& fastest = frontier.breakpoints.front();
  Check(frontier.breakpoints.size() == 4 && fastest.time == 5 && fastest.cost == 190, "frontier.h");
}

// Microbatches that differ: a plan for one iteration, and another order of them.
void PlanAStream() {
  const auto table =
      ValueOf(perseus::ParseWork("microbatch,factor\n1,2\n", "work.csv"), "ParseWork");
  Check(table.rows.size() == 1 && table.rows[0].value == 2, "work.h");
  const auto stream = ValueOf(
      perseus::StreamPlanner::Create(SmallProfile(), SmallDag(), SmallCosts(), {}), "Create");
  const perseus::Work work({1, 2, 1, 0.5});
  Check(ValueOf(stream.PlanFor(work), "PlanFor").plan.saving_percent > 0, "stream.h");
}

// The robust plan where clocks come late.
void PlanUnderConditions(const perseus::Planner& planner) {
  perseus::RobustPlanSpec spec;
  spec.conditions.switching.latency_seconds = 0.01;
  spec.conditions.switching.call_ahead = *perseus::ParseCallAhead("end");
  const auto held = perseus::PlanUnder(planner, planner.baseline().iteration_time_seconds, spec);
  Check(ValueOf(held, "PlanUnder").expected.slowdown_percent < 0.1001, "robust_plan.h");
  Check(perseus::CallAheadName(spec.conditions.switching.call_ahead) == "end", "conditions.h");
}

void DivideASite() {
  perseus::PowerSite site;
  site.nodes[0].limit_watts = 120;
  for (const double weight : {1.0, 2.0}) {
    perseus::FleetJob& job = site.jobs.emplace_back();
    job.frontier = {{1, 100}, {2, 80}};
    job.full_speed_seconds = 1;
    job.weight = weight;
  }
  const auto answer =
      ValueOf(perseus::DividePower(site, perseus::FleetObjective::kThroughput), "DividePower");
  Check(answer.bound.objective > 2.249 && answer.bound.objective < 2.251, "fleet.h");
}

}  // namespace

int main(int argc, char** argv) {
  Check(argc == 2, "one argument: the folder for plan.json");
  SolveTheHouse();

  const perseus::Planner planner = SmallJob();
  const double seconds = planner.baseline().iteration_time_seconds;
  const perseus::Plan plan = ValueOf(planner.PlanFor(seconds), "PlanFor");
  Check(plan.saving_percent > 0 && plan.iteration_time_seconds <= seconds, "planner.h");

  perseus::PlanContext context;
  context.profile_source = "small.csv";
  context.profile_sha256 = std::string(64, '0');
  const auto document = *perseus::MakePlanDocument(planner, plan, context);
  std::ofstream(std::string(argv[1]) + "/" + std::string(perseus::kPlanFileName))
      << perseus::FormatPlanJson(document);

  const auto job = ValueOf(
      perseus::ParseJobFile("microbatches = 4\n", "job.toml", perseus::JobFileFormat::kToml),
      "ParseJobFile");
  Check(job.microbatches == 4, "job_file.h");
  Check(!perseus::Job::Load("", {}).has_value(), "job.h");

  const auto policy = perseus::MakeSinglePlanPolicy("max-clocks", planner.baseline());
  Check(policy->name() == "max-clocks", "policy.h");
  perseus::EmulationSpec spec;
  spec.iterations = 3;
  spec.target_seconds = seconds;
  const auto emulation = ValueOf(perseus::Emulate(planner, *policy, spec), "Emulate");
  Check(emulation.iterations.size() == 3 && emulation.energy.total_joules() > 0, "emulator.h");
  PlanAStream();
  PlanUnderConditions(planner);
  DivideASite();

  Check(!perseus::ExplainSaving({}).critical_stage, "explain.h");
  return 0;
}
