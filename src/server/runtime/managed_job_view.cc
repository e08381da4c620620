// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "server/runtime/managed_job.h"

// Views of a job.
namespace perseus::server {

namespace {

// Shown of one job; more of them say the same.
constexpr std::size_t kMostTroubledClients = 100;
constexpr std::size_t kMostMissingRanks = 8;

std::vector<int> MissingRanks(const std::map<int, store::RankRecord>& ranks,
                              std::int64_t world_size) {
  std::vector<int> missing;
  if (static_cast<std::int64_t>(ranks.size()) == world_size) return missing;
  for (int rank = 0; rank < world_size && missing.size() < kMostMissingRanks; ++rank) {
    if (!ranks.contains(rank)) missing.push_back(rank);
  }
  return missing;
}

}  // namespace

JobView ManagedJob::View() const {
  const Strand::Turn turn(strand_);
  const Phase& phase = life_.phase;
  JobView view;
  view.record = record_;
  view.record.state = phase.state;
  view.record.reason = ReasonOf(phase);
  view.record.labels = phase.labels;
  view.revision = life_.revision;
  view.has_profile = !phase.profile_source.empty();
  view.target = PlanTargetText(phase.target);
  view.ranks_registered = static_cast<std::int64_t>(life_.ranks.size());
  view.missing_ranks = MissingRanks(life_.ranks, shape_.world_size());
  view.ranks_measured = static_cast<std::int64_t>(life_.table.ranks_done());
  view.stragglers = phase.stragglers;
  view.slow_pipelines = SlowPipelines(shape_, phase.stragglers, life_.ranks);
  view.plan = board_.Current();
  view.refined = phase.built.curve != nullptr && (!LacksPlans(phase) || has_given_up_);
  view.iterations = sums_.All();
  view.progress = view.refined ? 1 : progress_.load();
  view.profile_source = phase.profile_source;
  if (const Job* const job = phase.built.AnyJob()) {
    view.profile_sha256 = job->profile.sha256;
    view.notes = job->notes;
    view.transfer_seconds = job->settings.comm_delay_seconds;
  }
  view.sweeps_again = phase.sweep_round > phase.settled_round;
  view.profiling = SummaryOf(life_.table, shape_.pipeline_parallel);
  view.drifts = drift_.Drifts();
  view.conditions = phase.conditions;
  view.measured = conditions_.Combined();
  view.timeline = timeline_;
  view.watch = watch_.View(context_->now().day_seconds);
  view.watch.settings = phase.watch.settings;
  view.watch.ranks = life_.ranks.size();
  for (const auto& [rank, client] : clients_) {
    for (const auto& [name, count] : client.counts) view.client_counts[name] += count;
    ++view.client_states[client.state];
    view.shadow_clients += client.shadow ? 1 : 0;
    if (client.error.empty()) continue;
    ++view.complaining_clients;
    if (view.troubled_clients.size() < kMostTroubledClients) {
      view.troubled_clients.push_back(client);
    }
  }
  const auto closed = view.client_states.find(kClosedState);
  view.has_ended = closed != view.client_states.end() && closed->second == view.ranks_registered;
  return view;
}

store::JobHead ManagedJob::head() const {
  const Strand::Turn turn(strand_);
  return store::JobHead{.id = record_.id,
                        .client_key = record_.client_key,
                        .name = record_.name,
                        .labels = life_.phase.labels,
                        .origin = record_.origin,
                        .state = life_.phase.state,
                        .created_at_seconds = record_.created_at_seconds,
                        .finished_at_seconds = life_.phase.finished_at_seconds,
                        .revision = life_.revision};
}

bool ManagedJob::MayRest(double since_seconds) const {
  if (!is_finished_ || is_gone_ || asked_at_seconds_ >= since_seconds) return false;
  const Strand::Turn turn(strand_);
  return board_.waiting() == 0 && !is_changing_ && !sums_.has_news() && !history_.has_news();
}

std::shared_ptr<const MeasuredTimeline> ManagedJob::Timeline() const {
  const Strand::Turn turn(strand_);
  return timeline_;
}

JobLife ManagedJob::Life() const {
  const Strand::Turn turn(strand_);
  return life_;
}

std::vector<store::RankRecord> ManagedJob::Ranks() const {
  const Strand::Turn turn(strand_);
  std::vector<store::RankRecord> ranks;
  ranks.reserve(life_.ranks.size());
  for (const auto& [number, rank] : life_.ranks) ranks.push_back(rank);
  return ranks;
}

ManagedJob::ReportedRows ManagedJob::RowsOf(int rank) const {
  const Strand::Turn turn(strand_);
  return ReportedRows{.rows = life_.table.RowsOf(rank), .done = life_.table.IsDone(rank)};
}

std::optional<PlanningStep> ManagedJob::NextStep() const {
  const Strand::Turn turn(strand_);
  return NextPlanningStep(life_);
}

bool ManagedJob::IsPast(const PlanningStep& step) const {
  const Strand::Turn turn(strand_);
  return server::IsPast(life_, step);
}

bool ManagedJob::WantsWork() const {
  const Strand::Turn turn(strand_);
  return LacksPlans(life_.phase);
}

// Views of a job's ranks, one by one.

std::vector<RankNow> ManagedJob::RanksNow() const {
  const Strand::Turn turn(strand_);
  const std::map<int, double> lateness = watch_.Lateness();
  std::vector<RankNow> ranks;
  ranks.reserve(life_.ranks.size());
  for (const auto& [number, record] : life_.ranks) {
    RankNow& rank = ranks.emplace_back(RankNow{.record = record, .client = {}, .lateness = {}});
    if (const auto found = clients_.find(number); found != clients_.end()) {
      rank.client = found->second;
    }
    if (const auto found = lateness.find(number); found != lateness.end()) {
      rank.lateness = found->second;
    }
  }
  return ranks;
}

void ManagedJob::VisitRanks(const RankVisitor& visit) const {
  const Strand::Turn turn(strand_);
  for (const auto& [number, record] : life_.ranks) {
    const auto found = clients_.find(number);
    visit(record, found == clients_.end() ? nullptr : &found->second);
  }
}

}  // namespace perseus::server
