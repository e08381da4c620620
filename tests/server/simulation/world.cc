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
      is_remote_(!Chance(15)),
      loses_commits_(is_remote_ && Chance(15)),
      measures_often_(Chance(15)) {
  store::JobRecord record = maker->record();
  if (Chance(30)) {  // The ranks measure.
    record.profile_csv.clear();
    record.profile_source.clear();
    record.settings_json = MakeJobSpec(kUnmeasured, "")->settings_json;
  }
  record.created_at_seconds = day_seconds_;
  synced_.Commit({record});
  standby_ = synced_;
  for (int rank = 0; rank < 4; ++rank) {
    ranks_.push_back({.record = SmallRank(rank), .poll = nullptr});
    ranks_.back().record.job = record.id;
  }
  for (int number = 0; number < 2; ++number) {
    servers_.push_back(std::make_unique<Server>());
    servers_.back()->number = number;
  }
  StartServer(servers_.front().get());
}

World::~World() = default;

World::Server* World::ActiveServer() const {
  for (const std::unique_ptr<Server>& server : servers_) {
    if (server->is_up && server->epoch == synced_.epoch) return server.get();
  }
  return nullptr;
}

void World::Break(const std::string& rule) {
  if (broken_.empty()) broken_ = rule + (losses_ > 0 ? " (after the store lost commits)" : "");
}

// It takes the store.
void World::StartServer(Server* server) {
  server->epoch = ++synced_.epoch;
  server->is_up = true;
  server->is_asleep = false;
  server->revision = 0;
  server->sums = synced_.iterations;
  server->context = std::make_unique<JobContext>(JobContext{
      .store = server->gate,
      .events = server->events,
      .now =
          [this, server] {
            return Moment{.day_seconds = day_seconds_ + server->skew_seconds,
                          .seconds = steady_seconds_};
          },
      .has_given_plan = [](const Shape&) { return false; },
      .want_work = [](const std::string&, Work) {},
      .history_seconds = history_seconds_,
      .on_problem = [this](const std::string& sentence) { Break("an exception: " + sentence); }});
  LoadJob(server, /*ask_for_work=*/true);
}

// Of a server that is dead, or that sleeps for longer than its lease. That one wakes some time.
void World::TakeOver(Server* server) {
  const Server* const active = ActiveServer();
  if (server->is_up || (active != nullptr && !(is_remote_ && active->is_asleep))) return;
  StartServer(server);
}

void World::LoadJob(Server* server, bool ask_for_work) {
  if (!synced_.is_there) return;
  server->job =
      std::make_shared<ManagedJob>(server->context.get(), maker_->LifeOf(synced_), synced_.Sums());
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
  server->is_asleep = false;
  server->step.reset();
  server->job.reset();
  server->gate.writes.clear();
  server->gate.answers.clear();
  server->gate.has_given_up = false;
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
  // The check of each transaction: a server that slept writes nothing over its successor.
  if (gate.has_given_up || server->epoch != synced_.epoch) {
    gate.has_given_up = true;
    return refuse(ErrorCode::kIo, "this server is not active any more");
  }
  const bool is_refused = may_fail && Chance(4);  // A full disk, a database that is away.
  // The connection ended within the commit: what the store holds is not known any more.
  const bool is_unknown = is_remote_ && may_fail && Chance(2);
  if (is_refused) return refuse(ErrorCode::kIo, "the disk is full");
  if (write.is_wanted && !write.is_wanted()) {
    return refuse(store::kTooLate, "nobody waits for it any more");
  }
  // Before it is synced the power may fail, and then nobody was told.
  if (may_fail && Chance(1)) {
    CrashServer(server);
    return true;
  }
  gate.has_given_up = is_unknown;
  if (!synced_.Commit(write.facts)) {
    return refuse(is_unknown ? ErrorCode::kIo : ErrorCode::kConflict, "the tables refuse it");
  }
  const std::int64_t revision = synced_.job.revision;
  for (const store::Fact& fact : write.facts) log_.push_back({fact, revision});
  if (loses_commits_ && Chance(60)) standby_ = synced_;
  if (is_unknown) return refuse(ErrorCode::kIo, "it is not known whether it was written");
  gate.answers.emplace_back([write, revision] { write.written(revision); });
  return true;
}

bool World::PlanSome(Server* server, bool may_fail) {
  const auto none = [](const Outcome<Answer>&) {};
  if (!server->step) {
    server->step = server->job->NextStep();
    return server->step.has_value();
  }
  const PlanningStep step = *std::exchange(server->step, std::nullopt);
  if (may_fail && Chance(3)) return true;  // It threw.
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

bool World::StepServer(Server* server, bool may_fail) {
  const bool is_over = server->gate.has_given_up || server->epoch != synced_.epoch;
  if (is_over && Chance(20)) {
    CrashServer(server);
    return true;
  }
  if (server->job == nullptr) return false;
  switch (Below(5)) {
    case 0:
      return CommitSome(server, may_fail);
    case 1:
    case 2:
      return TellAnswer(server);
    case 3:
      server->job->Tick();
      if (may_fail) RestAndLoad(server);
      return false;
    default:
      return PlanSome(server, may_fail);
  }
}

// A replica of the database takes over, which lacks the last commits. All connections end; what was
// answered still arrives.
void World::LoseCommits() {
  if (!synced_.is_there) return;
  for (const std::unique_ptr<Server>& server : servers_) {
    for (auto& write : std::exchange(server->gate.writes, {})) {
      server->gate.answers.emplace_back(
          [write] { write.written(MakeError(ErrorCode::kIo, "the connection ended")); });
    }
  }
  const int epoch = synced_.epoch;
  synced_ = standby_;
  synced_.epoch = epoch + 1;  // No server has this database.
  ++losses_;
  history_seconds_ = std::max(history_seconds_ + 1, static_cast<std::int64_t>(day_seconds_) + 1);
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
  if (curve == nullptr || life.revision != synced_.job.revision) return;
  if (&curve->job() == maker_->JobOf(synced_.job.job.profile_csv).get()) return;
  Break(fmt::format("server {} has plans of a profile that was replaced", server.number));
}

// No number means two plans, whichever server says it, and no server goes back.
void World::SeePublished() {
  for (const std::unique_ptr<Server>& server : servers_) {
    if (server->job == nullptr) continue;
    const std::int64_t revision = server->job->revision();
    if (revision < server->revision) {
      Break(fmt::format("server {} goes back from revision {} to {}", server->number,
                        server->revision, revision));
    }
    if (revision != server->revision) CheckProfile(*server);
    server->revision = revision;
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
    const bool is_awake = server.is_up && !server.is_asleep;
    const std::size_t what = Below(100);
    if (what < 22) {
      StepClient();
    } else if (what < 50 && !messages_.empty()) {
      const std::size_t which = Below(messages_.size());
      Message message = std::move(messages_[which]);
      messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(which));
      // One whose lease is over sends its clients away.
      const bool is_active = server.epoch == synced_.epoch && !server.gate.has_given_up;
      if (is_awake && is_active) message.deliver(server);
    } else if (what < 88) {
      if (is_awake) StepServer(&server, /*may_fail=*/true);
    } else if (what < 93) {
      StepTime();
    } else if (what < 96) {
      if (server.is_up) server.is_asleep = !server.is_asleep;
    } else if (what < 98) {
      TakeOver(&server);
    } else if (server.is_up && Chance(30)) {
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
