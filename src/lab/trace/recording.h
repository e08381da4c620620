// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_TRACE_RECORDING_H_
#define PERSEUS_SRC_TRACE_RECORDING_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "perseus/result.h"
#include "trace/operation_kind.h"

namespace perseus::trace {

// One row of a trace: an operation of a rank in a step.
struct Operation {
  double start_seconds = 0;
  double duration_seconds = 0;
  std::size_t line = 0;  // Of the file; a header is one.
  int step = 0;          // As recorded.
  int pipeline = 0;      // dp_rank
  int stage = 0;
  int rank = 0;
  int sequence = 0;  // Among those of its kind on its rank in the step, from 0.
  int chunk = -1;    // mc: of the stage's model chunks; -1: means nothing.
  int block = -1;    // gmc: the chunk's place in the whole model.
  int microbatch = -1;
  OperationKind kind = OperationKind::kForward;

  double end_seconds() const { return start_seconds + duration_seconds; }
};

// A recorded job. Invariants: every step has every stage of every pipeline, each
// with at least one forward and one backward; operations are sorted by (step, pipeline,
// stage, kind, sequence). A plain value.
struct Recording {
  std::string source;
  std::vector<Operation> operations;
  std::vector<int> steps;  // Ascending.
  int pipelines = 0;       // DP
  int stages = 0;          // PP
  int virtual_stages = 1;
  int gpus_per_rank = 1;      // TP x sequence parallel: what rank numbers leave out.
  int microbatches = 0;       // Of the pipeline and step with most of them.
  std::vector<int> rank_of;   // [Place(pipeline, stage)]
  std::vector<int> first_of;  // [Cell(step index, pipeline, stage)] -> operation; one more.

  int places() const { return pipelines * stages; }
  int Place(int pipeline, int stage) const { return pipeline * stages + stage; }
  int Cell(int step_index, int pipeline, int stage) const {
    return step_index * places() + Place(pipeline, stage);
  }
};

// What a trace may have at most. 120 bytes are kept of an operation besides its text.
inline constexpr std::size_t kMaxTraceBytes = std::size_t{512} << 20;
inline constexpr std::size_t kMaxOperations = 4'000'000;
inline constexpr int kHighestPipeline = 65'535;
inline constexpr int kHighestStage = 1'023;

// Reads the columns dp_rank, stage, rank, step, optype, start_ts, duration,
// seq_id, mc, mb_id and gmc (docs/explanation/traces.md), in any order. `source` is for
// messages, which name line and column. Errors: kInvalidInput.
Result<Recording> ParseRecording(std::string_view text, const std::string& source);

// The same of a file or pipe, CSV or gzip.
Result<Recording> ReadRecording(const std::string& path);

}  // namespace perseus::trace

#endif  // PERSEUS_SRC_TRACE_RECORDING_H_
