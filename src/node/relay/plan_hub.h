// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_RELAY_PLAN_HUB_H_
#define PERSEUS_RELAY_PLAN_HUB_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/mutex.h"
#include "http/server.h"
#include "relay/forwarder.h"
#include "relay/plan_set.h"
#include "relay/server_line.h"

namespace perseus::relay {

struct PlanHubOptions {
  int poll_seconds = 30;                                      // Of one long poll at the server.
  std::chrono::milliseconds live = std::chrono::seconds(75);  // A rank asks more often.
  double fetch_seconds = 9;  // That a rank's first plan is waited for.
  std::size_t max_jobs = 32;
  std::size_t max_ranks = 512;  // Of a job.
};

// One rank's question for its plan.
struct PlanQuestion {
  std::string job;
  int rank = 0;
  std::int64_t after = -1;  // The version that it has.
  double wait_seconds = 0;
};

// Answers the long polls of all ranks of a node with one of its own for each job.
//
// A rank of which no plan is known is fetched at once (GET plans?after=-1, through the
// forwarder; those that ask meanwhile go together into the next). The ranks that are
// known are waited for in one long poll of the job's own thread (after=VERSION); its
// answer goes to all who wait. Whether a version that is lower than a rank's is an
// answer is for the server to say: it reaches the rank only where the server gave it
// knowing the rank's. Ranks that ask no more are forgotten, then their jobs.
//
// While the server is away, what is known is told to those who do not have it, and
// others are told that it is away, so that they do not take an old plan for a fresh one.
// Thread-safe.
class PlanHub {
 public:
  // All outlive it.
  PlanHub(const ServerAddress* address, ServerHealth* health, Forwarder* forwarder, LogSink log,
          PlanHubOptions options);
  ~PlanHub();  // As Stop().
  PlanHub(const PlanHub&) = delete;
  PlanHub& operator=(const PlanHub&) = delete;

  // Answers now or later; never blocks.
  void Ask(const PlanQuestion& question, const http::Responder& responder);

  // Ends the polls and joins their threads. Requests that are parked stay so: the HTTP
  // server's end answers them. After the forwarder's Stop(), and not from its callbacks.
  void Stop();

  struct Counts {
    std::size_t jobs = 0, ranks = 0, waiting = 0;
    std::uint64_t polls = 0, fetches = 0;  // Sent to the server since the start.
  };
  Counts counts() const;

 private:
  using Clock = std::chrono::steady_clock;
  class Answers;
  struct Waiter {
    std::int64_t after = -1;
    std::int64_t ticket = 0;
    Clock::time_point until;  // The engine has answered it then.
    http::Responder responder;
  };
  struct Rank {
    std::shared_ptr<const PlanSet> plans;  // That has its own; null: not fetched yet.
    std::vector<Waiter> waiters;
    Clock::time_point seen;
    bool wants_fetch = false;
    std::int64_t fetch_after = -1;
    bool fetch_alone = false;  // The server refused it together with others.
  };
  struct Job {
    Job(std::string name, const ServerAddress* address, ServerHealth* health)
        : id(std::move(name)), line(address, health) {}
    const std::string id;
    std::map<int, Rank> ranks;
    std::int64_t version = -1;  // That the server said last.
    bool is_fetching = false;
    ServerLine line;
    ConditionVariable wake;
    std::thread thread;  // Once there is something to wait for.
  };
  using JobPointer = std::shared_ptr<Job>;

  // What they decide to answer is sent without the lock.
  void Park(const JobPointer& job, Rank* rank, const PlanQuestion& question,
            const http::Responder& responder) PERSEUS_REQUIRES(mutex_);
  void StartFetch(const JobPointer& job, Answers* answers) PERSEUS_REQUIRES(mutex_);
  void Accept(const JobPointer& job, const std::shared_ptr<const PlanSet>& plans,
              std::int64_t asked_after, Answers* answers) PERSEUS_REQUIRES(mutex_);
  void StartThread(const JobPointer& job, Answers* answers) PERSEUS_REQUIRES(mutex_);
  void ForgetTheDead(Job* job) PERSEUS_REQUIRES(mutex_);
  void EraseIfIdle(const JobPointer& job) PERSEUS_REQUIRES(mutex_);
  void RefuseWaiting(Job* job, const http::Response& response, Answers* answers)
      PERSEUS_REQUIRES(mutex_);

  void TakeFetched(const JobPointer& job, const std::vector<int>& ranks, std::int64_t after,
                   const Result<http::Response>& result);
  void Withdraw(const std::weak_ptr<Job>& job, int rank, std::int64_t ticket);
  struct Pace {
    double pause_seconds = 0;  // Before the next poll.
    int failures = 0;          // In a row.
  };
  void Poll(const JobPointer& job);
  bool PollOnce(const JobPointer& job, Pace* pace);
  // What to do about the answer to a poll; seconds until the next one.
  double TakePolled(const JobPointer& job, const std::vector<int>& ranks, std::int64_t after,
                    const Result<http::Response>& result, double seconds, int* failures);
  void JoinEnded();

  const ServerAddress* const address_;
  ServerHealth* const health_;
  Forwarder* const forwarder_;
  const LogSink log_;
  const PlanHubOptions options_;

  mutable Mutex mutex_;  // Of what is in a job, too, but for its line and its thread.
  std::map<std::string, JobPointer> jobs_ PERSEUS_GUARDED_BY(mutex_);
  std::vector<std::thread> ended_
      PERSEUS_GUARDED_BY(mutex_);  // Threads at their end, to be joined.
  std::int64_t last_ticket_ PERSEUS_GUARDED_BY(mutex_) = 0;
  std::uint64_t polls_ PERSEUS_GUARDED_BY(mutex_) = 0;
  std::uint64_t fetches_ PERSEUS_GUARDED_BY(mutex_) = 0;
  bool stopped_ PERSEUS_GUARDED_BY(mutex_) = false;
};

}  // namespace perseus::relay

#endif  // PERSEUS_RELAY_PLAN_HUB_H_
