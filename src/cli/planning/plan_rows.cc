// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/planning/plan_rows.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "common/mutex.h"
#include "plan/named_times.h"
namespace perseus::cli {
namespace {

// Plans for different times, each made by itself.
struct Row {
  double seconds = 0;
  std::optional<Result<Plan>> plan;
};

Result<DiscreteBound> BoundOf(const Planner& planner, Plan plan, double effort) {
  if (auto bounded = planner.AddDiscreteBound(&plan, effort); !bounded) {
    return tl::unexpected(bounded.error());
  }
  return *plan.discrete_bound;
}

// The rows are one queue, from which helpers take while the calling thread does the longest work,
// the chosen plan and its bound; then it takes as well.
class RowQueue {
 public:
  RowQueue(const Planner& planner, const PlanConstraints& constraints, double effort,
           std::vector<Row>* rows)
      : planner_(planner), constraints_(constraints), effort_(effort), rows_(*rows) {}
  ~RowQueue() {
    Stop();
    for (std::thread& helper : helpers_) helper.join();
  }
  RowQueue(const RowQueue&) = delete;
  RowQueue& operator=(const RowQueue&) = delete;

  // With the calling one `threads`, where there are so many rows. The second call does nothing.
  void StartHelpers(int threads) {
    if (!helpers_.empty()) return;
    for (int k = 1; k < std::min(threads, Count() + 1); ++k) {
      try {
        helpers_.emplace_back([this] { Work({}); });
      } catch (const std::system_error&) {  // No more threads: fewer do the same.
        break;
      }
    }
  }

  // Takes part until all rows are made. Throws what a helper threw: std::bad_alloc, most likely.
  void Finish(const RowsProgress& progress) {
    Work(progress.row);
    progress.rest();
    for (std::thread& helper : helpers_) helper.join();
    helpers_.clear();
    const MutexLock lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  int Count() const { return static_cast<int>(rows_.size()); }
  void Stop() { next_ = Count(); }

  void Work(const std::function<void(int, int)>& begun) {
    try {
      for (int k = next_++; k < Count(); k = next_++) {
        if (begun) begun(k + 1, Count());
        rows_[k].plan =
            planner_.PlanFor(rows_[k].seconds, {.constraints = constraints_, .effort = effort_});
      }
    } catch (...) {
      Stop();
      const MutexLock lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }

  const Planner& planner_;
  const PlanConstraints& constraints_;
  const double effort_;
  std::vector<Row>& rows_;
  std::atomic<int> next_ = 0;
  Mutex mutex_;
  std::exception_ptr failure_ PERSEUS_GUARDED_BY(mutex_);  // The first.
  std::vector<std::thread> helpers_;
};

// The different times of the points, but the chosen one, in their order.
std::vector<Row> RowsBesides(double chosen_seconds, const std::vector<PlanPoint>& points) {
  std::vector<double> times;
  times.reserve(points.size());
  for (const PlanPoint& point : points) times.push_back(point.seconds);
  std::sort(times.begin(), times.end());
  std::vector<Row> rows;
  for (const double seconds : times) {
    if (SameTime(seconds, chosen_seconds)) continue;
    if (rows.empty() || !SameTime(rows.back().seconds, seconds)) {
      rows.push_back({.seconds = seconds, .plan = {}});
    }
  }
  return rows;
}

bool SamePlan(const Plan& a, const Plan& b) {
  return std::equal(
      a.options.begin(), a.options.end(), b.options.begin(), b.options.end(),
      [](const CostOption& one, const CostOption& other) { return one.knob == other.knob; });
}

}  // namespace

Result<Plan> PlanRows(const Planner& planner, const PlanConstraints& constraints,
                      const RowEfforts& efforts, int threads, double chosen_seconds,
                      const RowsProgress& progress, std::vector<PlanPoint>* points, bool economic) {
  std::vector<Row> rows = RowsBesides(chosen_seconds, *points);
  RowQueue queue(planner, constraints, efforts.row, &rows);
  // Without constraints, helper threads start with the first plan for the chosen time. If there is
  // none, its error is returned at once and need not wait for other rows. Under constraints the
  // first plan may come only at the end of the search, so helpers start now.
  if (constraints.any()) queue.StartHelpers(threads);
  const ProgressFunction told = [&](const Progress& reached) {
    if (reached.better != nullptr) queue.StartHelpers(threads);
    progress.chosen(reached.share);
    return true;
  };
  auto chosen = planner.PlanFor(
      chosen_seconds, {.constraints = constraints, .effort = efforts.chosen, .progress = told});
  if (!chosen) return tl::unexpected(chosen.error());
  queue.StartHelpers(threads);
  std::optional<DiscreteBound> bound;
  if (efforts.bound > 0) {
    progress.bound();
    auto found = BoundOf(planner, *chosen, efforts.bound);
    if (!found) return tl::unexpected(found.error());
    bound = *found;
  }
  queue.Finish(progress);

  const auto after = std::find_if(rows.begin(), rows.end(), [chosen_seconds](const Row& row) {
    return row.seconds > chosen_seconds;
  });
  const Plan before = *chosen;
  rows.insert(after, {.seconds = chosen_seconds, .plan = std::move(chosen)});
  std::vector<Plan> plans;
  std::vector<double> times;
  for (Row& row : rows) {
    if (!*row.plan && row.plan->error().code != ErrorCode::kInfeasible) {
      return tl::unexpected(row.plan->error());
    }
    if (!*row.plan) continue;
    plans.push_back(**std::move(row.plan));
    times.push_back(row.seconds);
  }
  plan::CarryForward(planner.pipeline(), &plans);
  Plan best;
  for (std::size_t k = 0; k < plans.size(); ++k) {
    if (times[k] == chosen_seconds) best = plans[k];
    for (PlanPoint& point : *points) {
      if (SameTime(point.seconds, times[k])) point.plan = plans[k];
    }
  }
  const std::size_t least = plan::LeastEnergy(plans);
  if (economic) best = plans[least];
  for (PlanPoint& point : *points) {
    if (point.name != plan::kEconomicName) continue;
    point.seconds = times[least];
    point.plan = plans[least];
  }
  SortByTime(points);
  if (bound && !SamePlan(best, before)) {  // The plan for less time is better.
    auto found = BoundOf(planner, best, efforts.bound);
    if (!found) return tl::unexpected(found.error());
    bound = *found;
  }
  best.discrete_bound = bound;
  return best;
}

int UsualThreads() { return static_cast<int>(std::max(1U, std::thread::hardware_concurrency())); }

}  // namespace perseus::cli
