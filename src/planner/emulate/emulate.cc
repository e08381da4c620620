// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "emulate/emulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "emulate/check_spec.h"
#include "emulate/control_plane.h"
#include "emulate/energy_split.h"
#include "emulate/kept_runs.h"
#include "emulate/limited_plan.h"
#include "emulate/pipeline_replay.h"
#include "emulate/power_shape.h"
#include "emulate/power_trace.h"
#include "emulate/stragglers.h"
#include "model/noise.h"
#include "perseus/emulator.h"
#include "switching/clock_replay.h"

namespace perseus::emulate {
namespace {

// Longer ones are certainly a mistake, and their seconds lose digits.
constexpr double kLongestIteration = 1e12;

// Pipelines that do the same thing in the iteration at hand.
struct Group {
  const LimitedPlan* plan = nullptr;
  int first = 0;  // Of its pipelines.
  int copies = 1;
  RunTotals totals = {};
  switching::Forecast learned = {};  // Where calls are predicted.
};

// What the clients of a pipeline expect, and a number that tells it from others.
struct NumberedForecast {
  std::int64_t number = 1;
  switching::Forecast forecast;
};

double PowerInterval(const EmulationSpec& spec) {
  constexpr double kShareOfTarget = 0.01;
  return spec.power_interval_seconds.value_or(kShareOfTarget * spec.target_seconds);
}

// One emulation, iteration by iteration.
class JobEmulation {
 public:
  JobEmulation(std::size_t most_kept_bytes, const Planner& planner, const Policy& policy,
               const EmulationSpec& spec)
      : most_kept_bytes_(most_kept_bytes),
        pipeline_(planner.pipeline()),
        ranks_(pipeline_.dag.num_ranks),
        spec_(spec),
        noise_(model::DrawFixedNoise(pipeline_, spec.noise, spec.pipelines, spec.seed)),
        options_(pipeline_, noise_),
        limited_plans_(pipeline_, options_, spec.switching),
        calendar_(pipeline_, spec),
        chooser_(policy, spec, pipeline_),
        splitter_(planner),
        rules_(spec.switching, pipeline_),
        replay_(pipeline_, spec, options_, noise_),
        power_(PowerInterval(spec), !spec.power_interval_seconds,
               spec.power_interval_seconds ? kMostPowerValues : kAdvisedPowerValues),
        shape_(spec.power_shape),
        straggler_plans_(spec.pipelines),
        before_(static_cast<std::size_t>(spec.pipelines) * ranks_),
        after_(before_.size()),
        last_ends_(pipeline_.waiting_depends_on_clock() ? before_.size() : 0),
        group_of_(spec.pipelines),
        kept_runs_(most_kept_bytes) {}

  Result<Emulation> Run(const ProgressFunction& progress);

 private:
  Result<void> Step(std::int64_t iteration);
  void UpdateStragglers();
  const LimitedPlan& PlanOf(int pipeline) const {
    const LimitedPlan* plan = straggler_plans_[pipeline];
    return plan != nullptr ? *plan : *healthy_;
  }
  void MakeGroups();
  const PipelineRun& RunOf(const Group& group, std::int64_t iteration);
  Result<void> AddPower(std::span<const PowerSegment> segments, double seconds, int copies);
  void StartClocks();
  Result<void> EndClocks(std::int64_t iteration, double iteration_seconds);
  void EndForecasts(double iteration_seconds);
  void AddRecord(const Reaction& reaction, double iteration_seconds);
  void KeepTimeline(std::int64_t iteration, double iteration_seconds);
  void Finish();

  std::span<const switching::ClockState> ClocksBefore(int pipeline) const {
    return {before_.data() + static_cast<std::size_t>(pipeline) * ranks_,
            static_cast<std::size_t>(ranks_)};
  }
  std::int64_t ForecastNumber(int pipeline) const {
    return forecasts_.empty() ? 0 : forecasts_[pipeline]->number;
  }
  const switching::Forecast* ForecastOf(int pipeline) const {
    return forecasts_.empty() ? nullptr : &forecasts_[pipeline]->forecast;
  }
  void KeepClocks(int pipeline, const PipelineRun& run) {
    const auto at = static_cast<std::ptrdiff_t>(pipeline) * ranks_;
    std::copy(run.clocks.begin(), run.clocks.end(), after_.begin() + at);
    std::copy(run.last_ends.begin(), run.last_ends.end(), last_ends_.begin() + at);
  }
  void CopyClocks(int from, int to) {
    if (from == to) return;
    const auto copy = [&](auto& values) {
      if (values.empty()) return;
      std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(from) * ranks_, ranks_,
                  values.begin() + static_cast<std::ptrdiff_t>(to) * ranks_);
    };
    copy(after_);
    copy(last_ends_);
  }

