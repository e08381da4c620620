// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_REPORT_TRACE_WRITER_H_
#define PERSEUS_SRC_REPORT_TRACE_WRITER_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "perseus/costed_pipeline.h"

namespace perseus::report {

// A trace for Perfetto. A pipeline is a process, from process 1 on, and its
// ranks are threads.
class TraceWriter {
 public:
  TraceWriter() = default;
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;
  virtual ~TraceWriter() = default;

  virtual void Process(int pid, std::string_view name, const PipelineDag& dag) = 0;
  // Those of a rank come in the order in which they ran.
  virtual void Slice(int pid, const PipelineDag& dag, int computation, std::int64_t start_ns,
                     std::int64_t end_ns, const nlohmann::ordered_json& args) = 0;
  virtual void Counter(int pid, const std::string& name, std::int64_t ns, std::string_view series,
                       double value) = 0;
  // A marker through the whole process.
  virtual void Instant(int pid, std::string_view name, std::int64_t ns,
                       const nlohmann::ordered_json& args) = 0;
  virtual std::string Finish() = 0;

  // Steps of a pipeline's power: running computations at their mean power,
  // waiting ranks at blocking power.
  void PipelinePower(int pid, const CostedPipeline& pipeline,
                     const std::vector<std::int64_t>& start_ns,
                     const std::vector<std::int64_t>& end_ns, const std::vector<double>& watts,
                     std::int64_t iteration_ns);
};

// Chrome's trace event format, one event a line.
class JsonTraceWriter : public TraceWriter {
 public:
  void Process(int pid, std::string_view name, const PipelineDag& dag) override;
  void Slice(int pid, const PipelineDag& dag, int computation, std::int64_t start_ns,
             std::int64_t end_ns, const nlohmann::ordered_json& args) override;
  void Counter(int pid, const std::string& name, std::int64_t ns, std::string_view series,
               double value) override;
  void Instant(int pid, std::string_view name, std::int64_t ns,
               const nlohmann::ordered_json& args) override;
  std::string Finish() override;

 private:
  void Emit(const nlohmann::ordered_json& event);
  void Metadata(std::string_view kind, int pid, int tid, const nlohmann::ordered_json& args);

  std::string text_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  bool empty_ = true;
};

int TraceThreadId(int pid, int rank, int num_ranks);
std::vector<std::string> TraceRankNames(const PipelineDag& dag);  // "rank 2 (stage 2, 6)"
std::string_view TraceCategory(const Computation& computation);   // Its type, or "fused".

// What a computation is and the knob that it ran at.
nlohmann::ordered_json ComputationArgs(const CostedPipeline& pipeline, int computation, int knob);

}  // namespace perseus::report

#endif  // PERSEUS_SRC_REPORT_TRACE_WRITER_H_
