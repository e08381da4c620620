// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DOMAIN_COMMANDS_H_
#define PERSEUS_SERVER_DOMAIN_COMMANDS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/comparison_blocks.h"
#include "server/domain/job_life.h"
#include "server/domain/watch_settings.h"
#include "store/facts.h"

// What may be asked of a job. Values.
namespace perseus::server {

// A rank says who it is, and where.
struct RegisterRank {
  store::RankRecord rank;
};
// A rank says what it measured.
struct TakeMeasurements {
  store::Measurements measured;
};
// As ParsePlanTarget() reads it.
struct SetTarget {
  std::string text;
};
// What an operator says of a straggler. Times are relative to now.
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
// What is not named stays as it is.
struct SetWatch {
  std::optional<DetectionMode> mode = {};
  std::optional<double> threshold = {};
  std::optional<int> window = {};
  std::optional<ComparisonBlocks> comparison = {};
};
// The ranks measure anew while they go on under the plans that there are. Nothing happens where
// they do so already.
struct Reprofile {};
// Ends that without a new profile.
struct CancelReprofile {};
struct FinishJob {};
struct DeleteJob {};

// The rest is asked by the server itself.

// Goes to the next state where what is known allows it.
struct Advance {
  bool has_given_plan = false;  // Over Zeus' wire.
  bool all_rows_known = true;   // No row of another server's can be missing.
  bool may_reuse = true;        // The library was not asked yet.
  double seconds_since_measured = 0;
};
// The library of profiles answered what Advance asked it.
struct UseProfile {
  store::ProfileRecord profile;
  std::shared_ptr<const Job> job;  // That it makes.
};
// Stragglers begin and expire, and a version may have to be numbered anew.
struct LookAtTime {
  std::int64_t last_version = 0;  // The last that any rank may have seen.
};
// The stragglers that plans should answer, as the detector says.
struct AnswerDetected {
  std::vector<DetectedStraggler> wanted;
};

// What is computed next of a job's plans, and from what.
struct PlanningStep {
  Built built;  // A null job has to be built from the texts.
  std::int64_t curve_mark = 0;
  PlanTarget target;
  std::int64_t first_id = 1;  // Of new plans.
  int sweep_round = 0;
  bool is_pending = false;  // The first plans of a new profile, under those of the old one.
};
// A step was computed. `built` holds the job that it was computed from, and the new curve.
struct AdoptPlans {
  PlanningStep step;
  store::CurveRecord record;
  Built built;
  // The profile's text and its blocking power, where they were read for this step.
  std::string profile_csv;
  std::vector<double> blocking_power_watts;
};
// A step has no result, and why.
struct GiveUpPlans {
  PlanningStep step;
  std::string sentence;
};
// Another try at what the job lacks is asked for.
struct AskForPlans {};
// The store counts again what this server counted before: go beyond that.
struct PassLostRevision {};

using Command = std::variant<RegisterRank, TakeMeasurements, SetTarget, AddStraggler,
                             ClearStraggler, ClearStragglers, SetWatch, Reprofile, CancelReprofile,
                             FinishJob, DeleteJob, Advance, UseProfile, LookAtTime, AnswerDetected,
                             AdoptPlans, GiveUpPlans, AskForPlans, PassLostRevision>;

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DOMAIN_COMMANDS_H_
