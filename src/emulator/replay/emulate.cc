// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "emulator/replay/check_spec.h"
#include "emulator/replay/clock_state.h"
#include "emulator/replay/control_plane.h"
#include "emulator/replay/energy_split.h"
#include "emulator/replay/limited_plan.h"
#include "emulator/replay/noise.h"
#include "emulator/replay/pipeline_replay.h"
#include "emulator/replay/power_trace.h"
#include "emulator/replay/stragglers.h"
#include "perseus/emulator.h"

namespace perseus {
namespace emulator {
namespace {

// Longer ones are certainly a mistake, and their seconds lose digits.
constexpr double kLongestIteration = 1e12;

// What is kept of replays and plans, so as not to make them again, is dropped
// beyond this many bytes.
constexpr std::size_t kMostKeptBytes = std::size_t{128} << 20;

// Pipelines that have all of this in common do the same thing in an iteration,
// unless every computation has noise of its own.
struct ReplayKey {
  int pipeline = 0;  // Where GPUs differ; else 0.
  int plan = 0;      // LimitedPlan::serial
  std::vector<ClockState> clocks;

  friend auto operator<=>(const ReplayKey&, const ReplayKey&) = default;
};

// Pipelines that did the same thing in the iteration at hand.
struct Group {
  const LimitedPlan* plan = nullptr;
  const PipelineRun* run = nullptr;  // nullptr where it is not kept.
  RunTotals totals;
  int copies = 1;
};

double PowerInterval(const EmulationSpec& spec) {
  constexpr double kShareOfTarget = 0.01;
  return spec.power_interval_seconds > 0 ? spec.power_interval_seconds
                                         : kShareOfTarget * spec.target_seconds;
}

// One emulation, iteration by iteration.
class JobEmulation {
 public:
  JobEmulation(const Planner& planner, const Policy& policy, const EmulationSpec& spec)
      : pipeline_(planner.pipeline()),
        ranks_(pipeline_.dag.num_ranks),
        spec_(spec),
        noise_(DrawFixedNoise(pipeline_, spec)),
        options_(pipeline_, noise_),
        limited_plans_(pipeline_, options_),
        calendar_(pipeline_, spec),
        chooser_(policy, spec, pipeline_.dag.size()),
        splitter_(planner),
        replay_(pipeline_, spec, options_, noise_),
        power_(PowerInterval(spec), spec.power_interval_seconds == 0,
               spec.power_interval_seconds == 0 ? kAdvisedPowerValues : kMostPowerValues),
        straggler_plans_(spec.pipelines),
        before_(static_cast<std::size_t>(spec.pipelines) * ranks_),
        after_(before_.size()) {}

  Result<Emulation> Run(const ProgressFunction& progress);

 private:
  Result<void> Step(std::int64_t iteration);
  void UpdateStragglers();
  const LimitedPlan& PlanOf(int pipeline) const {
    const LimitedPlan* plan = straggler_plans_[pipeline];
    return plan != nullptr ? *plan : *healthy_;
  }
  Result<void> RunEach(std::int64_t iteration);
  Result<void> RunAlikeOnce(std::int64_t iteration);
  Result<void> AddPower(std::span<const PowerSegment> segments, double seconds, int copies);
  void StartClocks();
  void EndClocks(double iteration_seconds);
  void AddRecord(const Reaction& reaction, double iteration_seconds);
  void KeepTimeline(std::int64_t iteration, double iteration_seconds);
  void Finish();

  std::span<const ClockState> ClocksBefore(int pipeline) const {
    return {before_.data() + static_cast<std::size_t>(pipeline) * ranks_,
            static_cast<std::size_t>(ranks_)};
  }
  void KeepClocks(int pipeline, const PipelineRun& run) {
    std::copy(run.clocks.begin(), run.clocks.end(),
              after_.begin() + static_cast<std::ptrdiff_t>(pipeline) * ranks_);
  }

  const CostedPipeline& pipeline_;
  int ranks_;
  const EmulationSpec& spec_;
  FixedNoise noise_;
  OptionsByKnob options_;
  LimitedPlans limited_plans_;
  StragglerCalendar calendar_;
  PlanChooser chooser_;
  EnergySplitter splitter_;
  PipelineReplay replay_;
  PowerTraceBuilder power_;

