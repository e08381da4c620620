// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "client/follower.h"
#include "client/ticks.h"

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

// The row whose clock must be called for by now; and when the next call is due.
Follower::Target Follower::LookAhead(Target target, std::int64_t now_ns,
                                     const LatencyRecord& latency, std::int64_t* wake_at_ns) const {
  const auto size = std::ssize(clocks_);
  if (!settings_.ahead || !in_iteration_ || target.row >= size) return target;
  const auto now = static_cast<double>(now_ns);
  const auto high = static_cast<double>(latency.HighNs());
  const auto least = static_cast<double>(latency.LeastNs());
  const Row& first = rows_[static_cast<std::size_t>(target.row)];
  // Gaps of first rows count from the iteration's begin.
  const std::int64_t since_ns = target.row == 0 ? iteration_begin_ns_ : row_end_ns_;
  const double begin = target.row == row_
                           ? static_cast<double>(row_begin_ns_)
                           : std::max(now, static_cast<double>(since_ns) + first.gap_ns);
  double lasts = first.duration_ns;
  double end = std::max(now, begin + lasts);
  for (std::ptrdiff_t next = target.row + 1; next <= size; ++next) {
    const bool wraps = next == size;
    const int mhz = wraps ? NextFirstClock() : clocks_[static_cast<std::size_t>(next)];
    const double gap = wraps ? wrap_gap_ns_ : rows_[static_cast<std::size_t>(next)].gap_ns;
    const double starts = end + gap;
    if (mhz != target.mhz && mhz != 0) {
      const double soonest = end - least - settings_.max_early_loss * lasts;
      const bool lowers = target.mhz == 0 || mhz < target.mhz;
      const double fire = std::min(end, lowers ? std::max(starts - high, soonest) : starts - high);
      // What was called for once is not taken back when predictions shift.
      if (fire > now && first_row_ + next > called_row_) {
        *wake_at_ns = std::min(*wake_at_ns, static_cast<std::int64_t>(fire) + 1);
        break;
      }
      target = {next, mhz};
      // No change is passed over before it was called for: a latency that was once
      // measured too long could otherwise jump from low clock to low clock for good.
      if (first_row_ + next > called_row_) break;
    }
    if (wraps) break;
    lasts = rows_[static_cast<std::size_t>(next)].duration_ns;
    end = starts + lasts;
  }
  return target;
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
  const std::int64_t number = first_row_ + target.row;
  counters_.coalesced += Overtaken(number);
  called_row_ = number;
  return decision;
}

}  // namespace perseus::client
