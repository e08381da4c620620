// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_SERVER_SIMULATION_WORLD_H_
#define PERSEUS_TESTS_SERVER_SIMULATION_WORLD_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "server/runtime/managed_job.h"
#include "server/simulation/simulated_store.h"

// Two servers of which one is active, one store, the ranks of one job and its operators, in one
// thread and without time: a random number decides what happens next. The same seed makes the same
// run.
namespace perseus::server {

std::string TextOf(const store::PlanVersion& version);

class World {
 public:
  World(PlanMaker* maker, std::uint64_t seed);
  ~World();

  // Lets chance rule for so many steps, then lets all that is under way end, with a store and
  // servers that work. Returns the first rule that was broken; empty: none.
  std::string Run(int steps);

 private:
  struct Server;
  // What a client asked, until it has the answer.
  struct Request {
    bool is_wanted = true;    // The client still waits.
    std::size_t left_at = 0;  // The facts that were durable when it ceased to.
    bool is_answered = false;
    // Of a poll that reached a server: where it waits, and for what is later than this.
    std::weak_ptr<ManagedJob> waits_at;
    std::int64_t after = 0;
  };
  using RequestPointer = std::shared_ptr<Request>;
  struct Rank {
    store::RankRecord record;
    bool is_registered = false;
    std::int64_t version = 0;  // The last one that it was told.
    int told_in = 0;           // The value of `losses_` then. -1: it was lost already.
    RequestPointer poll;
  };
  struct Message {
    std::function<void(Server&)> deliver;
    RequestPointer request;
  };
  // A fact that was durable, whatever became of it. `revision`: of the job with it.
  struct Logged {
    store::Fact fact;
    std::int64_t revision = 0;
  };
  // Whether a fact is what the answer to a request says.
  using IsIt = std::function<bool(const store::Fact&, const Answer&)>;
  // What else must hold when a request is acknowledged.
  using OnAnswer = std::function<void(const Answer&)>;

  std::size_t Below(std::size_t limit) { return random_() % limit; }
  bool Chance(int percent) { return static_cast<int>(random_() % 100) < percent; }
  Server& AnyServer() { return *servers_[Below(servers_.size())]; }
  // The one that has the store; null: it is dead.
  Server* ActiveServer() const;
  void Break(const std::string& rule);

  // world.cc: servers and their store.
  void StartServer(Server* server);
  void TakeOver(Server* server);
  void LoadJob(Server* server, bool ask_for_work);
  void RestAndLoad(Server* server);
  void CrashServer(Server* server);
  // One thing that a server does by itself; false: it has nothing to do.
  bool StepServer(Server* server, bool may_fail);
  bool CommitSome(Server* server, bool may_fail);
  bool PlanSome(Server* server, bool may_fail);
  bool TellAnswer(Server* server);
  void LoseCommits();
  void EndConnections(Server* server);
  void StepTime();
  void CheckProfile(const Server& server);
  void SeePublished();

  // world_clients.cc: ranks and operators.
  void Deliver(Message message);
  void StepClient();
  void AskOperator(std::size_t what);
  void Ask(const std::string& what, Command command, const IsIt& is_it, OnAnswer on_answer = {});
  void Judge(const std::string& what, const Request& request, const Answer& answer,
             std::optional<std::int64_t> if_revision, const IsIt& is_it);
  void Leave(Request* request);
  void RegisterSome();
  void MeasureSome();
  void ReportSome();
  void PollSome();
  void PollAt(Server& server, Rank* rank, const RequestPointer& request);
  void OnPlan(Rank* rank, const RequestPointer& request,
              const std::shared_ptr<const PublishedPlan>& plan);

  // world_end.cc: all comes to rest, and is as it must be.
  void Settle();
  void PassHours();
  void CheckEnd();
  void CheckServer(const Server& server, const JobLife& facts);
  void CheckSums(const Server& server);
  void CheckHistory();
  void CheckWaiting();
  void CheckRanks();

  PlanMaker* const maker_;
  std::mt19937_64 random_;
  const bool is_remote_;       // A lease keeps the store, which ends while a server sleeps.
  const bool loses_commits_;   // Once in a while a standby of the store takes over.
  const bool measures_often_;  // So that profiles are replaced, and plans are late for one.
  std::string broken_;
  SimulatedRows synced_;   // What survives.
  SimulatedRows standby_;  // What a standby has of it.
  int losses_ = 0;         // How often it took over and lacked something.
  std::vector<Logged> log_;
  double day_seconds_ = 1'000'000;
  double steady_seconds_ = 0;
  std::int64_t history_seconds_ = 0;
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<Rank> ranks_;
  std::vector<Message> messages_;  // On their way to any server.
  std::vector<RequestPointer> requests_;
  int last_number_ = 0;              // Of what clients send, to tell it apart.
  std::vector<std::int64_t> added_;  // Stragglers that were acknowledged.
  // Seconds of the reports that were acknowledged, by epoch and version.
  std::map<std::pair<int, std::int64_t>, std::vector<double>> reported_;
  // By version: the plans that ranks could see.
  std::map<std::int64_t, std::string> published_;
};

struct World::Server {
  int number = 0;
  int epoch = 0;  // At which it took the store.
  bool is_up = false;
  bool is_asleep = false;  // As by SIGSTOP: it is there, and does nothing.
  double skew_seconds = 0;
  std::optional<PlanningStep> step;  // That its planner is at.
  std::int64_t revision = 0;         // The last one of the job that was seen here.
  std::map<std::int64_t, store::IterationSummary> sums;  // That were stored when it began.
  SimulatedGate gate;
  EventHub events;
  std::unique_ptr<JobContext> context;
  std::shared_ptr<ManagedJob> job;  // Null: there was none when it started.
};

}  // namespace perseus::server

#endif  // PERSEUS_TESTS_SERVER_SIMULATION_WORLD_H_
