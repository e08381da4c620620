// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fleet/site.h"
#include "perseus/fleet.h"
#include "perseus/job.h"
#include "perseus/plan.h"
#include "perseus/planner.h"

// Real plans for a division of power.
//
// A real plan draws a little more than the frontier of its time. So the power is divided again for
// frontiers that are raised by as much as the plans made so far are above theirs (`lift`), and
// plans are made for what each job gets then, until the plans of all jobs keep to it. Each limit of
// the site then holds with them, whatever the tree and the objective. What is left over, the last
// division gives to some jobs as a faster one of the plans that were made on the way.
namespace perseus::fleet {
namespace {

// Of the search for a lift that all plans keep to. Mostly two are enough.
constexpr int kMostRounds = 6;
// Different times of one model and round; jobs between two of them share the slower one.
constexpr std::size_t kMostTimes = 40;
// Times that are closer, relatively, share a plan.
constexpr double kSameTime = 1e-6;

// The plans of one model.
struct PlanShelf {
  SharedModel model;
  double lift = 1;
  std::vector<std::shared_ptr<const Plan>> plans;
  std::vector<double> times;  // [plan]: what it was asked for.

  double Fastest() const { return model->frontier.front().time_seconds; }
  double TStar() const { return model->frontier.back().time_seconds; }
  std::optional<std::size_t> Find(double seconds) const {
    for (std::size_t k = 0; k < times.size(); ++k) {
      if (std::abs(times[k] - seconds) <= kSameTime * seconds) return k;
    }
    return std::nullopt;
  }
};

struct PlanRequest {
  std::size_t shelf = 0;
  double seconds = 0;
  std::optional<Result<Plan>> plan;
};

// E(T) between the corners.
double EnergyAt(const std::vector<IterationPoint>& frontier, double seconds) {
  const auto after = std::lower_bound(
      frontier.begin(), frontier.end(), seconds,
      [](const IterationPoint& point, double t) { return point.time_seconds < t; });
  if (after == frontier.begin()) return frontier.front().energy_joules;
  if (after == frontier.end()) return frontier.back().energy_joules;
  const IterationPoint& left = *(after - 1);
  const double share = (seconds - left.time_seconds) / (after->time_seconds - left.time_seconds);
  return left.energy_joules + share * (after->energy_joules - left.energy_joules);
}

class FleetPlanner {
 public:
  FleetPlanner(const Site& site, const FleetPlanOptions& options) : site_(site), options_(options) {
    std::map<const JobModel*, std::size_t> known;
    for (const SharedModel& model : site.models) {
      const auto [at, is_new] = known.emplace(model.get(), shelves_.size());
      if (is_new) shelves_.push_back({.model = model, .lift = 1, .plans = {}, .times = {}});
      shelf_of_.push_back(at->second);
    }
  }

  Result<FleetPlan> Run() {
    const Result<FleetAnswer> bound = DividePower(site_.power, site_.file.objective);
    if (!bound) return tl::unexpected(bound.error());
    FleetPlan made;
    made.answer.bound = bound->bound;
    if (auto good = Prepare(bound->bound); !good) return tl::unexpected(good.error());
    Result<FleetAnswer> last = DividePower(WithPlans(), site_.file.objective);
    if (!last) return tl::unexpected(last.error());
    made.answer.plans = std::move(last->plans);
    for (std::size_t j = 0; j < site_.models.size(); ++j) {
      const PlanShelf& shelf = shelves_[shelf_of_[j]];
      made.plans.push_back(shelf.plans.empty() ? nullptr
                                               : shelf.plans[made.answer.plans.jobs[j].plan]);
    }
    for (const PlanShelf& shelf : shelves_) {
      made.plans_made += static_cast<int>(shelf.plans.size());
    }
    return made;
  }

 private:
  // Makes plans until those of all jobs keep to a division of raised frontiers.
  Result<void> Prepare(const PowerDivision& bound) {
    PowerDivision division = bound;
    for (int round = 0; round < kMostRounds; ++round) {
      if (auto good = MakePlans(division); !good) return good;
      if (!Raise(division)) return {};
      Result<FleetAnswer> next = DividePower(Raised(), site_.file.objective);
      if (!next) {
        if (next.error().code != ErrorCode::kInfeasible) return tl::unexpected(next.error());
        return {};  // The plans that there are may still fit, or say by how much they do not.
      }
      division = std::move(next->bound);
    }
    return {};
  }

  // The time that a plan is made for, of what a job gets.
  static double PlanTime(const PlanShelf& shelf, const JobShare& share) {
    return std::clamp(share.time_seconds, shelf.Fastest(), shelf.TStar());
  }

