// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/simulation/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "server/domain/published_plan.h"
#include "server/service_testing.h"

namespace perseus::server {
namespace {

using store::Fact;

constexpr int kMostSettlingSteps = 20'000;

std::string TextOf(const store::PlanVersion& version) {
  std::string text = fmt::format("{} plan {}", version.reason, version.plan);
  for (const auto& [pipeline, plan] : version.exceptions) {
    text += fmt::format(", {}: {}", pipeline, plan);
  }
  return text;
}

// What is durable of a job, to compare. Figures that follow from others are left out.
std::string TextOf(const JobLife& life) {
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
  text += fmt::format("; {} rows, curve {}", life.table.rows(),
                      phase.built.curve == nullptr ? 0 : phase.built.curve->revision());
  return text;
}

}  // namespace

struct World::Server {
  explicit Server(PlanMaker* maker) : gate(maker) {}

  int number = 0;
  bool is_up = false;
  bool is_stopped = false;  // As by SIGSTOP: it is there, and does nothing.
  double skew_seconds = 0;
  bool is_asked_to_refresh = false;
  bool is_woken = false;
  std::optional<PlanningStep> step;  // That its planner is at.
  store::JobMarks marks;             // The last ones of the job that were seen here.
  SimulatedGate gate;
  EventHub events;
  std::unique_ptr<JobContext> context;
  std::shared_ptr<ManagedJob> job;
};

World::World(PlanMaker* maker, std::uint64_t seed) : maker_(maker), random_(seed) {
  store::JobRecord record = maker->record();
  if (Chance(30)) {  // The ranks measure.
    record.profile_csv.clear();
    record.profile_source.clear();
    record.settings_json = MakeJobSpec(kUnmeasured, "")->settings_json;
  }
  record.created_at_seconds = day_seconds_;
  synced_.Commit({record}, std::nullopt);
  for (int rank = 0; rank < 4; ++rank) {
    ranks_.push_back({.record = SmallRank(rank), .poll = nullptr});
    ranks_.back().record.job = record.id;
  }
  for (std::unique_ptr<Server>& server : servers_) {
    server = std::make_unique<Server>(maker);
    server->number = server == servers_[0] ? 0 : 1;
    StartServer(server.get());
  }
}

World::~World() = default;

void World::Break(const std::string& rule) {
  if (broken_.empty()) broken_ = rule;
}

void World::StartServer(Server* server) {
  server->is_up = true;
  server->is_stopped = false;
  server->context = std::make_unique<JobContext>(JobContext{
      .store = server->gate,
      .events = server->events,
      .now =
          [this, server] {
            return Moment{.day_seconds = day_seconds_ + server->skew_seconds,
                          .seconds = steady_seconds_};
          },
      .has_given_plan = [](const Shape&) { return false; },
      .wake_worker = [server] { server->is_woken = true; },
      .refresh_soon = [server](const std::string&) { server->is_asked_to_refresh = true; },
      .on_problem = [this](const std::string& sentence) { Break("an exception: " + sentence); }});
  Built built;
  if (synced_.job.curve) {
    built.job = maker_->job();
    built.curve = maker_->CurveOf(*synced_.job.curve);
  }
  server->job = std::make_shared<ManagedJob>(server->context.get(), Replay(synced_.job, built));
  server->marks = {};
  server->job->Resume({}, /*ask_for_work=*/true);
}

// What it had not committed, and whom it had not answered, is lost.
void World::CrashServer(Server* server) {
  server->is_up = false;
  server->gate.writes.clear();
  server->gate.answers.clear();
  server->gate.reads.clear();
  server->gate.readings.clear();
  server->step.reset();
  server->job.reset();
  server->is_asked_to_refresh = server->is_woken = false;
}

// A commit takes what is waiting, and may fail in each way that a real one does.
bool World::CommitSome(Server* server, bool may_fail) {
  SimulatedGate& gate = server->gate;
  if (gate.writes.empty()) return false;
  const SimulatedGate::Write write = std::move(gate.writes.front());
  gate.writes.pop_front();
  const bool is_refused = may_fail && Chance(4);  // A full disk, a database that is away.
  const bool is_unknown = may_fail && Chance(4);  // The connection ended within the commit.
  if (is_refused) {
    gate.answers.emplace_back(
        [write] { write.written(MakeError(ErrorCode::kIo, "the disk is full")); });
    return true;
  }
  if (write.is_wanted && !write.is_wanted()) {
    gate.answers.emplace_back(
        [write] { write.written(MakeError(store::kTooLate, "nobody waits for it any more")); });
    return true;
  }
  SimulatedRows rows = synced_;
  const bool is_taken = rows.Commit(write.facts, write.expected_revision);
  // Before it is synced the power may fail, and then nobody was told.
  if (may_fail && Chance(1)) {
    CrashServer(server);
    return true;
  }
  const store::JobMarks marks = rows.job.marks;
  if (is_taken) synced_ = std::move(rows);
  gate.answers.emplace_back([write, is_taken, is_unknown, marks] {
    if (is_unknown) {
      write.written(MakeError(ErrorCode::kIo, "it is not known whether it was written"));
    } else if (is_taken) {
      write.written(marks);
    } else {
      write.written(MakeError(ErrorCode::kConflict, "the tables refuse it"));
    }
  });
  return true;
}

bool World::StepServer(Server* server, bool may_fail) {
  SimulatedGate& gate = server->gate;
  switch (Below(7)) {
    case 0:
      return CommitSome(server, may_fail);
    case 1: {
      if (gate.answers.empty()) return false;
      const auto answer = std::move(gate.answers.front());
      gate.answers.pop_front();
      answer();
      return true;
    }
    case 2: {
      if (gate.reads.empty()) return false;
      SimulatedGate::PendingRead pending = std::move(gate.reads.back());
      gate.reads.pop_back();
      if (may_fail && Chance(5)) {
        gate.readings.emplace_back([read = std::move(pending.read)] {
          read(MakeError(ErrorCode::kIo, "the database is away"));
        });
      } else if (!pending.parts) {
        pending.parts = PartsToRead(synced_.job.marks, pending.known.marks);
        gate.reads.insert(gate.reads.begin(), std::move(pending));
      } else {
        gate.readings.emplace_back(
            [read = std::move(pending.read),
             reading = gate.Find(synced_, pending.known, *pending.parts)] { read(reading); });
      }
      return true;
    }
    case 3: {
      if (gate.readings.empty()) return false;
      const std::size_t which = Below(gate.readings.size());
      const auto reading = std::move(gate.readings[which]);
      gate.readings.erase(gate.readings.begin() + static_cast<std::ptrdiff_t>(which));
      reading();
      return true;
    }
    case 4:
      server->job->Tick();
      return false;
    case 5: {
      const bool is_asked = std::exchange(server->is_asked_to_refresh, false);
      if (!is_asked && !(may_fail && Chance(10))) return false;
      server->job->Refresh([](const Result<void>&) {});
      return true;
    }
    default: {
      if (!server->step) {
        server->step = server->job->NextStep();
        return server->step.has_value();
      }
      const PlanningStep step = *std::exchange(server->step, std::nullopt);
      if (may_fail && Chance(3)) return true;  // Its lease ran out.
      server->job->Do(maker_->Make(step), {}, [](const Outcome<Answer>&) {});
      return true;
    }
  }
}

void World::Deliver(std::function<void(Server&)> message) {
  messages_.push_back({std::move(message), requests_.back()});
}

// Sends a command, which arrives late, twice or never; `check` judges an acknowledgement.
void World::Ask(const std::string& what, Command command,
                std::function<void(const Outcome<Answer>&)> check) {
  const auto request = std::make_shared<Request>();
  request->number = ++last_request_;
  requests_.push_back(request);
  const auto deliver = [this, request, what, command, check](Server& server) {
    const bool was_wanted = request->is_wanted;
    const Caller caller{.is_wanted = [request] { return request->is_wanted; }};
    server.job->Do(command, caller, [this, request, what, check, was_wanted](const auto& outcome) {
      if (!was_wanted && outcome) {
        Break(what + " was carried out after its client had gone");
      }
      if (!request->is_wanted) return;
      request->is_answered = true;
      check(outcome);
    });
  };
  Deliver(deliver);
  if (Chance(10)) Deliver(deliver);
}

bool World::IsLogged(const std::function<bool(const Fact&)>& is_it) const {
  return std::any_of(synced_.log.begin(), synced_.log.end(), is_it);
}

void World::RegisterSome() {
  Rank& rank = ranks_[Below(ranks_.size())];
  store::RankRecord record = rank.record;
  if (Chance(20)) record.node = fmt::format("node{}", Below(3));
  rank.record = record;
  Ask("a registration", RegisterRank{record}, [this, &rank, record](const auto& outcome) {
    if (!outcome) return;
    rank.is_registered = true;
    const bool is_durable = IsLogged([&](const Fact& fact) {
      const auto* const written = std::get_if<store::RankRecord>(&fact);
      return written != nullptr && written->rank == record.rank && written->node == record.node;
    });
    if (!is_durable) Break(fmt::format("rank {} was acknowledged and is not durable", record.rank));
  });
}

void World::PollAt(Server& server, Rank* rank, const std::shared_ptr<Request>& request) {
  request->waits_at = server.job;
  request->after = rank->version;
  server.job->AwaitPlan(rank->version, 1e9,
                        [this, rank, request](const auto& plan) { OnPlan(rank, request, plan); });
}

void World::OnPlan(Rank* rank, const std::shared_ptr<Request>& request,
                   const std::shared_ptr<const PublishedPlan>& plan) {
  if (!request->is_wanted || request->is_answered) return;
  request->is_answered = true;
  if (rank->poll == request) rank->poll.reset();
  const std::int64_t version = plan->version.version;
  if (version < rank->version) {
    Break(fmt::format("rank {} had version {} and was told {}", rank->record.rank, rank->version,
                      version));
  }
  const bool is_durable = IsLogged([&](const Fact& fact) {
    const auto* const written = std::get_if<store::PlanVersion>(&fact);
    return written != nullptr && written->version == version &&
           TextOf(*written) == TextOf(plan->version);
  });
  if (!is_durable) Break(fmt::format("version {} was published and is not durable", version));
  rank->version = version;
}

void World::PollSome() {
  Rank& rank = ranks_[Below(ranks_.size())];
  if (!rank.is_registered) return;
  // A client that asks again no longer waits for what it asked before.
  if (rank.poll != nullptr) rank.poll->is_wanted = false;
  rank.poll = std::make_shared<Request>();
  requests_.push_back(rank.poll);
  Deliver([this, rank = &rank, request = rank.poll](Server& server) {
    if (request->is_wanted) PollAt(server, rank, request);
  });
}

void World::StepClient() {
  const auto none = [](const Outcome<Answer>&) {};
  const std::size_t what = Below(20);
  if (what < 3) return RegisterSome();
  if (what < 11) return PollSome();
  switch (what - 6) {
    case 5: {
      const std::string target = fmt::format("1.{:03}x", Below(300));
      return Ask("a point", SetTarget{target}, [this, target](const auto& outcome) {
        const bool is_durable = IsLogged([&](const Fact& fact) {
          const auto* const written = std::get_if<store::TargetChange>(&fact);
          return written != nullptr && written->target == target;
        });
        if (outcome && !is_durable) Break("a point was acknowledged and is not durable");
      });
    }
    case 6: {
      StragglerRequest straggler{.pipeline = static_cast<int>(Below(2)),
                                 .factor = 1 + 0.01 * static_cast<double>(1 + Below(60))};
      if (Chance(40)) straggler.expires_in_seconds = 1 + static_cast<double>(Below(50));
      if (Chance(30)) straggler.starts_in_seconds = 1 + static_cast<double>(Below(50));
      return Ask("a straggler", AddStraggler{straggler}, [this](const auto& outcome) {
        if (!outcome) return;
        added_.push_back(outcome->straggler);
        const bool is_durable = IsLogged([&](const Fact& fact) {
          const auto* const written = std::get_if<store::StragglerRecord>(&fact);
          return written != nullptr && written->id == outcome->straggler;
        });
        if (!is_durable) Break("a straggler was acknowledged and is not durable");
      });
    }
    case 7: {
      if (added_.empty()) return;
      const std::int64_t id = added_[Below(added_.size())];
      return Ask("the end of a straggler", ClearStraggler{id}, [this, id](const auto& outcome) {
        const auto& left = synced_.job.stragglers;
        const bool is_left =
            std::any_of(left.begin(), left.end(), [&](const auto& each) { return each.id == id; });
        if (outcome && is_left) Break("a straggler was cleared and is there");
      });
    }
    case 8:
      return Ask("the end of all stragglers", ClearStragglers{}, none);
    case 9: {
      const int window = 4 + static_cast<int>(Below(60));
      return Ask(
          "detection", SetWatch{.mode = static_cast<DetectionMode>(Below(3)), .window = window},
          [this, window](const auto& outcome) {
            const bool is_durable = IsLogged([&](const Fact& fact) {
              const auto* const written = std::get_if<store::DetectionChange>(&fact);
              return written != nullptr &&
                     ParseWatchState(written->detection_json)->settings.shift.window == window;
            });
            if (outcome && !is_durable) Break("detection was acknowledged, not durable");
          });
    }
    case 10:
      return Chance(50) ? Ask("a new sweep", Reprofile{}, none)
                        : Ask("the end of a sweep", CancelReprofile{}, none);
    case 11: {
      const int rank = static_cast<int>(Below(ranks_.size()));
      return Ask("measurements", TakeMeasurements{Sweep(rank, Chance(70))}, none);
    }
    case 12: {
      // A client that has waited long enough.
      if (requests_.empty()) return;
      requests_[Below(requests_.size())]->is_wanted = false;
      return;
    }
    default:
      if (Chance(97)) return;
      return Ask("the end of the job", FinishJob{}, none);
  }
}

void World::StepTime() {
  const double seconds = static_cast<double>(Below(40)) / 10;
  steady_seconds_ += seconds;
  day_seconds_ += seconds;
  if (Chance(3)) day_seconds_ += Chance(50) ? 3600 : -3600;
  if (Chance(5)) servers_[Below(2)]->skew_seconds = static_cast<double>(Below(5)) - 2;
}

// No number means two plans, whichever server says it, and no server goes back to older rows.
void World::SeePublished() {
  for (const std::unique_ptr<Server>& server : servers_) {
    if (!server->is_up) continue;
    const store::JobMarks marks = server->job->head().marks;
    if (marks.revision < server->marks.revision || marks.rows < server->marks.rows) {
      Break(fmt::format("server {} goes back from revision {}, rows {} to {}, {}", server->number,
                        server->marks.revision, server->marks.rows, marks.revision, marks.rows));
    }
    server->marks = marks;
    const auto plan = server->job->board().Current();
    if (plan == nullptr || plan->version.version == 0) continue;
    const auto [seen, is_new] =
        published_.try_emplace(plan->version.version, TextOf(plan->version));
    if (seen->second != TextOf(plan->version)) {
      Break(fmt::format("version {} is both '{}' and '{}'", plan->version.version, seen->second,
                        TextOf(plan->version)));
    }
  }
}

std::string World::Run(int steps) {
  for (int i = 0; i < steps && broken_.empty(); ++i) {
    Server& server = *servers_[Below(2)];
    const std::size_t what = Below(100);
    if (what < 22) {
      StepClient();
    } else if (what < 50 && !messages_.empty()) {
      const std::size_t which = Below(messages_.size());
      Message message = std::move(messages_[which]);
      messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(which));
      if (server.is_up && !server.is_stopped) message.deliver(server);
    } else if (what < 90) {
      if (server.is_up && !server.is_stopped) StepServer(&server, /*may_fail=*/true);
    } else if (what < 96) {
      StepTime();
    } else if (what < 98) {
      server.is_stopped = !server.is_stopped;
    } else if (!server.is_up) {
      StartServer(&server);
    } else if (Chance(30)) {
      CrashServer(&server);
    }
    SeePublished();
  }
  if (broken_.empty()) Settle();
  if (broken_.empty()) CheckEnd();
  return broken_;
}

