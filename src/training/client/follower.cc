// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "client/follower.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "common/input_limits.h"

namespace perseus::client {

void OverheadGuard::AddComputation(ComputationType type, double planned_seconds,
                                   double measured_seconds, bool during_call) {
  if (!(planned_seconds > 0)) return;
  PerType& of = types_[static_cast<std::size_t>(type)];
  Sums& sums = during_call ? of.disturbed : of.quiet;
  sums.planned += planned_seconds;
  sums.measured += measured_seconds;
}

bool OverheadGuard::EndIteration(double iteration_seconds) {
  // How much slower or faster than before undisturbed computations are now, of any type: heat
  // and power limits slow all of them. 1 where none ran.
  double expected = 0;
  double measured = 0;
  Sums quiet;
  for (const PerType& of : types_) {
    quiet.planned += of.quiet.planned;
    quiet.measured += of.quiet.measured;
    if (of.ratio <= 0) continue;
    expected += of.ratio * of.quiet.planned;
    measured += of.quiet.measured;
  }
  const double drift = expected > 0 && measured > 0 ? measured / expected : 1;
  // Stands for types that never ran undisturbed.
  const double overall = quiet.planned > 0 ? quiet.measured / quiet.planned : 0;
  double cost = 0;
  bool known = false;
  for (PerType& of : types_) {
    if (of.quiet.planned > 0) {
      of.ratio = of.quiet.measured / of.quiet.planned;
    } else {
      of.ratio = of.ratio > 0 ? of.ratio * drift : overall;
    }
    if (of.ratio > 0) {
      known = true;
      cost += of.disturbed.measured - of.ratio * of.disturbed.planned;
    }
    of.quiet = of.disturbed = {};
  }
  if (!known || !(iteration_seconds > 0)) return false;
  if (ignored_ < kIgnored) {
    ++ignored_;
    return false;
  }
  shares_[count_ % kWindow] = cost / iteration_seconds;
  ++count_;
  const std::size_t size = std::min(count_, kWindow);
  std::array<double, kWindow> sorted = shares_;
  std::sort(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(size));
  share_ = std::max(0.0, sorted[size / 2]);
  // All but one of the window: a change of pace in between is no cost of calls.
  if (count_ < kWindow || sorted[1] <= max_share_) return false;
  Restart();
  return true;
}

void OverheadGuard::DropIteration() {
  for (PerType& of : types_) of.quiet = of.disturbed = {};
}

void OverheadGuard::Restart() {
  DropIteration();
  count_ = 0;
  ignored_ = 0;
}

namespace {

constexpr std::int64_t kOnTimeNs = 1'000'000;
constexpr std::size_t kRemembered = 16;  // Changes and calls that a row may overlap.
// A coarser level is left for one try at a finer one after so many iterations:
// what made calls dear may be over.
constexpr std::uint64_t kTryFinerAfter = 1000;

bool MatchesComputation(const ComputationId& planned, const ComputationId& seen) {
  return planned.type == seen.type && (seen.stage < 0 || seen.stage == planned.stage) &&
         (seen.microbatch < 0 || seen.microbatch == planned.microbatch);
}

// The fallback for costly clock calls.
std::string_view WhatItDoesAt(Level level) {
  if (level == Level::kPhase) return "keeps one clock for each phase of an iteration";
  return level == Level::kStage ? "keeps one clock for the whole iteration" : "sets no clock";
}

}  // namespace

Follower::Follower(const FollowerSettings& settings)
    : settings_(settings), guard_(settings.max_overhead) {}

void Follower::Offer(std::shared_ptr<const RankPlan> plan) {
  offered_ = std::move(plan);
  has_offer_ = true;
}

void Follower::OfferStep(std::shared_ptr<const RankPlan> plan) {
  step_plans_.push_back(std::move(plan));
  if (step_plans_.size() <= kMostStepPlans) return;
  // Of iterations that have begun first; else what is wanted last.
  auto least = std::find_if(step_plans_.begin(), step_plans_.end(), [&](const auto& waiting) {
    return waiting->iteration < iteration_ + (in_iteration_ ? 1 : 0);
  });
  if (least == step_plans_.end()) {
    least =
        std::max_element(step_plans_.begin(), step_plans_.end(),
                         [](const auto& a, const auto& b) { return a->iteration < b->iteration; });
  }
  step_plans_.erase(least);
  ++counters_.step_plans_late;
}

// The newest for this iteration takes the place of the plan; what is for iterations
// that have begun is dropped.
void Follower::AdoptStepPlan(std::int64_t iteration) {
  std::shared_ptr<const RankPlan> own;
  std::erase_if(step_plans_, [&](const std::shared_ptr<const RankPlan>& plan) {
    if (plan->iteration > iteration) return false;
    if (plan->iteration == iteration) {
      own = plan;
    } else {
      ++counters_.step_plans_late;
    }
    return true;
  });
  if (!own || own->rows.empty()) return;
  ++counters_.step_plans;
  const std::shared_ptr<const RankPlan> old = std::exchange(plan_, std::move(own));
  const std::vector<Row> old_rows = std::exchange(rows_, {});
  // The cost of clock calls and the count of iterations in a wrong order stay as they are: if they
  // were reset, a job with a new plan in every iteration would never notice a problem.
  if (!old || !SameOrder(*old, *plan_)) strikes_ = 0;
  called_row_ = -1;
  clocks_ = ClocksAtLevel(*plan_, level_);
  LearnFrom(old.get(), old_rows);
}

void Follower::Adopt() {
  has_offer_ = false;
  const std::shared_ptr<const RankPlan> old = std::exchange(plan_, std::move(offered_));
  const std::vector<Row> old_rows = std::exchange(rows_, {});
  clocks_.clear();
  strikes_ = 0;
  called_row_ = -1;
  guard_.Restart();
  if (!plan_ || plan_->rows.empty()) return;
  clocks_ = ClocksAtLevel(*plan_, level_);
  LearnFrom(old.get(), old_rows);
}

void Follower::LearnFrom(const RankPlan* old, const std::vector<Row>& old_rows) {
  // Correct the new plan's predictions by measurements under the old one.
  const bool same = old && SameOrder(*old, *plan_);
  double planned = 0;
  double measured = 0;
  for (std::size_t i = 0; i < old_rows.size(); ++i) {
    if (!old_rows[i].measured) continue;
    planned += old->rows[i].duration_seconds * 1e9;
    measured += old_rows[i].duration_ns;
  }
  const double overall = planned > 0 ? measured / planned : 1;
  double end_seconds = 0;
  for (std::size_t i = 0; i < plan_->rows.size(); ++i) {
    const PlanRow& row = plan_->rows[i];
    double ratio = overall;
    if (same && old_rows[i].measured && old->rows[i].duration_seconds > 0) {
      ratio = old_rows[i].duration_ns / (old->rows[i].duration_seconds * 1e9);
    }
    const double gap_ns = std::max(0.0, row.start_seconds - end_seconds) * 1e9 * overall;
    rows_.push_back(
        {.duration_ns = row.duration_seconds * 1e9 * ratio, .gap_ns = gap_ns, .doubt_ns = gap_ns});
    end_seconds = row.start_seconds + row.duration_seconds;
  }
}

void Follower::SetLevel(Level level) {
  level_ = level;
  level_since_ = counters_.iterations;
  guard_.Restart();
  clocks_.clear();
  if (plan_) clocks_ = ClocksAtLevel(*plan_, level);
}

void Follower::Handle(const Event& event, std::int64_t at_ns) {
  last_event_ns_ = at_ns;
  const ComputationId id{event.type, event.stage, event.microbatch};
  switch (event.kind) {
    case EventKind::kStepBegin:
      BeginIteration(event.value, event.stage != kUnheard, at_ns);
      break;
    case EventKind::kStepEnd:
      EndIteration(event.value, at_ns);
      break;
    case EventKind::kBegin:
      ++counters_.instructions;
      if (in_iteration_) BeginRow(id, at_ns);  // Outside: an evaluation, say.
      break;
    case EventKind::kEnd:
      if (in_iteration_) EndRow(id, at_ns);
      break;
    case EventKind::kStepAbandon:
      AbandonIteration();
      break;
    case EventKind::kWork:
      break;
    case EventKind::kBusy:
      if (in_iteration_) reported_ns_[static_cast<std::size_t>(event.type)] = event.value;
      break;
  }
}

void Follower::BeginIteration(std::int64_t iteration, bool is_heard, std::int64_t at_ns) {
  first_row_ += static_cast<std::int64_t>(clocks_.size());
  const bool waited = clocks_.empty();
  if (has_offer_) Adopt();
  // The first clock was called for when the last row ended, but now its wait begins anew.
  if (WaitingMhz() > 0 && called_row_ == first_row_) --called_row_;
  // Several short iterations can pass before the trainer is told that there is a plan.
  may_be_quiet_ = waited || !is_heard;
  if (!step_plans_.empty()) AdoptStepPlan(iteration);
  in_iteration_ = true;
  lost_ = false;
  iteration_ = iteration;
  iteration_begin_ns_ = at_ns;
  busy_ns_ = {};
  reported_ns_.fill(kNotReported);
  rows_at_begin_ = rows_;
  spans_.clear();
  noise_times_.clear();
  compares_ = plan_ && plan_->comparison && plan_->comparison->AtMaximum(iteration);
  row_ = -1;
  open_ = 0;
}

void Follower::EndIteration(std::int64_t tokens, std::int64_t at_ns) {
  if (!in_iteration_) return;
  const bool followed = Follows();
  // The plan came when the trainer had been told that nobody listens: it said nothing.
  if (may_be_quiet_ && row_ < 0 && open_ == 0) lost_ = true;
  if (followed && !lost_ && (row_ + 1 != std::ssize(clocks_) || open_ > 0)) {
    Mismatch(fmt::format("its iteration {} ended after {} of the {} computations of its plan",
                         iteration_, row_ + (open_ > 0 ? 0 : 1), clocks_.size()));
  }
  in_iteration_ = false;
  open_ = 0;
  ++counters_.iterations;
  iteration_ns_ = at_ns - iteration_begin_ns_;
  const double seconds = static_cast<double>(iteration_ns_) * 1e-9;
  const bool good = followed && !lost_;
  PastIteration past;
  past.record = {.iteration = iteration_,
                 .plan_version = good ? plan_->version : -1,
                 .tokens = tokens,
                 .seconds = seconds,
                 .clocks = ClocksOfIteration(good)};
  SetBusy(busy_ns_, reported_ns_, &past.record);
  past.plan = good ? plan_ : nullptr;
  past.level = level_;
  past.teaches = good && !compares_;
  past.reported_ns = reported_ns_;
  past.spans = std::exchange(spans_, {});
  if (good && !has_device_times_) {
    noise_.AddIteration(iteration_, plan_->version,
                        WithoutSelection(std::exchange(noise_times_, {})));
    std::vector<DeviceSpan> ran;
    ran.reserve(past.spans.size());
    for (const Span& span : past.spans) ran.push_back(span.ran);
    KeepTimeline(past, ran);
  }
  Keep(std::move(past));
  if (good) {
    strikes_ = 0;
    if (!compares_ && guard_.EndIteration(seconds)) {
      const double share = guard_.share();  // The next level begins anew.
      SetLevel(static_cast<Level>(static_cast<int>(level_) + 1));
      complaint_ = fmt::format(
          "setting clocks seems to cost {:.1f} % of the iteration time, more than {:g} %, so this "
          "rank {} for {} iterations, and saves less; a plan with fewer changes of clock helps "
          "(granularity = \"phase\"), or a higher max_overhead",
          share * 100, settings_.max_overhead * 100, WhatItDoesAt(level_), kTryFinerAfter);
    }
  }
  if (level_ != Level::kComputation && counters_.iterations - level_since_ >= kTryFinerAfter) {
    SetLevel(static_cast<Level>(static_cast<int>(level_) - 1));
  }
}

Clocks Follower::ClocksOfIteration(bool good) const {
  if (clock_mhz_ == kUnknownMhz) return Clocks::kUnknown;
  if (!good)
    return clock_mhz_ == 0 && (clocks_.empty() || paused_) ? Clocks::kDrivers : Clocks::kUnknown;
  if (compares_) return Clocks::kDrivers;
  return level_ == Level::kComputation ? Clocks::kPlanned : Clocks::kCoarse;
}

void Follower::Mismatch(const std::string& sentence) {
  lost_ = true;
  ++counters_.order_mismatches;
  if (strikes_ == 0) {
    complaint_ = "the trainer runs another order than its plan: " + sentence +
                 "; clocks are given back for the rest of the iteration";
  }
  if (++strikes_ == kMaxStrikes) {
    complaint_ = fmt::format(
        "the trainer ran another order than its plan in {} iterations, one after another; clocks "
        "stay with the driver until there is another plan",
        kMaxStrikes);
  }
}

void Follower::BeginRow(const ComputationId& id, std::int64_t at_ns) {
  if (!Follows() || lost_) {
    lost_ = true;  // Where following goes on within the iteration, its place is not known.
    spans_.push_back({.type = open_ == 0 ? id.type : open_type_, .joins = open_ > 0});
    if (open_++ == 0) {
      row_begin_ns_ = at_ns;
      open_type_ = id.type;
    }
    return;
  }
  if (row_ >= 0) {
    const PlanRow& current = plan_->rows[static_cast<std::size_t>(row_)];
    // The other half of two computations that run as one.
    if (current.fused && (MatchesComputation(*current.fused, id) ||
                          (open_ > 0 && MatchesComputation(current.id, id)))) {
      spans_.push_back({.row = row_, .type = open_type_, .joins = true});
      ++open_;
      return;
    }
    if (open_ > 0) {  // Its end was never said.
      open_ = 1;
      EndRow(current.id, at_ns);
    }
  }
  const std::ptrdiff_t next = row_ + 1;
  if (next >= std::ssize(clocks_)) {
    Mismatch(
        fmt::format("it began {} after the last computation of the plan", DescribeComputation(id)));
  } else if (const PlanRow& planned = plan_->rows[static_cast<std::size_t>(next)];
             !MatchesComputation(planned.id, id) &&
             !(planned.fused && MatchesComputation(*planned.fused, id))) {
    Mismatch(fmt::format("it began {} where the plan has {}", DescribeComputation(id),
                         DescribeComputation(planned.id)));
  } else {
    Row& row = rows_[static_cast<std::size_t>(next)];
    const std::int64_t since = next == 0 ? iteration_begin_ns_ : row_end_ns_;
    // At default clocks all is shorter than what is to be predicted.
    if (!compares_ && !has_device_times_) {
      LearnGap(static_cast<double>(at_ns - since), &row);
    }
    if (next == 0 && row_ended_before_) {
      bool measured = wrap_gap_ns_ > 0;
      Learn(static_cast<double>(at_ns - row_end_ns_), &wrap_gap_ns_, &measured);
    }
    row_ = next;
  }
  open_ = 1;
  // Of two that run as one, whichever begins first: as the plan counts it.
  open_type_ = lost_ ? id.type : plan_->rows[static_cast<std::size_t>(row_)].id.type;
  row_begin_ns_ = at_ns;
  spans_.push_back({.row = lost_ ? -1 : row_, .type = open_type_});
}

void Follower::EndRow(const ComputationId& /*computation*/, std::int64_t at_ns) {
  if (open_ == 0 || --open_ > 0) return;
  const std::int64_t lasted_ns = at_ns - row_begin_ns_;
  busy_ns_[static_cast<std::size_t>(open_type_)] += lasted_ns;
  row_end_ns_ = at_ns;
  row_ended_before_ = true;
  if (!Follows() || lost_ || compares_ || row_ < 0) return;
  const auto index = static_cast<std::size_t>(row_);
  Row& row = rows_[index];
  const PlanRow& planned = plan_->rows[index];
  const auto span = std::find_if(spans_.rbegin(), spans_.rend(),
                                 [](const Span& candidate) { return !candidate.joins; });
  const bool is_whole = !planned.fused && clock_mhz_ > 0 && !DuringCall(row_begin_ns_, at_ns) &&
                        ClockAt(row_begin_ns_) == ClockAt(at_ns);
  constexpr double kRemembered = 64;  // Iterations.
  ++row.iterations;
  row.whole_share +=
      ((is_whole ? 1 : 0) - row.whole_share) / std::min<double>(row.iterations, kRemembered);
  if (span != spans_.rend()) {
    span->changes = waited_ || clocks_[index] != ClockBefore(index);
    span->ran = {row_begin_ns_ - iteration_begin_ns_, at_ns - iteration_begin_ns_};
  }
  if (is_whole) {
    const int mhz = ClockAt(at_ns);
    if (span != spans_.rend()) span->mhz = mhz;
    if (!has_device_times_ && !plan_->IsOfOneStep()) {
      CountKind(planned.id, mhz, static_cast<double>(lasted_ns) * 1e-9, IsSteady(index));
      noise_times_.push_back({row_, mhz, static_cast<double>(lasted_ns)});
    }
  }
  // At another level the planned duration is of another clock. A clock that came too
  // late costs time as much as the call itself.
  if (clocks_[index] == planned.mhz) {
    const int mhz = ClockAt(row_begin_ns_);
    const bool disturbed = DuringCall(row_begin_ns_, at_ns) || (mhz != 0 && mhz < planned.mhz);
    if (span != spans_.rend()) span->disturbed = disturbed;
    if (!has_device_times_) {
      guard_.AddComputation(planned.id.type, planned.duration_seconds,
                            static_cast<double>(lasted_ns) * 1e-9, disturbed);
    }
  }
  if (!has_device_times_) {
    Learn(static_cast<double>(lasted_ns), &row.duration_ns, &row.measured);
  }
  JudgeChange(index, row_begin_ns_, at_ns);
}

int Follower::ClockBefore(std::size_t row) const {
  return row == 0 ? clocks_.back() : clocks_[row - 1];
}

void Follower::JudgeChange(std::size_t row, std::int64_t begin_ns, std::int64_t end_ns) {
  const int wanted = clocks_[row];
  if (wanted == ClockBefore(row) && !waited_) return;
  waited_ = false;
  for (auto change = changes_.rbegin(); change != changes_.rend(); ++change) {
    if (change->effective_ns >= end_ns) continue;
    if (change->mhz == wanted) {
      if (change->effective_ns > begin_ns + kOnTimeNs) {
        ++counters_.late;
      } else if (change->effective_ns < begin_ns - kOnTimeNs) {
        ++counters_.early;
      } else {
        ++counters_.on_time;
      }
      return;
    }
    if (change->effective_ns <= begin_ns) break;  // Another clock was in effect.
  }
  ++counters_.missed;
}

// Half of the old, half of the new; the new alone where there is no old.
void Follower::Learn(double measured, double* value, bool* is_measured) {
  *value = switching::Learned(*value, measured, *is_measured);
  *is_measured = true;
}

void Follower::LearnGap(double measured, Row* row) {
  row->doubt_ns = switching::LearnedDoubt(row->doubt_ns, row->gap_ns, measured, row->gap_measured);
  Learn(measured, &row->gap_ns, &row->gap_measured);
}

// The clock in effect then, as far as it is remembered; 0: the driver's own.
int Follower::ClockAt(std::int64_t at_ns) const {
  for (auto change = changes_.rbegin(); change != changes_.rend(); ++change) {
    if (change->effective_ns <= at_ns) return change->mhz;
  }
  return 0;
}

bool Follower::DuringCall(std::int64_t begin_ns, std::int64_t end_ns) const {
  return std::any_of(calls_.begin(), calls_.end(), [&](const Interval& call) {
    return call.begin_ns < end_ns && call.end_ns > begin_ns;
  });
}

void Follower::Remember(Interval call) {
  last_call_ns_ = call.begin_ns;
  calls_.push_back(call);
  if (calls_.size() > kRemembered) calls_.pop_front();
}

void Follower::Called(int mhz, std::int64_t begin_ns, std::int64_t effective_ns) {
  Remember({begin_ns, effective_ns});
  changes_.push_back({mhz, effective_ns});
  if (changes_.size() > kRemembered) changes_.pop_front();
  clock_mhz_ = mhz;
}

void Follower::CallFailed(std::int64_t begin_ns, std::int64_t end_ns) {
  Remember({begin_ns, end_ns});
  clock_mhz_ = kUnknownMhz;
}

std::int64_t Follower::shortest_row_ns() const {
  double shortest = 0;
  for (const Row& row : rows_) {
    if (shortest == 0 || row.duration_ns < shortest) shortest = row.duration_ns;
  }
  return static_cast<std::int64_t>(shortest);
}

std::vector<IterationRecord> Follower::TakeIterations() { return std::exchange(records_, {}); }

std::optional<std::string> Follower::TakeComplaint() {
  return std::exchange(complaint_, std::nullopt);
}

namespace {

// Whatever a plan predicts: who says nothing for so long is not computing.
constexpr std::int64_t kLongestPatienceNs = 60 * kSecondNs;

}  // namespace

// How long nothing may happen before the clock is given back: the trainer
// evaluates, saves or hangs, and must not do it at a low clock.
std::int64_t Follower::PatienceNs() const {
  const double planned_ns = plan_ ? plan_->iteration_time_seconds * 1e9 : 0;
  const double twice_ns = 2 * std::max(static_cast<double>(iteration_ns_), planned_ns);
  // Compared before it is made an integer: not every double is one.
  if (!(twice_ns < static_cast<double>(kLongestPatienceNs))) return kLongestPatienceNs;
  return std::max(kSecondNs, static_cast<std::int64_t>(twice_ns));
}

std::int64_t Follower::rest_at_ns() const { return last_event_ns_ + PatienceNs(); }

// The first clock of the next iteration, which may be of another plan; 0: none.
int Follower::NextFirstClock() const {
  const auto own = std::find_if(step_plans_.rbegin(), step_plans_.rend(),
                                [&](const std::shared_ptr<const RankPlan>& plan) {
                                  return plan->iteration == iteration_ + 1;
                                });
  if (own != step_plans_.rend() && !(*own)->rows.empty()) {
    return ClocksAtLevel(**own, level_).front();
  }
  if (!has_offer_) return clocks_.front();
  const bool offers = offered_ && !offered_->rows.empty();
  return offers ? ClocksAtLevel(*offered_, level_).front() : 0;
}

// The clock that should be in effect now: the running row's, or, if nothing runs that a clock could
// slow, the next row's.
switching::ClockChoice Follower::ClockNow() const {
  const auto size = std::ssize(clocks_);
  const bool running = in_iteration_ && open_ > 0 && row_ >= 0;
  const auto choice = [](std::ptrdiff_t number, int mhz) {
    return switching::ClockChoice{.row = static_cast<int>(number), .clock = mhz};
  };
  if (!running && !settings_.ahead) return choice(std::max<std::ptrdiff_t>(row_, 0), clock_mhz_);
  const std::ptrdiff_t row = running ? row_ : in_iteration_ ? row_ + 1 : size;
  if (row < size) return choice(row, clocks_[static_cast<std::size_t>(row)]);
  const int first = NextFirstClock();
  return choice(size, first != 0 ? first : clock_mhz_);
}

// Forecast of this iteration in nanoseconds, for LookAhead().
struct Follower::Ahead {
  const Follower& self;
  const LatencyRecord& latency;

