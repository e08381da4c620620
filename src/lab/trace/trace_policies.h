// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_TRACE_TRACE_POLICIES_H_
#define PERSEUS_SRC_TRACE_TRACE_POLICIES_H_

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "perseus/planner.h"
#include "perseus/result.h"
#include "trace/links.h"
#include "trace/recorded_pipeline.h"
#include "trace/recording.h"
#include "trace/trace_energy.h"

namespace perseus::trace {

// One plan for all steps and pipelines, made for the mean length of each stage and type.
class StaticPlans {
 public:
  static Result<StaticPlans> Create(const Recording& recording, const PipelineMaker& maker,
                                    std::vector<double> own_seconds, const TraceEnergySpec& spec);

  // The knobs for `factor` times the time at maximum clocks (1: no slowdown).
  struct Knobs {
    // By block, type and microbatch of the computation.
    std::map<std::tuple<int, ComputationType, int>, int> of;
  };
  Result<const Knobs*> For(double factor);

 private:
  StaticPlans(Planner planner, double effort) : planner_(std::move(planner)), effort_(effort) {}

  Planner planner_;
  double effort_;
  std::map<int, Knobs> known_;  // By thousandths of the factor.
};

// Finds straggling pipelines from earlier steps: those that were slower than the median pipeline by
// the threshold in three quarters of the steps.
class StragglerWatch {
 public:
  StragglerWatch(int pipelines, const TraceEnergySpec& spec)
      : steps_(spec.detector_steps), threshold_(spec.detector_threshold), slow_by_(pipelines) {}

  // The factor of each pipeline that is known to straggle; 1 of all others.
  std::vector<double> Known() const;
  // The pipelines' times in the step that ended now.
  void Add(const std::vector<double>& seconds);

 private:
  int steps_;
  double threshold_;
  std::vector<std::vector<double>> slow_by_;  // [pipeline] -> newest last
};

}  // namespace perseus::trace

#endif  // PERSEUS_SRC_TRACE_TRACE_POLICIES_H_
