// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_TRACE_RECORDED_PIPELINE_H_
#define PERSEUS_SRC_TRACE_RECORDED_PIPELINE_H_

#include <span>
#include <vector>

#include "perseus/pipeline.h"
#include "trace/links.h"
#include "trace/recording.h"

namespace perseus::trace {

// The DAG of one pipeline in one step: its computations, with all that was recorded
// between them as fixed delays.
struct RecordedPipeline {
  PipelineDag dag;
  std::vector<int> operations;  // [computation of the DAG] -> operation of the recording
};

// Makes them, one after the other. Keeps references to its arguments.
class PipelineMaker {
 public:
  PipelineMaker(const Recording& recording, const Links& links);

  // Transfers take as long as `own_seconds` says (0 where that is negative). What
  // follows the last computation is left out.
  RecordedPipeline Make(int step_index, int pipeline, std::span<const double> own_seconds) const;

 private:
  const Recording& recording_;
  const Links& links_;
  // [step index x pipelines + pipeline] -> groups with a member there, in their order.
  std::vector<std::vector<int>> groups_;
};

}  // namespace perseus::trace

#endif  // PERSEUS_SRC_TRACE_RECORDED_PIPELINE_H_
