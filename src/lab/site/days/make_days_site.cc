// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "common/located_error.h"
#include "common/nearest_name.h"
#include "perseus/effort.h"
#include "policy/power_cap.h"
#include "policy/table_choice.h"
#include "policy/zeus_policies.h"
#include "site/days/days_file.h"

namespace perseus::site {
namespace {

// What a job can be told, the same for all jobs of one model.
struct ModelChoices {
  std::vector<IterationPoint> frontier;
  std::vector<IterationPoint> plans;
  std::vector<CappedPoint> clocks;
  std::vector<CappedPoint> caps;
};

// The corners that matter: without the others the curve moves by no more than `share` of its
// height. A walk that goes as far as a chord may.
std::vector<IterationPoint> Thinned(const std::vector<IterationPoint>& corners, double share) {
  std::vector<IterationPoint> kept;
  std::size_t from = 0;
  while (from < corners.size()) {
    kept.push_back(corners[from]);
    std::size_t to = from + 1;
    const auto is_near = [&](std::size_t end) {
      const IterationPoint& a = corners[from];
      const IterationPoint& b = corners[end];
      for (std::size_t i = from + 1; i < end; ++i) {
        const double part =
            (corners[i].time_seconds - a.time_seconds) / (b.time_seconds - a.time_seconds);
        const double chord = a.energy_joules + part * (b.energy_joules - a.energy_joules);
        if (chord > corners[i].energy_joules * (1 + share)) return false;
      }
      return true;
    };
    while (to + 1 < corners.size() && is_near(to + 1)) ++to;
    from = to;
  }
  return kept;
}

Result<CappedPoint> PointAt(const Planner& planner, const policy::TableChoice& choice, double cap) {
  const Result<Plan> plan = planner.Evaluate(policy::OptionsOf(planner.pipeline(), choice));
  if (!plan) return tl::unexpected(plan.error());
  return CappedPoint{cap, PointOf(*plan)};
}

// The highest power of a computation on one GPU, and the highest clock.
double HighestWatts(const CostedPipeline& pipeline, const policy::TableChoice& choice) {
  double watts = 0;
  for (std::size_t t = 0; t < choice.size(); ++t) {
    const CostOption& option = pipeline.tables[t].all_options[static_cast<std::size_t>(choice[t])];
    watts = std::max(watts, option.energy_joules / option.time_seconds);
  }
  return watts / pipeline.tensor_parallel;
}
double HighestClock(const CostedPipeline& pipeline, const policy::TableChoice& choice) {
  double clock = 0;
  for (std::size_t t = 0; t < choice.size(); ++t) {
    const int knob = pipeline.tables[t].all_options[static_cast<std::size_t>(choice[t])].knob;
    clock = std::max(clock, pipeline.knobs[static_cast<std::size_t>(knob)].number);
  }
  return clock;
}

template <typename Cap>
Result<std::vector<CappedPoint>> Points(const Planner& planner,
                                        const std::vector<policy::TableChoice>& choices,
                                        const Cap& cap_of) {
  std::vector<CappedPoint> points;
  for (const policy::TableChoice& choice : choices) {
    const Result<CappedPoint> point = PointAt(planner, choice, cap_of(planner.pipeline(), choice));
    if (!point) return tl::unexpected(point.error());
    points.push_back(*point);
  }
  std::stable_sort(points.begin(), points.end(),
                   [](const CappedPoint& a, const CappedPoint& b) { return a.cap < b.cap; });
  return points;
}

Result<ModelChoices> ChoicesOf(const JobModel& model) {
  constexpr double kFrontierShare = 1e-6;
  constexpr int kLadder = 33;
  // Plans among many; a third of the work of a server's ladder.
  constexpr double kEffort = kLadderEffort / 3;
  const Planner& planner = *model.planner;
  ModelChoices choices;
  choices.frontier = Thinned(model.frontier, kFrontierShare);
  const Result<std::vector<Plan>> plans =
      planner.Ladder(kLadder, {.constraints = model.job->Constraints(), .effort = kEffort});
  if (!plans) return tl::unexpected(plans.error());
  for (const Plan& plan : *plans) choices.plans.push_back(PointOf(plan));
  if (!planner.pipeline().knobs_are_numbers) {
    return InvalidInput(
        "the knobs of its profile are labels, and an emulation needs clocks in MHz to compare "
        "with; "
        "give a profile with clocks");
  }
  auto clocks = Points(planner, policy::ZeusGlobalMembers(planner.pipeline()), HighestClock);
  if (!clocks) return tl::unexpected(clocks.error());
  auto caps = Points(planner, policy::PowerCapMembers(planner.pipeline()), HighestWatts);
  if (!caps) return tl::unexpected(caps.error());
  choices.clocks = *std::move(clocks);
  choices.caps = *std::move(caps);
  if (choices.clocks.empty() || choices.caps.empty()) {
    return InvalidInput("there is no clock that every computation of its profile has");
  }
  return choices;
}

// The place of each job among the copies of its [[job]], from 0.
std::vector<int> CopiesOf(const SiteFile& file) {
  std::map<std::string, int> seen;
  std::vector<int> copies;
  for (const SiteJob& job : file.jobs) copies.push_back(seen[job.group]++);
  return copies;
}

tl::unexpected<Error> Unknown(const PlacedText& name, std::string_view what,
                              const std::vector<std::string>& names) {
  return InvalidAt(
      name.place.file, name.place.line, name.place.column,
      fmt::format("there is no {} {}{}", what, Shown(name.text), NearestHint(name.text, names)));
}

// Where several tables are about a job, each says what the ones before did not, or instead.
void Apply(const DaysOfJob& said, int copy, DaysJob* job) {
  if (said.arrives_seconds || said.every_seconds) {
    job->arrives_seconds = said.arrives_seconds.value_or(0) + copy * said.every_seconds.value_or(0);
  }
  if (said.spread_seconds) job->spread_seconds = *said.spread_seconds;
  if (said.lasts_seconds) job->lasts_seconds = said.lasts_seconds;
  if (said.iterations) job->iterations = said.iterations;
  if (said.deadline_seconds) job->deadline = {*said.deadline_seconds, said.work_share};
  if (said.noise) job->noise = *said.noise;
  if (said.straggler_rate) job->stragglers.share_of_gpus_per_day = *said.straggler_rate;
}

Result<void> AddEvents(const Site& site, const DaysFile& days, double seconds, DaysSite* made) {
  constexpr std::size_t kMostEvents = 10'000;
  std::vector<std::string> names;
  for (const PowerNode& node : site.power.nodes) names.push_back(node.name);
  for (const DaysEvent& each : days.events) {
    PowerEvent event = each.event;
    if (each.limit) {
      const auto found = std::find(names.begin(), names.end(), each.limit->text);
      if (found == names.end()) return Unknown(*each.limit, "limit", names);
      event.node = static_cast<std::size_t>(found - names.begin());
    }
    while (event.start_seconds < seconds) {
      if (made->events.size() == kMostEvents) {
        return InvalidInput(fmt::format(
            "there are over {} events in these days; repeat them less often (every), or emulate "
            "fewer days (--days)",
            kMostEvents));
      }
      made->events.push_back(event);
      if (!each.every_seconds) break;
      event.start_seconds += *each.every_seconds;
    }
  }
  return {};
}

}  // namespace

Result<DaysSite> MakeDaysSite(const Site& site, const DaysFile& days, double seconds,
                              const ProgressFunction& progress) {
  DaysSite made;
  made.nodes = site.power.nodes;
  made.meter_factor = site.power.meter_factor;
  made.ramp_up_watts_per_second = days.ramp_up_watts_per_second;
  made.ramp_down_watts_per_second = days.ramp_down_watts_per_second;
  made.work_share = days.work_share;
  if (auto good = AddEvents(site, days, seconds, &made); !good) return tl::unexpected(good.error());
  const std::vector<int> copies = CopiesOf(site.file);
  std::map<const JobModel*, ModelChoices> choices;
  for (std::size_t j = 0; j < site.models.size(); ++j) {
    const SiteJob& of_file = site.file.jobs[j];
    const JobModel* model = site.models[j].get();
    const auto fail = [&of_file](const std::string& message) {
      return InvalidAt(of_file.place.file, of_file.place.line, of_file.place.column,
                       fmt::format("the job '{}': {}", of_file.name, message));
    };
    if (!model->planner) {
      return fail(
          "only its frontier is known, and an emulation also asks what one clock does; give 'job' "
          "or "
          "'profile'");
    }
    if (choices.count(model) == 0) {
      Result<ModelChoices> of_model = ChoicesOf(*model);
      if (!of_model) return fail(of_model.error().message);
      choices.emplace(model, *std::move(of_model));
      const double share = static_cast<double>(j + 1) / static_cast<double>(site.models.size());
      if (progress && !progress({.share = share})) {
        return MakeError(ErrorCode::kCancelled, "the emulation was cancelled");
      }
    }
    const ModelChoices& of_model = choices.at(model);
    DaysJob job;
    job.fleet = site.power.jobs[j];
    job.fleet.frontier = of_model.frontier;
    job.fleet.plans = of_model.plans;
    job.group = of_file.group;
    job.gpus = static_cast<std::int64_t>(model->gpus) * job.fleet.pipelines;
    job.full = model->full_speed;
    job.clocks = of_model.clocks;
    job.caps = of_model.caps;
    job.noise = days.noise;
    job.stragglers = days.stragglers;
    made.jobs.push_back(std::move(job));
  }
  std::set<std::string> names;
  for (const DaysOfJob& said : days.jobs) {
    bool is_there = false;
    for (std::size_t j = 0; j < made.jobs.size(); ++j) {
      DaysJob& job = made.jobs[j];
      names.insert(job.group);
      const bool is_group = said.name.text == job.group;
      if (!is_group && said.name.text != job.fleet.name) continue;
      is_there = true;
      Apply(said, is_group ? copies[j] : 0, &job);
    }
    if (!is_there) return Unknown(said.name, "job", {names.begin(), names.end()});
  }
  return made;
}

}  // namespace perseus::site
