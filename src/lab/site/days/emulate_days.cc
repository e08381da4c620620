// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "site/days/budget.h"
#include "site/days/calendar.h"
#include "site/days/days.h"
#include "site/days/figures.h"
#include "site/days/job_life.h"
#include "site/days/loads.h"
#include "site/days/rule.h"

namespace perseus::site {
namespace {

constexpr double kMoment = 1e-6;  // Seconds: what happens within is one moment.

// One rule in the days of one seed, from change to change.
class RuleRun {
 public:
  RuleRun(const DaysSite& site, const LoadTree& tree, const std::vector<JobCalendar>& calendar,
          double seconds, std::uint64_t seed, DaysRule* rule)
      : site_(site),
        tree_(tree),
        calendar_(calendar),
        limits_(site),
        budget_(site),
        seconds_(seconds),
        rule_(*rule) {
    for (std::size_t j = 0; j < site.jobs.size(); ++j) {
      lives_.emplace_back(site.jobs[j], j, seed);
      times_.push_back(calendar[j].arrives_seconds);
      times_.push_back(calendar[j].leaves_seconds);
      for (const StragglingTime& each : calendar[j].straggling) {
        times_.push_back(each.from_seconds);
        times_.push_back(each.to_seconds);
      }
    }
    left_.assign(lives_.size(), false);
    result_.jobs.resize(lives_.size());
    std::sort(times_.begin(), times_.end());
  }

  Result<RuleDays> Run() {
    double now = 0;
    while (now < seconds_ - kMoment) {
      if (auto decided = Decide(now); !decided) return tl::unexpected(decided.error());
      const double next = NextMoment(now);
      for (JobLife& life : lives_) life.Advance(next);
      End(next);
      now = next;
    }
    Finish();
    return std::move(result_);
  }

 private:
  // Jobs that leave, by time or with their work done.
  void End(double now) {
    for (std::size_t j = 0; j < lives_.size(); ++j) {
      if (!lives_[j].is_here()) continue;
      JudgeDeadline(j, now);
      const std::optional<double>& iterations = site_.jobs[j].iterations;
      const bool is_done = iterations && lives_[j].DoneAt(now) >= *iterations - kMoment;
      if (!is_done && now < calendar_[j].leaves_seconds - kMoment) continue;
      Leave(j, now, is_done);
    }
  }

  void Leave(std::size_t j, double now, bool is_done) {
    lives_[j].Leave(now);
    left_[j] = true;
    JobDays& job = result_.jobs[j];
    job.leaves_seconds = now;
    job.iterations = lives_[j].DoneAt(now);
    // What has left before its deadline was done, or not.
    const std::optional<WorkDeadline>& deadline = site_.jobs[j].deadline;
    if (deadline && !is_done && now < DueAt(j) - kMoment && now < seconds_ - kMoment) {
      job.missed = job.iterations < Asked(j) - kMoment;
    }
  }

  double DueAt(std::size_t j) const {
    return calendar_[j].arrives_seconds + site_.jobs[j].deadline->seconds;
  }
  double Asked(std::size_t j) const {
    const WorkDeadline& deadline = *site_.jobs[j].deadline;
    return deadline.share * deadline.seconds / site_.jobs[j].fleet.full_speed_seconds;
  }
  void JudgeDeadline(std::size_t j, double now) {
    // The last iteration may end within the moment.
    constexpr double kShareOfWork = 1e-4;
    if (!site_.jobs[j].deadline || std::abs(now - DueAt(j)) > kMoment) return;
    result_.jobs[j].missed = lives_[j].DoneAt(now) < Asked(j) * (1 - kShareOfWork);
  }

  // When something happens next that a decision may depend on.
  double NextMoment(double now) const {
    double next = seconds_;
    const auto take = [&](double at) {
      if (at > now + kMoment) next = std::min(next, at);
    };
    if (const auto at = std::upper_bound(times_.begin(), times_.end(), now + kMoment);
        at != times_.end()) {
      take(*at);
    }
    if (const auto at = limits_.NextChange(now + kMoment, ahead_)) take(*at);
    if (again_) take(*again_);
    if (budget_.next_step()) take(*budget_.next_step());
    for (std::size_t j = 0; j < lives_.size(); ++j) {
      if (!lives_[j].is_here()) continue;
      if (site_.jobs[j].deadline) take(DueAt(j));
      if (!site_.jobs[j].iterations) continue;
      if (const auto at = lives_[j].TimeOf(*site_.jobs[j].iterations, next)) take(*at);
    }
    return next;
  }

