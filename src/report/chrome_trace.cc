// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "perseus/report.h"
#include "report/text.h"
#include "report/timeline.h"

namespace perseus {
namespace {

using Json = nlohmann::ordered_json;
using report::RoundSignificant;
using report::Timeline;

// Perfetto takes thread ids as unique in a trace, shows a thread whose id is
// its process's first, and treats id 0 as the idle task: keep clear of all.
constexpr int kFirstThreadId = 16;

// A whole number of nanoseconds in the format's microseconds.
double Microseconds(std::int64_t ns) { return static_cast<double>(ns) / 1e3; }

// Writes the events of one plan, one event a line.
class ProcessWriter {
 public:
  ProcessWriter(const CostedPipeline& pipeline, const Plan& plan, const std::string& knob_unit,
                int pid, std::string* out)
      : pipeline_(pipeline),
        dag_(pipeline.dag),
        plan_(plan),
        timeline_(report::LayOut(pipeline, plan)),
        knob_unit_(pipeline.knobs_are_numbers ? knob_unit : ""),
        pid_(pid),
        out_(out) {}

  void Write(std::string_view name) {
    Metadata("process_name", 0, {{"name", name}});
    Metadata("process_sort_index", 0, {{"sort_index", pid_}});
    const std::vector<std::vector<int>> stages = report::StagesOfRanks(dag_);
    for (int rank = 0; rank < dag_.num_ranks; ++rank) {
      const std::string rank_name = fmt::format(
          "rank {} (stage {})", rank, fmt::join(stages[rank].begin(), stages[rank].end(), ", "));
      Metadata("thread_name", ThreadId(rank), {{"name", rank_name}});
      Metadata("thread_sort_index", ThreadId(rank), {{"sort_index", rank}});
    }
    TotalPower();
    for (int rank = 0; rank < dag_.num_ranks; ++rank) {
      if (pipeline_.knobs_are_numbers) ClockCounter(rank);
      for (const int i : dag_.rank_order[rank]) Slice(i);
    }
  }

 private:
  int ThreadId(int rank) const { return kFirstThreadId + (pid_ - 1) * dag_.num_ranks + rank; }

  void Emit(const Json& event) {
    if (!out_->ends_with("[\n")) *out_ += ",\n";
    *out_ += event.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  void Metadata(std::string_view kind, int tid, const Json& args) {
    Emit({{"name", kind}, {"ph", "M"}, {"pid", pid_}, {"tid", tid}, {"args", args}});
  }

  void Counter(const std::string& name, std::int64_t ns, std::string_view series, double value) {
    Emit({{"name", name},
          {"ph", "C"},
          {"pid", pid_},
          {"ts", Microseconds(ns)},
          {"args", {{series, RoundSignificant(value, 9)}}}});
  }

  double PowerWatts(int i) const {
    const CostOption& option = plan_.options[i];
    return option.time_seconds > 0 ? option.energy_joules / option.time_seconds : 0;
  }

  // Steps of the whole pipeline's power: running computations at their mean
  // power, waiting ranks at blocking power.
  void TotalPower() {
    std::map<std::int64_t, std::vector<int>> changes;
    for (int i = 0; i < dag_.size(); ++i) {
      changes[timeline_.start_ns[i]].push_back(i);
      changes[timeline_.end_ns[i]].push_back(i);
    }
    changes[0];
    changes[timeline_.iteration_ns];
    std::vector<double> power = pipeline_.rank_blocking_power_watts;
    std::vector<int> running(dag_.num_ranks, -1);
    for (const auto& [ns, computations] : changes) {
      if (ns == timeline_.iteration_ns) break;
      for (const int i : computations) {
        const int rank = dag_.computations[i].rank;
        if (timeline_.start_ns[i] == ns && timeline_.end_ns[i] > ns) {
          running[rank] = i;
          power[rank] = PowerWatts(i);
        } else if (running[rank] == i) {
          running[rank] = -1;
          power[rank] = pipeline_.rank_blocking_power_watts[rank];
        }
      }
      double total = 0;
      for (const double watts : power) total += watts;
      Counter("pipeline power (W)", ns, "W", total);
    }
    Counter("pipeline power (W)", timeline_.iteration_ns, "W", 0);
  }

  void ClockCounter(int rank) {
    const std::string name =
        fmt::format("rank {} clock{}", rank,
                    knob_unit_.empty() ? std::string() : fmt::format(" ({})", knob_unit_));
    int knob = -1;
    for (const int i : dag_.rank_order[rank]) {
      if (plan_.options[i].knob == knob) continue;
      knob = plan_.options[i].knob;
      Counter(name, timeline_.start_ns[i], knob_unit_.empty() ? "value" : knob_unit_,
              pipeline_.knobs[knob].number);
    }
  }

  void Slice(int i) {
    const Computation& computation = dag_.computations[i];
    const CostOption& option = plan_.options[i];
    const Knob& knob = pipeline_.knobs[option.knob];
    Json args = {{"stage", computation.action.stage},
                 {"type", ComputationTypeName(computation.action.type)},
                 {"microbatch", computation.action.microbatch}};
    if (computation.fused) {
      args["fused_stage"] = computation.fused->stage;
      args["fused_type"] = ComputationTypeName(computation.fused->type);
      args["fused_microbatch"] = computation.fused->microbatch;
    }
    if (pipeline_.knobs_are_numbers) {
      args["clock"] = knob.number;
    } else {
      args["clock"] = knob.label;
    }
    args["energy_j"] = RoundSignificant(option.energy_joules, 9);
    args["power_w"] = RoundSignificant(PowerWatts(i), 6);
    args["critical"] = static_cast<bool>(timeline_.critical[i]);
    Emit({{"name", report::ComputationLabel(computation)},
          {"cat", computation.fused ? "fused" : ComputationTypeName(computation.action.type)},
          {"ph", "X"},
          {"ts", Microseconds(timeline_.start_ns[i])},
          {"dur", Microseconds(timeline_.end_ns[i] - timeline_.start_ns[i])},
          {"pid", pid_},
          {"tid", ThreadId(computation.rank)},
          {"args", args}});
  }

  const CostedPipeline& pipeline_;
  const PipelineDag& dag_;
  const Plan& plan_;
  const Timeline timeline_;
  const std::string knob_unit_;
  const int pid_;
  std::string* const out_;
};

}  // namespace

std::string FormatTimelineJson(const ReportInput& input) {
  std::string out = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  ProcessWriter(*input.pipeline, *input.baseline, input.knob_unit, 1, &out)
      .Write(input.pipeline->knobs_are_numbers ? "before: all-maximum clocks"
                                               : "before: baseline knobs");
  ProcessWriter(*input.pipeline, *input.chosen, input.knob_unit, 2, &out).Write("after: plan");
  out += "\n]}\n";
  return out;
}

}  // namespace perseus
