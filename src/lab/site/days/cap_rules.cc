// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "site/days/rule.h"

namespace perseus::site {
namespace {

using Options = std::vector<std::vector<PaceOption>>;  // [k of present]

// What the rules below share: the site, and the loads of what was chosen.
class CapRule : public DaysRule {
 public:
  CapRule(const DaysSite& site, const LoadTree& tree) : site_(site), tree_(tree) {}

 protected:
  const DaysJob& JobAt(const DaysMoment& moment, std::size_t k) const {
    return site_.jobs[moment.present[k]];
  }
  JobPace FullPace(const DaysMoment& moment, std::size_t k) const {
    return PaceOf(JobAt(moment, k), FullRun(JobAt(moment, k)), moment.slow[k]);
  }
  // One clock a job, no slower than its owner accepts.
  Options AcceptedClocks(const DaysMoment& moment) const {
    Options options;
    for (std::size_t k = 0; k < moment.present.size(); ++k) {
      const DaysJob& job = JobAt(moment, k);
      options.push_back(ClockOptions(job, moment.slow[k], AcceptedSeconds(job, moment.slow[k])));
    }
    return options;
  }
  // Those that the k-th job counts for.
  std::vector<double> LimitsOf(const DaysMoment& moment, std::size_t k) const {
    return tree_.LimitsFor({moment.present[k]}, {true}, moment.limits);
  }
  static DaysDecision Within(const Options& options, const std::vector<double>& watts) {
    DaysDecision decision;
    for (std::size_t k = 0; k < options.size(); ++k) {
      decision.runs.push_back(FastestWithin(options[k], watts[k]).run);
    }
    return decision;
  }

  const DaysSite& site_;
  const LoadTree& tree_;
};

class FullSpeed : public CapRule {
 public:
  using CapRule::CapRule;
  std::string name() const override { return "max-clocks"; }
  std::string title() const override { return "maximum clocks, no limit kept"; }
  std::string says() const override {
    return "Every GPU runs at its maximum clock, whatever the limit is. Work that is lost is "
           "counted "
           "from here.";
  }
  Result<DaysDecision> Decide(const DaysMoment& moment) override {
    DaysDecision decision;
    for (const std::size_t job : moment.present) decision.runs.push_back(FullRun(site_.jobs[job]));
    return decision;
  }
};

// One cap for all jobs that share a limit: the highest with which it is kept.
class OneCap : public CapRule {
 public:
  using CapRule::CapRule;
  // The points of a job by cap.
  virtual const std::vector<CappedPoint>& PointsOf(const DaysJob& job) const = 0;

  Result<DaysDecision> Decide(const DaysMoment& moment) override {
    const std::size_t count = moment.present.size();
    std::vector<double> caps;
    for (const std::size_t job : moment.present) {
      for (const CappedPoint& point : PointsOf(site_.jobs[job])) caps.push_back(point.cap);
    }
    std::sort(caps.begin(), caps.end());
    caps.erase(std::unique(caps.begin(), caps.end()), caps.end());
    // Bisection as far as no limit binds, then on with the jobs that are below none that does.
    std::vector<std::size_t> level(count, 0);
    std::vector<bool> rises(count, true);
    const auto loads_at = [&](std::size_t at) {
      std::vector<double> loads = tree_.None();
      for (std::size_t k = 0; k < count; ++k) {
        tree_.Add(moment.present[k], PaceAt(moment, k, caps[rises[k] ? at : level[k]]).watts,
                  &loads);
      }
      return loads;
    };
    std::size_t low = 0;
    while (std::find(rises.begin(), rises.end(), true) != rises.end()) {
      const auto limits = tree_.LimitsFor(moment.present, rises, moment.limits);
      std::size_t high = caps.size();  // The first that does not fit.
      while (high - low > 1) {
        const std::size_t middle = (low + high) / 2;
        (Fits(loads_at(middle), limits) ? low : high) = middle;
      }
      const bool is_last = high == caps.size();
      const std::vector<double> above = loads_at(is_last ? low : high);
      for (std::size_t k = 0; k < count; ++k) {
        if (!rises[k]) continue;
        level[k] = low;
        for (std::size_t node = 0; node < above.size(); ++node) {
          const bool binds = above[node] > limits[node] && tree_.Carries(node, moment.present[k]);
          if (is_last || binds) rises[k] = false;
        }
      }
    }
    DaysDecision decision;
    for (std::size_t k = 0; k < count; ++k) {
      decision.runs.push_back(RunAt(moment, k, caps[level[k]]));
    }
    return decision;
  }