  DaysMoment See(double now) {
    DaysMoment moment;
    moment.seconds = now;
    double drawn = 0;
    double most = 0;
    ahead_ = 0;
    for (std::size_t j = 0; j < lives_.size(); ++j) {
      const JobCalendar& calendar = calendar_[j];
      const bool is_here = !left_[j] && now >= calendar.arrives_seconds - kMoment &&
                           now < calendar.leaves_seconds - kMoment;
      if (!is_here) continue;
      const DaysJob& job = site_.jobs[j];
      moment.present.push_back(j);
      moment.slow.push_back(SlowAt(job, calendar, now + kMoment));
      moment.arrived.push_back(calendar.arrives_seconds);
      moment.done.push_back(lives_[j].is_here() ? lives_[j].DoneAt(now) : 0);
      const double full = PaceOf(job, FullRun(job), moment.slow.back()).watts;
      most += site_.meter_factor * full;
      if (lives_[j].is_here()) {
        drawn += site_.meter_factor * lives_[j].told_watts();
        ahead_ = std::max(ahead_, lives_[j].longest_iteration());
      }
    }
    const double ahead = rule_.at_once() ? 0 : ahead_;
    for (std::size_t node = 0; node < site_.nodes.size(); ++node) {
      moment.limits.push_back(limits_.LimitWithin(node, now, ahead));
    }
    if (!rule_.at_once()) moment.limits[0] = budget_.At(now, drawn, most, ahead_);
    return moment;
  }

  Result<void> Decide(double now) {
    const DaysMoment moment = See(now);
    Result<DaysDecision> decision = rule_.Decide(moment);
    if (!decision) return tl::unexpected(decision.error());
    again_ = decision->again_seconds;
    if (rule_.knows_price()) NotePrice(moment, *decision);
    // Who is to draw more waits until those who draw less do.
    double all_less_from = now;
    std::vector<double> begins(moment.present.size(), now);
    std::vector<bool> waits(moment.present.size(), false);
    for (std::size_t k = 0; k < moment.present.size(); ++k) {
      const std::size_t j = moment.present[k];
      JobLife& life = lives_[j];
      if (!life.is_here() || rule_.at_once()) continue;
      begins[k] = life.NextBegin(now);
      const double watts = PaceOf(site_.jobs[j], decision->runs[k], moment.slow[k]).watts;
      if (watts < life.pace().watts) {
        all_less_from = std::max(all_less_from, begins[k]);
      } else {
        waits[k] = moment.slow[k] == life.slow();
      }
    }
    for (std::size_t k = 0; k < moment.present.size(); ++k) {
      const std::size_t j = moment.present[k];
      JobLife& life = lives_[j];
      if (!life.is_here()) {
        // It starts as soon as the others have made room for it.
        const bool has_room = rule_.at_once() || all_less_from <= now;
        life.Arrive(now, has_room ? decision->runs[k] : PausedRun(), moment.slow[k]);
        if (!has_room) life.Tell(all_less_from, decision->runs[k], moment.slow[k]);
        result_.jobs[j].arrives_seconds = now;
      } else if (rule_.at_once()) {
        life.TellNow(now, decision->runs[k], moment.slow[k]);
      } else {
        const double begin = waits[k] ? life.NextBegin(all_less_from) : begins[k];
        life.Tell(begin, decision->runs[k], moment.slow[k]);
      }
    }
    return {};
  }

  void NotePrice(const DaysMoment& moment, const DaysDecision& decision) {
    double weight = 0;
    for (const std::size_t j : moment.present) weight += site_.jobs[j].fleet.weight;
    result_.prices.push_back({moment.seconds, decision.price_per_watt, weight});
  }

