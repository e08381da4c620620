// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLIENT_CLOCK_THREAD_H_
#define PERSEUS_CLIENT_CLOCK_THREAD_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "client/clock_caller.h"
#include "client/event_ring.h"
#include "client/follower.h"
#include "client/profiler.h"
#include "client/shared_state.h"
#include "client/tally.h"
#include "client/ticks.h"

namespace perseus::client {

// The background thread that sets clocks. It reads the trainer's events, lets the Follower (or the
// Profiler) decide, makes the calls, and passes on reports. During an iteration it wakes by itself,
// so that the trainer never needs a system call to wake it: at the predicted time of the next call,
// and after every eighth of the shortest computation (0.5 to 5 ms) to read new events. Between
// iterations it sleeps until the next one begins.
class ClockThread {
 public:
  explicit ClockThread(SharedState* state);

  // Runs until the client ends, and then gives the clock back.
  void Run();

 private:
  void Loop();
  void OpenDevice(std::int64_t now_ns);
  void DrainEvents();
  void TakeStepPlans();
  // Makes a clock call if it is time to. Returns when to decide again.
  std::int64_t Act(std::int64_t now_ns);
  std::int64_t Follow(std::int64_t now_ns);
  std::int64_t Sweep(std::int64_t now_ns);
  // Sets the clock that the sweep wants, or none while the trainer sends no events. Returns when to
  // decide again.
  void BeginSweep();
  void SweepUnlocked(std::int64_t now_ns);
  void SetSweepClock(std::int64_t now_ns, bool quiet);
  bool Call(int mhz);
  void GiveBack();
  void CollectIterations();
  std::optional<RankConditions> ConditionsNow();
  void Publish();
  perseus_state State(std::int64_t now_ns) const;

  SharedState* state_;
  TickConverter converter_;
  EventRing::Reader reader_;
  ClockCaller caller_;
  Follower follower_;
  Tally tally_;
  std::optional<Profiler> sweep_;
  bool sweep_reported_ = false;
  std::uint64_t profile_asked_ = 0;  // Number of the server's request that sweep_ fulfils.
  bool device_failed_ = false;
  std::int64_t next_open_ns_ = 0;
  bool holds_clock_ = false;  // One was set, and not given back since.
  std::string refusal_;       // Why the last call that failed did.
  std::int64_t next_release_ns_ = 0;
  std::optional<double> last_joules_;
  double last_iteration_seconds_ = 0;
  double joules_ = 0;  // Of all iterations so far.
  std::int64_t next_kinds_ns_ = 0;
  std::int64_t iterations_to_conditions_ = 0;  // Iterations until they are told again.
};

}  // namespace perseus::client

#endif  // PERSEUS_CLIENT_CLOCK_THREAD_H_