// All that is under way ends: nothing fails any more, and no new request comes but the polls of
// ranks, which never cease.
void World::Settle() {
  for (const std::unique_ptr<Server>& server : servers_) {
    server->is_stopped = false;
    server->skew_seconds = 0;
    if (!server->is_up) StartServer(server.get());
  }
  for (Message& message : messages_) message.deliver(*servers_[Below(2)]);
  messages_.clear();
  // Operators end what they began; ranks that are not there yet come.
  for (Rank& rank : ranks_) {
    Ask("a registration", RegisterRank{rank.record},
        [&rank](const auto& outcome) { rank.is_registered = outcome.has_value(); });
  }
  for (int round = 0; round < 3; ++round) {
    for (Message& message : std::exchange(messages_, {})) message.deliver(*servers_[Below(2)]);
    int idle = 0;
    for (int i = 0; i < kMostSettlingSteps && idle < 200; ++i) {
      idle = StepServer(servers_[Below(2)].get(), /*may_fail=*/false) ? 0 : idle + 1;
      SeePublished();
    }
    if (idle < 200) return Break("the servers never come to rest");
    steady_seconds_ += 4000;  // What is tried again much later is.
    day_seconds_ += 4000;
    for (const std::unique_ptr<Server>& server : servers_) {
      server->is_asked_to_refresh = true;
      server->job->Tick();
    }
  }
}

