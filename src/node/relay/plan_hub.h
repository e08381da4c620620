// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_RELAY_PLAN_HUB_H_
#define PERSEUS_RELAY_PLAN_HUB_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "common/mutex.h"
#include "http/server.h"
#include "perseus/result.h"
#include "relay/upstream.h"

namespace perseus::relay {

// Finds parts of a JSON text, so that they can be passed on unchanged and without parsing them: the
// digits of numbers stay the same, and no recursion depends on the depth of the text. Pure
// functions, which are safe for any bytes.

struct JsonMember {
  std::string_view key;  // Between the quotes, escapes as they stand.
  std::string_view value;
};

bool IsJson(std::string_view text);

// For a text for which IsJson() is true, or a value in one. nullopt: not an object, or not an
// array.
std::optional<std::vector<JsonMember>> MembersOf(std::string_view object);
std::optional<std::vector<std::string_view>> ElementsOf(std::string_view array);

// One version of the plans of several ranks, from one answer of the server (GET .../plans).
// Immutable, so thread-safe.
class PlanSet {
 public:
  // kIo: `text` is not such an answer.
  static Result<std::shared_ptr<const PlanSet>> Parse(std::shared_ptr<const std::string> text);

  std::int64_t version() const { return version_; }
  bool Has(int rank) const { return places_.contains(rank); }
  std::size_t size() const { return places_.size(); }

  // The answer that the server would give to this rank alone (GET .../plan), byte for byte.
  // Has(rank) must be true.
  std::shared_ptr<const std::string> BodyOf(int rank) const;

 private:
  // The places of a plan and of its member "ranks" in the text.
  struct Place {
    std::size_t begin = 0, end = 0;
    std::size_t ranks_begin = 0, ranks_end = 0;
  };

  std::shared_ptr<const std::string> text_;
  std::int64_t version_ = 0;
  std::map<int, Place> places_;  // By rank.
};

struct PlanHubOptions {
  int poll_seconds = 30;  // Length of one long poll at the server.
  // A rank that has not asked for this time is forgotten.
  std::chrono::milliseconds live = std::chrono::seconds(75);
  double fetch_seconds = 9;  // Time limit for fetching a rank's first plan.
  std::size_t max_jobs = 32;
  std::size_t max_ranks = 512;  // Per job.
};

// A rank's request for its plan.
struct PlanQuestion {
  std::string job;
  int rank = 0;
  std::int64_t after = -1;  // The version that it has.
  double wait_seconds = 0;
};

// Answers the long polls of all ranks of a node. For each job it makes only one long poll at the
// server.
//
// If the hub has no plan of a rank, it fetches one at once through the forwarder (GET
// plans?after=-1); ranks that ask during a fetch share the next one. For all ranks whose plans it
// has, the job's thread makes one long poll (after=VERSION), whose answer goes to all waiting
// ranks. A rank gets a version lower than its own only if the server gave that version as an answer
// to the rank's version. Ranks that stop asking are forgotten, and then their jobs.
//
// While the server is away, a rank gets the last plan if it does not have it yet. Other ranks are
// told that the server is away, so that they do not believe an old plan to be current. Thread-safe.
class PlanHub {
 public:
  // All must outlive this object.
  PlanHub(const ServerAddress* address, ServerHealth* health, Forwarder* forwarder, LogSink log,
          PlanHubOptions options);
  ~PlanHub();  // As Stop().
  PlanHub(const PlanHub&) = delete;
  PlanHub& operator=(const PlanHub&) = delete;

  // Answers at once or later; never blocks.
  void Ask(const PlanQuestion& question, const http::Responder& responder);

  // Ends the polls and joins their threads. Parked requests are answered when the HTTP server
  // stops. Call it after the forwarder's Stop(), and not from a callback of the forwarder.
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
    Clock::time_point until;  // The HTTP server has answered the request by then.
    http::Responder responder;
  };
  struct Rank {
    std::shared_ptr<const PlanSet> plans;  // Contains this rank's plan; null: not fetched yet.
    std::vector<Waiter> waiters;
    Clock::time_point seen;
    bool wants_fetch = false;
    std::int64_t fetch_after = -1;
    bool fetch_alone = false;  // The server refused a fetch of this rank together with others.
  };
  struct Job {
    Job(std::string name, const ServerAddress* address, ServerHealth* health)
        : id(std::move(name)), line(address, health) {}
    const std::string id;
    std::map<int, Rank> ranks;
    std::int64_t version = -1;  // The last version from the server.
    bool is_fetching = false;
    ServerLine line;
    ConditionVariable wake;
    std::thread thread;  // Once there is something to wait for.
  };
  using JobPointer = std::shared_ptr<Job>;

  // Callers send the answers of these without the lock.
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

  // Of an answer to GET plans; none: it is another one.
  Result<std::shared_ptr<const PlanSet>> ReadPlans(const Result<http::Response>& result) const;
  void TakeFetched(const JobPointer& job, const std::vector<int>& ranks, std::int64_t after,
                   const Result<http::Response>& result);
  void Withdraw(const std::weak_ptr<Job>& job, int rank, std::int64_t ticket);
  struct Pace {
    double pause_seconds = 0;  // Before the next poll.
    int failures = 0;          // In a row.
  };
  void Poll(const JobPointer& job);
  bool PollOnce(const JobPointer& job, Pace* pace);
  // Handles the answer to a poll. Returns the seconds until the next poll.
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
