// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "perseus/report.h"
#include "report/check_input.h"
#include "report/text.h"
#include "report/timeline.h"
#include "report/trace_writer.h"

namespace perseus {
inline namespace v0 {
namespace {

using Json = nlohmann::ordered_json;
using report::RoundSignificant;
using report::Timeline;

// Writes the events of one plan.
class ProcessWriter {
 public:
  ProcessWriter(const CostedPipeline& pipeline, const Plan& plan, const std::string& knob_unit,
                int pid, report::TraceWriter* out)
      : pipeline_(pipeline),
        dag_(pipeline.dag),
        plan_(plan),
        timeline_(report::LayOut(pipeline, plan)),
        knob_unit_(pipeline.knobs_are_numbers ? knob_unit : ""),
        pid_(pid),
        out_(out) {}

  void Write(std::string_view name) {
    out_->Process(pid_, name, dag_);
    std::vector<double> watts;
    watts.reserve(plan_.options.size());
    for (int i = 0; i < dag_.size(); ++i) watts.push_back(PowerWatts(i));
    std::vector<int> knobs_while_waiting;
    if (plan_.waiting == Waiting::kSetClock) {
      for (const CostOption& option : plan_.options) knobs_while_waiting.push_back(option.knob);
    }
    out_->PipelinePower(pid_, pipeline_, timeline_.start_ns, timeline_.end_ns, watts,
                        knobs_while_waiting, timeline_.iteration_ns);
    for (int rank = 0; rank < dag_.num_ranks; ++rank) {
      if (pipeline_.knobs_are_numbers) ClockCounter(rank);
      for (const int i : dag_.rank_order[rank]) Slice(i);
    }
  }

 private:
  double PowerWatts(int i) const {
    const CostOption& option = plan_.options[i];
    return option.time_seconds > 0 ? option.energy_joules / option.time_seconds : 0;
  }

  void ClockCounter(int rank) {
    const std::string name =
        fmt::format("rank {} clock{}", rank,
                    knob_unit_.empty() ? std::string() : fmt::format(" ({})", knob_unit_));
    const bool waits = pipeline_.waiting_depends_on_clock() && plan_.waiting == Waiting::kCheapest;
    const int waiting = waits ? pipeline_.WaitingKnob(rank).value_or(-1) : -1;
    int knob = -1;
    std::int64_t end_ns = 0;
    const auto set = [&](int to, std::int64_t ns) {
      if (to == knob) return;
      knob = to;
      out_->Counter(pid_, name, ns, knob_unit_.empty() ? "value" : knob_unit_,
                    pipeline_.knobs[knob].number);
    };
    for (const int i : dag_.rank_order[rank]) {
      if (waits && timeline_.start_ns[i] > end_ns) set(waiting, end_ns);
      set(plan_.options[i].knob, timeline_.start_ns[i]);
      end_ns = timeline_.end_ns[i];
    }
    if (waits && timeline_.iteration_ns > end_ns) set(waiting, end_ns);
  }

  void Slice(int i) {
    const CostOption& option = plan_.options[i];
    Json args = report::ComputationArgs(pipeline_, i, option.knob);
    args["energy_j"] = RoundSignificant(option.energy_joules, 9);
    args["power_w"] = RoundSignificant(PowerWatts(i), 6);
    args["critical"] = static_cast<bool>(timeline_.critical[i]);
    out_->Slice(pid_, dag_, i, timeline_.start_ns[i], timeline_.end_ns[i], args);
  }

  const CostedPipeline& pipeline_;
  const PipelineDag& dag_;
  const Plan& plan_;
  const Timeline timeline_;
  const std::string knob_unit_;
  const int pid_;
  report::TraceWriter* const out_;
};

}  // namespace

Result<std::string> FormatTimelineTrace(const ReportInput& input) {
  if (auto good = report::CheckInput(input, true); !good) return tl::unexpected(good.error());
  report::TraceWriter out;
  ProcessWriter(*input.pipeline, *input.baseline, input.knob_unit, 1, &out)
      .Write(input.pipeline->knobs_are_numbers ? "before: all-maximum clocks"
                                               : "before: baseline knobs");
  ProcessWriter(*input.pipeline, *input.chosen, input.knob_unit, 2, &out).Write("after: plan");
  return out.bytes();
}

}  // namespace v0
}  // namespace perseus
