// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLIENT_FOLLOWER_H_
#define PERSEUS_CLIENT_FOLLOWER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/event_ring.h"
#include "client/latency.h"
#include "client/overhead_guard.h"
#include "client/rank_plan.h"
#include "client/step_times.h"

namespace perseus::client {

struct FollowerSettings {
  std::int64_t min_interval_ns = 10'000'000;  // Between two clock calls.
  // A lower clock comes at most so much of a computation's time before its end.
  double max_early_loss = 0.05;
  double max_overhead = 0.01;  // See OverheadGuard.
  bool ahead = true;           // False: a clock is called for when its computation begins.
};

struct FollowerCounters {
  std::uint64_t iterations = 0;
  std::uint64_t instructions = 0;
  std::uint64_t coalesced = 0;
  std::uint64_t early = 0;
  std::uint64_t on_time = 0;
  std::uint64_t late = 0;
  std::uint64_t missed = 0;
  std::uint64_t order_mismatches = 0;
  std::uint64_t step_plans = 0;
  std::uint64_t step_plans_late = 0;
};

// What the clocks of an iteration were.
enum class Clocks : std::uint8_t {
  kUnknown,  // The order was not the plan's, or a clock is not known.
  kPlanned,
  kCoarse,   // Followed less finely than planned.
  kDrivers,  // The driver's own: no plan, or an iteration for comparison.
};

// An iteration that ended.
struct IterationRecord {
  std::int64_t iteration = 0;
  std::int64_t plan_version = -1;
  std::int64_t tokens = 0;
  double seconds = 0;
  double busy_seconds = 0;                                     // In computations.
  std::array<double, kNumComputationTypes> busy_by_type = {};  // The same, [type].
  Clocks clocks = Clocks::kUnknown;
};

// What computations of one type and stage took at one clock.
struct KindTimes {
  ComputationType type = ComputationType::kForward;
  int stage = 0;
  int mhz = 0;
  std::int64_t count = 0;
  double seconds = 0;  // Of all together.
};

// Knows where in its plan a rank is, predicts when what begins, and says which
// clock to call for when. No clock of its own, no device, no thread: a pure
// state machine over CLOCK_MONOTONIC nanoseconds that it is given, so that tests
// drive it. One thread.
//
// Predictions: a computation lasts, and waits before it, as in the last
// iterations (a mean in which each counts half of the next), at first as
// planned. A higher clock is called for a high latency ahead of its computation;
// a lower one as late as keeps the running computation's loss below
// max_early_loss, even if the call should take the least latency seen.
class Follower {
 public:
  static constexpr int kUnknownMhz = -1;  // After a call that failed, or ClockLost().

  explicit Follower(const FollowerSettings& settings);

  // Used from the next iteration's begin; null or without rows: no plan.
  void Offer(std::shared_ptr<const RankPlan> plan);

  // Of one iteration (RankPlan::iteration), in whose place it comes; dropped where that has
  // begun. At most kMostStepPlans wait: the one furthest ahead goes, or one that came too late.
  void OfferStep(std::shared_ptr<const RankPlan> plan);

  // What the trainer said, in order. `at_ns`: when.
  void Handle(const Event& event, std::int64_t at_ns);

  // When the device ran an iteration's computations, within kTimesPatience iterations of
  // its end: in place of the times of its begins and ends. Once some were given, records
  // are kept back until theirs come.
  void HandleTimes(const StepTimes& times);

  struct Decision {
    std::optional<int> call_mhz;  // Call now; 0: give the clock back.
    std::int64_t wake_at_ns = 0;  // Else decide again then, or at the next event.
  };
  Decision Decide(std::int64_t now_ns, const LatencyRecord& latency);

  // A call of `mhz` went through (0: given back); in effect at `effective_ns`.
  void Called(int mhz, std::int64_t begin_ns, std::int64_t effective_ns);
  // A call was refused: the clock is not what was asked for, nor known.
  void CallFailed(std::int64_t begin_ns, std::int64_t end_ns);

  // The clock may have been given back by others: it is to be set again.
  void ClockLost() {
    if (clock_mhz_ != 0) clock_mhz_ = kUnknownMhz;
  }

  // Not following until Resume(): Decide() gives the clock back.
  void Pause() { paused_ = true; }
  void Resume() { paused_ = false; }

  // This iteration runs at maximum clocks, to compare.
  bool compares() const { return in_iteration_ && compares_; }
  // True where a plan is followed now.
  bool Follows() const { return !clocks_.empty() && strikes_ < kMaxStrikes && !paused_; }
  // The order of the plan is not that of the trainer.
  bool GaveUp() const { return strikes_ >= kMaxStrikes; }
  bool in_iteration() const { return in_iteration_; }
  Level level() const { return level_; }
  int clock_mhz() const { return clock_mhz_; }  // 0: the driver's own; or kUnknownMhz.
  double overhead_share() const { return guard_.share(); }
  std::int64_t plan_version() const { return plan_ ? plan_->version : -1; }
  std::int64_t shortest_row_ns() const;
  // Without an event until then no clock may stay set.
  std::int64_t rest_at_ns() const;
  const FollowerCounters& counters() const { return counters_; }

  // What has happened since the last asking.
  std::vector<IterationRecord> TakeIterations();
  std::optional<std::string> TakeComplaint();
  // Of computations of a plan whose clock was in effect all through.
  std::vector<KindTimes> TakeKinds();

