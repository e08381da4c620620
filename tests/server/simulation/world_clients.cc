// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What ranks and operators ask, and what must be true of the answers.

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "server/domain/published_plan.h"
#include "server/service_testing.h"
#include "server/simulation/world.h"

namespace perseus::server {

using store::Fact;

// A message arrives late, twice or never.
void World::Deliver(Message message) {
  requests_.push_back(message.request);
  if (Chance(10)) messages_.push_back(message);
  messages_.push_back(std::move(message));
}

void World::Leave(Request* request) {
  if (!std::exchange(request->is_wanted, false)) return;
  request->left_at = log_.size();
}

// Sends a command. What is acknowledged must be durable: `is_it` finds its fact. Some changes are
// asked for on a condition of the job's revision.
void World::Ask(const std::string& what, Command command, const IsIt& is_it, OnAnswer on_answer) {
  const auto request = std::make_shared<Request>();
  std::optional<std::int64_t> if_revision;
  const bool is_change = !std::holds_alternative<RegisterRank>(command) &&
                         !std::holds_alternative<TakeMeasurements>(command) &&
                         !std::holds_alternative<DeleteJob>(command);
  if (is_it && is_change && Chance(15)) {
    const Server& seen_at = AnyServer();
    if (seen_at.job != nullptr) if_revision = seen_at.job->revision();
  }
  const auto deliver = [=, this](Server& server) {
    if (server.job == nullptr) {
      request->is_answered = true;  // There is no such job.
      return;
    }
    const bool was_wanted = request->is_wanted;
    const Caller caller{.if_revision = if_revision,
                        .is_wanted = [request] { return request->is_wanted; }};
    server.job->Do(command, caller, [=, this](const Outcome<Answer>& outcome) {
      if (outcome && !was_wanted) Break(what + " was carried out after its client had gone");
      if (outcome && is_it) Judge(what, *request, *outcome, if_revision, is_it);
      if (!request->is_wanted) return;
      request->is_answered = true;
      if (outcome && on_answer) on_answer(*outcome);
    });
  };
  Deliver({deliver, request});
}

void World::Judge(const std::string& what, const Request& request, const Answer& answer,
                  std::optional<std::int64_t> if_revision, const IsIt& is_it) {
  const auto found = std::find_if(log_.begin(), log_.end(), [&](const Logged& logged) {
    const bool is_on_time = !if_revision || logged.revision == *if_revision + 1;
    return is_on_time && is_it(logged.fact, answer);
  });
  if (found == log_.end()) {
    return Break(if_revision ? fmt::format("{} was acknowledged, and was not made at revision {}",
                                           what, *if_revision)
                             : what + " was acknowledged and is not durable");
  }
  const auto at = static_cast<std::size_t>(found - log_.begin());
  if (!request.is_wanted && at >= request.left_at) {
    Break(what + " was written after its client had gone");
  }
}

void World::RegisterSome() {
  Rank& rank = ranks_[Below(ranks_.size())];
  store::RankRecord record = rank.record;
  if (Chance(20)) record.node = fmt::format("node{}", Below(3));
  rank.record = record;
  const auto is_it = [record](const Fact& fact, const Answer&) {
    const auto* const written = std::get_if<store::RankRecord>(&fact);
    return written != nullptr && written->rank == record.rank && written->node == record.node;
  };
  Ask(fmt::format("the registration of rank {}", record.rank), RegisterRank{record}, is_it,
      [&rank](const Answer&) { rank.is_registered = true; });
}

// Some reports only say that the rank has measured all.
void World::MeasureSome() {
  const int rank = static_cast<int>(Below(ranks_.size()));
  store::Measurements measured = Sweep(rank, Chance(70));
  if (Chance(25)) {
    measured.rows.clear();
    measured.done = true;
  }
  measured.counter_period_seconds = 1e-6 * ++last_number_;  // To tell it apart.
  const int losses = losses_;
  const int round = synced_.job.job.sweep_round;
  const auto is_it = [=, this](const Fact& fact, const Answer&) {
    const auto* const written = std::get_if<store::Measurements>(&fact);
    return written != nullptr &&
           written->counter_period_seconds == measured.counter_period_seconds &&
           written->rows == measured.rows && written->done == measured.done &&
           (written->sweep_round >= round || losses_ != losses);
  };
  Ask("measurements", TakeMeasurements{measured}, is_it);
}

void World::ReportSome() {
  const Rank& rank = ranks_[Below(ranks_.size())];
  if (!rank.is_registered) return;
  const IterationReport report{.rank = rank.record.rank,
                               .iteration = ++last_number_,
                               .plan_version = rank.version,
                               .time_seconds = 1 + static_cast<double>(Below(8)),
                               .clocks = ReportedClocks::kUnknown};
  const auto request = std::make_shared<Request>();
  const auto deliver = [=, this](Server& server) {
    if (server.job == nullptr) return;
    const std::pair key(server.epoch, report.plan_version);
    server.job->Report({report}, {}, [=, this](const Outcome<void>& outcome) {
      request->is_answered = true;
      if (outcome) reported_[key].push_back(report.time_seconds);
    });
  };
  Deliver({deliver, request});
}

void World::PollAt(Server& server, Rank* rank, const RequestPointer& request) {
  if (server.job == nullptr) {
    request->is_answered = true;
    return;
  }
  request->waits_at = server.job;
  request->after = rank->version;
  server.job->AwaitPlan(rank->version, 1e9,
                        [this, rank, request](const auto& plan) { OnPlan(rank, request, plan); });
}

void World::OnPlan(Rank* rank, const RequestPointer& request,
                   const std::shared_ptr<const PublishedPlan>& plan) {
  if (!request->is_wanted || request->is_answered) return;
  request->is_answered = true;
  if (rank->poll == request) rank->poll.reset();
  const bool is_durable = std::any_of(log_.begin(), log_.end(), [&](const Logged& logged) {
    if (plan->gone) return std::holds_alternative<store::JobGone>(logged.fact);
    const auto* const written = std::get_if<store::PlanVersion>(&logged.fact);
    return written != nullptr && written->version == plan->version.version &&
           TextOf(*written) == TextOf(plan->version);
  });
  const std::int64_t version = plan->version.version;
  if (!is_durable) Break(fmt::format("version {} was published and is not durable", version));
  if (plan->gone) return;
  if (version < rank->version && rank->told_in == losses_) {
    Break(fmt::format("rank {} had version {} and was told {}", rank->record.rank, rank->version,
                      version));
  }
  rank->version = version;
  // A server may tell of a version that was lost until its next turn, and then gives a higher one.
  const bool is_lost = !synced_.job.version || synced_.job.version->version < version;
  rank->told_in = is_lost ? -1 : losses_;
}

void World::PollSome() {
  Rank& rank = ranks_[Below(ranks_.size())];
  if (!rank.is_registered) return;
  // A client that asks again no longer waits for what it asked before.
  if (rank.poll != nullptr) Leave(rank.poll.get());
  rank.poll = std::make_shared<Request>();
  requests_.push_back(rank.poll);
  const auto deliver = [this, rank = &rank, request = rank.poll](Server& server) {
    if (request->is_wanted) PollAt(server, rank, request);
  };
  messages_.push_back({deliver, rank.poll});
}

void World::StepClient() {
  if (measures_often_ && Chance(40)) {
    return Chance(15) ? Ask("a new sweep", Reprofile{}, {}) : MeasureSome();
  }
  const std::size_t what = Below(22);
  if (what < 3) return RegisterSome();
  if (what < 11) return PollSome();
  if (what < 13) return ReportSome();
  if (what < 14) return MeasureSome();
  AskOperator(what - 14);
}

void World::AskOperator(std::size_t what) {
  switch (what) {
    case 0: {
      // Each one is another, so that none is taken for another's.
      const std::string target = fmt::format("1.{:03}{:04}x", Below(300), ++last_number_);
      return Ask("a point", SetTarget{target}, [target](const Fact& fact, const Answer&) {
        const auto* const written = std::get_if<store::TargetChange>(&fact);
        return written != nullptr && written->target == target;
      });
    }
    case 1: {
      AddStraggler straggler{.pipeline = static_cast<int>(Below(2)),
                             .factor = 1 + 0.01 * static_cast<double>(1 + Below(60))};
      if (Chance(40)) straggler.expires_in_seconds = 1 + static_cast<double>(Below(50));
      if (Chance(30)) straggler.starts_in_seconds = 1 + static_cast<double>(Below(50));
      const auto is_it = [straggler](const Fact& fact, const Answer& answer) {
        const auto* const written = std::get_if<store::StragglerRecord>(&fact);
        return written != nullptr && written->id == answer.straggler &&
               written->pipeline == straggler.pipeline && written->factor == straggler.factor;
      };
      return Ask("a straggler", straggler, is_it,
                 [this](const Answer& answer) { added_.push_back(answer.straggler); });
    }
    case 2: {
      if (added_.empty()) return;
      const std::int64_t id = added_[Below(added_.size())];
      return Ask("the end of a straggler", ClearStraggler{id},
                 [id](const Fact& fact, const Answer&) {
                   const auto* const written = std::get_if<store::StragglerGone>(&fact);
                   return written != nullptr && written->id == id;
                 });
    }
    case 3: {
      std::set<std::int64_t> known;
      for (const auto& straggler : synced_.job.stragglers) known.insert(straggler.id);
      return Ask("the end of all stragglers", ClearStragglers{}, {},
                 [this, known, losses = losses_](const Answer&) {
                   const auto& left = synced_.job.stragglers;
                   const bool is_left =
                       std::any_of(left.begin(), left.end(),
                                   [&](const auto& each) { return known.contains(each.id); });
                   if (is_left && losses_ == losses) {
                     Break("all stragglers were cleared, and one that was known before is there");
                   }
                 });
    }
    case 4: {
      const int window = 4 + static_cast<int>(Below(60));
      return Ask("detection",
                 SetWatch{.mode = static_cast<DetectionMode>(Below(3)), .window = window},
                 [window](const Fact& fact, const Answer&) {
                   const auto* const written = std::get_if<store::DetectionChange>(&fact);
                   return written != nullptr &&
                          ParseWatchState(written->detection_json)->settings.shift.window == window;
                 });
    }
    case 5:
      return Chance(50) ? Ask("a new sweep", Reprofile{}, {})
                        : Ask("the end of a sweep", CancelReprofile{}, {});
    case 6: {
      // A client that has waited long enough.
      if (!requests_.empty()) Leave(requests_[Below(requests_.size())].get());
      return;
    }
    default:
      if (Chance(96)) return;
      if (Chance(50)) return Ask("the end of the job", FinishJob{}, {});
      return Ask("the deletion of the job", DeleteJob{}, [](const Fact& fact, const Answer&) {
        return std::holds_alternative<store::JobGone>(fact);
      });
  }
}

}  // namespace perseus::server
