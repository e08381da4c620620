// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/simulation/world.h"

#include <fmt/format.h>

#include <utility>

#include "server/domain/published_plan.h"
#include "server/service_testing.h"

namespace perseus::server {

std::string TextOf(const store::PlanVersion& version) {
  std::string text = fmt::format("{} plan {}", version.reason, version.plan);
  for (const auto& [pipeline, plan] : version.exceptions) {
    text += fmt::format(", {}: {}", pipeline, plan);
  }
  return text;
}

World::World(PlanMaker* maker, std::uint64_t seed)
    : maker_(maker),
      random_(seed),
      is_shared_(!Chance(15)),
      loses_commits_(is_shared_ && Chance(15)),
      measures_often_(Chance(15)) {
  store::JobRecord record = maker->record();
  if (Chance(30)) {  // The ranks measure.
    record.profile_csv.clear();
    record.profile_source.clear();
    record.settings_json = MakeJobSpec(kUnmeasured, "")->settings_json;
  }
  record.created_at_seconds = day_seconds_;
  synced_.Commit(last_writer_, {record}, std::nullopt);
  standby_ = synced_;
  for (int rank = 0; rank < 4; ++rank) {
    ranks_.push_back({.record = SmallRank(rank), .poll = nullptr});
    ranks_.back().record.job = record.id;
  }
  for (int number = 0; number < (is_shared_ ? 2 : 1); ++number) {
    servers_.push_back(std::make_unique<Server>(maker, is_shared_));
    servers_.back()->number = number;
    StartServer(servers_.back().get());
  }
}

World::~World() = default;

World::Server& World::AnyServer() { return *servers_[Below(servers_.size())]; }

void World::Break(const std::string& rule) {
  if (broken_.empty()) broken_ = rule + (losses_ > 0 ? " (after the store lost commits)" : "");
}

void World::StartServer(Server* server) {
  server->writer = ++last_writer_;
  server->is_up = true;
  server->is_stopped = false;
  server->marks = {};
  server->context = std::make_unique<JobContext>(JobContext{
      .store = server->gate,
      .events = server->events,
      .now =
          [this, server] {
            return Moment{.day_seconds = day_seconds_ + server->skew_seconds,
                          .seconds = steady_seconds_};
          },
      .has_given_plan = [](const Shape&) { return false; },
      .wake_worker = [] {},
      .refresh_soon = [server](const std::string&) { server->is_asked_to_refresh = true; },
      .on_problem = [this](const std::string& sentence) { Break("an exception: " + sentence); }});
  LoadJob(server, /*ask_for_work=*/true);
}

void World::LoadJob(Server* server, bool ask_for_work) {
  if (!synced_.is_there) return;
  server->job = std::make_shared<ManagedJob>(server->context.get(), maker_->LifeOf(synced_),
                                             synced_.SumsFor(server->writer));
  server->job->Resume(ask_for_work);
}

// A finished job that nobody has leaves the memory, and is loaded when it is next asked for.
void World::RestAndLoad(Server* server) {
  const bool is_had = server->job.use_count() > 1 || server->step;
  if (is_had || !synced_.is_there || !server->job->MayRest(steady_seconds_ + 1)) return;
  server->job.reset();
  LoadJob(server, /*ask_for_work=*/false);
}

// What it had not committed, and whom it had not answered, is lost.
void World::CrashServer(Server* server) {
  server->is_up = false;
  server->gate.writes.clear();
  server->gate.answers.clear();
  server->gate.reads.clear();
  server->gate.sums.clear();
  server->gate.readings.clear();
  server->step.reset();
  server->job.reset();
  server->is_asked_to_refresh = false;
}

// A commit takes what is waiting, and may fail in each way that a real one does.
bool World::CommitSome(Server* server, bool may_fail) {
  SimulatedGate& gate = server->gate;
  if (gate.writes.empty()) return false;
  const SimulatedGate::Write write = std::move(gate.writes.front());
  gate.writes.pop_front();
  if (!write.was_wanted) Break("the store was asked for a change that nobody waits for");
  const auto refuse = [&](ErrorCode code, const char* sentence) {
    gate.answers.emplace_back(
        [write, code, sentence] { write.written(MakeError(code, sentence)); });
    return true;
  };
  const bool is_refused = may_fail && Chance(4);  // A full disk, a database that is away.
  // The connection ended within the commit.
  const bool is_unknown = is_shared_ && may_fail && Chance(4);
  if (is_refused) return refuse(ErrorCode::kIo, "the disk is full");
  if (write.is_wanted && !write.is_wanted()) {
    return refuse(store::kTooLate, "nobody waits for it any more");
  }
  // Before it is synced the power may fail, and then nobody was told.
  if (may_fail && Chance(1)) {
    CrashServer(server);
    return true;
  }
  if (!synced_.Commit(server->writer, write.facts, write.expected_revision)) {
    return refuse(is_unknown ? ErrorCode::kIo : ErrorCode::kConflict, "the tables refuse it");
  }
  const store::JobMarks marks = synced_.job.marks;
  for (const store::Fact& fact : write.facts) log_.push_back({fact, marks.revision});
  if (loses_commits_ && Chance(60)) standby_ = synced_;
  if (is_unknown) return refuse(ErrorCode::kIo, "it is not known whether it was written");
  gate.answers.emplace_back([write, marks] { write.written(marks); });
  return true;
}

// A reading looks at the marks first, and then at what has changed.
bool World::ReadSome(Server* server, bool may_fail) {
  SimulatedGate& gate = server->gate;
  if (gate.reads.empty()) {
    if (gate.sums.empty()) return false;
    gate.readings.emplace_back([read = std::move(gate.sums.front()),
                                sums = synced_.SumsFor(server->writer).elsewhere] { read(sums); });
    gate.sums.pop_front();
    return true;
  }
  SimulatedGate::PendingRead pending = std::move(gate.reads.back());
  gate.reads.pop_back();
  if (may_fail && Chance(5)) {
    gate.readings.emplace_back([read = std::move(pending.read)] {
      read(MakeError(ErrorCode::kIo, "the database is away"));
    });
  } else if (!pending.parts) {
    pending.parts = PartsToRead(synced_.job.marks, pending.known);
    gate.reads.insert(gate.reads.begin(), std::move(pending));
  } else {
    gate.readings.emplace_back(
        [read = std::move(pending.read),
         reading = gate.Find(synced_, pending.known, *pending.parts)] { read(reading); });
  }
  return true;
}

bool World::PlanSome(Server* server, bool may_fail) {
  const auto none = [](const Outcome<Answer>&) {};
  if (!server->step) {
    server->step = server->job->NextStep();
    return server->step.has_value();
  }
  const PlanningStep step = *std::exchange(server->step, std::nullopt);
  if (may_fail && Chance(3)) return true;  // Its lease ran out.
  if (!may_fail || !Chance(2)) {
    server->job->Do(maker_->Make(step, synced_.job.job), {}, none);
  } else if (!server->job->GiveUpBetterPlans(step)) {
    server->job->Do(GiveUpPlans{step, "there is too little memory"}, {}, none);
  }
  return true;
}

bool World::TellAnswer(Server* server) {
  auto& answers = server->gate.answers;
  if (answers.empty()) return false;
  const auto answer = std::move(answers.front());
  answers.pop_front();
  answer();
  return true;
}

bool World::TellReading(Server* server) {
  auto& readings = server->gate.readings;
  if (readings.empty()) return false;
  const std::size_t which = Below(readings.size());
  const auto reading = std::move(readings[which]);
  readings.erase(readings.begin() + static_cast<std::ptrdiff_t>(which));
  reading();
  return true;
}

bool World::StepServer(Server* server, bool may_fail) {
  if (server->job == nullptr) return false;
  switch (Below(7)) {
    case 0:
      return CommitSome(server, may_fail);
    case 1:
      return TellAnswer(server);
    case 2:
      return ReadSome(server, may_fail);
    case 3:
      return TellReading(server);
    case 4:
      server->job->Tick();
      if (may_fail) RestAndLoad(server);
      return false;
    case 5: {
      const bool is_asked = std::exchange(server->is_asked_to_refresh, false);
      if (!is_asked && !(may_fail && Chance(10))) return false;
      server->job->RefreshAll([](const Result<void>&) {});
      return true;
    }
    default:
      return PlanSome(server, may_fail);
  }
}

// A standby takes over, which lacks the last commits. All connections end.
void World::LoseCommits() {
  if (!synced_.is_there) return;
  for (const std::unique_ptr<Server>& server : servers_) EndConnections(server.get());
  synced_ = standby_;
  synced_.instance = ++losses_;
}

// What was answered still arrives; what was not is not known.
void World::EndConnections(Server* server) {
  SimulatedGate& gate = server->gate;
  const tl::unexpected<Error> ended = MakeError(ErrorCode::kIo, "the connection ended");
  for (auto& write : std::exchange(gate.writes, {})) {
    gate.answers.emplace_back([write, ended] { write.written(ended); });
  }
  for (auto& pending : std::exchange(gate.reads, {})) {
    gate.readings.emplace_back([pending, ended] { pending.read(ended); });
  }
}

void World::StepTime() {
  const double seconds = static_cast<double>(Below(40)) / 10;
  steady_seconds_ += seconds;
  day_seconds_ += seconds;
  if (Chance(3)) day_seconds_ += Chance(50) ? 3600 : -3600;
  if (Chance(5)) AnyServer().skew_seconds = static_cast<double>(Below(5)) - 2;
}

// The plans that a server adopts are made of the profile that the job has with them.
void World::CheckProfile(const Server& server) {
  const JobLife life = server.job->Life();
  const Curve* const curve = life.phase.built.curve.get();
  if (curve == nullptr || life.marks.curve != synced_.job.marks.curve) return;
  if (&curve->job() == maker_->JobOf(synced_.job.job.profile_csv).get()) return;
  Break(fmt::format("server {} has plans of a profile that was replaced", server.number));
}

// No number means two plans, whichever server says it, and no server goes back to older rows.
void World::SeePublished() {
  for (const std::unique_ptr<Server>& server : servers_) {
    if (server->job == nullptr) continue;
    const store::JobMarks marks = server->job->head().marks;
    const bool goes_back =
        marks.revision < server->marks.revision || marks.rows < server->marks.rows;
    if (goes_back && losses_ == 0) {
      Break(fmt::format("server {} goes back from revision {}, rows {} to {}, {}", server->number,
                        server->marks.revision, server->marks.rows, marks.revision, marks.rows));
    }
    if (marks.curve != server->marks.curve) CheckProfile(*server);
    server->marks = marks;
    const auto plan = server->job->board().Current();
    if (plan == nullptr || plan->gone || plan->version.version == 0) continue;
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
    Server& server = AnyServer();
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
    } else if (loses_commits_ && Chance(30)) {
      LoseCommits();
    }
    SeePublished();
  }
  if (broken_.empty()) Settle();
  if (broken_.empty()) CheckEnd();
  return broken_;
}

}  // namespace perseus::server
