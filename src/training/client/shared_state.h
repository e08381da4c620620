// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLIENT_SHARED_STATE_H_
#define PERSEUS_CLIENT_SHARED_STATE_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/follower.h"
#include "client/hot_page.h"
#include "client/rank_plan.h"
#include "common/mutex.h"
#include "device/device.h"
#include "measure/kind.h"
#include "measure/sweep.h"
#include "perseus/client.h"
#include "perseus/computation.h"
#include "wire/reports.h"

namespace perseus::http {
class Client;
}  // namespace perseus::http

namespace perseus::client {

using wire::ComputationCounts;

// Counts what the iterations of a rank without a plan run, so that the server can compare it with
// the job's schedule. Two iterations in a row must run the same: one may be odd. For one thread.
class Tally {
 public:
  // Takes the trainer's events in order. `lost`: events that the ring has lost so far.
  void Handle(const Event& event, std::uint64_t lost);
  // Some events are not to be counted: their iteration is left out.
  void Skip() { is_counting_ = false; }

  // The counts of two equal iterations in a row; none: not known yet.
  const std::optional<ComputationCounts>& counts() const { return counts_; }

 private:
  bool is_counting_ = false;
  std::uint64_t lost_ = 0;  // When the iteration began.
  ComputationCounts now_;
  std::optional<ComputationCounts> last_;
  std::optional<ComputationCounts> counts_;
};

// The checked values of perseus_client_options, with defaults filled in.
struct ClientSettings {
  std::string server;  // "": none.
  std::string token;
  std::string ca_file;
  std::string job_id;
  std::string job_json;
  int rank = 0;
  int dp_rank = 0;
  int pp_rank = 0;
  int tp_rank = 0;
  std::string node;
  std::string client_id;  // Of this client alone: two with one rank are told apart by it.
  std::string process;    // Which process that is, for people.
  std::string device;     // "": none.
  std::string gpu_uuid;
  int gpu_index = 0;
  bool shadow = false;
  bool profile = false;
  FollowerSettings follower;
  measure::SweepSettings sweep;
  double report_interval_seconds = 5;
  double close_timeout_seconds = 2;
};

// As an agent and its operator know the client.
inline std::string NameOfRank(const ClientSettings& settings) {
  return "perseus rank " + std::to_string(settings.rank);
}

struct IterationReport {
  IterationRecord record;
  std::optional<double> joules;  // None: the counter did not move, or cannot be read.
  // Times of computations under a plan, since the last report that had any.
  std::vector<KindTimes> kinds;
  // Computations of an iteration, if known, while there is no plan.
  std::optional<ComputationCounts> ran;
  // When its computations ran, once in a while.
  std::optional<RankTimeline> timeline;
  // The rank's measurements of its conditions, once in a while.
  std::optional<RankConditions> conditions;
};

// A straggler that the trainer reports. `degree` <= 1: it is not slow any more.
struct StragglerNotice {
  int rank = 0;
  double delay_seconds = 0;
  double degree = 1;
};

// Results of the sweep since the last report.
struct ProfileReport {
  std::vector<measure::Estimate> rows;
  std::optional<measure::BlockingPower> blocking;
  std::vector<measure::WaitingRow> waiting;  // Empty: not known by clock.
  std::optional<double> counter_period_seconds;
  measure::SweepCost cost;
  std::vector<std::string> notes;
  bool done = false;
};

// A queue of messages for the server, from any thread to the reporter thread. It is bounded: the
// oldest iterations are dropped and counted. Thread-safe.
class Outbox {
 public:
  static constexpr std::size_t kMaxIterations = 4096;
  static constexpr std::size_t kMaxNotices = 256;

  void Add(const IterationReport& report);
  void Add(const StragglerNotice& notice);
  void Add(ProfileReport report);