  std::size_t most_kept_bytes_;
  const CostedPipeline& pipeline_;
  int ranks_;
  const EmulationSpec& spec_;
  model::FixedNoise noise_;
  OptionsByKnob options_;
  LimitedPlans limited_plans_;
  StragglerCalendar calendar_;
  PlanChooser chooser_;
  EnergySplitter splitter_;
  switching::SwitchingRules rules_;
  PipelineReplay replay_;
  PowerTraceBuilder power_;
  ShapeBuilder shape_;

  std::vector<const LimitedPlan*> straggler_plans_;  // [pipeline]; nullptr: does not straggle.
  const LimitedPlan* healthy_ = nullptr;             // Of all others.
  std::vector<switching::ClockState> before_;        // [pipeline x ranks + rank]
  std::vector<switching::ClockState> after_;
  // Of each rank's last computation; empty where what waiting draws is constant.
  std::vector<double> last_ends_;
  double dearer_joules_ = 0;  // Of waits after last computations; in this iteration.
  // [pipeline]; empty where calls are not predicted.
  std::vector<std::shared_ptr<const NumberedForecast>> forecasts_;
  std::int64_t last_forecast_ = 1;
  std::vector<Group> groups_;  // By first pipeline.
  std::vector<int> group_of_;  // [pipeline]
  KeptRuns kept_runs_;
  PipelineRun run_;  // The last replay.

