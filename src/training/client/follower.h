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

#include "client/hot_page.h"
#include "client/rank_conditions.h"
#include "client/rank_plan.h"
#include "perseus/computation.h"
#include "switching/look_ahead.h"

namespace perseus::client {

// Decides whether clock calls cost too much training time. It divides the measured by the planned
// duration of each computation, and compares computations during which a call was under way with
// undisturbed ones of the same iterations. The difference is the cost of the calls, including that
// of late clocks. Effects of other ranks, of waiting, and of a GPU that is slower than its profile
// cancel out. A pure state machine; for one thread.
class OverheadGuard {
 public:
  explicit OverheadGuard(double max_share) : max_share_(max_share) {}

  // Adds a computation that has run, at its planned clock or another one.
  void AddComputation(ComputationType type, double planned_seconds, double measured_seconds,
                      bool during_call);

  // Returns true if calls cost more than the allowed share of the iteration time in all but one of
  // the last kWindow iterations. Then starts again from nothing.
  bool EndIteration(double iteration_seconds);

  // Drops what was added since the last EndIteration().
  void DropIteration();

  // To be called when the plan or the level changes.
  void Restart();

  double share() const { return share_; }  // Median over the newest iterations.

 private:
  static constexpr std::size_t kWindow = 5;
  static constexpr int kIgnored = 2;  // First iterations of a plan.

  struct Sums {
    double planned = 0;
    double measured = 0;
  };
  struct PerType {
    Sums quiet;
    Sums disturbed;
    double ratio = 0;  // Measured / planned time of undisturbed ones; 0: not known.
  };

  double max_share_;
  double share_ = 0;
  std::array<PerType, kNumComputationTypes> types_ = {};
  std::array<double, kWindow> shares_ = {};
  std::size_t count_ = 0;
  int ignored_ = 0;
};

struct FollowerSettings {
  std::int64_t min_interval_ns = 10'000'000;  // Between two clock calls.
  // A lower clock may take effect before a computation ends by at most this share of its time.
  double max_early_loss = 0.05;
  double max_overhead = 0.01;  // See OverheadGuard.
  bool ahead = true;           // False: each clock is set only when its computation begins.
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

// Which clocks an iteration ran at.
enum class Clocks : std::uint8_t {
  kUnknown,  // The order was not the plan's, or a clock is not known.
  kPlanned,
  kCoarse,   // The plan was followed at a coarser Level.
  kDrivers,  // The driver chose the clocks: there was no plan, or it was for comparison.
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

// Total time of computations of one type and stage at one clock.
struct KindTimes {
  ComputationType type = ComputationType::kForward;
  int stage = 0;
  int mhz = 0;
  std::int64_t count = 0;
  double seconds = 0;  // Of all together.
  // Of rows whose clock is in effect all through in nearly every iteration. Others are counted in
  // some, and which ones depends on how long they and those before them take.
  bool is_steady = false;
};

// Tracks where in its plan a rank is, predicts when computations begin, and decides when to set
// which clock. A pure state machine: it has no clock, device or thread, and is given times in
// CLOCK_MONOTONIC nanoseconds, so that tests can drive it. For one thread.
//
// Predictions: durations and gaps are those of the last iterations (a mean in which each iteration
// counts half as much as the next one); at first they are those of the plan. The call for a higher
// clock is made earlier than its computation by a high percentile of the call latency. The call
// for a lower clock is made so late that the running computation loses at most max_early_loss, even
// if the call takes only the least latency seen. Where the plan has a clock for waiting, it is set
// when a row ends and the gap to the next is surely long enough (switching/look_ahead.h).
class Follower {
 public:
  static constexpr int kUnknownMhz = -1;  // After a call that failed, or ClockLost().

  explicit Follower(const FollowerSettings& settings);

  // Sets the plan from the next iteration on. Null or without rows: no plan.
  void Offer(std::shared_ptr<const RankPlan> plan);

  // Offers a plan for one iteration (RankPlan::iteration) that replaces the usual plan there. It is
  // dropped if that iteration has begun. At most kMostStepPlans wait; beyond that, a plan that came
  // too late is dropped, or else the plan for the latest iteration.
  void OfferStep(std::shared_ptr<const RankPlan> plan);

  // Takes the trainer's events in order. `at_ns`: time of the event.
  void Handle(const Event& event, std::int64_t at_ns);

  // Takes the times at which the device ran an iteration's computations. They replace the times of
  // the trainer's begin and end events. They must come within kTimesPatience iterations. After the
  // first call, the record of each iteration waits for its device times.
  void HandleTimes(const StepTimes& times);

