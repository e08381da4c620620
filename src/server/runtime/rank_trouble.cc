// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/runtime/rank_trouble.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <set>
#include <vector>

namespace perseus::server {
namespace {

constexpr std::size_t kMostNamed = 4;  // Jobs, and ranks of each.

std::string RanksText(const std::vector<int>& ranks) {
  const auto shown =
      ranks.begin() + static_cast<std::ptrdiff_t>(std::min(ranks.size(), kMostNamed));
  return fmt::format("{} {}{}", ranks.size() == 1 ? "rank" : "ranks",
                     fmt::join(ranks.begin(), shown, ", "), shown == ranks.end() ? "" : ", ...");
}

std::vector<int> RanksOf(const ManagedJob& job) {
  std::vector<int> ranks;
  for (const store::RankRecord& rank : job.Ranks()) ranks.push_back(rank.rank);
  return ranks;
}

// Whether both would be the same job, if their client keys were.
bool IsAlike(const ManagedJob& a, const ManagedJob& b) {
  return a.origin() == b.origin() && a.settings_json() == b.settings_json() &&
         a.shape().world_size() == b.shape().world_size() && !b.is_gone() && !b.is_finished() &&
         b.head().state == store::JobState::kRegistering;
}

// The ranks that this job lacks may be in others. All of these say the same, so that one sentence
// does for all ranks of a training.
std::string MissingText(const JobService& service, const ManagedJob& job) {
  std::set<int> seen;
  for (const int rank : RanksOf(job)) seen.insert(rank);
  std::vector<std::string> parts;
  std::size_t jobs = 0;
  for (const std::shared_ptr<ManagedJob>& other : service.Jobs()) {
    if (other.get() != &job && !IsAlike(job, *other)) continue;
    const std::vector<int> ranks = RanksOf(*other);
    const auto is_seen = [&](int rank) { return seen.contains(rank); };
    if (ranks.empty()) continue;
    if (other.get() != &job && std::any_of(ranks.begin(), ranks.end(), is_seen)) continue;
    seen.insert(ranks.begin(), ranks.end());
    if (++jobs > kMostNamed) continue;
    parts.push_back(
        fmt::format("{} ('{}') has {}", other->id(), other->head().name, RanksText(ranks)));
  }
  if (jobs > 1) {
    return fmt::format(
        "the ranks of one training seem to be in {} jobs, which wait for each other's: {}{}; give "
        "the same run= on every rank",
        jobs, fmt::join(parts, ", "), jobs > kMostNamed ? ", ..." : "");
  }
  return fmt::format(
      "the job still lacks {}, though {} trains: start Perseus there, too, with the same server, "
      "run= and settings",
      RanksText(job.View().missing_ranks), RanksText({*seen.begin()}));
}

}  // namespace

std::string TroubleOf(const JobService& service, const ManagedJob& job,
                      const ClientReport& client) {
  std::string trouble = job.TroubleOf(client);
  if (!trouble.empty() || !job.LacksRanksOf(client)) return trouble;
  return MissingText(service, job);
}

}  // namespace perseus::server
