// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/trace_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "common/json_text.h"
#include "report/text.h"
#include "report/timeline.h"

namespace perseus::report {
namespace {

using Json = nlohmann::ordered_json;

// Perfetto takes thread ids as unique in a trace, shows a thread whose id is
// its process's first, and treats id 0 as the idle task: keep clear of all.
constexpr int kFirstThreadId = 16;

// A whole number of nanoseconds in the format's microseconds.
double Microseconds(std::int64_t ns) { return static_cast<double>(ns) / 1e3; }

// A sum of which one term changes at a time: log n additions each, and no
// rounding that gathers over the changes.
class ChangingSum {
 public:
  explicit ChangingSum(const std::vector<double>& terms)
      : first_(terms.size()), sums_(2 * terms.size()) {
    std::copy(terms.begin(), terms.end(), sums_.begin() + static_cast<std::ptrdiff_t>(first_));
    for (std::size_t i = first_; i-- > 1;) sums_[i] = sums_[2 * i] + sums_[2 * i + 1];
  }

  void Set(int term, double value) {
    std::size_t i = first_ + static_cast<std::size_t>(term);
    sums_[i] = value;
    for (i /= 2; i > 0; i /= 2) sums_[i] = sums_[2 * i] + sums_[2 * i + 1];
  }
  double total() const { return sums_.size() > 1 ? sums_[1] : 0; }

 private:
  std::size_t first_;  // Of the terms; sums_[i] is that of 2 i and 2 i + 1.
  std::vector<double> sums_;
};

}  // namespace

int TraceThreadId(int pid, int rank, int num_ranks) {
  return kFirstThreadId + (pid - 1) * num_ranks + rank;
}

std::vector<std::string> TraceRankNames(const PipelineDag& dag) {
  std::vector<std::string> names;
  for (const std::vector<int>& stages : StagesOfRanks(dag)) {
    names.push_back(fmt::format("rank {} (stage {})", names.size(), fmt::join(stages, ", ")));
  }
  return names;
}

std::string_view TraceCategory(const Computation& computation) {
  return computation.fused ? "fused" : ComputationTypeName(computation.action.type);
}

void JsonTraceWriter::Emit(const Json& event) {
  if (!empty_) text_ += ",\n";
  empty_ = false;
  text_ += FormatCompact(event);
}

void JsonTraceWriter::Metadata(std::string_view kind, int pid, int tid, const Json& args) {
  Emit({{"name", kind}, {"ph", "M"}, {"pid", pid}, {"tid", tid}, {"args", args}});
}

void JsonTraceWriter::Process(int pid, std::string_view name, const PipelineDag& dag) {
  Metadata("process_name", pid, 0, {{"name", name}});
  Metadata("process_sort_index", pid, 0, {{"sort_index", pid}});
  const std::vector<std::string> names = TraceRankNames(dag);
  for (int rank = 0; rank < dag.num_ranks; ++rank) {
    const int tid = TraceThreadId(pid, rank, dag.num_ranks);
    Metadata("thread_name", pid, tid, {{"name", names[rank]}});
    Metadata("thread_sort_index", pid, tid, {{"sort_index", rank}});
  }
}

void JsonTraceWriter::Counter(int pid, const std::string& name, std::int64_t ns,
                              std::string_view series, double value) {
  Emit({{"name", name},
        {"ph", "C"},
        {"pid", pid},
        {"ts", Microseconds(ns)},
        {"args", {{series, RoundSignificant(value, 9)}}}});
}

void JsonTraceWriter::Instant(int pid, std::string_view name, std::int64_t ns, const Json& args) {
  Emit({{"name", name},
        {"ph", "i"},
        {"s", "p"},
        {"pid", pid},
        {"tid", 0},
        {"ts", Microseconds(ns)},
        {"args", args}});
}

void TraceWriter::PipelinePower(int pid, const CostedPipeline& pipeline,
                                const std::vector<std::int64_t>& start_ns,
                                const std::vector<std::int64_t>& end_ns,
                                const std::vector<double>& watts, std::int64_t iteration_ns) {
  const PipelineDag& dag = pipeline.dag;
  std::map<std::int64_t, std::vector<int>> changes;
  for (int i = 0; i < dag.size(); ++i) {
    changes[start_ns[i]].push_back(i);
    changes[end_ns[i]].push_back(i);
  }
  changes[0];
  changes[iteration_ns];
  ChangingSum power(pipeline.rank_blocking_power_watts);
  std::vector<int> running(dag.num_ranks, -1);
  for (const auto& [ns, computations] : changes) {
    if (ns == iteration_ns) break;
    for (const int i : computations) {
      const int rank = dag.computations[i].rank;
      if (start_ns[i] == ns && end_ns[i] > ns) {
        running[rank] = i;
        power.Set(rank, watts[i]);
      } else if (running[rank] == i) {
        running[rank] = -1;
        power.Set(rank, pipeline.rank_blocking_power_watts[rank]);
      }
    }
    Counter(pid, "pipeline power (W)", ns, "W", power.total());
  }
  Counter(pid, "pipeline power (W)", iteration_ns, "W", 0);
}

void JsonTraceWriter::Slice(int pid, const PipelineDag& dag, int computation, std::int64_t start_ns,
                            std::int64_t end_ns, const Json& args) {
  const Computation& what = dag.computations[computation];
  Emit({{"name", ComputationLabel(what)},
        {"cat", TraceCategory(what)},
        {"ph", "X"},
        {"ts", Microseconds(start_ns)},
        {"dur", Microseconds(end_ns - start_ns)},
        {"pid", pid},
        {"tid", TraceThreadId(pid, what.rank, dag.num_ranks)},
        {"args", args}});
}

std::string JsonTraceWriter::Finish() {
  text_ += "\n]}\n";
  return std::move(text_);
}

Json ComputationArgs(const CostedPipeline& pipeline, int computation, int knob) {
  const Computation& what = pipeline.dag.computations[computation];
  Json args = {{"stage", what.action.stage},
               {"type", ComputationTypeName(what.action.type)},
               {"microbatch", what.action.microbatch}};
  if (what.fused) {
    args["fused_stage"] = what.fused->stage;
    args["fused_type"] = ComputationTypeName(what.fused->type);
    args["fused_microbatch"] = what.fused->microbatch;
  }
  if (pipeline.knobs_are_numbers) {
    args["clock"] = pipeline.knobs[knob].number;
  } else {
    args["clock"] = pipeline.knobs[knob].label;
  }
  return args;
}

}  // namespace perseus::report
