// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/store/check_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <variant>
#include <vector>

namespace perseus::store {
namespace {

bool HasNul(std::initializer_list<const std::string*> texts) {
  return std::any_of(texts.begin(), texts.end(),
                     [](const std::string* text) { return text->find('\0') != std::string::npos; });
}

// Only of texts that come from outside; the rest is written by us.
struct NulFinder {
  bool operator()(const JobRecord& job) const {
    return HasNul({&job.id, &job.client_key, &job.name, &job.owner, &job.settings_json,
                   &job.profile_csv, &job.target, &job.reason, &job.detection_json,
                   &job.library_json, &job.conditions_json});
  }
  bool operator()(const RankRecord& rank) const {
    return HasNul({&rank.job, &rank.gpu_uuid, &rank.gpu_name, &rank.node});
  }
  bool operator()(const StateChange& change) const {
    return HasNul({&change.job, &change.reason}) ||
           (change.profile_csv && HasNul({&*change.profile_csv}));
  }
  bool operator()(const Measurements& measured) const {
    return std::any_of(measured.notes.begin(), measured.notes.end(),
                       [](const std::string& note) { return HasNul({&note}); });
  }
  bool operator()(const ProfileRecord& profile) const {
    return HasNul({&profile.model, &profile.layout, &profile.metadata_json, &profile.profile_csv});
  }
  bool operator()(const TargetChange& change) const { return HasNul({&change.target}); }
  bool operator()(const DetectionChange& change) const { return HasNul({&change.detection_json}); }
  bool operator()(const ConditionsChange& change) const {
    return HasNul({&change.conditions_json});
  }
  bool operator()(const StragglerRecord& straggler) const { return HasNul({&straggler.node}); }
  bool operator()(const CurveRecord& curve) const { return HasNul({&curve.frontier_json}); }
  template <typename T>
  bool operator()(const T& /*fact*/) const {
    return false;
  }
};

}  // namespace

Result<void> CheckRequest(const Backend& backend, const Request& request) {
  const std::vector<Fact>& facts = request.facts;
  if (facts.empty()) return InvalidInput("a request without facts");
  const std::string& job = JobOf(facts.front());
  if (!std::all_of(facts.begin(), facts.end(),
                   [&](const Fact& fact) { return JobOf(fact) == job; })) {
    return InvalidInput("a request with facts about more than one job");
  }
  if (request.expected_revision && std::holds_alternative<JobRecord>(facts.front())) {
    return InvalidInput("a job that begins has no revision to expect");
  }
  // SOCI would cut the text there without a word.
  if (backend.is_shared() && std::any_of(facts.begin(), facts.end(), [](const Fact& fact) {
        return std::visit(NulFinder(), fact);
      })) {
    return InvalidInput(
        fmt::format("a text of job {} has a character of code 0, which PostgreSQL cannot hold; "
                    "leave it out",
                    job));
  }
  return {};
}

}  // namespace perseus::store