  static constexpr bool looks_far() { return true; }
  static bool NothingIsDue(int, double, double) { return false; }
  int size() const { return static_cast<int>(self.clocks_.size()); }
  int Clock(int row) const {
    return row == size() ? self.NextFirstClock() : self.clocks_[static_cast<std::size_t>(row)];
  }
  double Gap(int row) const { return row == size() ? self.wrap_gap_ns_ : RowAt(row).gap_ns; }
  double Duration(int row) const { return RowAt(row).duration_ns; }
  bool HasWaitingClock() const { return self.WaitingMhz() > 0; }
  int WaitingClock() const { return self.WaitingMhz(); }
  double Doubt(int row) const { return RowAt(row).doubt_ns; }
  const Row& RowAt(int row) const { return self.rows_[static_cast<std::size_t>(row)]; }
  static bool Changes(int from, int to) { return to != from && to != 0; }
  static bool Lowers(int from, int to) { return from == 0 || to < from; }
  switching::CallTime TimeOf(int mhz) const {
    return {.high = static_cast<double>(latency.HighNs(mhz)),
            .least = static_cast<double>(latency.LeastNs(mhz))};
  }
};

// The row whose clock must be called for by now; and when the next call is due.
switching::ClockChoice Follower::LookAhead(const switching::ClockChoice& now, std::int64_t now_ns,
                                           const LatencyRecord& latency) const {
  if (!settings_.ahead || !in_iteration_ || now.row >= std::ssize(clocks_)) return now;
  const bool running = now.row == row_;
  // Gaps of first rows count from the iteration's begin.
  const std::int64_t before_ns = now.row == 0 ? iteration_begin_ns_ : row_end_ns_;
  const switching::RankPlace place = {
      .now = static_cast<double>(now_ns),
      .row = now.row,
      .running = running,
      .since = static_cast<double>(running ? row_begin_ns_ : before_ns),
      .called_row = static_cast<int>(std::max<std::int64_t>(-1, called_row_ - first_row_)),
      .waits = WaitingMhz() > 0 && clock_mhz_ == WaitingMhz()};
  const switching::CallRule rule = {
      .max_early_loss = settings_.max_early_loss,
      .least_interval = static_cast<double>(settings_.min_interval_ns)};
  return switching::LookAhead(Ahead{*this, latency}, rule, place);
}

// Planned changes since the last call that a call for row `number` overtakes.
std::uint64_t Follower::Overtaken(std::int64_t number) const {
  const auto size = std::ssize(clocks_);
  if (called_row_ < 0 || number <= called_row_ || number - called_row_ > 2 * size) return 0;
  std::uint64_t changes = 0;
  for (std::int64_t i = called_row_ + 1; i <= number; ++i) {
    const auto row = static_cast<std::size_t>(((i - first_row_) % size + size) % size);
    if (clocks_[row] != ClockBefore(row)) ++changes;
  }
  return changes > 1 ? changes - 1 : 0;
}

Follower::Decision Follower::Decide(std::int64_t now_ns, const LatencyRecord& latency) {
  Decision decision;
  decision.wake_at_ns = now_ns + kSecondNs;
  const std::int64_t rest_ns = rest_at_ns();
  if (!Follows() || lost_ || compares() || now_ns >= rest_ns) {
    if (clock_mhz_ != 0) decision.call_mhz = 0;
    return decision;
  }
  decision.wake_at_ns = std::min(decision.wake_at_ns, rest_ns);
  const switching::ClockChoice choice = LookAhead(ClockNow(), now_ns, latency);
  if (std::isfinite(choice.due)) {
    decision.wake_at_ns = std::min(decision.wake_at_ns, static_cast<std::int64_t>(choice.due) + 1);
  }
  if (choice.clock == clock_mhz_) return decision;
  const std::int64_t allowed_ns = last_call_ns_ + settings_.min_interval_ns;
  if (now_ns < allowed_ns) {
    decision.wake_at_ns = std::min(decision.wake_at_ns, allowed_ns);
    return decision;
  }
  decision.call_mhz = choice.clock;
  waited_ = waited_ || (choice.clock == WaitingMhz() && open_ == 0);
  const std::int64_t number = first_row_ + choice.row;
  counters_.coalesced += Overtaken(number);
  called_row_ = number;
  return decision;
}

// Iterations that ended: those whose device times may still come, and those that
// do not count.

// Times from the trainer overrule the measured ones.
void Follower::SetBusy(const BusyNs& busy_ns, const BusyNs& reported_ns, IterationRecord* record) {
  record->busy_seconds = 0;
  for (std::size_t type = 0; type < busy_ns.size(); ++type) {
    const std::int64_t ns = reported_ns[type] == kNotReported ? busy_ns[type] : reported_ns[type];
    record->busy_by_type[type] = static_cast<double>(ns) * 1e-9;
    record->busy_seconds += record->busy_by_type[type];
  }
}

// Nothing of it is learned, counted or reported; the follower stands between two
// iterations then.
void Follower::AbandonIteration() {
  if (!in_iteration_) return;
  in_iteration_ = false;
  open_ = 0;
  rows_ = rows_at_begin_;
  row_ended_before_ = false;  // The time to the next begin is no gap.
  guard_.DropIteration();
}

void Follower::Keep(PastIteration past) {
  past_.push_back(std::move(past));
  const std::size_t most = has_device_times_ ? kTimesPatience : 0;
  while (past_.size() > most) {
    records_.push_back(past_.front().record);
    past_.pop_front();
  }
}

void Follower::HandleTimes(const StepTimes& times) {
  if (!std::exchange(has_device_times_, true)) noise_ = {};
  const auto found = std::find_if(past_.begin(), past_.end(), [&](const PastIteration& past) {
    return past.record.iteration == times.iteration;
  });
  if (found == past_.end()) return;  // The first that came, or one that was not waited for.
  if (found->spans.size() != times.computations.size() || !times.InOrder()) {
    complaint_ = fmt::format(
        "the device times of iteration {} are not used: {} of them for {} computations, in order "
        "of their begins",
        times.iteration, times.computations.size(), found->spans.size());
  } else {
    LearnTimes(*found, times);
    BusyNs busy_ns = {};
    std::int64_t busy_until_ns = INT64_MIN;
    for (std::size_t i = 0; i < found->spans.size(); ++i) {
      const DeviceSpan& span = times.computations[i];
      const std::int64_t begin_ns = std::max(span.begin_ns, busy_until_ns);
      if (span.end_ns > begin_ns) {
        busy_ns[static_cast<std::size_t>(found->spans[i].type)] += span.end_ns - begin_ns;
      }
      busy_until_ns = std::max(busy_until_ns, span.end_ns);
    }
    SetBusy(busy_ns, found->reported_ns, &found->record);
  }
  // In the order of their ends: what is older waits no longer.
  for (auto past = past_.begin(); past != found + 1; ++past) records_.push_back(past->record);
  past_.erase(past_.begin(), found + 1);
}

// The first computation of an iteration takes longer: by 12 % on an H100 (docs/evidence/gpu.md).
bool Follower::IsSteady(std::size_t row) const {
  constexpr std::size_t kFew = 2;  // Each kind runs once.
  constexpr int kLeastIterations = 10;
  constexpr double kNearlyAll = 0.95;
  const bool is_usual = row > 0 || rows_.size() <= kFew;
  return is_usual && rows_[row].iterations >= kLeastIterations &&
         rows_[row].whole_share >= kNearlyAll;
}

// A computation that comes late, because the one before it took long, is more likely to find its
// clock in effect. Where times follow each other, those that are counted then vary less than all.
std::vector<NoiseEstimate::Time> Follower::WithoutSelection(
    std::vector<NoiseEstimate::Time> times) const {
  constexpr std::ptrdiff_t kEnough = 4;
  const auto is_steady = [this](const NoiseEstimate::Time& time) {
    return IsSteady(static_cast<std::size_t>(time.row));
  };
  if (std::count_if(times.begin(), times.end(), is_steady) >= kEnough) {
    times.erase(std::remove_if(times.begin(), times.end(), std::not_fn(is_steady)), times.end());
  }
  return times;
}

void Follower::CountKind(const ComputationId& id, int mhz, double seconds, bool is_steady) {
  if (mhz <= 0) return;
  const auto found = std::find_if(kinds_.begin(), kinds_.end(), [&](const KindTimes& kind) {
    return kind.type == id.type && kind.stage == id.stage && kind.mhz == mhz &&
           kind.is_steady == is_steady;
  });
  if (found != kinds_.end()) {
    ++found->count;
    found->seconds += seconds;
  } else if (kinds_.size() < kMostReportedKinds) {
    kinds_.push_back({id.type, id.stage, mhz, 1, seconds, is_steady});
  }
}

void Follower::KeepTimeline(const PastIteration& past, const std::vector<DeviceSpan>& ran) {
  if (!past.teaches || past.level != Level::kComputation || past.plan->IsOfOneStep() ||
      past.record.iteration % kTimelineEvery != 0 || past.plan->rows.size() > kMostTimelineRows) {
    return;
  }
  RankTimeline timeline;
  for (std::size_t i = 0; i < ran.size(); ++i) {
    const Span& span = past.spans[i];
    if (span.joins) {
      if (timeline.rows.empty()) return;
      timeline.rows.back().end_ns = std::max(timeline.rows.back().end_ns, ran[i].end_ns);
      continue;
    }
    if (span.row != std::ssize(timeline.rows)) return;
    if (span.changes) timeline.changes.push_back(static_cast<int>(span.row));
    timeline.rows.push_back(ran[i]);
  }
  if (timeline.rows.size() != past.plan->rows.size()) return;
  timeline_iteration_ = past.record.iteration;
  timeline_ = std::move(timeline);
}

std::optional<RankTimeline> Follower::TakeTimeline(std::int64_t iteration) {
  if (!timeline_ || timeline_iteration_ != iteration) return std::nullopt;
  return std::exchange(timeline_, std::nullopt);
}

std::vector<KindTimes> Follower::TakeKinds() { return std::exchange(kinds_, {}); }

// As BeginRow() and EndRow() do of the host's times. Of the plan that is followed now, or, where
// each step has its own, of an earlier step's: how far it was off then tells how far this one is.
void Follower::LearnTimes(const PastIteration& past, const StepTimes& times) {
  if (!past.teaches || plan_ == nullptr) return;
  const bool is_same = past.plan == plan_;
  if (!is_same &&
      !(past.plan->IsOfOneStep() && plan_->IsOfOneStep() && SameOrder(*past.plan, *plan_))) {
    return;
  }
  std::vector<NoiseEstimate::Time> noise_times;
  std::int64_t end_ns = 0;  // Of the row before; since the step's begin.
  for (std::size_t i = 0; i < past.spans.size(); ++i) {
    if (past.spans[i].row < 0 || past.spans[i].joins) continue;
    const auto index = static_cast<std::size_t>(past.spans[i].row);
    DeviceSpan span = times.computations[i];
    for (std::size_t k = i + 1; k < past.spans.size() && past.spans[k].joins; ++k) {
      span.end_ns = std::max(span.end_ns, times.computations[k].end_ns);
    }
    const auto gap_ns = static_cast<double>(std::max<std::int64_t>(0, span.begin_ns - end_ns));
    const auto lasted_ns = static_cast<double>(span.end_ns - span.begin_ns);
    end_ns = span.end_ns;
    Row& row = rows_[index];
    const PlanRow& planned = plan_->rows[index];
    if (!is_same) {
      const double then_seconds = past.plan->rows[index].duration_seconds;
      if (then_seconds > 0) {
        Learn(lasted_ns * planned.duration_seconds / then_seconds, &row.duration_ns, &row.measured);
      }
      continue;
    }
    LearnGap(gap_ns, &row);
    Learn(lasted_ns, &row.duration_ns, &row.measured);
    if (!plan_->IsOfOneStep() && past.spans[i].mhz > 0) {
      CountKind(planned.id, past.spans[i].mhz, lasted_ns * 1e-9, IsSteady(index));
      noise_times.push_back({past.spans[i].row, past.spans[i].mhz, lasted_ns});
    }
    if (past.level == level_ && clocks_[index] == planned.mhz) {
      guard_.AddComputation(planned.id.type, planned.duration_seconds, lasted_ns * 1e-9,
                            past.spans[i].disturbed);
    }
  }
  if (is_same) {
    KeepTimeline(past, times.computations);
    noise_.AddIteration(past.record.iteration, plan_->version,
                        WithoutSelection(std::move(noise_times)));
  }
}

}  // namespace perseus::client
