// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "site/days/calendar.h"
#include "site/days/rule.h"

namespace perseus::site {
namespace {

// Least cost for the work that jobs must do, one day after the other.
class Priced : public DaysRule {
 public:
  Priced(const DaysSite& site, double seconds) : site_(site), limits_(site), seconds_(seconds) {}

  std::string name() const override { return "perseus-priced"; }
  std::string title() const override { return "perseus: least cost for the work asked for"; }
  std::string says() const override {
    return "Each day's work is shared out over the day's prices and limits so that it costs least. "
           "Prices are known until midnight; work of a later deadline is spread evenly.";
  }

  Result<DaysDecision> Decide(const DaysMoment& moment) override {
    NoteDay(moment);
    const bool is_same = schedule_ && moment.present == solved_.present &&
                         moment.limits == solved_.limits && moment.seconds < ends_.back();
    // Stragglers and noise: what is left to do is counted anew now and then.
    constexpr double kOld = 3600;
    const bool is_old = is_same && moment.seconds >= solved_.seconds + kOld - kInstant;
    if (!is_same || is_old) {
      if (auto solved = Solve(moment); !solved) return tl::unexpected(solved.error());
    }
    const auto end = std::upper_bound(ends_.begin(), ends_.end(), moment.seconds + kInstant);
    const auto period = static_cast<std::size_t>(end - ends_.begin());
    DaysDecision decision;
    decision.again_seconds = ends_[period];
    const std::vector<JobShare>& shares =
        schedule_->periods[std::min(period, schedule_->periods.size() - 1)].jobs;
    for (std::size_t k = 0; k < moment.present.size(); ++k) {
      const DaysJob& job = site_.jobs[moment.present[k]];
      if (IsPause(job, shares[k], moment.slow[k])) {
        decision.runs.push_back(PausedRun());
        continue;
      }
      const IterationPoint point = MeanPoint(job, shares[k], solved_.slow[k]);
      decision.runs.push_back(
          {point, job.fleet.plans.front(), static_cast<std::int64_t>(1e9 * point.time_seconds)});
    }
    return decision;
  }

 private:
  static constexpr double kInstant = 1e-6;
  struct DayOfJob {
    double from_seconds = 0;
    double done = 0;
  };

  // Remembers what each job had done when its day began.
  void NoteDay(const DaysMoment& moment) {
    const double day = std::floor(moment.seconds / kSecondsOfDay + kInstant / kSecondsOfDay);
    if (day != day_) days_.clear();
    day_ = day;
    for (std::size_t k = 0; k < moment.present.size(); ++k) {
      days_.try_emplace(moment.present[k], DayOfJob{moment.seconds, moment.done[k]});
    }
  }

  double Price(double seconds) const {
    if (!site_.price_per_joule.empty()) return ValueAt(site_.price_per_joule, seconds);
    if (!site_.co2_grams_per_joule.empty()) return ValueAt(site_.co2_grams_per_joule, seconds);
    return 1;
  }

  // When periods end: wherever something known changes, and at midnight.
  void SetPeriods(const DaysMoment& moment) {
    const double now = moment.seconds;
    const double midnight = std::min((day_ + 1) * kSecondsOfDay, seconds_);
    constexpr double kShortest = 1;
    std::vector<double> ends;
    const bool has_price = !site_.price_per_joule.empty();
    for (const SeriesStep& step : has_price ? site_.price_per_joule : site_.co2_grams_per_joule) {
      ends.push_back(step.seconds);
    }
    for (const PowerEvent& event : site_.events) {
      if (now < event.start_seconds - event.notice_seconds) continue;
      ends.push_back(event.start_seconds);
      ends.push_back(event.start_seconds + event.duration_seconds);
    }
    for (std::size_t k = 0; k < moment.present.size(); ++k) {
      const DaysJob& job = site_.jobs[moment.present[k]];
      if (job.deadline) ends.push_back(moment.arrived[k] + job.deadline->seconds);
      if (job.lasts_seconds) ends.push_back(moment.arrived[k] + *job.lasts_seconds);
    }
    std::sort(ends.begin(), ends.end());
    ends_.clear();
    double last = now;
    for (const double end : ends) {
      if (end < last + kShortest || end > midnight - kShortest) continue;
      ends_.push_back(end);
      last = end;
    }
    ends_.push_back(std::max(midnight, now + kShortest));
  }

  // The period that ends at this time, or the last one before it.
  std::size_t PeriodEndingBy(double seconds) const {
    const auto after = std::upper_bound(ends_.begin(), ends_.end(), seconds + kInstant);
    return after == ends_.begin() ? 0 : static_cast<std::size_t>(after - ends_.begin()) - 1;
  }

