// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// How a run ends, and what must be true then.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <tuple>
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
      "state {} reason '{}' target {} watch {} sweep {} settled {} source {} version {} ({}) marks "
      "{}/{}/{} last straggler {}",
      store::JobStateName(phase.state), ReasonOf(phase), PlanTargetText(phase.target),
      phase.watch_json, phase.sweep_round, phase.settled_round, phase.profile_source,
      phase.version.version, TextOf(phase.version), life.marks.revision, life.marks.rows,
      life.marks.curve, phase.last_straggler);
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
    server->is_stopped = false;
    server->skew_seconds = 0;
    if (!server->is_up) StartServer(server.get());
    if (server->job == nullptr) continue;
    // What is lost is known within a second, and its ranks come again then.
    server->job->Refresh([](const Result<void>&) {});
    while (ReadSome(server.get(), /*may_fail=*/false) || TellReading(server.get())) {
    }
  }
  for (Message& message : std::exchange(messages_, {})) message.deliver(AnyServer());
  // Ranks that are not there yet come.
  for (Rank& rank : ranks_) {
    Ask("a registration", RegisterRank{rank.record}, {},
        [&rank](const Answer&) { rank.is_registered = true; });
  }
  for (int round = 0; round < 4; ++round) {
    if (round > 0) PassHours();
    for (Message& message : std::exchange(messages_, {})) message.deliver(AnyServer());
    int idle = 0;
    for (int i = 0; i < kMostSettlingSteps && idle < kStepsAtRest; ++i) {
      idle = StepServer(&AnyServer(), /*may_fail=*/false) ? 0 : idle + 1;
      SeePublished();
    }
    if (idle < kStepsAtRest) return Break("the servers never come to rest");
  }
}

// What is tried again much later is; and stragglers begin and expire.
void World::PassHours() {
  steady_seconds_ += 4000;
  day_seconds_ += 4000;
  for (const std::unique_ptr<Server>& server : servers_) {
    server->is_asked_to_refresh = true;
    if (server->job != nullptr) server->job->Tick();
  }
}

void World::CheckEnd() {
  const JobLife facts = maker_->LifeOf(synced_);
  for (const std::unique_ptr<Server>& server : servers_) CheckServer(*server, facts);
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
  JobLife life = server.job->Life();
  if (!is_shared_) life.marks.rows = facts.marks.rows;  // Not kept: nobody else writes rows.
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

// Each report that a server acknowledged is in its sums once, and in what it shows of all servers.
void World::CheckSums(const Server& server) {
  for (const auto& [key, seconds] : reported_) {
    const auto stored = synced_.iterations.find(key);
    const std::int64_t reports = stored == synced_.iterations.end() ? 0 : stored->second.reports;
    const double total = stored == synced_.iterations.end() ? 0 : stored->second.total_seconds;
    const bool is_exact = static_cast<std::size_t>(reports) == seconds.size() &&
                          total == std::accumulate(seconds.begin(), seconds.end(), 0.0);
    const bool may_lack = key.first != server.writer || losses_ > 0;  // Of one that was killed.
    if (!is_exact && !(may_lack && static_cast<std::size_t>(reports) < seconds.size())) {
      return Break(fmt::format("of {} reports on version {} to server {} {} are stored",
                               seconds.size(), key.second, server.number, reports));
    }
  }
  if (losses_ > 0) return;
  std::map<std::int64_t, std::int64_t> all;
  for (const auto& [key, sum] : synced_.iterations) all[key.second] += sum.reports;
  std::map<std::int64_t, std::int64_t> shown;
  for (const store::IterationSummary& sum : server.job->View().iterations) {
    shown[sum.plan_version] = sum.reports;
  }
  if (shown != all) Break(fmt::format("server {} shows other sums than are stored", server.number));
}

// Whoever wrote them: minutes, hours and days hold the reports of the sums, each once.
void World::CheckHistory() {
  if (losses_ > 0) return;
  std::map<int, std::pair<std::int64_t, double>> sums;
  for (const auto& [key, sum] : synced_.iterations) {
    sums[key.first].first += sum.reports;
    sums[key.first].second += sum.total_seconds;
  }
  for (const store::Resolution resolution :
       {store::Resolution::kMinute, store::Resolution::kHour, store::Resolution::kDay}) {
    std::map<int, std::pair<std::int64_t, double>> rows;
    for (const auto& [key, row] : synced_.history) {
      if (row.resolution != resolution) continue;
      rows[std::get<0>(key)].first += row.reports;
      rows[std::get<0>(key)].second += row.total_seconds;
    }
    if (rows != sums) {
      return Break(fmt::format("the history by {} has other sums than the iterations",
                               store::kResolutionNames[static_cast<std::size_t>(resolution)]));
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
    PollAt(AnyServer(), &rank, request);
    if (!request->is_answered) {
      return Break(fmt::format("rank {} waits for version {} for ever", rank.record.rank, last));
    }
  }
}

}  // namespace perseus::server
