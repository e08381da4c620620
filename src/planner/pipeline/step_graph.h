// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PIPELINE_STEP_GRAPH_H_
#define PERSEUS_PIPELINE_STEP_GRAPH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "perseus/result.h"
#include "perseus/schedule.h"

namespace perseus::pipeline {

// A step that another step waits for. Program order is not among them.
struct StepDependency {
  int step = 0;
  int boundary = -1;  // The stage boundary that data crosses; -1: same stage.
};

// At most three: a fused step has those of a forward (1) and a backward (2). A recompute adds none:
// what it waits for, and what waits for it, is on its rank, in an order that is checked.
class StepDependencies {
 public:
  void Add(StepDependency dependency) { items_[size_++] = dependency; }
  const StepDependency* begin() const { return items_.data(); }
  const StepDependency* end() const { return items_.data() + size_; }

 private:
  std::array<StepDependency, 3> items_;
  int size_ = 0;
};

// A checked schedule: its steps numbered rank by rank in program order, what
// each waits for, and a run of all of them in unit times (F, I, W and R
// take 1, B 2, fused the sum).
class StepGraph {
 public:
  // Errors: everything that ValidateSchedule reports. Linear in the steps.
  // The graph refers to `schedule`, which must outlive it.
  static Result<StepGraph> Connect(const Schedule& schedule);

  int size() const { return first_step_.back(); }
  int first_step(int rank) const { return first_step_[rank]; }
  StepDependencies DependenciesOf(const ScheduleStep& step) const;
  std::int64_t start_units(int step) const { return start_units_[step]; }
  std::int64_t end_units() const { return end_units_; }
  static int DurationUnits(const ScheduleStep& step);

 private:
  // What is done once for each microbatch on each stage.
  enum class Pass { kForward, kBackward, kWeight, kRecompute };  // kBackward: B or I.
  static Pass PassOf(ComputationType type);

  explicit StepGraph(const Schedule& schedule) : schedule_(&schedule) {}
  Result<void> CheckShape();
  Result<void> CheckForwards() const;
  Result<void> IndexComputation(const ComputationId& id, int rank, int step);
  Result<void> IndexSteps();
  Result<void> CheckComputation(const ComputationId& id, int step) const;
  Result<void> CheckBackwards() const;
  Result<void> Run();
  Error DeadlockError(const std::vector<int>& next_position, const std::vector<int>& awaited) const;

  std::size_t Slot(Pass pass, int stage, int microbatch) const;
  int StepOf(Pass pass, int stage, int microbatch) const {
    return step_of_[Slot(pass, stage, microbatch)];
  }
  void AddDependencies(const ComputationId& id, StepDependencies& dependencies) const;
  int RankOfStep(int step) const;  // Logarithmic; for errors.
  const ScheduleStep& StepAt(int step) const;

  const Schedule* schedule_;
  std::vector<int> first_step_;     // By rank, and the end.
  std::vector<int> rank_of_stage_;  // -1 while unknown.
  std::vector<int> step_of_;        // By Slot(); -1: none.
  std::vector<std::int64_t> start_units_;
  std::int64_t end_units_ = 0;
};

}  // namespace perseus::pipeline

#endif  // PERSEUS_PIPELINE_STEP_GRAPH_H_