  std::vector<const LimitedPlan*> straggler_plans_;  // [pipeline]; nullptr: does not straggle.
  const LimitedPlan* healthy_ = nullptr;             // Of all others.
  std::vector<ClockState> before_;                   // [pipeline x ranks + rank]
  std::vector<ClockState> after_;
  std::vector<Group> groups_;
  std::map<ReplayKey, PipelineRun> runs_;
  std::size_t kept_bytes_ = 0;  // Of `runs_`.
  PipelineRun run_;             // Where runs are not kept.

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
    if (progress && percent != 100 * n / spec_.iterations) {
      progress(static_cast<double>(percent) / 100);
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

  power_.BeginIteration(start);
  groups_.clear();
  const bool each = spec_.noise.per_computation > 0;
  if (auto run = each ? RunEach(iteration) : RunAlikeOnce(iteration); !run) return run;
  double seconds = 0;
  for (const Group& group : groups_) seconds = std::max(seconds, group.totals.time_seconds);
  const PowerSegment waiting = {
      .end_seconds = seconds,
      .watts = pipeline_.total_blocking_power_watts * static_cast<double>(spec_.pipelines)};
  if (auto added = AddPower({&waiting, 1}, seconds, 1); !added) return added;
  KeepTimeline(iteration, seconds);
  EndClocks(seconds);
  AddRecord(*reaction, seconds);
  return {};
}

// Keeps `straggler_plans_` up to date. Whoever straggles follows the base plan.
void JobEmulation::UpdateStragglers() {
  const std::size_t plan_bytes = pipeline_.dag.computations.size() * sizeof(PlannedComputation);
  const bool full = limited_plans_.size() * plan_bytes > kMostKeptBytes;
  if (full) limited_plans_.Clear();
  if (full || kept_bytes_ > kMostKeptBytes) {
    runs_.clear();
    kept_bytes_ = 0;
  }
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
      const int knob = PlanOf(p).first_knob[rank];
      before_[static_cast<std::size_t>(p) * ranks_ + rank] = {.in_effect = knob, .newest = knob};
    }
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
  if (power_.Add(segments, seconds, copies)) return {};
  return InvalidInput(
      fmt::format("the interval of the power trace is {} s: the trace would have more than {} "
                  "values; give a longer one",
                  spec_.power_interval_seconds, kMostPowerValues));
}

Result<void> JobEmulation::RunEach(std::int64_t iteration) {
  for (int p = 0; p < spec_.pipelines; ++p) {
    replay_.Run(PlanOf(p), p, iteration, ClocksBefore(p), &run_);
    ++emulation_.replayed_pipelines;
    KeepClocks(p, run_);
    if (auto r = AddPower(run_.segments, run_.totals.time_seconds, 1); !r) return r;
    groups_.push_back({.plan = &PlanOf(p), .totals = run_.totals});
  }
  return {};
}

// Pipelines that do the same thing are replayed once, in all iterations.
Result<void> JobEmulation::RunAlikeOnce(std::int64_t iteration) {
  const bool gpus_differ = spec_.noise.per_gpu > 0;
  const std::size_t run_bytes =
      pipeline_.dag.computations.size() * sizeof(PowerSegment) + ranks_ * 2 * sizeof(ClockState);
  std::map<const PipelineRun*, std::size_t> group_of;
  std::size_t group = 0;  // Of the pipeline before.
  for (int p = 0; p < spec_.pipelines; ++p) {
    const LimitedPlan& plan = PlanOf(p);
    const auto clocks = ClocksBefore(p);
    const bool as_before = p > 0 && !gpus_differ && &plan == groups_[group].plan &&
                           std::equal(clocks.begin(), clocks.end(), ClocksBefore(p - 1).begin());
    if (!as_before) {
      ReplayKey key = {.pipeline = gpus_differ ? p : 0,
                       .plan = plan.serial,
                       .clocks = {clocks.begin(), clocks.end()}};
      const auto [entry, added] = runs_.try_emplace(std::move(key));
      PipelineRun& run = entry->second;
      if (added) {
        replay_.Run(plan, p, iteration, clocks, &run);
        ++emulation_.replayed_pipelines;
        kept_bytes_ += run_bytes;
      }
      const auto [known, first] = group_of.try_emplace(&run, groups_.size());
      group = known->second;
      if (first) {
        groups_.push_back({.plan = &plan, .run = &run, .totals = run.totals, .copies = 0});
      }
    }
    KeepClocks(p, *groups_[group].run);
    ++groups_[group].copies;
  }
  for (const Group& alike : groups_) {
    auto added = AddPower(alike.run->segments, alike.totals.time_seconds, alike.copies);
    if (!added) return added;
  }
  return {};
}

// The clocks of the next iteration's start.
void JobEmulation::EndClocks(double iteration_seconds) {
  std::swap(before_, after_);
  const double latency = spec_.switching.latency_seconds;
  if (latency == 0) return;
  for (ClockState& clock : before_) {
    clock.EndIteration(iteration_seconds, latency, &emulation_.clock_calls);
  }
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
  if (spec_.timeline_iteration >= 0) {
    if (iteration != spec_.timeline_iteration) return;
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
    replay_.Run(plan, p, iteration, ClocksBefore(p), &run_);
    EmulatedPipeline kept;
    kept.pipeline = p;
    kept.straggles = plan.straggles;
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
  emulation.power = power_.Finish(emulation.time_seconds);
  // An interval that reaches beyond the end is no peak, but the mean is one.
  emulation.peak_watts =
      std::max(emulation.average_watts,
               *std::max_element(emulation.power.watts.begin(), emulation.power.watts.end()));
}

}  // namespace
}  // namespace emulator

Result<Emulation> Emulate(const Planner& planner, const Policy& policy, const EmulationSpec& spec,
                          const ProgressFunction& progress) {
  if (auto checked = emulator::CheckSpec(planner.pipeline(), spec); !checked) {
    return tl::unexpected(checked.error());
  }
  return emulator::JobEmulation(planner, policy, spec).Run(progress);
}

}  // namespace perseus
