// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "pipeline/step_graph.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "pipeline/computation_text.h"
#include "pipeline/limits.h"

namespace perseus::pipeline {
namespace {

using enum ComputationType;

template <typename Function>
Result<void> ForEachComputation(const Schedule& schedule, Function function) {
  int step = 0;
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    for (const ScheduleStep& item : schedule.ranks[rank]) {
      if (auto ok = function(item.id, rank, step); !ok) return ok;
      if (item.fused) {
        if (auto ok = function(*item.fused, rank, step); !ok) return ok;
      }
      ++step;
    }
  }
  return {};
}

int ComputationUnits(ComputationType type) { return type == kBackward ? 2 : 1; }

}  // namespace

Result<StepGraph> StepGraph::Connect(const Schedule& schedule) {
  StepGraph graph(schedule);
  if (auto ok = graph.CheckShape(); !ok) return tl::unexpected(ok.error());
  if (auto ok = graph.CheckForwards(); !ok) return tl::unexpected(ok.error());
  if (auto ok = graph.IndexSteps(); !ok) return tl::unexpected(ok.error());
  if (auto ok = graph.CheckBackwards(); !ok) return tl::unexpected(ok.error());
  if (auto ok = graph.Run(); !ok) return tl::unexpected(ok.error());
  return graph;
}

StepGraph::Pass StepGraph::PassOf(ComputationType type) {
  switch (type) {
    case kForward:
      return Pass::kForward;
    case kBackwardWeight:
      return Pass::kWeight;
    case kRecompute:
      return Pass::kRecompute;
    case kBackward:
    case kBackwardInput:
      break;
  }
  return Pass::kBackward;
}

std::size_t StepGraph::Slot(Pass pass, int stage, int microbatch) const {
  const auto stage_row = static_cast<std::size_t>(pass) * schedule_->num_stages + stage;
  return stage_row * schedule_->num_microbatches + microbatch;
}

int StepGraph::RankOfStep(int step) const {
  const auto after = std::upper_bound(first_step_.begin(), first_step_.end(), step);
  return static_cast<int>(std::distance(first_step_.begin(), after)) - 1;
}

const ScheduleStep& StepGraph::StepAt(int step) const {
  const int rank = RankOfStep(step);
  return schedule_->ranks[rank][step - first_step_[rank]];
}

int StepGraph::DurationUnits(const ScheduleStep& step) {
  return ComputationUnits(step.id.type) + (step.fused ? ComputationUnits(step.fused->type) : 0);
}

// The numbers of the schedule agree with each other and are not absurd.
Result<void> StepGraph::CheckShape() {
  const Schedule& schedule = *schedule_;
  if (schedule.num_ranks < 1 || schedule.num_stages < 1 || schedule.num_microbatches < 1) {
    return InvalidInput(
        fmt::format("a schedule needs at least one rank, one stage and one microbatch, but this "
                    "one has {}, {} and {}",
                    schedule.num_ranks, schedule.num_stages, schedule.num_microbatches));
  }
  if (schedule.ranks.size() != static_cast<std::size_t>(schedule.num_ranks)) {
    return InvalidInput(fmt::format("the schedule says {} ranks but has the orders of {}",
                                    schedule.num_ranks, schedule.ranks.size()));
  }
  std::int64_t computations = 0;
  first_step_.push_back(0);
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    const auto& order = schedule.ranks[rank];
    if (order.empty()) {
      return InvalidInput(fmt::format(
          "rank {} has no computations: every rank of a pipeline holds at least one stage", rank));
    }
    for (const ScheduleStep& step : order) computations += step.fused ? 2 : 1;
    if (computations > kMaxComputations) return InvalidInput(TooManyComputations());
    first_step_.push_back(first_step_.back() + static_cast<int>(order.size()));
    for (const ScheduleStep& step : order) {
      if (step.fused && !MayRunAsOne(step.id, *step.fused)) {
        return InvalidInput(
            fmt::format("rank {} fuses {}: only a forward with a backward (F;B) or (F;I) can be, "
                        "and a recompute (R;B) or (R;I) with its own",
                        rank, StepText(step)));
      }
    }
  }
  return ForEachComputation(schedule, [&](const ComputationId& id, int rank, int) -> Result<void> {
    if (id.stage < 0 || id.stage >= schedule.num_stages || id.microbatch < 0 ||
        id.microbatch >= schedule.num_microbatches) {
      return InvalidInput(
          fmt::format("rank {} has {}, outside of stages 0 to {} and microbatches 0 to {}", rank,
                      ComputationText(id), schedule.num_stages - 1, schedule.num_microbatches - 1));
    }
    return {};
  });
}

