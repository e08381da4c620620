// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/detect/rank_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "perseus/computation.h"

namespace perseus::server {
namespace {

// By type alone.
ComputationCounts WithoutStages(const ComputationCounts& counts) {
  ComputationCounts sums;
  for (const auto& [kind, count] : counts) sums[{kind.first, -1}] += count;
  return sums;
}

std::int64_t CountOf(const ComputationCounts& counts, const std::pair<ComputationType, int>& kind) {
  const auto found = counts.find(kind);
  return found == counts.end() ? 0 : found->second;
}

std::set<int> StagesOf(const ComputationCounts& counts) {
  std::set<int> stages;
  for (const auto& [kind, count] : counts) stages.insert(kind.second);
  return stages;
}

std::string StagesText(const std::set<int>& stages) {
  return fmt::format("stage{} {}", stages.size() == 1 ? "" : "s", fmt::join(stages, ", "));
}

// The first kind of which there are more or fewer; "": none.
std::string CountsText(int rank, const ComputationCounts& ran, const ComputationCounts& planned) {
  for (const ComputationCounts* const counts : {&planned, &ran}) {
    for (const auto& [kind, unused] : *counts) {
      const std::int64_t is = CountOf(ran, kind);
      const std::int64_t should_be = CountOf(planned, kind);
      if (is == should_be) continue;
      const auto& [type, stage] = kind;
      return fmt::format(
          "an iteration of rank {} runs {} computations of type {}{}, and the job's schedule has "
          "{}: correct the job's microbatches or schedule, or what the trainer tells",
          rank, is, ComputationTypeName(type), stage < 0 ? "" : fmt::format(" of stage {}", stage),
          should_be);
    }
  }
  return "";
}

}  // namespace

void RankWatch::Hear(const ClientReport& client, std::size_t iterations, double now_seconds) {
  if (client.client.empty()) return;
  Rank& rank = ranks_[client.rank];
  if (iterations > 0) rank.ran = client.ran;
  std::vector<Speaker>& speakers = rank.speakers;
  const auto known = std::find_if(speakers.begin(), speakers.end(), [&](const Speaker& speaker) {
    return speaker.client == client.client;
  });
  Speaker speaker{.client = client.client, .process = client.process};
  if (known != speakers.end()) {
    if (known + 1 != speakers.end()) ++rank.returns;
    speaker = std::move(*known);
    speakers.erase(known);
  }
  if (client.state == kClosedState) return;
  speaker.heard_at_seconds = now_seconds;
  speaker.iterations += static_cast<std::int64_t>(iterations);
  if (speakers.size() == kMostSpeakers) speakers.erase(speakers.begin());
  speakers.push_back(std::move(speaker));
}

void RankWatch::Register(int rank) {
  const auto found = ranks_.find(rank);
  if (found != ranks_.end()) found->second.ran.reset();
}

std::string RankWatch::OtherOf(const ClientReport& client, double now_seconds) const {
  const auto found = ranks_.find(client.rank);
  if (found == ranks_.end() || found->second.returns <= kMostReturns) return "";
  for (const Speaker& speaker : found->second.speakers) {
    if (speaker.client != client.client && now_seconds - speaker.heard_at_seconds <= kSilentSeconds)
      return speaker.process;
  }
  return "";
}

std::optional<ComputationCounts> RankWatch::RanBy(int rank) const {
  const auto found = ranks_.find(rank);
  return found == ranks_.end() ? std::nullopt : found->second.ran;
}

bool RankWatch::HasTrained(const ClientReport& client) const {
  const auto found = ranks_.find(client.rank);
  if (found == ranks_.end()) return false;
  const std::vector<Speaker>& speakers = found->second.speakers;
  return std::any_of(speakers.begin(), speakers.end(), [&](const Speaker& speaker) {
    return speaker.client == client.client && speaker.iterations >= kEnoughIterations;
  });
}

std::string DifferenceText(int rank, int pp_rank, const ComputationCounts& ran,
                           const ComputationCounts& planned) {
  if (ran.empty()) {
    return fmt::format(
        "an iteration of rank {} tells Perseus of no computation: tell each one between the begin "
        "and the end of its step",
        rank);
  }
  const std::set<int> stages = StagesOf(ran);
  if (stages.contains(-1)) return CountsText(rank, WithoutStages(ran), WithoutStages(planned));
  if (const std::set<int> expected = StagesOf(planned); stages != expected) {
    return fmt::format(
        "rank {} runs computations of {}, and the job's schedule gives pp_rank {} {}: correct "
        "stage= or pp_rank=",
        rank, StagesText(stages), pp_rank, StagesText(expected));
  }
  return CountsText(rank, ran, planned);
}

}  // namespace perseus::server
