// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Ranks' reports of their iterations.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "common/belief.h"
#include "common/json_text.h"
#include "server/planning/measured_timeline.h"
#include "server/runtime/managed_job.h"

namespace perseus::server {

void ManagedJob::Report(const std::vector<IterationReport>& reports,
                        const std::vector<ClientReport>& clients, Done done) {
  HearRanks();
  const Strand::Turn turn(strand_);
  const Outcome<void> good = CheckReports(life_, highest_version_, reports, clients);
  if (good) TakeReports(reports, clients);
  strand_.Then([done = std::move(done), good] { done(good); });
}

void ManagedJob::TakeReports(const std::vector<IterationReport>& reports,
                             const std::vector<ClientReport>& clients) {
  for (const ClientReport& client : clients) {
    const auto iterations =
        std::count_if(reports.begin(), reports.end(),
                      [&](const IterationReport& report) { return report.rank == client.rank; });
    Hear(client, static_cast<std::size_t>(iterations));
  }
  for (const IterationReport& report : reports) {
    sums_.Add(report);
    WatchDrift(report.kinds);
    const store::RankRecord& rank = life_.ranks.at(report.rank);
    // One rank for each place of one pipeline, as the client does.
    const bool is_of_first = rank.dp_rank == 0 && rank.tp_rank == 0;
    if (life_.phase.built.job != nullptr && is_of_first && report.timeline) {
      const auto whole = conditions_.Take(life_.phase.built.job->pipeline.dag,
                                          {.rank = rank.pp_rank,
                                           .iteration = report.iteration,
                                           .plan_version = report.plan_version,
                                           .rows = server::RowsOf(*report.timeline),
                                           .as_planned = report.clocks == ReportedClocks::kPlan,
                                           .heard_seconds = context_->now().seconds});
      if (whole && whole->as_planned) KeepTimeline(*whole, report);
    }
  }
  CountUnwritten();
  WatchIterations(reports);
}

// Only of the version in force: of an older one the clocks are not known any more.
void ManagedJob::KeepTimeline(const WholeIteration& whole, const IterationReport& last) {
  const std::shared_ptr<const PublishedPlan> published = board_.Current();
  if (published == nullptr || published->curve == nullptr ||
      published->version.version != last.plan_version) {
    return;
  }
  const CurvePlan* const plan = published->PlanOf(0);
  if (plan == nullptr) return;
  const PipelineDag& dag = published->curve->job().pipeline.dag;
  if (!Fits(dag, whole.ranks)) return;
  auto timeline = std::make_shared<MeasuredTimeline>(
      TimelineOf(dag, whole.ranks, published->curve->ClocksOf(*plan)));
  timeline->iteration = last.iteration;
  timeline->plan_version = last.plan_version;
  timeline->heard_at_seconds = context_->now().day_seconds;
  timeline_ = std::move(timeline);
}

// Announces a client's error once: clients repeat it with each report.
void ManagedJob::Hear(const ClientReport& client, std::size_t iterations) {
  rank_watch_.Hear(client, iterations, context_->now().seconds);
  ClientReport& last = clients_[client.rank];
  if (!client.error.empty() && client.error != last.error) {
    Announce({EventKind::kTrouble,
              FormatCompact(
                  {{"rank", client.rank}, {"state", client.state}, {"sentence", client.error}})});
  }
  last = client;
  last.heard_at_seconds = context_->now().day_seconds;
  if (client.conditions) conditions_.Take(client.rank, *client.conditions);
  // While the store is away, each report would add one more waiting command.
  if (!is_changing_ && CanSetClocksAgain(client)) RunInternal(Reprofile{});
}

std::string ManagedJob::TroubleOf(const ClientReport& client) const {
  const Strand::Turn turn(strand_);
  const std::string other = rank_watch_.OtherOf(client, context_->now().seconds);
  if (!other.empty()) {
    return fmt::format("rank {} is {}, too: give each its own rank", client.rank, other);
  }
  const auto ran = rank_watch_.RanBy(client.rank);
  const auto rank = life_.ranks.find(client.rank);
  if (!ran || rank == life_.ranks.end() || record_.origin == store::JobOrigin::kZeus) return "";
  if (!planned_) {
    planned_ = CountsOfSettings(record_.settings_json).value_or(std::vector<ComputationCounts>());
  }
  const auto pp_rank = static_cast<std::size_t>(rank->second.pp_rank);
  if (pp_rank >= planned_->size()) return "";
  return DifferenceText(client.rank, rank->second.pp_rank, *ran, (*planned_)[pp_rank]);
}

bool ManagedJob::LacksRanksOf(const ClientReport& client) const {
  const Strand::Turn turn(strand_);
  return life_.phase.state == store::JobState::kRegistering && !life_.ranks.empty() &&
         life_.ranks.begin()->first == client.rank && rank_watch_.HasTrained(client);
}

// A rank that was measured at its driver's clocks, since it could not set any, follows now.
bool ManagedJob::CanSetClocksAgain(const ClientReport& client) const {
  const Phase& phase = life_.phase;
  const auto rank = life_.ranks.find(client.rank);
  return client.state == "following" && client.error.empty() && !client.shadow &&
         phase.state == store::JobState::kRunning && phase.sweep_round == phase.settled_round &&
         phase.sweep_round < kMostSweepsByItself && rank != life_.ranks.end() &&
         rank->second.clocks_mhz.size() > 1 && life_.table.HasOneClock(client.rank);
}

void ManagedJob::WatchDrift(const std::vector<KindReport>& kinds) {
  const Phase& phase = life_.phase;
  if (phase.built.job == nullptr || phase.state != store::JobState::kRunning) return;
  for (const KindReport& kind : kinds) {
    conditions_.Take(kind);
    for (const DriftNews& news : drift_.Add(kind, phase.built.job->profile)) {
      const std::string sentence =
          news.is_over ? fmt::format("{} takes as long as its profile says again",
                                     ProfileKeyText(news.drift.key))
                       : DriftText(news.drift) + "; 'perseus job reprofile' measures again";
      Announce({EventKind::kDrift, FormatCompact({{"kind", news.is_over ? "drift_over" : "drift"},
                                                  {"stage", news.drift.key.stage},
                                                  {"percent", 100 * (news.drift.ratio() - 1)},
                                                  {"sentence", sentence}})});
    }
  }
}

void ManagedJob::WatchIterations(const std::vector<IterationReport>& reports) {
  std::vector<WatchedIteration> watched;
  watched.reserve(reports.size());
  for (const IterationReport& report : reports) {
    const store::RankRecord& rank = life_.ranks.at(report.rank);
    watched.push_back({.rank = report.rank,
                       .dp_rank = rank.dp_rank,
                       .pp_rank = rank.pp_rank,
                       .node = rank.node,
                       .iteration = report.iteration,
                       .plan_version = report.plan_version,
                       .clocks = report.clocks,
                       .time_seconds = report.time_seconds,
                       .busy_seconds = report.busy_seconds,
                       .busy_by_type = report.busy_by_type,
                       .tokens = report.tokens,
                       .energy_joules = report.energy_joules});
  }
  const double now = context_->now().day_seconds;
  const auto complete = watch_.Take(watched, board_.Current(), life_.ranks.size(), now);
  for (const WatchedIteration& each : watched) RecordCost(each, now);
  for (const IterationFigures& each : complete) history_.AddIteration(each, now);
}

void ManagedJob::RecordCost(const WatchedIteration& iteration, double day_seconds) {
  IterationCost cost{.seconds = iteration.time_seconds, .joules = iteration.energy_joules};
  if (const std::optional<Saved> saved = watch_.SavedIn(iteration)) {
    const Job* const job = life_.phase.built.AnyJob();
    const bool is_believable = job == nullptr || AreBelievable(job->notes);
    cost.predicted_joules = is_believable ? saved->predicted_joules : 0;
    cost.measured_saved_joules = saved->measured_saved_joules;
  }
  history_.Add(cost, static_cast<int>(shape_.world_size()), day_seconds);
}

}  // namespace perseus::server
