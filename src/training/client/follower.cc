// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "client/follower.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "switching/look_ahead.h"

namespace perseus::client {
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

// Where clock calls cost too much.
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
  // What was measured under the old plan corrects what the new one promises.
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
      if (in_iteration_) told_ns_[static_cast<std::size_t>(event.type)] = event.value;
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
  told_ns_.fill(kNotTold);
  rows_at_begin_ = rows_;
  spans_.clear();
  noise_times_.clear();
  compares_ = plan_ && plan_->comparison.AtMaximum(iteration);
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
  SetBusy(busy_ns_, told_ns_, &past.record);
  past.plan = good ? plan_ : nullptr;
  past.level = level_;
  past.teaches = good && !compares_;
  past.told_ns = told_ns_;
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
    // With no clock set all is shorter than what is to be predicted.
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

}  // namespace perseus::client
