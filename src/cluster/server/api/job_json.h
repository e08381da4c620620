// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_API_JOB_JSON_H_
#define PERSEUS_SERVER_API_JOB_JSON_H_

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "server/runtime/managed_job.h"
#include "store/facts.h"

// Jobs as the API shows them.
namespace perseus::server {

// In lists: without settings, stragglers and iterations.
nlohmann::ordered_json JobSummaryJson(const JobView& view);
nlohmann::ordered_json JobJson(const JobView& view);
nlohmann::ordered_json StragglerJson(const store::StragglerRecord& straggler);
nlohmann::ordered_json RankJson(const store::RankRecord& rank);

// The plan of one rank: `own`, and then `shared`, which all ranks that run the
// same plan have in common. Null: nothing follows.
struct RankPlanText {
  std::string own;
  std::shared_ptr<const std::string> shared;
};

// `for_ranks` stands for "rank":3 or "ranks":[3,4].
RankPlanText RankPlanJson(const std::string& job, const PublishedPlan& plan, int pipeline,
                          int pp_rank, const std::string& for_ranks);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_API_JOB_JSON_H_
