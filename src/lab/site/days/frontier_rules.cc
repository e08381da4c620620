// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <utility>

#include "site/days/rule.h"

namespace perseus::site {
namespace {

using PlanLists = std::vector<std::vector<PaceOption>>;  // [k of present]

PlanLists AcceptedPlans(const DaysSite& site, const DaysMoment& moment) {
  PlanLists options;
  for (std::size_t k = 0; k < moment.present.size(); ++k) {
    const DaysJob& job = site.jobs[moment.present[k]];
    options.push_back(PlanOptions(job, moment.slow[k], AcceptedSeconds(job, moment.slow[k])));
  }
  return options;
}

class ProportionOnFrontier : public DaysRule {
 public:
  ProportionOnFrontier(const DaysSite& site, const LoadTree& tree) : site_(site), tree_(tree) {}
  std::string name() const override { return "frontier-proportional"; }
  std::string title() const override { return "each job cut in proportion, on its frontier"; }
  std::string says() const override {
    return "Every job may draw the same share of its power at maximum clocks, and follows its "
           "fastest "
           "plan within that.";
  }
  Result<DaysDecision> Decide(const DaysMoment& moment) override {
    const PlanLists options = AcceptedPlans(site_, moment);
    const auto watts = FillAlike(
        tree_, moment.present, moment.limits, tree_.None(), [&](std::size_t k, double level) {
          const DaysJob& job = site_.jobs[moment.present[k]];
          return std::max(options[k].front().pace.watts,
                          level * PaceOf(job, FullRun(job), moment.slow[k]).watts);
        });
    DaysDecision decision;
    for (std::size_t k = 0; k < options.size(); ++k) {
      decision.runs.push_back(FastestWithin(options[k], watts[k]).run);
    }
    return decision;
  }

 private:
  const DaysSite& site_;
  const LoadTree& tree_;
};

// What a division of power says.
class Divided : public DaysRule {
 public:
  Divided(const DaysSite& site, FleetObjective objective) : site_(site), objective_(objective) {}

  bool knows_price() const override { return objective_ == FleetObjective::kThroughput; }

  Result<DaysDecision> Decide(const DaysMoment& moment) override {
    DaysDecision decision;
    if (moment.present.empty()) return decision;
    if (auto prepared = Prepare(moment); !prepared) return tl::unexpected(prepared.error());
    const Result<FleetAnswer> answer = Divide(*prepared_, moment.limits);
    if (!answer) {
      if (answer.error().code != ErrorCode::kInfeasible) return tl::unexpected(answer.error());
      for (const auto& options : AcceptedPlans(site_, moment)) {
        decision.runs.push_back(options.front().run);
      }
      return decision;
    }
    decision.price_per_watt = answer->bound.nodes.front().price_per_watt;
    for (std::size_t k = 0; k < moment.present.size(); ++k) {
      decision.runs.push_back(RunOf(moment, k, *answer));
    }
    return decision;
  }

 protected:
  virtual JobRun RunOf(const DaysMoment& moment, std::size_t k, const FleetAnswer& answer) const {
    const FleetJob& fleet = site_.jobs[moment.present[k]].fleet;
    const JobShare& share = answer.plans.jobs[k];
    if (IsPause(site_.jobs[moment.present[k]], share, moment.slow[k])) return PausedRun();
    // A plan, and then waiting where the iteration is longer.
    IterationPoint point = fleet.plans[share.plan];
    point.energy_joules +=
        fleet.waiting_watts * std::max(0.0, share.time_seconds - point.time_seconds);
    point.time_seconds = share.time_seconds;
    return {point, fleet.plans.front(), static_cast<std::int64_t>(share.plan) + 1};
  }
  virtual Result<FleetAnswer> Divide(const PreparedSite& prepared,
                                     const std::vector<double>& limits) const {
    return prepared.Divide(objective_, limits);
  }

  const DaysSite& site_;

 private:
  // Jobs and stragglers are often the same as before, with other limits.
  Result<void> Prepare(const DaysMoment& moment) {
    if (prepared_ && moment.present == prepared_for_.present && moment.slow == prepared_for_.slow) {
      return {};
    }
    PowerSite site = SiteAt(site_, moment);
    if (objective_ == FleetObjective::kMaxMin) {
      for (FleetJob& job : site.jobs) job.weight = 1;
    }
    Result<PreparedSite> prepared = PreparedSite::Make(site);
    if (!prepared) return tl::unexpected(prepared.error());
    prepared_ = *std::move(prepared);
    prepared_for_ = moment;
    return {};
  }

