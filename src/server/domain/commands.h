// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DOMAIN_COMMANDS_H_
#define PERSEUS_SERVER_DOMAIN_COMMANDS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/comparison_blocks.h"
#include "server/domain/job_life.h"
#include "server/domain/watch_settings.h"
#include "server/store/facts.h"

// Commands: all that a client, an operator or the server may ask of a job.
namespace perseus::server {

// A rank registers: its position, node and GPU.
struct RegisterRank {
  store::RankRecord rank;
};
// A rank reports measurements.
struct TakeMeasurements {
  store::Measurements measured;
};
// Sets the target iteration time. ParsePlanTarget() reads `text`.
struct SetTarget {
  std::string text;
};
// A straggler as an operator describes it. Times are relative to now.
struct StragglerRequest {
  std::optional<int> pipeline = {};
  std::optional<int> rank = {};
  std::string node = {};
  double factor = 0;         // 0: not given.
  double delay_seconds = 0;  // 0: not given.
  std::optional<double> expires_in_seconds = {};
  double starts_in_seconds = 0;
};
struct AddStraggler {
  StragglerRequest request;
};
struct ClearStraggler {
  std::int64_t id = 0;
};
struct ClearStragglers {};
// Changes the settings of the straggler detector and of the comparison. Members that are not set
// keep their values.
struct SetWatch {
  std::optional<DetectionMode> mode = {};
  std::optional<double> threshold = {};
  std::optional<int> window = {};
  std::optional<ComparisonBlocks> comparison = {};
};
// Starts a new sweep of measurements. Ranks keep following the present plans meanwhile. Does
// nothing if a sweep is already under way.
struct Reprofile {};
// Ends the sweep that Reprofile began and keeps the old profile.
struct CancelReprofile {};
// Changes labels: a value sets one, none takes it away. The others stay. Also of a job that has
// finished.
struct SetLabels {
  std::map<std::string, std::optional<std::string>> labels;
};
struct FinishJob {
  std::string reason = {};  // Empty: somebody asked for it.
};
struct DeleteJob {};

// The server itself gives all commands below.

// Moves the job to its next state if the conditions for that are met.
struct Advance {
  bool has_given_plan = false;  // The job uses Zeus' wire, and the operator gave a plan for it.
  bool all_rows_known = true;   // This server has read all rows that other servers wrote.
  bool may_reuse = true;        // The library of profiles was not asked yet.
  double seconds_since_measured = 0;
};
// The library of profiles found a profile for the job.
struct UseProfile {
  store::ProfileRecord profile;
  std::shared_ptr<const Job> job;  // Made from that profile.
};
// Time has passed: stragglers may begin or expire, and the plan may need a new version number.
struct LookAtTime {};
// The stragglers that the detector found and that plans should take into account from now on.
struct AnswerDetected {
  std::vector<DetectedStraggler> wanted;
};

// Stretches of the comparison `from` are too short.
struct LengthenStretches {
  ComparisonBlocks from;
  ComparisonBlocks to;
};

// What all ranks that report to this server measured of their conditions.
struct TakeConditions {
  MeasuredConditions measured;
};

// One step in computing a job's plans, and the input of that step.
struct PlanningStep {
  Built built;  // If built.job is null, it must first be built from the stored texts.
  std::int64_t curve_mark = 0;
  PlanTarget target;
  std::int64_t first_id = 1;  // The first id for new plans.
  int sweep_round = 0;
  bool is_pending = false;  // First plans of a new profile; ranks still follow the old profile's.
  // The plans are for these conditions, and ranks still follow those for earlier ones.
  std::optional<PlannedConditions> conditions = {};
};
// A planning step has a result. `built` holds its input (the job) and the new curve.
struct AdoptPlans {
  PlanningStep step;
  store::CurveRecord record;
  Built built;
  // The profile's text and its blocking power. Empty if they were not read for this step.
  std::string profile_csv;
  std::vector<double> blocking_power_watts;
};
// A planning step has no result. `sentence` says why.
struct GiveUpPlans {
  PlanningStep step;
  std::string sentence;
};
// Asks the workers to try again to compute the plans that the job lacks.
struct AskForPlans {};

using Command =
    std::variant<RegisterRank, TakeMeasurements, SetTarget, AddStraggler, ClearStraggler,
                 ClearStragglers, SetWatch, Reprofile, CancelReprofile, SetLabels, FinishJob,
                 DeleteJob, Advance, UseProfile, LookAtTime, AnswerDetected, LengthenStretches,
                 TakeConditions, AdoptPlans, GiveUpPlans, AskForPlans>;

// Whether what is decided on this command holds at any revision of the job: ranks, measurements,
// the end of the job. Many such decisions may be on their way to the store at once. Others are made
// one after the other, each on the revision that the one before it produced.
inline bool HoldsAtAnyRevision(const Command& command) {
  return std::holds_alternative<RegisterRank>(command) ||
         std::holds_alternative<TakeMeasurements>(command) ||
         std::holds_alternative<DeleteJob>(command) || std::holds_alternative<AskForPlans>(command);
}

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DOMAIN_COMMANDS_H_
