// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_FLEET_SITE_H_
#define PERSEUS_FLEET_SITE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/tree.h"
#include "perseus/emulator.h"
#include "perseus/fleet.h"
#include "perseus/job.h"
#include "perseus/job_file.h"
#include "perseus/note.h"
#include "perseus/planner.h"
#include "perseus/progress.h"
#include "perseus/result.h"

// A site and its jobs: from a site file to what perseus/fleet.h divides. docs/reference/files.md
// has the format.
namespace perseus::fleet {

// A `[[job]]`. `count` of a file is already undone: such a job is there several times, as NAME-1,
// NAME-2, ...
struct SiteJob {
  std::string name;
  std::string group;   // The name of its [[job]], which copies (`count`) share.
  JobPlace place;      // Of its table.
  std::string tenant;  // Empty: a tenant of its own.
  // Of one pipeline: from its table or the file that `job` names. Empty with a `plan`.
  JobFile settings;
  std::string plan_folder;     // What `perseus plan` wrote, instead of settings.
  int pipelines = 1;           // `dp`
  bool has_pipelines = false;  // `dp` was given; else a plan's folder or a server says it.
  double weight = 1;
  std::optional<double> max_slowdown;  // Share of the time at maximum clocks.
  double fixed_watts = 0;              // Of the whole job.
  double least_watts = 0;
  std::vector<Straggler> stragglers;
  std::vector<PowerShare> shares;  // Of SiteFile::nodes; empty: all at node 0.
  bool is_left_out = false;        // Counts for nothing: a job of a server that others divide.
};

// A site file as it was read: settings are read, profiles are not. A plain value.
struct SiteFile {
  std::string path;
  FleetObjective objective = FleetObjective::kThroughput;
  double power_usage_effectiveness = 1;          // `pue`
  std::vector<PowerNode> nodes = {PowerNode{}};  // Node 0 is the site, with the budget `power`.
  std::vector<JobPlace> node_places = {JobPlace{}};
  std::vector<SiteJob> jobs;
  // The table [emulate], which says what happens on which day; null without one. It is for
  // perseus.analysis.fleet of the Python package, which reads it.
  TreeNode emulate;
};

// TOML; JSON if the name ends in ".json". Errors name file:line:column. A file over 1 MiB is
// refused. `jobs_may_be_missing`: a server has them, and `[[job]]` only says more of these.
Result<SiteFile> ReadSiteFile(const std::string& path, bool jobs_may_be_missing = false);
// The same on text in memory. `name` stands for the path.
Result<SiteFile> ParseSiteFile(std::string_view text, const std::string& name,
                               bool jobs_may_be_missing = false);

std::string_view ObjectiveName(FleetObjective objective);  // "throughput", "max-min", ...

// The model of one pipeline of a job. Jobs whose pipelines are alike share one.
struct JobModel {
  // Empty without a profile (a folder of `perseus plan`, a job of a server): only the frontier is
  // known, and no plans can be made.
  std::optional<Job> job;
  std::optional<Planner> planner;
  std::vector<IterationPoint> frontier;  // Exact corners, from T_min up to T*.
  IterationPoint full_speed;             // At maximum clocks: what the job does without Perseus.
  double waiting_watts = 0;
  int gpus = 0;
  int pipelines = 1;  // As the folder or the server says; counts where the site file has no `dp`.
};
using SharedModel = std::shared_ptr<const JobModel>;

// The model of what `perseus plan` has written, or a server tells: plan.json and frontier.csv. The
// names stand for their paths in messages.
Result<SharedModel> ParseModel(std::string_view plan_json, const std::string& plan_name,
                               std::string_view frontier_csv, const std::string& frontier_name);

// A site whose jobs have frontiers. A value; planners are handles.
struct Site {
  SiteFile file;
  std::vector<SharedModel> models;  // [job]
  std::vector<Note> notes;          // Of profiles and jobs, once for each model.
  // As file and models say it; no job has plans yet. Jobs and nodes have the places of `file`.
  PowerSite power;
};

// Reads profiles and walks frontiers, each once, and makes the site of them. Jobs that are left out
// are not in it. `known`: models that are there already, [job]; null, or empty, where there is
// none. Errors: those of reading a job.
Result<Site> LoadSite(SiteFile file, std::vector<SharedModel> known = {},
                      const ProgressFunction& progress = {});

// Runs `work` for each number below `count`, in any order and in any threads.
using ForEach =
    std::function<void(std::size_t count, const std::function<void(std::size_t)>& work)>;

inline constexpr double kFleetEffort = 0.3;
struct FleetPlanOptions {
  double effort =
      kFleetEffort;  // Of a plan, times that of the job's settings. See perseus/effort.h.
  ForEach for_each;  // Empty: one after the other. The same plans in either case.
  std::function<void(std::size_t plans)> told;  // So many plans will have been made next.
};

// Real plans for a division, and what they reach.
struct FleetPlan {
  // `bound` is the convex optimum. `plans` keeps every limit, too; jobs without a planner are
  // somewhere on their frontier there.
  FleetAnswer answer;
  std::vector<std::shared_ptr<const Plan>> plans;  // [job]; null without a planner.
  int plans_made = 0;
};

// Divides the power, makes plans at and around what each job gets, and divides once more among
// these. Jobs with one model share its plans. Errors: as DividePower(); kInfeasible, too, where
// only plans without conditions would fit; those of making a plan.
Result<FleetPlan> PlanFleet(const Site& site, const FleetPlanOptions& options = {});

// The input of perseus.analysis.fleet (docs/reference/files.md), as JSON: limits, jobs, and of each
// model its frontier, a ladder of plans, one clock for all GPUs, one power cap for all; and the
// table [emulate] as it was read. Errors: a job without a profile; those of making plans.
Result<std::string> FormatCurves(const Site& site, const ProgressFunction& progress = {});

// A point of the same curve as a job's frontier of fleet.h: one pipeline, one iteration.
inline IterationPoint PointOf(const PlanFigures& plan) {
  return {plan.iteration_time_seconds, plan.energy_joules};
}

}  // namespace perseus::fleet

#endif  // PERSEUS_FLEET_SITE_H_