  struct Decision {
    std::optional<int> call_mhz;  // Set this clock now; 0: give the clock back; none: no call.
    std::int64_t wake_at_ns = 0;  // If there is no call: decide again then or at the next event.
  };
  Decision Decide(std::int64_t now_ns, const LatencyRecord& latency);

  // A call succeeded: `mhz` (0: given back) was in effect at `effective_ns`.
  void Called(int mhz, std::int64_t begin_ns, std::int64_t effective_ns);
  // A call was refused: the present clock is not known.
  void CallFailed(std::int64_t begin_ns, std::int64_t end_ns);

  // Somebody else may have given the clock back: it must be set again.
  void ClockLost() {
    if (clock_mhz_ != 0) clock_mhz_ = kUnknownMhz;
  }

  // Stops following the plan until Resume(). Decide() gives the clock back.
  void Pause() { paused_ = true; }
  void Resume() { paused_ = false; }

  // Whether this iteration runs at default clocks for comparison.
  bool compares() const { return in_iteration_ && compares_; }
  // Whether a plan is followed now.
  bool Follows() const { return !clocks_.empty() && strikes_ < kMaxStrikes && !paused_; }
  // Whether the plan is not followed because the trainer runs computations in another order.
  bool GaveUp() const { return strikes_ >= kMaxStrikes; }
  bool in_iteration() const { return in_iteration_; }
  Level level() const { return level_; }
  int clock_mhz() const { return clock_mhz_; }  // 0: the driver chooses; or kUnknownMhz.
  double overhead_share() const { return guard_.share(); }
  const RankPlan* plan() const { return plan_.get(); }
  std::int64_t plan_version() const { return plan_ ? plan_->version : -1; }
  std::int64_t shortest_row_ns() const;
  // If there is no event until then, the clock must be given back.
  std::int64_t rest_at_ns() const;
  const FollowerCounters& counters() const { return counters_; }

  // These return what happened since they were called last.
  std::vector<IterationRecord> TakeIterations();
  std::optional<std::string> TakeComplaint();
  // Only computations that ran at their planned clock from begin to end.
  std::vector<KindTimes> TakeKinds();

  // When the rows of a plan ran in the last iteration that was kept: every kTimelineEvery-th. All
  // ranks keep the same ones. None: it was taken before, or was not like its plan.
  static constexpr std::int64_t kTimelineEvery = 10;
  std::optional<RankTimeline> TakeTimeline(std::int64_t iteration);

  // The noise in the times of the newest iterations; none: too few.
  std::optional<NoiseFigures> Noise() const { return noise_.Figures(); }

 private:
  static constexpr std::int64_t kNotReported = -1;
  static constexpr std::size_t kTimesPatience = 3;
  static constexpr int kMaxStrikes = 3;  // Iterations in a wrong order, one after another.

  struct Row {
    double duration_ns = 0;
    double gap_ns = 0;    // From the end of the row before to this one's begin.
    double doubt_ns = 0;  // How far that is usually off.
    bool measured = false;
    bool gap_measured = false;
    // In how many iterations of the plan, and in what share of the last ones its clock was in
    // effect all through.
    int iterations = 0;
    double whole_share = 0;
  };
  struct Change {
    int mhz = 0;
    std::int64_t effective_ns = 0;
  };
  struct Interval {
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
  };

  // A computation that the trainer began in this iteration.
  struct Span {
    std::ptrdiff_t row = -1;  // Row of the plan; -1: none.
    ComputationType type = ComputationType::kForward;
    bool joins = false;  // It ran within the computation before it.
    bool disturbed = false;
    int mhz = 0;  // Clock in effect from its begin to its end; 0: it changed, or is not known.
    bool changes = false;  // The plan has another clock before it.
    DeviceSpan ran = {};   // On the host's clock, since the iteration began.
  };
  using BusyNs = std::array<std::int64_t, kNumComputationTypes>;  // [type]
  struct PastIteration {
    IterationRecord record;
    std::shared_ptr<const RankPlan> plan;  // The plan that was followed; null: none.
    Level level = Level::kComputation;
    bool teaches = false;  // Its times improve predictions: it ran as planned, not for comparison.
    BusyNs reported_ns = {};
    std::vector<Span> spans;
  };

