// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLIENT_PROFILER_H_
#define PERSEUS_CLIENT_PROFILER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/clock_caller.h"
#include "client/event_ring.h"
#include "client/outbox.h"
#include "client/step_times.h"
#include "measure/sweep.h"

namespace perseus::client {

// A sweep of the clocks on this rank's device. Feeds measure::Sweep with the trainer's events and
// with readings of the device. For one thread.
class Profiler {
 public:
  // `left`: clocks that need not be measured, for example because a restart already reported them.
  Profiler(const std::vector<int>& clocks_mhz, const measure::SweepSettings& settings,
           const std::vector<int>& left);

  void Handle(const Event& event, std::int64_t at_ns);
  void HandleTimes(const StepTimes& times);
  // Reads the energy counter. Once per iteration, during a computation, also reads the clock and
  // the reasons for throttling.
  void Look(ClockCaller* caller);

  int clock_mhz() const { return sweep_.clock_mhz(); }  // The clock to lock now; 0: none.
  bool measures_unlocked() const { return sweep_.measures_unlocked(); }
  void ClockInEffect(std::int64_t at_ns) { sweep_.ClockInEffect(at_ns); }
  bool clock_in_effect() const { return sweep_.clock_in_effect(); }
  void ClockLost() { sweep_.ClockLost(); }
  void StayAtDriverClocks(const std::string& why) { sweep_.StayAtDriverClocks(why); }
  bool at_driver_clocks() const { return sweep_.at_driver_clocks(); }
  void GiveUp(const std::string& why) { sweep_.GiveUp(why); }
  // Whether all clocks are measured. Call Finish() then; it may take a second, so give the clock
  // back first.
  bool ended() const { return sweep_.ended(); }
  void Finish() { sweep_.Finish(); }
  bool done() const { return sweep_.done(); }

  // New results for the server, if any. After the end it returns all of them once more.
  std::optional<ProfileReport> TakeReport();

 private:
  measure::Sweep sweep_;
  bool computing_ = false;
  bool looked_ = false;  // In this iteration.
  bool asks_conditions_ = true;
  bool asks_clock_ = true;
  bool reported_ = false;
};

}  // namespace perseus::client

#endif  // PERSEUS_CLIENT_PROFILER_H_