// Every stage has the forward of every microbatch. Comes before anything is
// allocated per (stage, microbatch): a file may name stage 99,999,999.
Result<void> StepGraph::CheckForwards() const {
  std::vector<ComputationId> forwards;
  (void)ForEachComputation(*schedule_, [&](const ComputationId& id, int, int) -> Result<void> {
    if (id.type == kForward) forwards.push_back(id);
    return {};
  });
  const std::int64_t expected =
      static_cast<std::int64_t>(schedule_->num_stages) * schedule_->num_microbatches;
  if (static_cast<std::int64_t>(forwards.size()) == expected) return {};
  std::sort(forwards.begin(), forwards.end());
  ComputationId next{kForward, 0, 0};
  for (const ComputationId& forward : forwards) {
    if (forward < next) {
      return InvalidInput(fmt::format("{} is in the schedule twice", ComputationText(forward)));
    }
    if (forward != next) break;
    if (++next.microbatch == schedule_->num_microbatches) next = {kForward, next.stage + 1, 0};
  }
  return InvalidInput(
      fmt::format("{} is missing: each of the {} stages must run microbatches 0 to {} forward",
                  ComputationText(next), schedule_->num_stages, schedule_->num_microbatches - 1));
}

Result<void> StepGraph::IndexComputation(const ComputationId& id, int rank, int step) {
  int& holder = rank_of_stage_[id.stage];
  if (holder == -1) holder = rank;
  if (holder != rank) {
    return InvalidInput(
        fmt::format("stage {} is on rank {} but rank {} has {}: a stage must stay on one rank",
                    id.stage, holder, rank, ComputationText(id)));
  }
  int& slot = step_of_[Slot(PassOf(id.type), id.stage, id.microbatch)];
  if (slot != -1) {
    return InvalidInput(fmt::format("rank {} has {} after {}: it must run only once", rank,
                                    ComputationText(id), StepText(StepAt(slot))));
  }
  slot = step;
  return {};
}

Result<void> StepGraph::IndexSteps() {
  rank_of_stage_.assign(schedule_->num_stages, -1);
  step_of_.assign(Slot(Pass::kRecompute, schedule_->num_stages, 0), -1);
  return ForEachComputation(*schedule_, [this](const ComputationId& id, int rank, int step) {
    return IndexComputation(id, rank, step);
  });
}

Result<void> StepGraph::CheckComputation(const ComputationId& id, int step) const {
  const auto [type, stage, microbatch] = id;
  const int forward = StepOf(Pass::kForward, stage, microbatch);
  const int backward = StepOf(Pass::kBackward, stage, microbatch);
  const int weight = StepOf(Pass::kWeight, stage, microbatch);
  const int recompute = StepOf(Pass::kRecompute, stage, microbatch);
  const auto text = [&id](ComputationType other) {
    return ComputationText({other, id.stage, id.microbatch});
  };
  const auto missing = [&](ComputationType other) {
    return InvalidInput(
        fmt::format("{} is missing: {} needs it", text(other), ComputationText(id)));
  };
  const auto too_late = [&](ComputationType other) {
    return InvalidInput(
        fmt::format("{} does not come before {} on their rank", text(other), ComputationText(id)));
  };
  switch (type) {
    case kForward:
      if (backward == -1) return missing(kBackward);
      break;
    case kBackward:
      if (weight != -1) {
        return InvalidInput(
            fmt::format("{} is whole, but there is {} too: a backward is either B or I and W",
                        ComputationText(id), text(kBackwardWeight)));
      }
      if (forward >= step) return too_late(kForward);
      if (recompute > step) return too_late(kRecompute);
      break;
    case kBackwardInput:
      if (weight == -1) return missing(kBackwardWeight);
      if (forward >= step) return too_late(kForward);
      if (recompute > step) return too_late(kRecompute);
      break;
    case kRecompute:
      if (forward >= step) return too_late(kForward);
      break;
    case kBackwardWeight:
      if (backward == -1) return missing(kBackwardInput);
      if (backward >= step) return too_late(kBackwardInput);
      break;
  }
  return {};
}

Result<void> StepGraph::CheckBackwards() const {
  return ForEachComputation(*schedule_, [this](const ComputationId& id, int, int step) {
    return CheckComputation(id, step);
  });
}