 private:
  JobRun RunAt(const DaysMoment& moment, std::size_t k, double cap) const {
    const std::vector<CappedPoint>& points = PointsOf(JobAt(moment, k));
    const auto above =
        std::upper_bound(points.begin(), points.end(), cap,
                         [](double value, const CappedPoint& point) { return value < point.cap; });
    const auto chosen = above == points.begin() ? above : above - 1;
    return {chosen->point, chosen->point, chosen - points.begin() + 1};
  }
  JobPace PaceAt(const DaysMoment& moment, std::size_t k, double cap) const {
    return PaceOf(JobAt(moment, k), RunAt(moment, k, cap), moment.slow[k]);
  }
};

class UniformCap : public OneCap {
 public:
  using OneCap::OneCap;
  std::string name() const override { return "uniform-cap"; }
  std::string title() const override { return "one power cap for every GPU"; }
  std::string says() const override {
    return "Every GPU of the site gets the same power cap in watts: the highest with which the "
           "meter "
           "stays within the limit. Each computation runs at the highest clock whose mean power is "
           "within the cap. It does not know what owners accept.";
  }
  const std::vector<CappedPoint>& PointsOf(const DaysJob& job) const override { return job.caps; }
};

class OneClock : public OneCap {
 public:
  using OneCap::OneCap;
  std::string name() const override { return "one-clock"; }
  std::string title() const override { return "one clock for all"; }
  std::string says() const override {
    return "No GPU of the site runs above one clock in MHz: the highest with which the meter stays "
           "within the limit. It does not know what owners accept.";
  }
  const std::vector<CappedPoint>& PointsOf(const DaysJob& job) const override { return job.clocks; }
};

class ProportionalCap : public CapRule {
 public:
  using CapRule::CapRule;
  std::string name() const override { return "proportional-cap"; }
  std::string title() const override { return "each job cut in proportion, one clock a job"; }
  std::string says() const override {
    return "Every job may draw the same share of its power at maximum clocks, and runs at the one "
           "clock of its table that is fastest within that.";
  }
  Result<DaysDecision> Decide(const DaysMoment& moment) override {
    const Options options = AcceptedClocks(moment);
    const auto watts = FillAlike(
        tree_, moment.present, moment.limits, tree_.None(), [&](std::size_t k, double level) {
          return std::max(options[k].front().pace.watts, level * FullPace(moment, k).watts);
        });
    return Within(options, watts);
  }
};

class RequestMatching : public CapRule {
 public:
  using CapRule::CapRule;
  std::string name() const override { return "request-matching"; }
  std::string title() const override { return "requests met as nearly as can be (nvPAX)"; }
  std::string says() const override {
    return "Phase I of nvPAX (arXiv 2605.01837): every GPU requests its power at maximum clocks, "
           "and "
           "the sum of squares of what is missing is least: the same watts off every GPU. Jobs "
           "with "
           "more weight a GPU come first. Each job then runs at its fastest clock within its "
           "watts.";
  }
  Result<DaysDecision> Decide(const DaysMoment& moment) override {
    const Options options = AcceptedClocks(moment);
    std::map<double, std::vector<std::size_t>, std::greater<>> classes;  // By weight a GPU.
    double most = 0;
    for (std::size_t k = 0; k < options.size(); ++k) {
      const DaysJob& job = JobAt(moment, k);
      classes[job.fleet.weight / job.gpus].push_back(k);
      most = std::max(most, FullPace(moment, k).watts / job.gpus);
    }
    std::vector<double> watts;
    for (const auto& each : options) watts.push_back(each.front().pace.watts);
    for (const auto& each : classes) {
      const std::vector<std::size_t>& members = each.second;
      std::vector<double> others = tree_.None();
      std::vector<std::size_t> jobs;
      jobs.reserve(members.size());
      for (std::size_t k = 0; k < options.size(); ++k) {
        const bool is_member = std::binary_search(members.begin(), members.end(), k);
        if (!is_member) tree_.Add(moment.present[k], watts[k], &others);
      }
      for (const std::size_t k : members) jobs.push_back(moment.present[k]);
      const auto filled =
          FillAlike(tree_, jobs, moment.limits, others, [&](std::size_t member, double level) {
            const std::size_t k = members[member];
            return std::max(options[k].front().pace.watts,
                            FullPace(moment, k).watts - (1 - level) * most * JobAt(moment, k).gpus);
          });
      for (std::size_t i = 0; i < members.size(); ++i) watts[members[i]] = filled[i];
    }
    return Within(options, watts);
  }
};

class Shedding : public CapRule {
 public:
  using CapRule::CapRule;
  std::string name() const override { return "shedding"; }
  std::string title() const override { return "jobs paused by priority"; }
  std::string says() const override {
    return "Jobs with more weight a GPU come first, then those that stand first in the file. Each "
           "runs at maximum clocks if that fits beside those before it; else it is paused, and its "
           "GPUs wait.";
  }
  Result<DaysDecision> Decide(const DaysMoment& moment) override {
    std::vector<std::size_t> order;
    std::vector<double> loads = tree_.None();
    for (std::size_t k = 0; k < moment.present.size(); ++k) {
      order.push_back(k);
      tree_.Add(moment.present[k], PaceOf(JobAt(moment, k), PausedRun(), {}).watts, &loads);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const DaysJob& first = JobAt(moment, a);
      const DaysJob& other = JobAt(moment, b);
      return first.fleet.weight / first.gpus > other.fleet.weight / other.gpus;
    });
    DaysDecision decision;
    decision.runs.assign(order.size(), PausedRun());
    for (const std::size_t k : order) {
      std::vector<double> with = loads;
      const double waiting = PaceOf(JobAt(moment, k), PausedRun(), {}).watts;
      tree_.Add(moment.present[k], FullPace(moment, k).watts - waiting, &with);
      if (!Fits(with, LimitsOf(moment, k))) continue;
      loads = std::move(with);
      decision.runs[k] = FullRun(JobAt(moment, k));
    }
    return decision;
  }
};

// Goes from least power up, always by the step that gives most work for a watt.
class Greedy : public CapRule {
 public:
  using CapRule::CapRule;
  std::string name() const override { return "greedy"; }
  std::string title() const override { return "watts where one clock gains most (EcoShift)"; }
  std::string says() const override {
    return "After EcoShift (arXiv 2604.17635): the rule knows how fast each job is at each clock. "
           "From the lowest clocks on, the next watts go to the job whose weighted speed gains "
           "most "
           "for each, until the limit. One clock a job. EcoShift predicts these speeds; here they "
           "are "
           "exact.";
  }
  Result<DaysDecision> Decide(const DaysMoment& moment) override {
    const Options options = AcceptedClocks(moment);
    std::vector<std::size_t> at(options.size(), 0);
    std::vector<double> loads = tree_.None();
    for (std::size_t k = 0; k < options.size(); ++k) {
      tree_.Add(moment.present[k], options[k].front().pace.watts, &loads);
    }
    while (true) {
      double best_gain = 0;
      std::pair<std::size_t, std::size_t> best;
      std::vector<double> best_loads;
      for (std::size_t k = 0; k < options.size(); ++k) {
        const JobPace& now = options[k][at[k]].pace;
        const FleetJob& fleet = JobAt(moment, k).fleet;
        for (std::size_t to = at[k] + 1; to < options[k].size(); ++to) {
          const JobPace& then = options[k][to].pace;
          const double faster = then.iterations_per_second() - now.iterations_per_second();
          const double gain =
              fleet.weight * fleet.full_speed_seconds * faster / (then.watts - now.watts);
          if (!(gain > best_gain)) continue;
          std::vector<double> with = loads;
          tree_.Add(moment.present[k], then.watts - now.watts, &with);
          if (!Fits(with, LimitsOf(moment, k))) break;  // More watts do not fit either.
          best_gain = gain;
          best = {k, to};
          best_loads = std::move(with);
        }
      }
      if (best_loads.empty()) break;
      at[best.first] = best.second;
      loads = std::move(best_loads);
    }
    DaysDecision decision;
    for (std::size_t k = 0; k < options.size(); ++k) {
      decision.runs.push_back(options[k][at[k]].run);
    }
    return decision;
  }
};

}  // namespace

const PaceOption& FastestWithin(const std::vector<PaceOption>& options, double watts) {
  constexpr double kRounding = 1e-9;
  const auto above = std::upper_bound(
      options.begin(), options.end(), watts * (1 + kRounding),
      [](double value, const PaceOption& option) { return value < option.pace.watts; });
  return above == options.begin() ? *above : *(above - 1);
}

void AddCapRules(const DaysSite& site, const LoadTree& tree,
                 std::vector<std::unique_ptr<DaysRule>>* rules) {
  rules->push_back(std::make_unique<FullSpeed>(site, tree));
  rules->push_back(std::make_unique<Shedding>(site, tree));
  rules->push_back(std::make_unique<UniformCap>(site, tree));
  rules->push_back(std::make_unique<OneClock>(site, tree));
  rules->push_back(std::make_unique<ProportionalCap>(site, tree));
  rules->push_back(std::make_unique<RequestMatching>(site, tree));
  rules->push_back(std::make_unique<Greedy>(site, tree));
}

}  // namespace perseus::site
