// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MEASURE_SWEEP_H_
#define PERSEUS_MEASURE_SWEEP_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "measure/clock_order.h"
#include "measure/counter.h"
#include "measure/kind.h"
#include "measure/profile_fit.h"
#include "measure/recorder.h"
#include "measure/timeline.h"

namespace perseus::measure {

struct SweepSettings {
  int iterations = 5;  // Whole ones at each clock.
  int settling = 1;    // After a change: that in which it comes into effect is one of them.
  OrderSettings order;
};

// What a sweep cost so far: its iterations, and what they took more (or less) than as
// many at its first clock, the highest.
struct SweepCost {
  std::int64_t iterations = 0;
  double seconds = 0;
  double joules = 0;
  std::optional<double> extra_seconds;
  std::optional<double> extra_joules;
};

// Profiles the real first iterations of one rank: one clock for some whole
// iterations, then the next as ClockOrder says. Times come from the trainer's begins and
// ends (or the device's own times), energies from the steps of the device's counter
// (stretch_fit.h). A counter that does not move is no data: after kPatience times the
// iterations without an answer a clock is given up, and after kFruitlessToStop of
// them in a row the sweep.
//
// A pure state machine over what it is told, in order of time; no clock, device or
// thread of its own. One thread.
class Sweep {
 public:
  Sweep(const std::vector<int>& clocks_mhz, const SweepSettings& settings);

  // Clocks that were measured and reported before a restart. Before anything else.
  void Leave(const std::vector<int>& clocks_mhz);

  // To be locked now; 0: none.
  int clock_mhz() const { return ended_ ? 0 : order_.clock_mhz(); }
  // All clocks are measured: Finish() is due. (It may take a second; give the clock back first.)
  bool ended() const { return ended_; }
  void Finish();
  bool done() const { return done_; }

  // The clock is in effect from then on: what began before does not count.
  void ClockInEffect(std::int64_t at_ns);
  bool clock_in_effect() const { return in_effect_ns_.has_value(); }  // As it was told.
  // It was given back, and is to be locked again: what was seen at it is not kept.
  void ClockLost() { ForgetClock(); }
  // No more clocks, for this reason ("": not worth a note).
  void GiveUp(const std::string& why);

  // The trainer.
  void BeginIteration(std::int64_t number, std::int64_t at_ns);
  void EndIteration(std::int64_t at_ns);
  void AbandonIteration();
  void SetWork(double work) { recorder_.SetWork(work); }
  void Begin(const Kind& kind, std::int64_t at_ns);
  void End(std::int64_t at_ns) { recorder_.End(at_ns); }
  void SetTimes(std::int64_t iteration,
                const std::vector<std::pair<std::int64_t, std::int64_t>>& ns);

  // The device.
  void AddRead(double joules, std::int64_t begin_ns, std::int64_t end_ns);
  void AddConditions(std::optional<double> temperature_celsius, bool throttled);
  void AddClock(int mhz);                  // As it was while a computation ran.
  void Note(const std::string& sentence);  // Once each.

  // Since the last asking. Rows of a clock as soon as it is measured; all of them again, better,
  // after Finish().
  std::vector<Estimate> TakeRows();
  const std::optional<BlockingPower>& blocking() const { return blocking_; }
  SweepCost cost() const;
  std::optional<double> counter_period_seconds() const { return counter_.period_seconds(); }
  std::vector<std::string> TakeNotes();

 private:
  static constexpr int kPatience = 8;
  static constexpr int kFruitlessToStop = 2;  // Clocks in a row.
  static constexpr std::size_t kFewestToPredict = 4;
  static constexpr std::size_t kMaxKinds = 64;
  static constexpr std::size_t kFewestStretches = 2;
  static constexpr int kSameMhz = 7;  // Half a step of NVIDIA's clocks.

  struct Sums {
    std::int64_t iterations = 0;
    double seconds = 0;
    double joules = 0;
    void Add(double more_seconds, double more_joules) {
      ++iterations;
      seconds += more_seconds;
      joules += more_joules;
    }
  };

  std::size_t KindOf(const Kind& kind);
  void TakeIterations();
  void Count(const Recorded& recorded);
  int WantedIterations() const;
  bool ClockDidNotTake();
  void MeasuredClock();
  void NextClock(const ProfileFit& fit);
  void ForgetClock();

  SweepSettings settings_;
  ClockOrder order_;
  bool ended_ = false;
  bool done_ = false;

  std::vector<Kind> kinds_;
  Recorder recorder_;
  CounterReader counter_;

  // Of the clock being measured.
  std::optional<std::int64_t> in_effect_ns_;
  int settled_ = 0;
  int whole_iterations_ = 0;
  bool broken_ = true;  // The next iteration does not follow on the last.
  std::vector<std::vector<Iteration>> windows_;
  std::vector<Tick> ticks_;
  Sums at_clock_;
  double celsius_sum_ = 0;
  int celsius_count_ = 0;
  bool throttled_ = false;
  std::map<int, int> clocks_seen_;

  int fruitless_ = 0;
  std::vector<ClockRecord> records_;
  std::vector<Estimate> rows_;
  std::optional<BlockingPower> blocking_;
  Sums all_;
  std::optional<Sums> at_highest_;
  std::optional<double> joules_at_begin_;
  std::int64_t began_ns_ = 0;
  std::vector<std::string> notes_;
  std::vector<std::string> noted_;
};

}  // namespace perseus::measure

#endif  // PERSEUS_MEASURE_SWEEP_H_