  struct Contents {
    std::vector<IterationReport> iterations;
    std::vector<StragglerNotice> notices;
    std::optional<ProfileReport> profile;
  };
  // Returns all messages after `seconds`, or at once if a StragglerNotice waits or Wake() is
  // called.
  Contents Wait(double seconds);
  // Puts back messages that could not be sent, before newer ones.
  void PutBack(Contents contents);

  void Wake();
  std::uint64_t dropped() const;

 private:
  void Trim() PERSEUS_REQUIRES(mutex_);

  mutable Mutex mutex_;
  ConditionVariable changed_;
  bool awake_ PERSEUS_GUARDED_BY(mutex_) = false;
  std::deque<IterationReport> iterations_ PERSEUS_GUARDED_BY(mutex_);
  std::deque<StragglerNotice> notices_ PERSEUS_GUARDED_BY(mutex_);
  std::optional<ProfileReport> profile_ PERSEUS_GUARDED_BY(mutex_);
  std::uint64_t dropped_ PERSEUS_GUARDED_BY(mutex_) = 0;
};

// The state that a client's threads share. On the hot path, the trainer's threads use only `page`.
// Members with a lock are for the background threads and for queries (stats, last error).
// Thread-safe, except the constructor.
class SharedState {
 public:
  SharedState(ClientSettings settings, HotPagePointer page);

  const ClientSettings& settings() const { return settings_; }
  HotPage& page() const { return *page_; }
  const TickSource& ticks() const { return ticks_; }
  Outbox& outbox() { return outbox_; }

  // The subject of a problem.
  enum class About : std::uint8_t { kDevice, kServer, kPlan, kOrder, kJob, kOther };
  // Records a problem. The same sentence is recorded only once in a row.
  void Complain(const std::string& sentence, About about = About::kOther);
  // The problem with it is over.
  void Recovered(About about);
  // Records an exception in a background thread, which then continues. Throws nothing.
  void ComplainOf(const char* thread, const std::exception& exception) noexcept;
  // The newest problem that is not over; "": none.
  std::string last_error() const;

  // Ends the client: StopClock() ends the clock thread first, so that its last reports are still
  // sent. Then all other threads finish.
  void StopClock();
  bool clock_stopping() const { return clock_stopping_.load(std::memory_order_acquire); }
  void Stop();
  bool stopping() const { return stopping_.load(std::memory_order_acquire); }
  // Waits for `seconds` or until the client ends. False: it ends.
  bool Pause(double seconds);

  // Passes a plan from the poller to the clock thread.
  void OfferPlan(std::shared_ptr<const RankPlan> plan);
  // True if there is a new plan.
  bool TakePlan(std::shared_ptr<const RankPlan>* plan);
  // Passes plans for single iterations from the trainer to the clock thread. Only the newest
  // kMostStepPlans are kept; others count as late.
  void AddStepPlan(std::shared_ptr<const RankPlan> plan);
  std::vector<std::shared_ptr<const RankPlan>> TakeStepPlans();
  // Whether there ever was such a plan. Events of computations are then needed.
  bool plans_steps() const { return plans_steps_.load(std::memory_order_relaxed); }
  // Passes device times from the trainer to the clock thread. The oldest are dropped if too many
  // wait.
  void AddStepTimes(StepTimes times);
  std::vector<StepTimes> TakeStepTimes();
  // The server has answered the poller at this time.
  void SetAnswered(std::int64_t at_ns) { answered_ns_.store(at_ns, std::memory_order_relaxed); }
  // False: the server has not answered for so long that the plan may be out of date. The caller
  // gives the time, so that a plan expires even if the poller thread hangs.
  bool plan_fresh(std::int64_t now_ns) const {
    return settings_.server.empty() ||
           now_ns - answered_ns_.load(std::memory_order_relaxed) <= kStaleNs;
  }
  // The server asks for a profile. Each request has the next number, and lists the clocks whose
  // rows the server has already.
  struct ProfileWish {
    std::uint64_t number = 0;  // 0: none yet.
    // Becomes false when a plan arrives without such a request: the profile came from elsewhere.
    bool is_wanted = false;
    std::vector<int> left_mhz;
  };
  void AskForProfile(std::vector<int> left_mhz);
  ProfileWish profile_wish() const;

