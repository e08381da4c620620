// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>

#include "client/follower.h"
#include "client/ticks.h"
#include "switching/look_ahead.h"

namespace perseus::client {
namespace {

// Whatever a plan promises: who says nothing for so long is not computing.
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

// What should be in effect at this moment: the running row's clock, or, where
// nothing runs that a clock could slow, that of the next.
Follower::Target Follower::TargetNow() const {
  const auto size = std::ssize(clocks_);
  const bool running = in_iteration_ && open_ > 0 && row_ >= 0;
  if (!running && !settings_.ahead) return {std::max<std::ptrdiff_t>(row_, 0), clock_mhz_};
  const std::ptrdiff_t row = running ? row_ : in_iteration_ ? row_ + 1 : size;
  if (row < size) return {row, clocks_[static_cast<std::size_t>(row)]};
  const int first = NextFirstClock();
  return {size, first != 0 ? first : clock_mhz_};
}

// What is expected of this iteration, nanoseconds, as LookAhead() asks for it.
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
Follower::Target Follower::LookAhead(Target target, std::int64_t now_ns,
                                     const LatencyRecord& latency, std::int64_t* wake_at_ns) const {
  if (!settings_.ahead || !in_iteration_ || target.row >= std::ssize(clocks_)) return target;
  const bool running = target.row == row_;
  // Gaps of first rows count from the iteration's begin.
  const std::int64_t before_ns = target.row == 0 ? iteration_begin_ns_ : row_end_ns_;
  const switching::RankPlace place = {
      .now = static_cast<double>(now_ns),
      .row = static_cast<int>(target.row),
      .running = running,
      .since = static_cast<double>(running ? row_begin_ns_ : before_ns),
      .called_row = static_cast<int>(std::max<std::int64_t>(-1, called_row_ - first_row_)),
      .waits = WaitingMhz() > 0 && clock_mhz_ == WaitingMhz()};
  const switching::CallRule rule = {
      .max_early_loss = settings_.max_early_loss,
      .least_interval = static_cast<double>(settings_.min_interval_ns)};
  const switching::ClockChoice choice = switching::LookAhead(Ahead{*this, latency}, rule, place);
  if (std::isfinite(choice.due)) {
    *wake_at_ns = std::min(*wake_at_ns, static_cast<std::int64_t>(choice.due) + 1);
  }
  return {choice.row, choice.clock};
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
  const Target target = LookAhead(TargetNow(), now_ns, latency, &decision.wake_at_ns);
  if (target.mhz == clock_mhz_) return decision;
  const std::int64_t allowed_ns = last_call_ns_ + settings_.min_interval_ns;
  if (now_ns < allowed_ns) {
    decision.wake_at_ns = std::min(decision.wake_at_ns, allowed_ns);
    return decision;
  }
  decision.call_mhz = target.mhz;
  waited_ = waited_ || (target.mhz == WaitingMhz() && open_ == 0);
  const std::int64_t number = first_row_ + target.row;
  counters_.coalesced += Overtaken(number);
  called_row_ = number;
  return decision;
}

}  // namespace perseus::client
