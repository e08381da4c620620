// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLIENT_OUTBOX_H_
#define PERSEUS_CLIENT_OUTBOX_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "client/follower.h"
#include "client/step_times.h"
#include "client/tally.h"
#include "common/mutex.h"
#include "measure/kind.h"
#include "measure/sweep.h"

namespace perseus::client {

// Under what conditions a rank trains: its noise, and how late its clocks come. Each is none until
// there is enough to tell.
struct RankConditions {
  std::optional<NoiseFigures> noise;
  std::optional<LatencyFigures> latency;
};

struct IterationReport {
  IterationRecord record;
  std::optional<double> joules;  // None: the counter did not move, or cannot be read.
  // Times of computations under a plan, since the last report that had any.
  std::vector<KindTimes> kinds;
  // What iterations run, where there is no plan yet and it is known.
  std::optional<ComputationCounts> ran;
  // When its computations ran, once in a while.
  std::optional<RankTimeline> timeline;
  // What the rank has measured of its conditions, once in a while.
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

}  // namespace perseus::client

#endif  // PERSEUS_CLIENT_OUTBOX_H_
