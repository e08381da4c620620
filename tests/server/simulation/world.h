// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_SERVER_SIMULATION_WORLD_H_
#define PERSEUS_TESTS_SERVER_SIMULATION_WORLD_H_

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "server/runtime/managed_job.h"
#include "server/simulation/simulated_store.h"

// Two servers, one store, the ranks of one job and its operators, in one thread and without time:
// a random number decides what happens next. The same seed makes the same run.
namespace perseus::server {

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
    int number = 0;
    bool is_wanted = true;  // The client still waits.
    bool is_answered = false;
    // Of a poll that reached a server: where it waits, and for what is later than this.
    std::weak_ptr<ManagedJob> waits_at;
    std::int64_t after = 0;
  };
  struct Rank {
    store::RankRecord record;
    bool is_registered = false;
    std::int64_t version = 0;  // The last one that it was told.
    std::shared_ptr<Request> poll;
  };

  std::size_t Below(std::size_t limit) { return random_() % limit; }
  bool Chance(int percent) { return static_cast<int>(random_() % 100) < percent; }
  void Break(const std::string& rule);

  void StartServer(Server* server);
  void CrashServer(Server* server);
  // One thing that a server does by itself; false: it has nothing to do.
  bool StepServer(Server* server, bool may_fail);
  bool CommitSome(Server* server, bool may_fail);
  void Deliver(std::function<void(Server&)> message);
  void StepClient();
  void Ask(const std::string& what, Command command,
           std::function<void(const Outcome<Answer>&)> check);
  void RegisterSome();
  void PollSome();
  void PollAt(Server& server, Rank* rank, const std::shared_ptr<Request>& request);
  void OnPlan(Rank* rank, const std::shared_ptr<Request>& request,
              const std::shared_ptr<const PublishedPlan>& plan);
  void StepTime();
  void SeePublished();
  void Settle();
  void CheckEnd();
  bool IsLogged(const std::function<bool(const store::Fact&)>& is_it) const;

  PlanMaker* const maker_;
  std::mt19937_64 random_;
  std::string broken_;
  SimulatedRows synced_;  // What survives.
  double day_seconds_ = 1'000'000;
  double steady_seconds_ = 0;
  std::array<std::unique_ptr<Server>, 2> servers_;
  std::vector<Rank> ranks_;
  struct Message {
    std::function<void(Server&)> deliver;
    std::shared_ptr<Request> request;
  };
  std::vector<Message> messages_;  // On their way to any server.
  std::vector<std::shared_ptr<Request>> requests_;
  int last_request_ = 0;
  std::vector<std::int64_t> added_;  // Stragglers that were acknowledged.
  // By version: the plans that ranks could see.
  std::map<std::int64_t, std::string> published_;
};

}  // namespace perseus::server

#endif  // PERSEUS_TESTS_SERVER_SIMULATION_WORLD_H_