  FleetObjective objective_;
  std::optional<PreparedSite> prepared_;
  DaysMoment prepared_for_;
};

class SlowedAlike : public Divided {
 public:
  explicit SlowedAlike(const DaysSite& site) : Divided(site, FleetObjective::kMaxMin) {}
  std::string name() const override { return "frontier-alike"; }
  std::string title() const override { return "all jobs slowed alike, on their frontiers"; }
  std::string says() const override {
    return "All jobs keep the same share of their speed, as far as owners accept it, and each "
           "follows "
           "a plan for that.";
  }
};

class Exact : public Divided {
 public:
  explicit Exact(const DaysSite& site) : Divided(site, FleetObjective::kThroughput) {}
  std::string name() const override { return "perseus"; }
  std::string title() const override { return "perseus: divided exactly"; }
  std::string says() const override {
    return "The next watt always goes to the job whose frontier gives most weighted work for it. "
           "Each "
           "job follows one of its plans.";
  }
};

// The convex optimum as it is: between plans, at once.
class Bound : public Divided {
 public:
  explicit Bound(const DaysSite& site) : Divided(site, FleetObjective::kThroughput) {}
  std::string name() const override { return "bound"; }
  std::string title() const override { return "bound: no plans can do better"; }
  std::string says() const override {
    return "The best division on the exact frontiers, between plans, in effect at once and without "
           "ramps.";
  }
  bool at_once() const override { return true; }

 protected:
  Result<FleetAnswer> Divide(const PreparedSite& prepared,
                             const std::vector<double>& limits) const override {
    Result<PowerDivision> bound = prepared.DivideBound(FleetObjective::kThroughput, limits);
    if (!bound) return tl::unexpected(bound.error());
    return FleetAnswer{.bound = *std::move(bound), .plans = {}};
  }
  JobRun RunOf(const DaysMoment& moment, std::size_t k, const FleetAnswer& answer) const override {
    const FleetJob& fleet = site_.jobs[moment.present[k]].fleet;
    const JobShare& share = answer.bound.jobs[k];
    if (!(share.iterations_per_second > 0)) return PausedRun();
    return {MeanPoint(site_.jobs[moment.present[k]], share, moment.slow[k]), fleet.plans.front(),
            0};
  }
};

}  // namespace

bool IsPause(const DaysJob& job, const JobShare& share, std::span<const double> slow) {
  const std::vector<IterationPoint>& plans = job.fleet.plans;
  const IterationPoint slowest = *std::max_element(
      plans.begin(), plans.end(),
      [](const auto& a, const auto& b) { return a.time_seconds < b.time_seconds; });
  double longest = kLongestWait * PaceOf(job, {slowest, plans.front(), 0}, slow).seconds;
  if (job.fleet.slowest_seconds) longest = std::max(longest, AcceptedSeconds(job, slow));
  return !(share.time_seconds <= longest);
}

IterationPoint MeanPoint(const DaysJob& job, const JobShare& share, std::span<const double> slow) {
  // All but the healthy pipelines' energy is known.
  const JobPace rest = PaceOf(job, {{share.time_seconds, 0}, job.fleet.plans.front(), 0}, slow);
  const auto late = static_cast<double>(slow.size() + job.fleet.late.size());
  const double healthy = std::max(1.0, job.fleet.pipelines - late);
  return {share.time_seconds, (share.watts - rest.watts) * share.time_seconds / healthy};
}

PowerSite SiteAt(const DaysSite& site, const DaysMoment& moment) {
  PowerSite power;
  power.nodes = site.nodes;
  power.meter_factor = site.meter_factor;
  for (std::size_t node = 0; node < power.nodes.size(); ++node) {
    power.nodes[node].limit_watts = moment.limits[node];
  }
  for (std::size_t k = 0; k < moment.present.size(); ++k) {
    const DaysJob& job = site.jobs[moment.present[k]];
    power.jobs.push_back(job.fleet);
    FleetJob& fleet = power.jobs.back();
    for (const double factor : moment.slow[k]) {
      const IterationPoint& fastest = job.fleet.plans.front();
      fleet.late.push_back({{fastest.time_seconds * factor, fastest.energy_joules * factor}});
    }
    if (fleet.slowest_seconds) {
      fleet.slowest_seconds = AcceptedSeconds(job, moment.slow[k]);
    }
  }
  return power;
}

void AddFrontierRules(const DaysSite& site, const LoadTree& tree,
                      std::vector<std::unique_ptr<DaysRule>>* rules) {
  rules->push_back(std::make_unique<ProportionOnFrontier>(site, tree));
  rules->push_back(std::make_unique<SlowedAlike>(site));
  rules->push_back(std::make_unique<Exact>(site));
}

void AddBound(const DaysSite& site, std::vector<std::unique_ptr<DaysRule>>* rules) {
  rules->push_back(std::make_unique<Bound>(site));
}

}  // namespace perseus::site
