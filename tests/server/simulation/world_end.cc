// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// How a run ends, and what must be true then.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <utility>

#include "server/domain/published_plan.h"
#include "server/simulation/world.h"

namespace perseus::server {
namespace {

constexpr int kMostSettlingSteps = 20'000;
constexpr int kStepsAtRest = 200;  // In which nothing happens.

// What is durable of a job, to compare. Figures that follow from others are left out.
std::string DurableText(const JobLife& life) {
  const Phase& phase = life.phase;
  std::string text = fmt::format(
      "state {} reason '{}' target {} watch {} sweep {} settled {} source {} version {} ({}) "
      "revision {} last straggler {}",
      store::JobStateName(phase.state), ReasonOf(phase), PlanTargetText(phase.target),
      phase.watch_json, phase.sweep_round, phase.settled_round, phase.profile_source,
      phase.version.version, TextOf(phase.version), life.revision, phase.last_straggler);
  for (const store::StragglerRecord& straggler : phase.stragglers) {
    text += fmt::format("; straggler {} x{} until {}", straggler.id, straggler.factor,
                        straggler.expires_at_seconds.value_or(-1));
  }
  for (const auto& [number, rank] : life.ranks) {
    text += fmt::format("; rank {} on {}", number, rank.node);
  }
  // Reports are counted, too: none counts twice.
  text += fmt::format("; {} reports, {} rows", life.measurements, life.table.rows());
  for (const auto& [rank, rows] : life.measured_rows) {
    text += fmt::format("; {} of rank {}", rows, rank);
  }
  return text + fmt::format("; curve {}",
                            phase.built.curve == nullptr ? 0 : phase.built.curve->revision());
}

}  // namespace

// All that is under way ends: nothing fails any more, and no new request comes but the polls of
// ranks, which never cease.
void World::Settle() {
  for (const std::unique_ptr<Server>& server : servers_) {
    server->is_asleep = false;
    server->skew_seconds = 0;
    const bool is_over = server->gate.has_given_up || server->epoch != synced_.epoch;
    if (is_over) CrashServer(server.get());
  }
  if (ActiveServer() == nullptr) StartServer(servers_.front().get());
  Server& active = *ActiveServer();
  for (Message& message : std::exchange(messages_, {})) message.deliver(active);
  // Ranks that are not there yet come.
  for (Rank& rank : ranks_) {
    Ask("a registration", RegisterRank{rank.record}, {},
        [&rank](const Answer&) { rank.is_registered = true; });
  }
  for (int round = 0; round < 4; ++round) {
    if (round > 0) PassHours();
    for (Message& message : std::exchange(messages_, {})) message.deliver(active);
    int idle = 0;
    for (int i = 0; i < kMostSettlingSteps && idle < kStepsAtRest; ++i) {
      idle = StepServer(&active, /*may_fail=*/false) ? 0 : idle + 1;
      SeePublished();
    }
    if (idle < kStepsAtRest) return Break("the server never comes to rest");
  }
}

// What is tried again much later is; and stragglers begin and expire.
void World::PassHours() {
  steady_seconds_ += 4000;
  day_seconds_ += 4000;
  Server& active = *ActiveServer();
  if (active.job != nullptr) active.job->Tick();
}

void World::CheckEnd() {
  const JobLife facts = maker_->LifeOf(synced_);
  CheckServer(*ActiveServer(), facts);
  CheckWaiting();
  if (!synced_.is_there) return;
  const store::JobState state = synced_.job.job.state;
  if (state == store::JobState::kRegistering || state == store::JobState::kCharacterizing) {
    return Break(fmt::format("the job stays {}", store::JobStateName(state)));
  }
  if (state == store::JobState::kRunning) {
    const Assignment wanted = AssignmentAt(facts, facts.phase, day_seconds_);
    const store::PlanVersion& there = facts.phase.version;
    if (there.version == 0 || there.plan != wanted.plan || there.exceptions != wanted.exceptions) {
      return Break(fmt::format("version {} is {}, and target and stragglers ask for plan {}",
                               there.version, TextOf(there), wanted.plan));
    }
  }
  if (state != store::JobState::kFinished) CheckRanks();
}

void World::CheckServer(const Server& server, const JobLife& facts) {
  if (!synced_.is_there) {
    if (server.job == nullptr || server.job->is_gone()) return;
    return Break(fmt::format("server {} has a job that was deleted", server.number));
  }
  const std::string durable = DurableText(facts);
  const JobLife life = server.job->Life();
  if (DurableText(life) != durable) {
    return Break(fmt::format("server {} has\n  {}\nand the facts are\n  {}", server.number,
                             DurableText(life), durable));
  }
  const auto plan = server.job->board().Current();
  const std::int64_t version = plan == nullptr ? 0 : plan->version.version;
  if (version != life.phase.version.version) {
    return Break(fmt::format("server {} publishes version {} of {}", server.number, version,
                             life.phase.version.version));
  }
  CheckSums(server);
  CheckHistory();
}

// Each report that the server acknowledged is in the sums once, above those that it found there. Of
// a server that was killed the last ones may lack.
void World::CheckSums(const Server& server) {
  std::map<std::int64_t, std::pair<std::int64_t, double>> expected;
  for (const auto& [version, sum] : server.sums) {
    expected[version] = {sum.reports, sum.total_seconds};
  }
  std::map<std::int64_t, std::size_t> most;
  for (const auto& [key, seconds] : reported_) {
    most[key.second] += seconds.size();
    if (key.first != server.epoch) continue;
    auto& [reports, total] = expected[key.second];
    reports += static_cast<std::int64_t>(seconds.size());
    total = std::accumulate(seconds.begin(), seconds.end(), total);
  }
  std::map<std::int64_t, std::pair<std::int64_t, double>> stored;
  for (const auto& [version, sum] : synced_.iterations) {
    stored[version] = {sum.reports, sum.total_seconds};
    if (static_cast<std::size_t>(sum.reports) > most[version]) {
      return Break(fmt::format("reports on version {} count twice", version));
    }
  }
  if (stored != expected) {
    return Break(fmt::format("not all reports to server {} are stored", server.number));
  }
  std::map<std::int64_t, std::pair<std::int64_t, double>> shown;
  for (const store::IterationSummary& sum : server.job->View().iterations) {
    shown[sum.plan_version] = {sum.reports, sum.total_seconds};
  }
  if (shown != stored) {
    Break(fmt::format("server {} shows other sums than are stored", server.number));
  }
}

// Minutes, hours and days hold the reports of the sums, each once.
void World::CheckHistory() {
  std::pair<std::int64_t, double> sums;
  for (const auto& [version, sum] : synced_.iterations) {
    sums.first += sum.reports;
    sums.second += sum.total_seconds;
  }
  for (const store::Resolution resolution :
       {store::Resolution::kMinute, store::Resolution::kHour, store::Resolution::kDay}) {
    std::pair<std::int64_t, double> rows;
    for (const auto& [key, row] : synced_.history) {
      if (row.resolution != resolution) continue;
      rows.first += row.reports;
      rows.second += row.total_seconds;
    }
    if (rows != sums) {
      return Break(
          fmt::format("the history by {} has {} reports in {} s, the iterations {} in {} s",
                      store::kResolutionNames[static_cast<std::size_t>(resolution)], rows.first,
                      rows.second, sums.first, sums.second));
    }
  }
}

// One that came before its server's last crash waits nowhere.
void World::CheckWaiting() {
  for (const RequestPointer& request : requests_) {
    const auto job = request->waits_at.lock();
    if (job == nullptr || !request->is_wanted || request->is_answered) continue;
    if (job->is_gone()) return Break("a poll waits for a job that was deleted");
    if (job->board().version() > request->after) {
      return Break(fmt::format("a poll for what is after version {} waits where version {} is",
                               request->after, job->board().version()));
    }
  }
}

// Each rank has the last version, or is told of it when it asks.
void World::CheckRanks() {
  const std::int64_t last = synced_.job.version ? synced_.job.version->version : 0;
  const bool needs_ranks = synced_.job.job.state == store::JobState::kProfiling;
  for (Rank& rank : ranks_) {
    if (!rank.is_registered) {
      return Break(fmt::format("rank {} is never registered", rank.record.rank));
    }
    if (rank.version > last && losses_ == 0) {
      return Break(
          fmt::format("rank {} has version {}, which is lost", rank.record.rank, rank.version));
    }
    if (rank.version == last || needs_ranks) continue;
    const auto request = std::make_shared<Request>();
    PollAt(*ActiveServer(), &rank, request);
    if (!request->is_answered) {
      return Break(fmt::format("rank {} waits for version {} for ever", rank.record.rank, last));
    }
  }
}

}  // namespace perseus::server