void StepGraph::AddDependencies(const ComputationId& id, StepDependencies& dependencies) const {
  const auto [type, stage, microbatch] = id;
  switch (type) {
    case kForward:
      if (stage > 0) {
        dependencies.Add({StepOf(Pass::kForward, stage - 1, microbatch), stage - 1});
      }
      break;
    case kBackward:
    case kBackwardInput:
      dependencies.Add({StepOf(Pass::kForward, stage, microbatch), -1});
      if (stage + 1 < schedule_->num_stages) {
        dependencies.Add({StepOf(Pass::kBackward, stage + 1, microbatch), stage});
      }
      break;
    case kBackwardWeight:
      dependencies.Add({StepOf(Pass::kBackward, stage, microbatch), -1});
      break;
    case kRecompute:
      break;
  }
}

StepDependencies StepGraph::DependenciesOf(const ScheduleStep& step) const {
  StepDependencies dependencies;
  AddDependencies(step.id, dependencies);
  if (step.fused) AddDependencies(*step.fused, dependencies);
  return dependencies;
}

// Runs the ranks like so many threads: each goes on until it must wait, and is
// woken by the step that it waits for.
Result<void> StepGraph::Run() {
  constexpr std::int64_t kNotRun = -1;
  const int num_ranks = schedule_->num_ranks;
  std::vector<std::int64_t> end_units(size(), kNotRun);
  start_units_.assign(size(), 0);
  std::vector<int> next_position(num_ranks, 0);
  std::vector<int> awaited(num_ranks, -1);      // The step that a rank waits for.
  std::vector<int> first_waiter(size(), -1);    // Ranks that wait for a step, as lists:
  std::vector<int> next_waiter(num_ranks, -1);  // a rank waits for one step at a time.
  std::vector<int> runnable;
  for (int rank = num_ranks - 1; rank >= 0; --rank) runnable.push_back(rank);

  int done = 0;
  while (!runnable.empty()) {
    const int rank = runnable.back();
    runnable.pop_back();
    const auto& order = schedule_->ranks[rank];
    for (int& position = next_position[rank]; position < static_cast<int>(order.size());) {
      const int step = first_step_[rank] + position;
      std::int64_t start = position == 0 ? 0 : end_units[step - 1];
      awaited[rank] = -1;
      for (const StepDependency& dependency : DependenciesOf(order[position])) {
        if (end_units[dependency.step] == kNotRun) awaited[rank] = dependency.step;
        start = std::max(start, end_units[dependency.step]);
      }
      if (awaited[rank] != -1) {
        next_waiter[rank] = std::exchange(first_waiter[awaited[rank]], rank);
        break;
      }
      start_units_[step] = start;
      end_units[step] = start + DurationUnits(order[position]);
      end_units_ = std::max(end_units_, end_units[step]);
      for (int waiter = first_waiter[step]; waiter != -1; waiter = next_waiter[waiter]) {
        runnable.push_back(waiter);
      }
      ++position;
      ++done;
    }
  }
  if (done == size()) return {};
  return tl::unexpected(DeadlockError(next_position, awaited));
}

// Names the ranks that wait for each other in a circle: every stuck rank waits
// for a step of a stuck rank.
Error StepGraph::DeadlockError(const std::vector<int>& next_position,
                               const std::vector<int>& awaited) const {
  std::vector<bool> seen(schedule_->num_ranks, false);
  int rank = 0;
  while (next_position[rank] == first_step_[rank + 1] - first_step_[rank]) ++rank;
  while (!seen[rank]) {
    seen[rank] = true;
    rank = RankOfStep(awaited[rank]);
  }
  constexpr int kMostNamed = 8;
  std::string waits;
  int named = 0;
  const int first = rank;
  do {
    if (named == kMostNamed) {
      waits += ", ...";
      break;
    }
    const ScheduleStep& blocked = schedule_->ranks[rank][next_position[rank]];
    const int provider = RankOfStep(awaited[rank]);
    waits += fmt::format("{}rank {} waits at {} for {} of rank {}", named == 0 ? "" : ", ", rank,
                         StepText(blocked), StepText(StepAt(awaited[rank])), provider);
    rank = provider;
    ++named;
  } while (rank != first);
  return {ErrorCode::kInvalidInput, "the schedule deadlocks: " + waits};
}

}  // namespace perseus::pipeline

namespace perseus {
inline namespace v0 {

Result<void> ValidateSchedule(const Schedule& schedule) {
  auto graph = pipeline::StepGraph::Connect(schedule);
  if (!graph) return tl::unexpected(graph.error());
  return {};
}

}  // namespace v0
}  // namespace perseus
