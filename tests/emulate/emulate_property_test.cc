// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "emulate/emulate.h"
#include "emulate/emulation_testing.h"
#include "model/noise.h"
#include "perseus/emulator.h"

// Properties of every job.
namespace perseus {
namespace {

using emulator_testing::FakePolicy;

struct Shape {
  std::string schedule;
  int stages;
  int virtual_stages;
};

bool Near(double a, double b, double share, double magnitude) {
  return std::fabs(a - b) <= share * magnitude;
}

CostedPipeline RandomPipeline(std::mt19937& random) {
  static const std::array<Shape, 6> kShapes = {{{"1f1b", 1, 1},
                                                {"1f1b", 3, 1},
                                                {"gpipe", 2, 1},
                                                {"interleaved-1f1b", 4, 2},
                                                {"interleaved-zero-bubble", 4, 2},
                                                {"dualpipev", 4, 2}}};
  const auto upto = [&](int most) { return static_cast<int>(random() % (most + 1)); };
  const Shape& shape = kShapes[upto(5)];
  plan_testing::ProfileShape profile;
  profile.stages = shape.stages;
  profile.clocks = 2 + upto(3);
  profile.noise = 0.05 * upto(1);
  profile.labels = upto(3) == 0;
  FixedTimes fixed;
  if (upto(1) == 1) {
    fixed.comm_delay_seconds = {0.01};
    fixed.data_loading_seconds = 0.005;
    fixed.iteration_overhead_seconds = 0.05;
  }
  CostSpec costs = plan_testing::Blocking(30 * upto(2));
  if (upto(1) == 1) {  // Ranks that differ.
    const bool two_stages_a_rank = shape.virtual_stages == 2;
    costs.blocking_power_watts.resize(two_stages_a_rank ? shape.stages / 2 : shape.stages);
    for (double& watts : costs.blocking_power_watts) watts = 20 * upto(3);
  }
  costs.tensor_parallel = 1 + upto(2);
  return plan_testing::Costed(
      plan_testing::RandomRows(random, profile),
      plan_testing::DagOf(shape.schedule, shape.stages, 4, fixed, shape.virtual_stages), costs);
}

EmulationSpec RandomSpec(std::mt19937& random, const Planner& planner, bool noise) {
  const auto upto = [&](int most) { return static_cast<int>(random() % (most + 1)); };
  const double seconds = planner.baseline().iteration_time_seconds;
  EmulationSpec spec;
  spec.pipelines = 1 + upto(4);
  spec.iterations = 1 + upto(5);
  spec.target_seconds = seconds * (1 + 0.1 * upto(3));
  spec.seed = random();
  if (noise) {
    spec.noise.per_computation = 0.03 * upto(2);
    spec.noise.per_stage = 0.03 * upto(1);
    spec.noise.per_gpu = 0.03 * upto(1);
  }
  spec.switching.latency_seconds = 0.03 * seconds * upto(2);
  spec.switching.stall_seconds = 0.01 * seconds * upto(1);
  spec.switching.call_ahead = static_cast<CallAhead>(upto(2));
  if (noise) spec.switching.latency_spread_seconds = 0.1 * upto(1) * spec.switching.latency_seconds;
  for (const Knob& knob : planner.pipeline().knobs) {
    if (!planner.pipeline().knobs_are_numbers || spec.switching.latency_seconds == 0) break;
    if (upto(3) == 0) spec.switching.latency_at.push_back({knob.number, 0.02 * seconds * upto(3)});
  }
  spec.switching.min_interval_seconds = 0.02 * seconds * (upto(2) / 2);
  for (int k = upto(3); k > 0; --k) {
    Straggler straggler;
    straggler.pipeline = upto(spec.pipelines - 1);
    const int rank = upto(planner.pipeline().dag.num_ranks) - 1;
    if (rank >= 0) straggler.rank = rank;
    straggler.first_iteration = upto(static_cast<int>(spec.iterations) - 1);
    if (const int iterations = upto(3); iterations > 0) straggler.iterations = iterations;
    straggler.kind = static_cast<StragglerKind>(upto(3));
    if (straggler.kind == StragglerKind::kClockCap && !planner.pipeline().knobs_are_numbers) {
      straggler.kind = StragglerKind::kSlow;
    }
    straggler.value = 1 + 0.2 * upto(3);
    // Limits outside of the profile are refused.
    const CostedPipeline& pipeline = planner.pipeline();
    if (straggler.kind == StragglerKind::kClockCap) {
      straggler.value = std::clamp(50.0 * (1 + upto(30)), pipeline.knobs.back().number,
                                   pipeline.knobs.front().number);
    }
    if (straggler.kind == StragglerKind::kPowerCap) {
      const std::vector<CostOption>& options =
          pipeline.tables[upto(static_cast<int>(pipeline.tables.size()) - 1)].all_options;
      const CostOption& option = options[upto(static_cast<int>(options.size()) - 1)];
      straggler.value = option.energy_joules / option.time_seconds / pipeline.tensor_parallel;
    }
    spec.stragglers.push_back(straggler);
  }
  if (upto(2) == 0) {
    spec.random_stragglers = {.share_of_gpus_per_day = 0.2 * 86400 / seconds,
                              .duration_seconds = 2 * seconds};
  }
  spec.control.delay_seconds = 0.7 * seconds * upto(2);
  if (upto(1) == 1) spec.power_interval_seconds = 0.07 * seconds;
  spec.timeline_iteration = upto(static_cast<int>(spec.iterations) - 1);
  spec.timeline_pipelines = 100;
  return spec;
}

// The energy of the iteration in the timeline, from its computations.
double JoulesOfTimeline(const CostedPipeline& pipeline, const EmulationSpec& spec,
                        const EmulatedTimeline& timeline) {
  const auto gpus =
      model::DrawFixedNoise(pipeline, spec.noise, spec.pipelines, spec.seed).gpus_of_rank;
  double joules = 0;
  for (const EmulatedPipeline& kept : timeline.pipelines) {
    joules += pipeline.total_blocking_power_watts * timeline.time_seconds;
    for (const EmulatedComputation& c : kept.computations) {
      const int rank = pipeline.dag.computations[c.computation].rank;
      double share = 1;
      if (!gpus.empty()) {
        const auto& noise =
            gpus[static_cast<std::size_t>(kept.pipeline) * pipeline.dag.num_ranks + rank];
        share = noise.mean / noise.slowest;
      }
      joules += c.joules - pipeline.rank_blocking_power_watts[rank] * share *
                               (c.end_seconds - c.start_seconds);
    }
  }
  return joules;
}

FakePolicy CheapPlans(const Planner& planner) {
  return FakePolicy(
      [&planner](double seconds) { return planner.PlanFor(seconds, {.effort = 0.01}); });
}

RC_GTEST_PROP(EmulatePropertyTest, EnergyIsConserved, (unsigned seed)) {
  std::mt19937 random(seed);
  const Planner planner = emulator_testing::Plans(RandomPipeline(random));
  const CostedPipeline& pipeline = planner.pipeline();
  const EmulationSpec spec = RandomSpec(random, planner, true);
  const auto result = Emulate(planner, CheapPlans(planner), spec);
  RC_ASSERT(result.has_value());
  const Emulation& emulation = *result;
  RC_ASSERT(emulation.iterations.size() == static_cast<std::size_t>(spec.iterations));

  // All energy is the sum of the iterations', and of the power over time.
  const double total = emulation.energy.total_joules();
  double sum = 0;
  double end = 0;
  for (const IterationRecord& record : emulation.iterations) {
    RC_ASSERT(record.start_seconds == end);
    RC_ASSERT(record.energy.blocking_joules >= -1e-12 * total);
    RC_ASSERT(record.energy.intrinsic_bloat_joules >= -1e-9 * total);
    RC_ASSERT(record.energy.extrinsic_bloat_joules >= -1e-9 * total);
    sum += record.energy.total_joules();
    end += record.time_seconds;
  }
  RC_ASSERT(end == emulation.time_seconds);
  RC_ASSERT(Near(sum, total, 1e-12, total));
  const PowerTrace& power = emulation.power;
  RC_ASSERT(power.watts.size() == std::ceil(emulation.time_seconds / power.interval_seconds));
  const double joules =
      power.interval_seconds * std::accumulate(power.watts.begin(), power.watts.end(), 0.0);
  RC_ASSERT(Near(joules, total, 1e-9, total));
  RC_ASSERT(*std::max_element(power.watts.begin(), power.watts.end()) == emulation.peak_watts);

  // One iteration, computation by computation.
  const EmulatedTimeline& timeline = emulation.timeline;
  const IterationRecord& record = emulation.iterations[timeline.iteration];
  RC_ASSERT(timeline.time_seconds == record.time_seconds);
  RC_ASSERT(timeline.pipelines.size() == static_cast<std::size_t>(spec.pipelines));
  const double drawn = record.energy.total_joules();
  RC_ASSERT(Near(JoulesOfTimeline(pipeline, spec, timeline), drawn, 1e-12, drawn));
  for (const EmulatedPipeline& kept : timeline.pipelines) {
    for (const Precedence& precedence : pipeline.dag.precedences) {
      RC_ASSERT(kept.computations[precedence.to].start_seconds >=
                kept.computations[precedence.from].end_seconds + precedence.delay_seconds);
    }
  }
}

RC_GTEST_PROP(EmulatePropertyTest, CopiesAreLikeReplaysOfEach, (unsigned seed)) {
  std::mt19937 random(seed);
  const Planner planner = emulator_testing::Plans(RandomPipeline(random));
  EmulationSpec spec = RandomSpec(random, planner, false);
  const FakePolicy policy = CheapPlans(planner);
  const auto copies = Emulate(planner, policy, spec);
  spec.noise.per_computation = 1e-300;  // Changes nothing, but every pipeline is replayed.
  const auto each = Emulate(planner, policy, spec);
  RC_ASSERT(copies.has_value() && each.has_value());
  RC_ASSERT(each->replayed_pipelines == spec.pipelines * spec.iterations);
  RC_ASSERT(copies->replayed_pipelines <= each->replayed_pipelines);
  RC_ASSERT(copies->clock_calls == each->clock_calls);
  RC_ASSERT(copies->late_computations == each->late_computations);
  RC_ASSERT(copies->stragglers == each->stragglers);
  RC_ASSERT(copies->replans == each->replans);
  RC_ASSERT(copies->gpu_peak_watts == each->gpu_peak_watts);
  const double total = each->energy.total_joules();
  for (std::size_t n = 0; n < each->iterations.size(); ++n) {
    const IterationRecord& a = copies->iterations[n];
    const IterationRecord& b = each->iterations[n];
    RC_ASSERT(a.time_seconds == b.time_seconds);
    RC_ASSERT(Near(a.energy.useful_joules, b.energy.useful_joules, 1e-12, total));
    RC_ASSERT(Near(a.energy.blocking_joules, b.energy.blocking_joules, 1e-12, total));
  }
  RC_ASSERT(copies->power.watts.size() == each->power.watts.size());
  for (std::size_t k = 0; k < each->power.watts.size(); ++k) {
    RC_ASSERT(Near(copies->power.watts[k], each->power.watts[k], 1e-9, each->peak_watts));
  }
}

// Whether there is room for all replays, for some or for none.
RC_GTEST_PROP(EmulatePropertyTest, WhatIsKeptChangesNoNumber, (unsigned seed)) {
  std::mt19937 random(seed);
  const Planner planner = emulator_testing::Plans(RandomPipeline(random));
  EmulationSpec spec = RandomSpec(random, planner, true);
  spec.noise.per_computation = 0;
  spec.switching.latency_spread_seconds = 0;
  spec.iterations = 8;
  const FakePolicy policy = CheapPlans(planner);
  const auto all = Emulate(planner, policy, spec);
  RC_ASSERT(all.has_value());
  std::int64_t replayed = all->replayed_pipelines;
  for (const std::size_t bytes : {4000, 0}) {
    const auto some = emulate::EmulateWithin(bytes, planner, policy, spec, {});
    RC_ASSERT(some.has_value());
    RC_ASSERT(some->power.watts == all->power.watts);
    RC_ASSERT(some->clock_calls == all->clock_calls);
    RC_ASSERT(some->late_computations == all->late_computations);
    RC_ASSERT(some->gpu_peak_watts == all->gpu_peak_watts);
    for (std::size_t n = 0; n < all->iterations.size(); ++n) {
      const IterationRecord& a = all->iterations[n];
      const IterationRecord& b = some->iterations[n];
      RC_ASSERT(a.time_seconds == b.time_seconds);
      RC_ASSERT(a.energy.useful_joules == b.energy.useful_joules);
      RC_ASSERT(a.energy.blocking_joules == b.energy.blocking_joules);
    }
    RC_ASSERT(some->replayed_pipelines >= replayed);
    replayed = some->replayed_pipelines;
  }
}

RC_GTEST_PROP(EmulatePropertyTest, UndisturbedJobIsItsPlan, (unsigned seed)) {
  std::mt19937 random(seed);
  const Planner planner = emulator_testing::Plans(RandomPipeline(random));
  const CostedPipeline& pipeline = planner.pipeline();
  std::vector<CostOption> options;
  for (const int table : pipeline.table_of) {
    const auto& all = pipeline.tables[table].all_options;
    options.push_back(all[random() % all.size()]);
  }
  const Plan plan = *planner.Evaluate(std::move(options));
  EmulationSpec spec;
  spec.pipelines = 1 + static_cast<int>(random() % 3);
  spec.iterations = 2;
  spec.target_seconds = plan.iteration_time_seconds;
  const auto emulation = Emulate(planner, emulator_testing::Only(plan), spec);
  RC_ASSERT(emulation.has_value());
  const double least = planner.frontier().EnergyAt(plan.iteration_time_seconds);
  for (const IterationRecord& record : emulation->iterations) {
    RC_ASSERT(record.time_seconds == plan.iteration_time_seconds);
    RC_ASSERT(Near(record.energy.total_joules(), spec.pipelines * plan.energy_joules, 1e-12,
                   spec.pipelines * plan.energy_joules));
    RC_ASSERT(Near(record.energy.intrinsic_bloat_joules,
                   spec.pipelines * (plan.energy_joules - least), 1e-9,
                   spec.pipelines * plan.energy_joules));
    RC_ASSERT(Near(record.energy.extrinsic_bloat_joules, 0, 1e-9, plan.energy_joules));
  }
}

RC_GTEST_PROP(EmulatePropertyTest, SameInputSameBits, (unsigned seed)) {
  std::mt19937 random(seed);
  const Planner planner = emulator_testing::Plans(RandomPipeline(random));
  const EmulationSpec spec = RandomSpec(random, planner, true);
  const FakePolicy policy = CheapPlans(planner);
  const auto once = Emulate(planner, policy, spec);
  const auto again = Emulate(planner, policy, spec);
  RC_ASSERT(once.has_value() && again.has_value());
  RC_ASSERT(once->power.watts == again->power.watts);
  RC_ASSERT(once->energy.useful_joules == again->energy.useful_joules);
  RC_ASSERT(once->time_seconds == again->time_seconds);
}

}  // namespace
}  // namespace perseus