  // Plans for the times of a division, and for T*, after which a job can wait.
  Result<void> MakePlans(const PowerDivision& division) {
    std::vector<std::vector<double>> times(shelves_.size());
    for (std::size_t s = 0; s < shelves_.size(); ++s) times[s].push_back(shelves_[s].TStar());
    for (std::size_t j = 0; j < shelf_of_.size(); ++j) {
      times[shelf_of_[j]].push_back(PlanTime(shelves_[shelf_of_[j]], division.jobs[j]));
    }
    std::vector<PlanRequest> requests;
    for (std::size_t s = 0; s < shelves_.size(); ++s) {
      if (!shelves_[s].model->planner) continue;
      for (const double seconds : Few(std::move(times[s]))) {
        if (!shelves_[s].Find(seconds)) requests.push_back({s, seconds, {}});
      }
    }
    if (options_.told && !requests.empty()) options_.told(made_ + requests.size());
    made_ += requests.size();
    const auto work = [&](std::size_t k) { Make(&requests[k]); };
    if (options_.for_each) {
      options_.for_each(requests.size(), work);
    } else {
      for (std::size_t k = 0; k < requests.size(); ++k) work(k);
    }
    for (PlanRequest& request : requests) {
      if (!*request.plan) {
        // Constraints may leave no plan for a time. Then a slower one serves.
        if (request.plan->error().code == ErrorCode::kInfeasible) continue;
        return tl::unexpected(request.plan->error());
      }
      PlanShelf& shelf = shelves_[request.shelf];
      shelf.plans.push_back(std::make_shared<const Plan>(**std::move(request.plan)));
      shelf.times.push_back(request.seconds);
    }
    return {};
  }

  void Make(PlanRequest* request) const {
    const JobModel& model = *shelves_[request->shelf].model;
    request->plan = model.planner->PlanFor(
        request->seconds,
        {.constraints = model.job->Constraints(), .effort = model.job->Effort() * options_.effort});
  }

  // Distinct, and few: of many those that lie evenly among them, the slowest included.
  static std::vector<double> Few(std::vector<double> times) {
    std::sort(times.begin(), times.end());
    times.erase(std::unique(times.begin(), times.end(),
                            [](double a, double b) { return b - a <= kSameTime * b; }),
                times.end());
    if (times.size() <= kMostTimes) return times;
    std::vector<double> few;
    for (std::size_t k = 0; k < kMostTimes; ++k) {
      few.push_back(times[k * (times.size() - 1) / (kMostTimes - 1)]);
    }
    return few;
  }

  // Raises lifts to what the plans of this division need. False: no plan needs more.
  bool Raise(const PowerDivision& division) {
    // By a little more, so that rounding does not ask for another round.
    constexpr double kMargin = 1e-9;
    bool raised = false;
    for (std::size_t j = 0; j < shelf_of_.size(); ++j) {
      PlanShelf& shelf = shelves_[shelf_of_[j]];
      const double seconds = PlanTime(shelf, division.jobs[j]);
      const auto found = shelf.Find(seconds);
      if (!found) continue;
      const IterationPoint plan = PointOf(*shelf.plans[*found]);
      const double watts = plan.energy_joules / plan.time_seconds;
      const double lift = watts / (EnergyAt(shelf.model->frontier, seconds) / seconds);
      if (lift <= shelf.lift) continue;
      shelf.lift = lift * (1 + kMargin);
      raised = true;
    }
    return raised;
  }

  PowerSite Raised() const {
    PowerSite raised = site_.power;
    for (std::size_t j = 0; j < raised.jobs.size(); ++j) {
      const double lift = shelves_[shelf_of_[j]].lift;
      for (IterationPoint& point : raised.jobs[j].frontier) point.energy_joules *= lift;
    }
    return raised;
  }

  PowerSite WithPlans() const {
    PowerSite with = site_.power;
    for (std::size_t j = 0; j < with.jobs.size(); ++j) {
      for (const auto& plan : shelves_[shelf_of_[j]].plans) {
        with.jobs[j].plans.push_back(PointOf(*plan));
      }
    }
    return with;
  }

  const Site& site_;
  const FleetPlanOptions& options_;
  std::vector<PlanShelf> shelves_;
  std::vector<std::size_t> shelf_of_;  // [job]
  std::size_t made_ = 0;
};

}  // namespace

Result<FleetPlan> PlanFleet(const Site& site, const FleetPlanOptions& options) {
  return FleetPlanner(site, options).Run();
}

}  // namespace perseus::fleet
