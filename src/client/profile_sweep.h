// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLIENT_PROFILE_SWEEP_H_
#define PERSEUS_CLIENT_PROFILE_SWEEP_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/event_ring.h"
#include "client/power_fit.h"

namespace perseus::client {

struct SweepSettings {
  int iterations = 2;  // Whole ones at each clock.
  int stride = 1;      // Every n-th clock.
  int least_mhz = 0;   // Not below.
};

// What one computation type of one stage costs at one clock: means.
struct Measurement {
  ComputationType type = ComputationType::kForward;
  int stage = -1;
  int mhz = 0;
  double seconds = 0;
  double joules = 0;
  std::int64_t samples = 0;
};

// Profiles the real first iterations: one clock for some whole iterations, from
// the highest down, until energy has risen for 5 clocks in a row (of every
// type and stage) or there is no lower clock. Time comes from the trainer's
// begins and ends; energy from the steps of the device's counter within an
// iteration, split by PowerFit among types, stages and waiting. A counter that
// does not move is no data: after kPatience times the iterations without an
// answer a clock is given up, and after two such clocks in a row the sweep.
//
// A pure state machine over what it is told; no clock, device or thread of its
// own. One thread.
class ProfileSweep {
 public:
  // `clocks_mhz`: ascending, not empty.
  ProfileSweep(const std::vector<int>& clocks_mhz, const SweepSettings& settings);

  bool done() const { return done_; }
  int clock_mhz() const { return done_ ? 0 : clocks_mhz_[at_]; }  // To be locked now; 0: none.
  // It is in effect from then on: what began before does not count.
  void ClockInEffect(std::int64_t at_ns) { in_effect_ns_ = at_ns; }
  // It was given back, and is to be locked again: what it has said is not kept.
  void ClockLost() { ForgetSamples(); }
  void GiveUp() { done_ = true; }

  void Handle(const Event& event, std::int64_t at_ns);
  void AddEnergy(double joules, std::int64_t at_ns);

  std::vector<Measurement> TakeMeasurements();
  // Watts while waiting; none: too little waiting was seen.
  std::optional<double> blocking_watts() const;
  std::optional<std::string> TakeComplaint();

 private:
  static constexpr int kRisesToStop = 5;
  static constexpr int kPatience = 8;
  static constexpr int kFruitlessToStop = 2;  // Clocks in a row.
  // Shorter stretches say more about when the counter was read than about power.
  static constexpr std::int64_t kMinStretchNs = 40'000'000;

  using Kind = std::pair<ComputationType, int>;
  struct Segment {
    std::size_t kind = 0;
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
  };
  struct Reading {
    std::int64_t at_ns = 0;
    double joules = 0;
  };
  struct Stretch {
    std::vector<double> seconds;  // Of each kind; of waiting at the end.
    double joules = 0;
  };
  struct Sum {
    double seconds = 0;
    std::int64_t count = 0;
  };

  std::size_t KindOf(ComputationType type, int stage);
  void EndIteration(std::int64_t at_ns);
  void CutStretches();
  bool FinishClock();
  std::optional<std::vector<double>> Watts() const;
  void NextClock();
  void ForgetSamples();

  std::vector<int> clocks_mhz_;  // To be measured, highest first.
  SweepSettings settings_;
  std::size_t at_ = 0;
  bool done_ = false;
  std::optional<std::int64_t> in_effect_ns_;

  std::vector<Kind> kinds_;
  bool in_iteration_ = false;
  std::int64_t iteration_begin_ns_ = 0;
  std::optional<Segment> open_;
  std::vector<Segment> segments_;  // Of this iteration.
  std::vector<Reading> readings_;  // Of this iteration, where the counter moved.
  std::optional<double> last_joules_;

  int fruitless_ = 0;         // Clocks in a row that said nothing.
  int whole_iterations_ = 0;  // At this clock.
  std::map<std::size_t, Sum> sums_;
  std::vector<Stretch> stretches_;

  std::map<std::size_t, double> last_energy_;
  std::map<std::size_t, int> rises_;
  double blocking_joules_ = 0;
  double blocking_seconds_ = 0;
  std::vector<Measurement> measurements_;
  std::optional<std::string> complaint_;
};

}  // namespace perseus::client

#endif  // PERSEUS_CLIENT_PROFILE_SWEEP_H_
