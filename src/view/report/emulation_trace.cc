// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "perseus/emulation_report.h"
#include "report/check_input.h"
#include "report/text.h"
#include "report/trace_writer.h"

namespace perseus {
inline namespace v0 {
namespace {

using Json = nlohmann::ordered_json;
using report::RoundSignificant;

std::int64_t Nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

// What a computation drew while it ran; 0 where it took no time.
double Watts(const EmulatedComputation& ran) {
  const double seconds = ran.end_seconds - ran.start_seconds;
  return seconds > 0 ? ran.joules / seconds : 0;
}

void WritePipeline(const EmulationReportInput& input, const EmulatedPipeline& ran, int pid,
                   report::TraceWriter* out) {
  const CostedPipeline& pipeline = *input.pipeline;
  const EmulatedTimeline& timeline = input.emulation->timeline;
  const std::int64_t iteration_ns = Nanoseconds(timeline.time_seconds);
  out->Process(pid, fmt::format("pipeline {}{}", ran.pipeline, ran.straggles ? " (straggles)" : ""),
               pipeline.dag);
  std::vector<std::int64_t> starts, ends;
  std::vector<double> watts;
  std::vector<int> knobs;
  for (const EmulatedComputation& each : ran.computations) {
    starts.push_back(Nanoseconds(each.start_seconds));
    ends.push_back(Nanoseconds(each.end_seconds));
    watts.push_back(Watts(each));
    if (ran.waiting == Waiting::kSetClock) knobs.push_back(each.knob);
  }
  out->PipelinePower(pid, pipeline, starts, ends, watts, knobs, iteration_ns);
  out->Instant(pid, "pipeline ends", Nanoseconds(ran.end_seconds), Json::object());
  out->Instant(pid, "iteration ends", iteration_ns, {{"iteration", timeline.iteration}});
  for (const std::vector<int>& order : pipeline.dag.rank_order) {
    for (const int i : order) {
      Json args = report::ComputationArgs(pipeline, i, ran.computations[i].knob);
      args["energy_j"] = RoundSignificant(ran.computations[i].joules, 9);
      args["power_w"] = RoundSignificant(watts[i], 6);
      out->Slice(pid, pipeline.dag, i, starts[i], ends[i], args);
    }
  }
}

}  // namespace

Result<std::string> FormatEmulationTimelineTrace(const EmulationReportInput& input) {
  if (auto good = report::CheckInput(input); !good) return tl::unexpected(good.error());
  report::TraceWriter out;
  int pid = 0;
  for (const EmulatedPipeline& ran : input.emulation->timeline.pipelines) {
    WritePipeline(input, ran, ++pid, &out);
  }
  return out.bytes();
}

}  // namespace v0
}  // namespace perseus
