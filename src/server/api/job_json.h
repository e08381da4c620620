// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_API_JOB_JSON_H_
#define PERSEUS_SERVER_API_JOB_JSON_H_

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "perseus/plan.h"
#include "server/domain/schema.h"
#include "server/runtime/managed_job.h"
#include "server/store/facts.h"

// The API's JSON for jobs.
namespace perseus::server {

// The job's entry in a list: without settings, stragglers and iterations.
nlohmann::ordered_json JobSummaryJson(const JobView& view);
nlohmann::ordered_json JobJson(const JobView& view);
extern const Message<store::StragglerRecord> kStraggler;
// As in plan.json.
nlohmann::ordered_json SavingIntervalJson(const SavingInterval& interval);
nlohmann::ordered_json UnlockedJson(const UnlockedFigures& unlocked);
nlohmann::ordered_json RankJson(const store::RankRecord& rank);

// The JSON text of a rank's plan in two parts. `own` comes first. `shared` follows; all ranks with
// the same plan share that string. Null: `own` is the whole text.
struct RankPlanText {
  std::string own;
  std::shared_ptr<const std::string> shared;
};

// `for_ranks`: the first member of the plan, "rank":3 or "ranks":[3,4]. `texts`: of the job.
RankPlanText RankPlanJson(const std::string& job, const PublishedPlan& plan, int pipeline,
                          int pp_rank, const std::string& for_ranks, PlanTexts* texts);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_API_JOB_JSON_H_
