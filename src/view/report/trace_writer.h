// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_REPORT_TRACE_WRITER_H_
#define PERSEUS_SRC_REPORT_TRACE_WRITER_H_

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "report/protobuf.h"

namespace perseus::report {

// A trace for Perfetto in its own format: a Trace of TrackEvent packets
// (perfetto.dev/docs/reference/synthetic-track-event), which is read without a limit. A pipeline
// is a process, from process 1 on, and its ranks are threads.
class TraceWriter {
 public:
  void Process(int pid, std::string_view name, const PipelineDag& dag);
  // Those of a rank come in the order in which they ran.
  void Slice(int pid, const PipelineDag& dag, int computation, std::int64_t start_ns,
             std::int64_t end_ns, const nlohmann::ordered_json& args);
  void Counter(int pid, const std::string& name, std::int64_t ns, std::string_view series,
               double value);
  // A marker through the whole process.
  void Instant(int pid, std::string_view name, std::int64_t ns, const nlohmann::ordered_json& args);
  // Steps of a pipeline's power: running computations at their mean power,
  // waiting ranks at blocking power. `knobs_while_waiting`: [computation] The knob at which its
  // rank waits after it; empty: that of the least power.
  void PipelinePower(int pid, const CostedPipeline& pipeline,
                     const std::vector<std::int64_t>& start_ns,
                     const std::vector<std::int64_t>& end_ns, const std::vector<double>& watts,
                     const std::vector<int>& knobs_while_waiting, std::int64_t iteration_ns);
  const std::string& bytes() const { return trace_.bytes(); }

 private:
  // Texts that are written once and then named by numbers, from 1 on.
  using Names = std::map<std::string, std::uint64_t, std::less<>>;

  std::uint64_t NumberOf(std::string_view name, int interned_field, Names* names);
  void AddArgs(const nlohmann::ordered_json& args, ProtoMessage* event);
  void AddTrack(const ProtoMessage& track);
  void AddEvent(std::int64_t ns, const ProtoMessage& event);
  void AddPacket(ProtoMessage packet);

  ProtoMessage trace_;
  ProtoMessage new_names_;  // InternedData of the packet that is being made.
  Names event_names_, categories_, arg_names_;
  std::map<std::pair<int, std::string>, std::uint64_t> counters_;  // (pid, name) -> track
};

// What a computation is and the knob that it ran at.
nlohmann::ordered_json ComputationArgs(const CostedPipeline& pipeline, int computation, int knob);

}  // namespace perseus::report

#endif  // PERSEUS_SRC_REPORT_TRACE_WRITER_H_