  // SetDevice(): the device is open. SetDeviceFailed(): it cannot be opened for now.
  void SetDevice(const device::GpuInfo& info);
  void SetDeviceFailed(const std::string& why);
  // Waits for either call, at most for `seconds`. None: the device is not open.
  std::optional<device::GpuInfo> WaitForDevice(double seconds);

  void SetRegistered(const std::string& job_id);
  void SetRegistrationFailed(const std::string& why);
  bool registered() const;
  std::string job_id() const;  // "": not known yet.
  // For a strict open: waits until the rank is registered and the device is open (each only if the
  // options ask for it). Fails with the reason.
  Result<void> WaitUntilReady(double seconds);

  // Since when a clock call has been in the driver; 0: there is none.
  std::atomic<std::int64_t>& call_begin_ns() { return call_begin_ns_; }

  void SetStats(const perseus_client_stats& stats);
  perseus_client_stats stats() const;
  void CountServerError();

 private:
  static constexpr std::size_t kMaxStepTimes = 16;
  static constexpr std::int64_t kStaleNs = 60 * kSecondNs;

  enum class Progress : std::uint8_t { kPending, kDone, kFailed };

  // Of device and server: each is there, or cannot be had.
  bool IsReadyOrFailed() const PERSEUS_REQUIRES(mutex_);

  const ClientSettings settings_;
  const HotPagePointer page_;
  const TickSource ticks_;
  Outbox outbox_;
  std::atomic<std::int64_t> answered_ns_;
  std::atomic<std::int64_t> call_begin_ns_ = 0;
  std::atomic<bool> clock_stopping_ = false;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> plans_steps_ = false;

  mutable Mutex mutex_;
  ConditionVariable changed_;
  struct Problem {
    About about = About::kOther;
    std::string sentence;
  };
  std::vector<Problem> problems_ PERSEUS_GUARDED_BY(mutex_);  // One of a kind, newest last.
  std::shared_ptr<const RankPlan> plan_ PERSEUS_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<const RankPlan>> step_plans_ PERSEUS_GUARDED_BY(mutex_);
  std::deque<StepTimes> step_times_ PERSEUS_GUARDED_BY(mutex_);
  ProfileWish profile_wish_ PERSEUS_GUARDED_BY(mutex_);
  std::string device_failure_ PERSEUS_GUARDED_BY(mutex_);
  device::GpuInfo gpu_ PERSEUS_GUARDED_BY(mutex_);
  std::string registration_failure_ PERSEUS_GUARDED_BY(mutex_);
  std::string job_id_ PERSEUS_GUARDED_BY(mutex_);
  std::uint64_t server_errors_ PERSEUS_GUARDED_BY(mutex_) = 0;
  std::uint64_t step_plans_dropped_ PERSEUS_GUARDED_BY(mutex_) = 0;
  perseus_client_stats stats_ PERSEUS_GUARDED_BY(mutex_) = {};
  bool has_new_plan_ PERSEUS_GUARDED_BY(mutex_) = false;
  Progress device_ PERSEUS_GUARDED_BY(mutex_) = Progress::kPending;
  Progress registration_ PERSEUS_GUARDED_BY(mutex_) = Progress::kPending;
};

// The background threads of a client. Each runs until the client ends; what they are given must
// outlive them. The first sets clocks, and in the end gives them back. The second gets plans from
// the server, the third reports to it.
void RunClockThread(SharedState* state);
void RunPlanPoller(SharedState* state, http::Client* http);
void RunReporter(SharedState* state, http::Client* http);

}  // namespace perseus::client

#endif  // PERSEUS_CLIENT_SHARED_STATE_H_
