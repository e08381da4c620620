// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "modelled_pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "perseus/pipeline.h"
#include "perseus/planner.h"
#include "perseus/profile.h"
#include "perseus/schedule.h"

namespace perseus::bench {
namespace {

// One direction on an A100 SXM; docs/evidence/evidence.md has the model and its constants.
struct Direction {
  const char* name;
  double times_forward;  // Operations.
  double efficiency;
  double clock_share;
  double head_overhead_seconds;
};
constexpr Direction kDirections[] = {{"forward", 1, 0.7506, 0.8693, 0.002575},
                                     {"backward", 2, 0.8102, 0.8390, 0.003162}};
constexpr double kPeakFlops = 311.87e12;
constexpr double kOverheadPowerShare = 0.314;

double EffectiveMhz(int mhz) { return std::min<double>(mhz, 1140 + (476 - 302.6) / 0.71); }

double Watts(int mhz) {
  const double above_knee = EffectiveMhz(mhz) - 1140;
  return 302.6 + (above_knee < 0 ? 0.23 : 0.71) * above_knee;
}

}  // namespace

std::string ModelledProfile(int stages) {
  constexpr double kHidden = 12288, kTokens = 2048, kVocabulary = 51200;
  constexpr double kLayer = 2 * kTokens * (4 * kHidden * kHidden + kTokens * 2 * kHidden) +
                            2 * kTokens * 2 * kHidden * 4 * kHidden;
  constexpr double kHead = 2 * kTokens * kHidden * kVocabulary;
  constexpr int kLayers = 96;
  std::string text = "# MODELLED, not measured\nstage,instruction,frequency,time,energy\n";
  for (int stage = 0; stage < stages; ++stage) {
    const bool has_head = stage == stages - 1;
    const double layers = kLayers / stages + (stage < kLayers % stages ? 1 : 0);
    for (const Direction& each : kDirections) {
      const double flops = each.times_forward * (layers * kLayer + (has_head ? kHead : 0));
      for (int mhz = 1410; mhz >= 855; mhz -= 15) {
        const double stretch = (1 - each.clock_share) + each.clock_share * 1410 / EffectiveMhz(mhz);
        const double computing = flops / (each.efficiency * kPeakFlops) * stretch;
        const double overhead = has_head ? each.head_overhead_seconds * stretch : 0;
        fmt::format_to(std::back_inserter(text), "{},{},{},{:.9g},{:.9g}\n", stage, each.name, mhz,
                       computing + overhead,
                       (computing + overhead * kOverheadPowerShare) * Watts(mhz));
      }
    }
  }
  return text;
}

Result<CostedPipeline> ModelledPipeline(int stages, int microbatches) {
  auto profile = ParseProfile(ModelledProfile(stages), "profile.csv");
  if (!profile) return tl::unexpected(profile.error());
  ScheduleSpec spec;
  spec.name = "1f1b";
  spec.num_stages = stages;
  spec.num_microbatches = microbatches;
  auto schedule = BuildSchedule(spec);
  if (!schedule) return tl::unexpected(schedule.error());
  auto dag = BuildDag(*schedule, {});
  if (!dag) return tl::unexpected(dag.error());
  CostSpec costs;
  costs.blocking_power_watts = {83.64};
  return CostPipeline(*profile, *std::move(dag), costs);
}

}  // namespace perseus::bench