void World::CheckEnd() {
  Built built;
  if (synced_.job.curve) built = {maker_->job(), nullptr, maker_->CurveOf(*synced_.job.curve)};
  const JobLife facts = Replay(synced_.job, built);
  const std::string durable = TextOf(facts);
  for (const std::unique_ptr<Server>& server : servers_) {
    const std::string live = TextOf(server->job->Life());
    if (live != durable) {
      return Break(fmt::format("server {} has\n  {}\nand the facts are\n  {}", server->number, live,
                               durable));
    }
    const auto plan = server->job->board().Current();
    const std::int64_t version = plan == nullptr ? 0 : plan->version.version;
    if (version != server->job->Life().phase.version.version) {
      return Break(fmt::format("server {} publishes version {} of {}", server->number, version,
                               server->job->Life().phase.version.version));
    }
  }
  // One that came before its server's last crash waits nowhere.
  for (const std::shared_ptr<Request>& request : requests_) {
    const auto job = request->waits_at.lock();
    if (job == nullptr || !request->is_wanted || request->is_answered) continue;
    if (job->board().version() > request->after) {
      return Break(fmt::format("a poll for what is after version {} waits where version {} is",
                               request->after, job->board().version()));
    }
  }
  const store::JobState state = synced_.job.job.state;
  const bool needs_ranks = state == store::JobState::kProfiling;
  if (state == store::JobState::kRunning) {
    const Assignment wanted = AssignmentAt(facts, facts.phase, day_seconds_);
    const store::PlanVersion& there = facts.phase.version;
    if (there.version == 0 || there.plan != wanted.plan || there.exceptions != wanted.exceptions) {
      return Break(fmt::format("version {} is {}, and target and stragglers ask for plan {}",
                               there.version, TextOf(there), wanted.plan));
    }
  }
  const std::int64_t last = synced_.job.version ? synced_.job.version->version : 0;
  for (Rank& rank : ranks_) {
    if (state == store::JobState::kFinished) break;
    if (!rank.is_registered) {
      return Break(fmt::format("rank {} is never registered", rank.record.rank));
    }
    if (rank.version > last) {
      return Break(
          fmt::format("rank {} has version {}, which is lost", rank.record.rank, rank.version));
    }
    if (rank.version == last || needs_ranks) continue;
    // It asks either server, and is told at once.
    const auto request = std::make_shared<Request>();
    PollAt(*servers_[Below(2)], &rank, request);
    if (!request->is_answered) {
      return Break(fmt::format("rank {} waits for version {} for ever", rank.record.rank, last));
    }
  }
  const bool has_all = state == store::JobState::kRunning || state == store::JobState::kFailed ||
                       state == store::JobState::kFinished || needs_ranks;
  if (!has_all) Break(fmt::format("the job stays {}", store::JobStateName(state)));
}

}  // namespace perseus::server