  // What a job must have done by the end of a period.
  void AddDeadlines(const DaysMoment& moment, std::size_t k,
                    std::vector<FleetDeadline>* deadlines) const {
    const DaysJob& job = site_.jobs[moment.present[k]];
    const double now = moment.seconds;
    const double full_rate = 1 / job.fleet.full_speed_seconds;
    double until = ends_.back();
    if (job.lasts_seconds) until = std::min(until, moment.arrived[k] + *job.lasts_seconds);
    double due = moment.arrived[k];
    double left = 0;
    if (job.deadline) {
      due += job.deadline->seconds;
      left =
          std::max(0.0, job.deadline->share * job.deadline->seconds * full_rate - moment.done[k]);
      if (due > until && due > now) left *= (until - now) / (due - now);
    }
    if (!job.deadline || due <= now) {
      const DayOfJob& day = days_.at(moment.present[k]);
      left =
          site_.work_share * (until - day.from_seconds) * full_rate - (moment.done[k] - day.done);
    } else if (due < until) {
      Add(moment, k, left, due, deadlines);
      left += site_.work_share * (until - due) * full_rate;
    }
    Add(moment, k, left, until, deadlines);
  }

  // No more than can be done with the stragglers of now.
  void Add(const DaysMoment& moment, std::size_t k, double iterations, double by_seconds,
           std::vector<FleetDeadline>* deadlines) const {
    constexpr double kSlack = 1 - 1e-4;
    const std::size_t period = PeriodEndingBy(by_seconds);
    const DaysJob& job = site_.jobs[moment.present[k]];
    const IterationPoint fastest = job.fleet.plans.front();
    const JobPace pace = PaceOf(job, {fastest, fastest, 0}, moment.slow[k]);
    const double most =
        kSlack * std::max(0.0, ends_[period] - moment.seconds) * pace.iterations_per_second();
    const double asked = std::min(iterations, most);
    if (asked > 0) deadlines->push_back({k, period, asked});
  }

  Result<void> Solve(const DaysMoment& moment) {
    SetPeriods(moment);
    solved_ = moment;
    schedule_.emplace();
    schedule_->periods.resize(1);
    if (moment.present.empty()) return {};
    const PowerSite site = SiteAt(site_, moment);
    std::vector<PowerPeriod> periods;
    double from = moment.seconds;
    for (const double end : ends_) {
      PowerPeriod period{end - from, Price(from), {}};
      for (std::size_t node = 0; node < site_.nodes.size(); ++node) {
        // Now: what the budget is. Later: what is known of the limits.
        period.limit_watts.push_back(from <= moment.seconds
                                         ? moment.limits[node]
                                         : LimitKnownNow(node, from, moment.seconds));
      }
      periods.push_back(std::move(period));
      from = end;
    }
    std::vector<FleetDeadline> deadlines;
    for (std::size_t k = 0; k < moment.present.size(); ++k) AddDeadlines(moment, k, &deadlines);
    Result<FleetScheduleAnswer> answer = SchedulePower(site, periods, deadlines);
    if (answer) {
      schedule_ = std::move(answer->plans);
      return {};
    }
    if (answer.error().code != ErrorCode::kInfeasible) return tl::unexpected(answer.error());
    // As much work as the limit allows, and then as slowly as owners accept.
    const Result<FleetAnswer> division = DividePower(site, FleetObjective::kThroughput);
    if (division) {
      schedule_->periods = {division->plans};
      ends_ = {ends_.front()};
      return {};
    }
    if (division.error().code != ErrorCode::kInfeasible) return tl::unexpected(division.error());
    std::vector<JobShare>& shares = schedule_->periods.front().jobs;
    for (std::size_t k = 0; k < moment.present.size(); ++k) {
      const DaysJob& job = site_.jobs[moment.present[k]];
      const JobPace least =
          PlanOptions(job, moment.slow[k], AcceptedSeconds(job, moment.slow[k])).front().pace;
      shares.push_back({least.seconds, least.iterations_per_second(), least.watts, 0, 0});
    }
    ends_ = {ends_.front()};
    return {};
  }

  double LimitKnownNow(std::size_t node, double seconds, double now) const {
    double limit = site_.nodes[node].limit_watts;
    for (const PowerEvent& event : site_.events) {
      const bool is_known = now >= event.start_seconds - event.notice_seconds;
      const bool is_on = seconds >= event.start_seconds - kInstant &&
                         seconds < event.start_seconds + event.duration_seconds - kInstant;
      if (event.node == node && is_known && is_on) {
        limit = std::min(limit, limits_.LimitOf(event));
      }
    }
    return limit;
  }

  const DaysSite& site_;
  LimitCalendar limits_;
  double seconds_;
  double day_ = -1;
  std::map<std::size_t, DayOfJob> days_;
  DaysMoment solved_;
  std::optional<PowerSchedule> schedule_;
  std::vector<double> ends_;  // Of the schedule's periods.
};

}  // namespace

void AddPricedRule(const DaysSite& site, double seconds,
                   std::vector<std::unique_ptr<DaysRule>>* rules) {
  const bool has_deadline = std::any_of(site.jobs.begin(), site.jobs.end(), [](const DaysJob& job) {
    return job.deadline.has_value();
  });
  const bool has_price = !site.price_per_joule.empty() || !site.co2_grams_per_joule.empty();
  if (has_price || has_deadline) rules->push_back(std::make_unique<Priced>(site, seconds));
}

}  // namespace perseus::site
