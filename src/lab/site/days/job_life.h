// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SITE_DAYS_JOB_LIFE_H_
#define PERSEUS_SITE_DAYS_JOB_LIFE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "site/days/calendar.h"
#include "site/days/days.h"
#include "site/days/pace.h"

namespace perseus::site {

// One job through the days. What changes (plan, stragglers) is in effect from its next iteration
// on.
class JobLife {
 public:
  JobLife(const DaysJob& job, std::size_t index, std::uint64_t seed)
      : job_(job), index_(index), seed_(seed) {}

  // Starts its first iteration.
  void Arrive(double seconds, const JobRun& run, std::vector<double> slow);
  // Ends amid an iteration.
  void Leave(double seconds);
  bool is_here() const { return is_here_; }

  // The begin of the first iteration from `seconds` on.
  double NextBegin(double seconds) const;
  // From the iteration on that begins then. Replaces what was told before and is not in effect yet.
  void Tell(double begin_seconds, const JobRun& run, std::vector<double> slow);
  // At once, amid an iteration.
  void TellNow(double seconds, const JobRun& run, std::vector<double> slow);
  // Until then, changes that are due included.
  void Advance(double seconds);

  // When it has done so many iterations, if that is before `until`.
  std::optional<double> TimeOf(double iterations, double until) const;
  double DoneAt(double seconds) const;

  const JobPace& pace() const { return now_.pace; }
  const JobRun& run() const { return next_ ? next_->run : now_.run; }
  const std::vector<double>& slow() const { return next_ ? next_->slow : now_.slow; }
  // As it was told last.
  double told_watts() const { return next_ ? next_->pace.watts : now_.pace.watts; }
  double longest_iteration() const;
  std::int64_t plan_changes() const { return plan_changes_; }
  std::vector<JobSpan> TakeSpans() { return std::move(spans_); }

 private:
  struct Order {
    double at = 0;
    JobRun run;
    std::vector<double> slow;
    JobPace pace;
  };
  // Where it is among its iterations.
  struct Place {
    double begin = 0;         // Of the iteration that runs.
    std::int64_t number = 0;  // Of that iteration.
    double done = 0;
  };
  Order MakeOrder(double at, const JobRun& run, std::vector<double> slow) const;
  double IterationSeconds(const Order& order, std::int64_t number) const;
  void AdvanceIn(const Order& order, double seconds, Place* place) const;
  void Begin(Order order);
  void EndSpan(double seconds);

  const DaysJob& job_;
  std::size_t index_;
  std::uint64_t seed_;
  bool is_here_ = false;
  Order now_;
  std::optional<Order> next_;
  Place place_;
  double span_from_ = 0;
  std::int64_t plan_changes_ = 0;
  std::vector<JobSpan> spans_;
};

}  // namespace perseus::site

#endif  // PERSEUS_SITE_DAYS_JOB_LIFE_H_
