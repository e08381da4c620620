// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_REPORT_TIMELINE_H_
#define PERSEUS_SRC_REPORT_TIMELINE_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "perseus/emulator.h"
#include "perseus/plan.h"

namespace perseus::report {

// One iteration of one pipeline, as planned or as emulated. Ends are rounded like starts, so that
// computations of a rank never overlap by a rounding.
struct TimelineRun {
  std::string name;
  std::vector<std::int64_t> start_ns;  // [computation]
  std::vector<std::int64_t> end_ns;
  std::vector<int> knob;
  std::vector<double> joules;
  std::vector<double> watts;
  // [computation] The knob at which its rank waits after it; empty: that of the least power.
  std::vector<int> knob_while_waiting;
  std::int64_t iteration_ns = 0;
  std::optional<std::int64_t> own_end_ns;  // Of an emulated pipeline.
  std::vector<bool> critical;              // Of a plan: on some longest path.
  std::vector<int> critical_path;          // One longest path, first computation first.
};

TimelineRun RunOf(const CostedPipeline& pipeline, const Plan& plan, std::string name);
TimelineRun RunOf(const CostedPipeline& pipeline, const EmulatedPipeline& emulated,
                  double iteration_seconds, std::string name);

// The chart of runs of one pipeline, for report.ts. Energies are in it only with `joules`; `legend`
// says of which runs, the last `legend_of`, the legend shows the clocks.
nlohmann::ordered_json TimelineChart(const CostedPipeline& pipeline,
                                     const std::vector<TimelineRun>& runs,
                                     const std::string& knob_unit, bool joules,
                                     const std::string& legend, int legend_of);

// "F3", or "F3+B1" where two are fused.
std::string ComputationLabel(const Computation& computation);

// The stages of each rank, ascending.
std::vector<std::vector<int>> StagesOfRanks(const PipelineDag& dag);

}  // namespace perseus::report

#endif  // PERSEUS_SRC_REPORT_TIMELINE_H_