 private:
  static constexpr std::int64_t kNotTold = -1;
  static constexpr std::size_t kTimesPatience = 3;
  static constexpr int kMaxStrikes = 3;  // Iterations in a wrong order, one after another.

  struct Row {
    double duration_ns = 0;
    double gap_ns = 0;  // Between the row before and this.
    bool measured = false;
    bool gap_measured = false;
  };
  struct Change {
    int mhz = 0;
    std::int64_t effective_ns = 0;
  };
  struct Interval {
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
  };

  struct Target {
    std::ptrdiff_t row = 0;  // The number of rows: the next iteration's first.
    int mhz = 0;
  };

  // A begin of an iteration and what is known of it.
  struct Span {
    std::ptrdiff_t row = -1;  // Of the plan; -1: none.
    ComputationType type = ComputationType::kForward;
    bool joins = false;  // It ran within the one before.
    bool disturbed = false;
    int mhz = 0;  // In effect all through it; 0: none, or not known.
  };
  using BusyNs = std::array<std::int64_t, kNumComputationTypes>;  // [type]
  struct PastIteration {
    IterationRecord record;
    std::shared_ptr<const RankPlan> plan;  // As followed; null: not.
    Level level = Level::kComputation;
    bool teaches = false;  // It ran as planned, not for comparison.
    BusyNs told_ns = {};
    std::vector<Span> spans;
  };

  void BeginIteration(std::int64_t iteration, std::int64_t at_ns);
  void EndIteration(std::int64_t tokens, std::int64_t at_ns);
  void CountKind(const Action& action, int mhz, double seconds);
  static void Learn(double measured, double* value, bool* is_measured);
  void AbandonIteration();
  static void SetBusy(const BusyNs& busy_ns, const BusyNs& told_ns, IterationRecord* record);
  void Keep(PastIteration past);
  void LearnTimes(const PastIteration& past, const StepTimes& times);
  void BeginRow(const Action& action, std::int64_t at_ns);
  void EndRow(const Action& action, std::int64_t at_ns);
  void Mismatch(const std::string& sentence);
  Clocks ClocksOfIteration(bool good) const;
  void Adopt();
  void AdoptStepPlan(std::int64_t iteration);
  void LearnFrom(const RankPlan* old, const std::vector<Row>& old_rows);
  void SetLevel(Level level);
  void JudgeChange(std::size_t row, std::int64_t begin_ns, std::int64_t end_ns);
  int ClockAt(std::int64_t at_ns) const;
  bool DuringCall(std::int64_t begin_ns, std::int64_t end_ns) const;
  int ClockBefore(std::size_t row) const;
  std::int64_t PatienceNs() const;
  int NextFirstClock() const;
  struct Ahead;
  Target TargetNow() const;
  Target LookAhead(Target target, std::int64_t now_ns, const LatencyRecord& latency,
                   std::int64_t* wake_at_ns) const;
  std::uint64_t Overtaken(std::int64_t number) const;
  void Remember(Interval call);

  FollowerSettings settings_;
  OverheadGuard guard_;
  FollowerCounters counters_;

  std::shared_ptr<const RankPlan> plan_;
  std::shared_ptr<const RankPlan> offered_;
  bool has_offer_ = false;
  std::deque<std::shared_ptr<const RankPlan>> step_plans_;  // Not begun yet.
  Level level_ = Level::kComputation;
  std::uint64_t level_since_ = 0;  // Iterations when it was chosen.
  std::vector<int> clocks_;        // Of plan_ at level_.
  std::vector<Row> rows_;
  double wrap_gap_ns_ = 0;  // From the last row's end to the next iteration's first begin.

  bool paused_ = false;
  bool in_iteration_ = false;
  bool lost_ = false;      // Of this iteration: its order is wrong.
  bool compares_ = false;  // Of this iteration: its clocks are the driver's.
  int strikes_ = 0;
  std::int64_t iteration_ = 0;
  std::int64_t iteration_begin_ns_ = 0;
  std::int64_t iteration_ns_ = 0;  // Length of the last one.
  BusyNs busy_ns_ = {};
  BusyNs told_ns_ = {};             // kNotTold: nobody said.
  std::vector<Row> rows_at_begin_;  // Of this iteration: what is known again if it does not count.
  std::vector<Span> spans_;         // Of this iteration.
  bool has_device_times_ = false;
  std::deque<PastIteration> past_;  // Whose times may still come; oldest first.
  std::int64_t last_event_ns_ = 0;

  std::ptrdiff_t row_ = -1;  // Running, or the last that ran; -1: none yet.
  int open_ = 0;             // Begins of it without an end.
  ComputationType open_type_ = ComputationType::kForward;
  std::int64_t row_begin_ns_ = 0;
  std::int64_t row_end_ns_ = 0;    // Of the last that ran.
  bool row_ended_before_ = false;  // A row has ever ended: row_end_ns_ holds.

  int clock_mhz_ = 0;
  std::int64_t last_call_ns_ = INT64_MIN / 2;
  std::int64_t called_row_ = -1;  // Its number, counted over iterations.
  std::int64_t first_row_ = 0;    // Number of row 0 of this iteration.
  std::deque<Change> changes_;    // Newest last, few.
  std::deque<Interval> calls_;    // Likewise.

  std::vector<IterationRecord> records_;
  std::vector<KindTimes> kinds_;
  std::optional<std::string> complaint_;
};

}  // namespace perseus::client

#endif  // PERSEUS_CLIENT_FOLLOWER_H_
