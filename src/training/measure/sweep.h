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
#include "measure/kind.h"
#include "measure/profile_fit.h"
#include "measure/recorder.h"

namespace perseus::measure {

struct SweepSettings {
  int iterations = 5;  // Complete iterations at each clock.
  int settling = 1;    // Iterations to skip after a change of clock, including that of the change.
  bool default_clocks = false;  // At the end, measure at default clocks, too (kDefaultClockMhz).
  OrderSettings order;
};

// The cost of a sweep so far: its iterations, and by how much they took more (or less) than the
// same number of iterations at the highest clock.
struct SweepCost {
  std::int64_t iterations = 0;
  double seconds = 0;
  double joules = 0;
  std::optional<double> extra_seconds;
  std::optional<double> extra_joules;
};

// Profiles a rank during the first iterations of training: it measures some whole iterations at one
// clock, then at the next one of ClockOrder. Times come from the trainer's begin and end events (or
// from device times), energies from the steps of the device's counter (stretch_fit.h). If the
// counter does not move, a clock is given up after kPatience times its iterations, and the sweep
// after kFruitlessToStop such clocks in a row.
//
// After the first pass of ClockOrder it goes back to the highest clock, and at the end to a quarter
// of the clocks (at most kMostReturns) and to doubtful ones: only what is measured twice tells how
// much the card drifts.
//
// Last of all it may measure at default clocks, which says what the job took before Perseus. Last,
// as the card is then as warm as in training (a cold one boosts higher, and draws less), and as the
// clock is given back then anyway. If the sweep ends early, this is what is missing; no plan needs
// it.
//
// A pure state machine without clock, device or thread. Calls must come in order of time. For one
// thread.
class Sweep {
 public:
  Sweep(const std::vector<int>& clocks_mhz, const SweepSettings& settings);

  // Skips clocks (or kDefaultClockMhz) that were measured and reported before a restart. Call it
  // before anything else.
  void Leave(const std::vector<int>& clocks_mhz);

  // Whether no clock is to be set now, and that is what is measured.
  bool measures_default_clocks() const { return at_default_clocks_ && !ended_; }
  // The clock to lock now; 0: none.
  int clock_mhz() const {
    return ended_ ? 0 : again_.empty() ? order_.clock_mhz() : again_.front();
  }
  // Whether all clocks are measured. Call Finish() then; it may take a second, so give the clock
  // back first.
  bool ended() const { return ended_; }
  void Finish();
  bool done() const { return done_; }

  // The clock is in effect since `at_ns`. Computations that began before do not count.
  void ClockInEffect(std::int64_t at_ns);
  bool clock_in_effect() const { return in_effect_ns_.has_value(); }  // As it was told.
  // The clock was lost and must be locked again. Drops what was measured at it.
  void ClockLost() { ForgetClock(); }
  // Clocks cannot be set. If nothing was measured yet, the sweep measures the clocks that the
  // driver chooses and calls them the highest; else it ends. `why` becomes a note.
  void StayAtDriverClocks(const std::string& why);
  bool at_driver_clocks() const { return at_driver_clocks_; }
  // Ends the sweep without measuring more clocks. `why` becomes a note unless it is empty.
  void GiveUp(const std::string& why);

  // Events of the trainer.
  void BeginIteration(std::int64_t number, std::int64_t at_ns);
  void EndIteration(std::int64_t at_ns);
  void AbandonIteration();
  void SetWork(double work) { recorder_.SetWork(work); }
  void Begin(const Kind& kind, std::int64_t at_ns);
  void End(std::int64_t at_ns) { recorder_.End(at_ns); }
  void SetTimes(std::int64_t iteration,
                const std::vector<std::pair<std::int64_t, std::int64_t>>& ns);

  // Readings of the device.
  void AddRead(double joules, std::int64_t begin_ns, std::int64_t end_ns);
  void AddConditions(std::optional<double> temperature_celsius, bool throttled);
  void AddClock(int mhz);                  // The SM clock during a computation.
  void Note(const std::string& sentence);  // Once each.

  // New rows since the last call. The rows of a clock come as soon as it is measured. After
  // Finish(), all rows come again with better estimates.
  std::vector<Estimate> TakeRows();
  const std::optional<BlockingPower>& blocking() const { return blocking_; }
  // After Finish(): see ProfileFit.
  const std::vector<WaitingRow>& waiting() const { return waiting_; }
  SweepCost cost() const;
  std::optional<double> counter_period_seconds() const { return counter_.period_seconds(); }
  std::vector<std::string> TakeNotes();

 private:
  static constexpr int kPatience = 8;
  static constexpr int kFruitlessToStop = 2;  // Clocks in a row.
  static constexpr std::size_t kFewestToPredict = 4;
  static constexpr std::size_t kMaxKinds = 64;
  static constexpr std::size_t kFewestStretches = 2;
  static constexpr std::size_t kFewestToGoBack = 5;   // Clocks.
  static constexpr std::size_t kClocksPerReturn = 4;  // Of these one is measured again.
  static constexpr std::size_t kMostReturns = 8;
  static constexpr std::size_t kMostDoubtful = 8;  // So many such clocks are measured again.
  static constexpr int kSameMhz = 7;               // Half a step of NVIDIA's clocks.

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
  void EndIfAllIsMeasured();
  bool ClockDidNotTake();
  void MeasuredClock();
  void LearnHabit();
  void NextClock(const ProfileFit& fit);
  void GoBack(const ProfileFit& fit);
  int MarkThrottled();
  void ForgetClock();

  SweepSettings settings_;
  ClockOrder order_;
  bool at_driver_clocks_ = false;
  bool at_default_clocks_ = false;  // All clocks are measured: now at default clocks.
  bool left_default_clocks_ = false;
  bool ended_ = false;
  bool done_ = false;

  std::vector<Kind> kinds_;
  Recorder recorder_;
  CounterReader counter_;
  CounterHabit habit_;
  std::vector<Visit> seen_;  // Those of records_.
  bool knows_habit_ = false;

  // State of the clock that is being measured.
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
  bool saw_reference_ = false;
  bool went_back_ = false;
  std::int64_t visits_ = 0;
  std::vector<int> again_;  // Clocks to measure again; the first is being measured.
  std::vector<ClockRecord> records_;
  std::vector<Estimate> rows_;
  std::optional<BlockingPower> blocking_;
  std::vector<WaitingRow> waiting_;
  Sums all_;
  std::optional<Sums> at_highest_;
  std::optional<double> joules_at_begin_;
  std::int64_t began_ns_ = 0;
  std::vector<std::string> notes_;
  std::vector<std::string> noted_;
};

}  // namespace perseus::measure

#endif  // PERSEUS_MEASURE_SWEEP_H_