  void Finish() {
    for (std::size_t j = 0; j < lives_.size(); ++j) {
      if (lives_[j].is_here()) Leave(j, seconds_, false);
      result_.figures.plan_changes += static_cast<double>(lives_[j].plan_changes());
      result_.jobs[j].spans = lives_[j].TakeSpans();
    }
    const double changes = result_.figures.plan_changes;
    result_.figures = FiguresOf(site_, tree_, result_, seconds_);
    result_.figures.plan_changes = changes;
  }

  const DaysSite& site_;
  const LoadTree& tree_;
  const std::vector<JobCalendar>& calendar_;
  LimitCalendar limits_;
  Budget budget_;
  double seconds_;
  DaysRule& rule_;
  std::vector<JobLife> lives_;  // [job]
  std::vector<bool> left_;
  std::vector<double> times_;  // Of arrivals, ends and stragglers.
  std::optional<double> again_;
  double ahead_ = 0;  // How long jobs may take to obey.
  RuleDays result_;
};

Result<void> CheckDays(const DaysSite& site, const DaysSpec& spec) {
  if (site.jobs.empty()) return InvalidInput("the site has no job; add a [[job]]");
  if (spec.seeds.empty() || !(spec.seconds > 0)) {
    return InvalidInput("the emulation has no time or no seed; give at least one of each");
  }
  for (const DaysJob& job : site.jobs) {
    if (job.fleet.plans.empty() || job.clocks.empty() || job.caps.empty()) {
      return InvalidInput(fmt::format(
          "job {}: it has no plans or no clocks; an emulation needs its profile", job.fleet.name));
    }
  }
  return {};
}

int DeadlinesIn(const DaysSite& site, double seconds) {
  return static_cast<int>(
      std::count_if(site.jobs.begin(), site.jobs.end(), [seconds](const DaysJob& job) {
        return job.deadline &&
               job.arrives_seconds + job.spread_seconds + job.deadline->seconds <= seconds;
      }));
}

std::vector<SeriesStep> LimitSteps(const DaysSite& site, double seconds) {
  const LimitCalendar limits(site);
  std::vector<SeriesStep> steps;
  std::optional<double> at = 0;
  while (at && *at < seconds) {
    const double limit = limits.LimitAt(0, *at);
    if (steps.empty() || steps.back().value != limit) steps.push_back({*at, limit});
    at = limits.NextChange(*at, 0);
  }
  return steps;
}

}  // namespace

std::vector<std::unique_ptr<DaysRule>> MakeRules(const DaysSite& site, const LoadTree& tree,
                                                 double seconds) {
  std::vector<std::unique_ptr<DaysRule>> rules;
  AddCapRules(site, tree, &rules);
  AddFrontierRules(site, tree, &rules);
  AddPricedRule(site, seconds, &rules);
  AddBound(site, &rules);
  return rules;
}

Result<DaysAnswer> EmulateDays(const DaysSite& site, const DaysSpec& spec) {
  if (auto good = CheckDays(site, spec); !good) return tl::unexpected(good.error());
  DaysAnswer answer;
  answer.deadlines = DeadlinesIn(site, spec.seconds);
  answer.limits = LimitSteps(site, spec.seconds);
  const LoadTree tree(site);
  for (std::size_t s = 0; s < spec.seeds.size(); ++s) {
    const std::vector<JobCalendar> calendar = DrawCalendar(site, spec.seconds, spec.seeds[s]);
    const auto rules = MakeRules(site, tree, spec.seconds);
    answer.rules.resize(rules.size());
    for (std::size_t r = 0; r < rules.size(); ++r) {
      RuleRun run(site, tree, calendar, spec.seconds, spec.seeds[s], rules[r].get());
      Result<RuleDays> days = run.Run();
      if (!days) return tl::unexpected(days.error());
      RuleAnswer& row = answer.rules[r];
      row.figures.push_back(days->figures);
      if (s == 0) {
        row.rule = rules[r]->name();
        row.title = rules[r]->title();
        row.says = rules[r]->says();
        row.first = *std::move(days);
      }
      const double share = (static_cast<double>(s * rules.size() + r) + 1) /
                           static_cast<double>(spec.seeds.size() * rules.size());
      if (spec.progress && !spec.progress({.share = share})) {
        return MakeError(ErrorCode::kCancelled, "the emulation was cancelled");
      }
    }
  }
  return answer;
}

}  // namespace perseus::site