  int last_plan_ = kBasePlan;
  bool timeline_straggles_ = false;
  ExactSum useful_, intrinsic_, extrinsic_, blocking_;
  Emulation emulation_;
};

Result<Emulation> JobEmulation::Run(const ProgressFunction& progress) {
  if (auto begun = chooser_.Begin(); !begun) return tl::unexpected(begun.error());
  emulation_.iterations.reserve(spec_.iterations);
  for (std::int64_t n = 0; n < spec_.iterations; ++n) {
    if (auto stepped = Step(n); !stepped) return tl::unexpected(stepped.error());
    const std::int64_t percent = 100 * (n + 1) / spec_.iterations;
    if (progress && percent != 100 * n / spec_.iterations &&
        !progress({.share = static_cast<double>(percent) / 100})) {
      return MakeError(ErrorCode::kCancelled, "the emulation was cancelled");
    }
  }
  Finish();
  return std::move(emulation_);
}

Result<void> JobEmulation::Step(std::int64_t iteration) {
  const double start = emulation_.time_seconds;
  const double last = emulation_.iterations.empty() ? spec_.target_seconds
                                                    : emulation_.iterations.back().time_seconds;
  calendar_.Advance(start, last);
  UpdateStragglers();
  double slowest = 0;
  for (const int p : calendar_.straggling()) {
    slowest = std::max(slowest, straggler_plans_[p]->nominal_seconds);
  }
  const Result<Reaction> reaction = chooser_.React(start, slowest);
  if (!reaction) return tl::unexpected(reaction.error());
  if (reaction->plan != last_plan_) ++emulation_.replans;
  last_plan_ = reaction->plan;
  healthy_ = &limited_plans_.Get(reaction->plan, chooser_.plan(reaction->plan), {});
  if (iteration == 0) StartClocks();

  if (spec_.power_over_time) {
    power_.BeginIteration(start);
    shape_.BeginIteration(start);
  }
  MakeGroups();
  double seconds = 0;
  for (Group& group : groups_) {
    const PipelineRun& run = RunOf(group, iteration);
    group.totals = run.totals;
    if (!forecasts_.empty()) group.learned = run.forecast;
    KeepClocks(group.first, run);
    seconds = std::max(seconds, run.totals.time_seconds);
    auto added = AddPower(run.segments, run.totals.time_seconds, group.copies);
    if (!added) return added;
  }
  for (int p = 0; p < spec_.pipelines; ++p) CopyClocks(groups_[group_of_[p]].first, p);
  const PowerSegment waiting = {
      .end_seconds = seconds,
      .watts = pipeline_.total_blocking_power_watts * static_cast<double>(spec_.pipelines)};
  if (auto added = AddPower({&waiting, 1}, seconds, 1); !added) return added;
  KeepTimeline(iteration, seconds);
  if (auto ended = EndClocks(iteration, seconds); !ended) return ended;
  EndForecasts(seconds);
  AddRecord(*reaction, seconds);
  return {};
}

// Keeps `straggler_plans_` up to date. Whoever straggles follows the base plan.
void JobEmulation::UpdateStragglers() {
  const std::size_t plan_bytes = pipeline_.dag.computations.size() * sizeof(LimitedComputation);
  // Those in use must be there, so only where most are not in use.
  const bool full = limited_plans_.size() * plan_bytes > most_kept_bytes_ &&
                    limited_plans_.size() > 2 * (calendar_.straggling().size() + 1);
  if (full) {
    limited_plans_.Clear();
    kept_runs_.Clear();  // Their plans have new serials.
  }
  kept_runs_.MakeRoom();
  const auto update = [this](int p) {
    const std::vector<RankLimits> limits = calendar_.LimitsOf(p);
    straggler_plans_[p] =
        limits.empty() ? nullptr : &limited_plans_.Get(kBasePlan, chooser_.plan(kBasePlan), limits);
  };
  for (const int p : calendar_.changed()) update(p);
  if (full) {
    for (const int p : calendar_.straggling()) update(p);
  }
}

// Before the first iteration every rank has the clock of its first computation.
void JobEmulation::StartClocks() {
  for (int p = 0; p < spec_.pipelines; ++p) {
    for (int rank = 0; rank < ranks_; ++rank) {
      before_[static_cast<std::size_t>(p) * ranks_ + rank] =
          switching::SettledAt(PlanOf(p).rows->KnobsOf(rank).front());
    }
  }
  if (rules_.late() && rules_.predicts()) {
    forecasts_.assign(spec_.pipelines, std::make_shared<const NumberedForecast>());
  }
}

Result<void> JobEmulation::AddPower(std::span<const PowerSegment> segments, double seconds,
                                    int copies) {
  if (!(seconds <= kLongestIteration)) {
    return InvalidInput(
        fmt::format("iteration {} takes {:.3g} s; at most {:g} s can be emulated: the stragglers "
                    "are too slow",
                    emulation_.iterations.size(), seconds, kLongestIteration));
  }
  if (!spec_.power_over_time) return {};
  shape_.Add(segments, seconds, copies);
  if (power_.Add(segments, seconds, copies)) return {};
  return InvalidInput(
      fmt::format("the interval of the power trace is {} s: the trace would have more than {} "
                  "values; give a longer one",
                  PowerInterval(spec_), kMostPowerValues));
}

// Which pipelines do the same thing: those of one plan whose clocks and
// forecasts are alike, unless chance tells all of them apart.
void JobEmulation::MakeGroups() {
  const bool all_differ = spec_.noise.each_iteration() || spec_.noise.per_gpu > 0 ||
                          spec_.switching.latency_spread_seconds > 0;
  const auto alike = [this](int p, int q) {
    const auto a = ClocksBefore(p);
    return &PlanOf(p) == &PlanOf(q) && ForecastNumber(p) == ForecastNumber(q) &&
           std::equal(a.begin(), a.end(), ClocksBefore(q).begin());
  };
  const auto less = [this](int p, int q) {
    const int plan = PlanOf(p).serial;
    const int other = PlanOf(q).serial;
    if (plan != other) return plan < other;
    if (ForecastNumber(p) != ForecastNumber(q)) return ForecastNumber(p) < ForecastNumber(q);
    const auto a = ClocksBefore(p);
    const auto b = ClocksBefore(q);
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
  };
  std::map<int, int, decltype(less)> known(less);  // First pipeline -> group.
  groups_.clear();
  for (int p = 0; p < spec_.pipelines; ++p) {
    int group = static_cast<int>(groups_.size());
    if (!all_differ) {
      // Most are like the one before.
      group =
          p > 0 && alike(p, p - 1) ? group_of_[p - 1] : known.try_emplace(p, group).first->second;
    }
    group_of_[p] = group;
    if (group < static_cast<int>(groups_.size())) {
      ++groups_[group].copies;
    } else {
      groups_.push_back({.plan = &PlanOf(p), .first = p});
    }
  }
}

// What a group does. It is kept for other iterations, as far as there is room,
// unless chance makes every iteration another.
const PipelineRun& JobEmulation::RunOf(const Group& group, std::int64_t iteration) {
  const auto clocks = ClocksBefore(group.first);
  const bool keep = !spec_.noise.each_iteration() && spec_.switching.latency_spread_seconds == 0;
  ReplayKey key;
  if (keep) {
    key = {.pipeline = spec_.noise.per_gpu > 0 ? group.first : 0,
           .plan = group.plan->serial,
           .clocks = {clocks.begin(), clocks.end()},
           .forecast = ForecastNumber(group.first)};
    if (const PipelineRun* known = kept_runs_.Find(key)) return *known;
  }
  replay_.Run(*group.plan, group.first, iteration, clocks, ForecastOf(group.first), &run_);
  ++emulation_.replayed_pipelines;
  if (keep) kept_runs_.Keep(std::move(key), run_);
  return run_;
}

// The clocks of the next iteration's start, and what ranks draw until then.
Result<void> JobEmulation::EndClocks(std::int64_t iteration, double iteration_seconds) {
  std::swap(before_, after_);
  dearer_joules_ = 0;
  if (!rules_.late() && last_ends_.empty()) return {};
  std::vector<PowerSegment> segments;
  for (int p = 0; p < spec_.pipelines; ++p) {
    for (int rank = 0; rank < ranks_; ++rank) {
      const std::size_t of = static_cast<std::size_t>(p) * ranks_ + rank;
      switching::ClockState& clock = before_[of];
      const double since = last_ends_.empty() ? iteration_seconds : last_ends_[of];
      const auto waited = [&](int knob, double from, double to) {
        const double watts = pipeline_.DearerWatts(rank, knob);
        if (watts == 0) return;
        dearer_joules_ += watts * (to - from);
        segments.push_back({from, to, watts});
      };
      if (rules_.late()) {
        emulation_.clock_calls +=
            switching::EndIteration(rules_, model::LatencyDraws(spec_.seed, p, iteration, rank),
                                    since, iteration_seconds, &clock, waited);
      } else if (PlanOf(p).waiting == Waiting::kSetClock && iteration_seconds > since) {
        waited(clock.in_effect, since, iteration_seconds);
      }
    }
  }
  return AddPower(segments, iteration_seconds, 1);
}

// What the clients expect of the next iteration. Those that learn nothing new
// keep what they had, so that their replays are known.
void JobEmulation::EndForecasts(double iteration_seconds) {
  if (forecasts_.empty()) return;
  std::vector<std::shared_ptr<const NumberedForecast>> of_group;
  for (Group& group : groups_) {
    group.learned.EndIteration(iteration_seconds);
    const std::shared_ptr<const NumberedForecast>& old = forecasts_[group.first];
    if (group.learned == old->forecast) {
      of_group.push_back(old);
    } else {
      of_group.push_back(std::make_shared<const NumberedForecast>(
          NumberedForecast{++last_forecast_, std::move(group.learned)}));
    }
  }
  for (int p = 0; p < spec_.pipelines; ++p) forecasts_[p] = of_group[group_of_[p]];
}

void JobEmulation::AddRecord(const Reaction& reaction, double iteration_seconds) {
  IterationRecord record;
  record.start_seconds = emulation_.time_seconds;
  record.time_seconds = iteration_seconds;
  record.target_seconds = reaction.target_seconds;
  record.straggling_pipelines = static_cast<int>(calendar_.straggling().size());
  for (const Group& group : groups_) {
    const EnergySplit split = splitter_.Split(*group.plan, group.totals, iteration_seconds);
    record.energy.useful_joules += group.copies * split.useful_joules;
    record.energy.intrinsic_bloat_joules += group.copies * split.intrinsic_bloat_joules;
    record.energy.extrinsic_bloat_joules += group.copies * split.extrinsic_bloat_joules;
    record.energy.blocking_joules += group.copies * split.blocking_joules;
    emulation_.clock_calls += group.copies * group.totals.clock_calls;
    emulation_.late_computations += group.copies * group.totals.late_computations;
    emulation_.gpu_peak_watts = std::max(emulation_.gpu_peak_watts, group.totals.peak_gpu_watts);
  }
  record.energy.blocking_joules += dearer_joules_;
  useful_.Add(record.energy.useful_joules);
  intrinsic_.Add(record.energy.intrinsic_bloat_joules);
  extrinsic_.Add(record.energy.extrinsic_bloat_joules);
  blocking_.Add(record.energy.blocking_joules);
  emulation_.time_seconds += iteration_seconds;
  emulation_.iterations.push_back(record);
}

// Replays the pipelines of the timeline again, if this is its iteration.
void JobEmulation::KeepTimeline(std::int64_t iteration, double iteration_seconds) {
  const std::set<int>& straggling = calendar_.straggling();
  if (spec_.timeline_iteration) {
    if (iteration != *spec_.timeline_iteration) return;
  } else if (iteration > 0 && (timeline_straggles_ || straggling.empty())) {
    return;
  }
  timeline_straggles_ = !straggling.empty();
  EmulatedTimeline& timeline = emulation_.timeline;
  timeline = {};
  timeline.iteration = iteration;
  timeline.time_seconds = iteration_seconds;
  const auto keep = [&](int p) {
    const LimitedPlan& plan = PlanOf(p);
    replay_.Run(plan, p, iteration, ClocksBefore(p), ForecastOf(p), &run_);
    EmulatedPipeline kept;
    kept.pipeline = p;
    kept.straggles = plan.straggles;
    kept.waiting = plan.waiting;
    kept.end_seconds = run_.totals.time_seconds;
    const Timing& timing = replay_.timing();
    for (int i = 0; i < pipeline_.dag.size(); ++i) {
      kept.computations.push_back({.computation = i,
                                   .knob = plan.computations[i].knob,
                                   .start_seconds = timing.start_seconds[i],
                                   .end_seconds = timing.end_seconds[i],
                                   .joules = replay_.joules()[i]});
    }
    timeline.pipelines.push_back(std::move(kept));
  };
  const auto most = static_cast<std::size_t>(spec_.timeline_pipelines);
  for (const int p : straggling) {
    if (timeline.pipelines.size() < most) keep(p);
  }
  for (int p = 0; p < spec_.pipelines && timeline.pipelines.size() < most; ++p) {
    if (!straggling.contains(p)) keep(p);
  }
}

void JobEmulation::Finish() {
  Emulation& emulation = emulation_;
  emulation.energy = {.useful_joules = useful_.value(),
                      .intrinsic_bloat_joules = intrinsic_.value(),
                      .extrinsic_bloat_joules = extrinsic_.value(),
                      .blocking_joules = blocking_.value()};
  emulation.gpus = std::int64_t{spec_.pipelines} * ranks_ * pipeline_.tensor_parallel;
  emulation.average_watts = emulation.energy.total_joules() / emulation.time_seconds;
  emulation.gpu_average_watts = emulation.average_watts / static_cast<double>(emulation.gpus);
  emulation.stragglers = calendar_.came();
  // An interval that reaches beyond the end is no peak, but the mean is one.
  emulation.peak_watts = emulation.average_watts;
  if (!spec_.power_over_time) return;
  emulation.power = power_.Finish(emulation.time_seconds);
  emulation.power_shape = shape_.Finish(emulation.time_seconds);
  for (const double watts : emulation.power.watts) {
    emulation.peak_watts = std::max(emulation.peak_watts, watts);
  }
}

}  // namespace

Result<Emulation> EmulateWithin(std::size_t most_kept_bytes, const Planner& planner,
                                const Policy& policy, const EmulationSpec& spec,
                                const ProgressFunction& progress) {
  if (auto checked = CheckSpec(planner.pipeline(), spec); !checked) {
    return tl::unexpected(checked.error());
  }
  return JobEmulation(most_kept_bytes, planner, policy, spec).Run(progress);
}

}  // namespace perseus::emulate

namespace perseus {
inline namespace v0 {

Result<Emulation> Emulate(const Planner& planner, const Policy& policy, const EmulationSpec& spec,
                          const ProgressFunction& progress) {
  return emulate::EmulateWithin(emulate::kMostKeptBytes, planner, policy, spec, progress);
}

}  // namespace v0
}  // namespace perseus
