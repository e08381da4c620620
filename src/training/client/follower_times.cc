// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Iterations that ended: those whose device times may still come, and those that
// do not count.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

#include "client/follower.h"
#include "common/report_limits.h"

namespace perseus::client {

// What the trainer told of a type is the last word.
void Follower::SetBusy(const BusyNs& busy_ns, const BusyNs& told_ns, IterationRecord* record) {
  record->busy_seconds = 0;
  for (std::size_t type = 0; type < busy_ns.size(); ++type) {
    const std::int64_t ns = told_ns[type] == kNotTold ? busy_ns[type] : told_ns[type];
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
    SetBusy(busy_ns, found->told_ns, &found->record);
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
