// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MEASURE_SWEEP_H_
#define PERSEUS_MEASURE_SWEEP_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "measure/kind.h"
#include "measure/profile_fit.h"
#include "measure/recorder.h"

namespace perseus::measure {

struct OrderSettings {
  int stride = 1;     // Measure only every n-th clock.
  int least_mhz = 0;  // Measure no lower clock.
  // After the first pass, measure a quarter as many more, where the lower convex hull of time and
  // energy (from which plans are made) is least certain. If times jump between clocks by
  // kRoughJump, measure all clocks: interpolation would be wrong.
  bool coarse = false;
  // Measure the clocks of each pass in random order, after the highest.
  bool shuffle = false;
  std::uint64_t seed = 0;
};

// Decides which clock is measured next. The first pass goes down from the highest clock in steps of
// kCoarseStride; three others fill in what it left out, upwards, downwards and upwards. So
// neighbouring clocks are measured at times far apart, and a card that warms up does not tilt its
// curve.
//
// Plans look at *effective* energy: a computation's joules less what its rank would draw if it
// waited instead. A kind of computation needs no lower clocks once its effective energy has risen
// at kRisesToStop measured clocks, the lowest ones, and a look half way to the end shows the same.
// Risen: by more than kSigmas standard errors and by more than kLeastRise over the least one seen.
// So neither a plateau nor a bump ends the sweep. Where joules have risen too, clocks are not
// filled in, and none below kLeastShare of the highest is measured: there is little left to save. A
// sweep goes as low as the kind that needs most. Depends only on its settings and the measurements.
// For one thread.
class ClockOrder {
 public:
  static constexpr std::size_t kRisesToStop = 3;
  static constexpr double kSigmas = 3;
  static constexpr double kLeastRise = 0.02;  // Of the joules.
  static constexpr double kLeastShare = 0.4;
  static constexpr std::size_t kCoarseStride = 4;
  static constexpr double kRoughJump = 0.01;
  // The assumed power of a waiting rank if it was not measured: a share of its power while it
  // computes at the highest clock.
  static constexpr double kAssumedWaiting = 0.25;

  // `clocks_mhz`: ascending, not empty.
  ClockOrder(const std::vector<int>& clocks_mhz, const OrderSettings& settings);

  int clock_mhz() const { return current_ ? clocks_mhz_[*current_] : 0; }  // 0: none is left.
  int highest_mhz() const { return clocks_mhz_.front(); }
  std::size_t clocks() const { return clocks_mhz_.size(); }
  bool first_pass_ended() const { return first_pass_ended_; }

  // Skips clocks that were measured and reported before a restart. Call it before the first Next().
  void Leave(const std::vector<int>& clocks_mhz);
  // Clocks between measured ones that are not measured.
  std::vector<int> PassedOver() const;
  // The current clock is measured, or cannot be. `rows`: estimates of all clocks so far. `waiting`:
  // none if it is not known. `jump`: see ProfileFit.
  void Next(const std::vector<Estimate>& rows, const std::optional<BlockingPower>& waiting,
            double jump);
  // Whether the coarse pass showed that clocks differ too much from their neighbours, so that all
  // clocks are measured.
  bool rough() const { return rough_; }

 private:
  // Of one kind at one clock.
  struct Point {
    std::size_t index = 0;
    double seconds = 0;
    double joules = 0;
    double joules_std = 0;
    double count = 0;
  };
  // A kind, from the highest clock down.
  struct Curve {
    std::vector<Point> points;
    BlockingPower waiting;
  };
  // The first clocks that no kind needs.
  struct Ends {
    std::size_t measured = 0;  // By effective energy, or so low that nothing is to be saved.
    std::size_t filled = 0;    // By joules.
  };
  std::vector<Curve> CurvesOf(const std::vector<Estimate>& rows,
                              const std::optional<BlockingPower>& waiting) const;
  Ends EndsOf(const std::vector<Curve>& curves) const;
  std::optional<std::size_t> Look(std::size_t end) const;
  // The first clock of a queue that is not visited, and is before `end`.
  std::optional<std::size_t> Take(std::deque<std::size_t>* queue, std::size_t end);
  void QueueTheRest();
  void Shuffle(std::deque<std::size_t>* queue);
  std::optional<std::size_t> Refinement(const std::vector<Curve>& curves) const;

  std::vector<int> clocks_mhz_;  // Descending.
  bool coarse_;
  std::optional<std::uint64_t> shuffle_seed_;
  std::vector<bool> visited_;
  std::deque<std::size_t> first_pass_;
  std::deque<std::size_t> fill_in_;
  std::optional<std::size_t> current_;
  std::size_t measured_ = 0;
  std::size_t reach_ = 0;                        // Clocks that are at least kLeastShare.
  std::optional<std::size_t> refinements_left_;  // None: still in the first pass.
  bool first_pass_ended_ = false;
  bool rough_ = false;
};

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