  void BeginIteration(std::int64_t iteration, bool is_heard, std::int64_t at_ns);
  void EndIteration(std::int64_t tokens, std::int64_t at_ns);
  // See KindTimes::is_steady.
  bool IsSteady(std::size_t row) const;
  // Without the rows that are not steady, unless hardly any is.
  std::vector<NoiseEstimate::Time> WithoutSelection(std::vector<NoiseEstimate::Time> times) const;
  void CountKind(const ComputationId& id, int mhz, double seconds, bool is_steady);
  static void Learn(double measured, double* value, bool* is_measured);
  static void LearnGap(double measured, Row* row);
  // The clock at which the rank waits for its next row; 0: none is set for that.
  int WaitingMhz() const { return plan_ && level_ == Level::kComputation ? plan_->waiting_mhz : 0; }
  void AbandonIteration();
  static void SetBusy(const BusyNs& busy_ns, const BusyNs& reported_ns, IterationRecord* record);
  void Keep(PastIteration past);
  void LearnTimes(const PastIteration& past, const StepTimes& times);
  void BeginRow(const ComputationId& id, std::int64_t at_ns);
  void EndRow(const ComputationId& id, std::int64_t at_ns);
  // Keeps it if it is one of those that are wanted. `ran`: of each span, as StepTimes.
  void KeepTimeline(const PastIteration& past, const std::vector<DeviceSpan>& ran);
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
  // Their row is the number of rows for the first one of the next iteration.
  switching::ClockChoice ClockNow() const;
  switching::ClockChoice LookAhead(const switching::ClockChoice& now, std::int64_t now_ns,
                                   const LatencyRecord& latency) const;
  std::uint64_t Overtaken(std::int64_t number) const;
  void Remember(Interval call);

  FollowerSettings settings_;
  OverheadGuard guard_;
  FollowerCounters counters_;

  std::shared_ptr<const RankPlan> plan_;
  std::shared_ptr<const RankPlan> offered_;
  std::deque<std::shared_ptr<const RankPlan>> step_plans_;  // For iterations that have not begun.
  bool has_offer_ = false;
  Level level_ = Level::kComputation;
  std::uint64_t level_since_ = 0;  // Count of iterations when level_ was chosen.
  std::vector<int> clocks_;        // Clocks of plan_ at level_.
  std::vector<Row> rows_;
  double wrap_gap_ns_ = 0;  // From the last row's end to the next iteration's first begin.

  bool paused_ = false;
  bool in_iteration_ = false;
  bool lost_ = false;          // This iteration's order is not the plan's.
  bool may_be_quiet_ = false;  // This iteration may have begun before its plan came.
  bool compares_ = false;      // This iteration runs at default clocks for comparison.
  bool has_device_times_ = false;
  int strikes_ = 0;
  std::int64_t iteration_ = 0;
  std::int64_t iteration_begin_ns_ = 0;
  std::int64_t iteration_ns_ = 0;  // Length of the last one.
  BusyNs busy_ns_ = {};
  BusyNs reported_ns_ = {};         // As the trainer reported; kNotReported: not reported.
  std::vector<Row> rows_at_begin_;  // rows_ when this iteration began; restored if it is dropped.
  std::vector<Span> spans_;         // Computations of this iteration.
  std::deque<PastIteration> past_;  // Iterations that wait for device times; oldest first.
  std::int64_t last_event_ns_ = 0;

  std::ptrdiff_t row_ = -1;  // The row that runs, or ran last; -1: none yet.
  int open_ = 0;             // How many begins of it have no end yet.
  ComputationType open_type_ = ComputationType::kForward;
  std::int64_t row_begin_ns_ = 0;
  std::int64_t row_end_ns_ = 0;    // End of the last row that ran.
  bool row_ended_before_ = false;  // A row has ended, so row_end_ns_ is valid.

  int clock_mhz_ = 0;
  std::int64_t last_call_ns_ = INT64_MIN / 2;
  bool waited_ = false;           // The waiting clock was set since the last row.
  std::int64_t called_row_ = -1;  // Last row whose clock was set, numbered over all iterations.
  std::int64_t first_row_ = 0;    // Number of this iteration's row 0 in that numbering.
  std::deque<Change> changes_;    // Newest last, few.
  std::deque<Interval> calls_;    // Likewise.

  std::vector<IterationRecord> records_;
  std::vector<KindTimes> kinds_;
  std::vector<NoiseEstimate::Time> noise_times_;  // Of this iteration, on the host's clock.
  NoiseEstimate noise_;
  std::int64_t timeline_iteration_ = 0;
  std::optional<RankTimeline> timeline_;
  std::optional<std::string> complaint_;
};

}  // namespace perseus::client

#endif  // PERSEUS_CLIENT_FOLLOWER_H_
