// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "perseus/pipeline.h"
#include "perseus/result.h"
#include "perseus/schedule.h"
#include "pipeline/schedule_csv.h"
#include "pipeline/schedules.h"

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
  // Work that is done once for each microbatch on each stage.
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

namespace {

using pipeline::StepDependency;
using pipeline::StepGraph;

Result<void> CheckSeconds(std::string_view what, double seconds) {
  if (std::isfinite(seconds) && seconds >= 0) return {};
  return InvalidInput(
      fmt::format("the {} is {} seconds: it must be a finite number of at least 0", what, seconds));
}

Result<void> CheckFixedTimes(const FixedTimes& fixed, int num_stages) {
  const auto given = static_cast<int>(fixed.comm_delay_seconds.size());
  if (given > 1 && given != num_stages - 1) {
    return InvalidInput(fmt::format(
        "{} communication delays are given for {} stages: give one for all, or {}, one for each "
        "boundary between stages",
        given, num_stages, num_stages - 1));
  }
  for (const double delay : fixed.comm_delay_seconds) {
    if (auto ok = CheckSeconds("communication delay", delay); !ok) return ok;
  }
  if (auto ok = CheckSeconds("data loading time", fixed.data_loading_seconds); !ok) return ok;
  return CheckSeconds("iteration overhead", fixed.iteration_overhead_seconds);
}

double CommDelay(const FixedTimes& fixed, int boundary) {
  const auto& delays = fixed.comm_delay_seconds;
  if (delays.empty()) return 0;
  return delays.size() == 1 ? delays[0] : delays[boundary];
}

bool LoadsData(const ScheduleStep& step) {
  return step.id.type == ComputationType::kForward && step.id.stage == 0;
}

// Steps by their start when everything takes its unit time, ranks in order: a
// topological order, for every step takes at least one unit.
std::vector<int> StepsInTopologicalOrder(const StepGraph& graph) {
  std::vector<int> steps(graph.size());
  std::iota(steps.begin(), steps.end(), 0);
  std::stable_sort(steps.begin(), steps.end(),
                   [&](int a, int b) { return graph.start_units(a) < graph.start_units(b); });
  return steps;
}

}  // namespace

Result<PipelineDag> BuildDag(const Schedule& schedule, const FixedTimes& fixed) {
  auto graph = StepGraph::Connect(schedule);
  if (!graph) return tl::unexpected(graph.error());
  if (auto ok = CheckFixedTimes(fixed, schedule.num_stages); !ok) {
    return tl::unexpected(ok.error());
  }

  PipelineDag dag;
  dag.num_ranks = schedule.num_ranks;
  dag.num_stages = schedule.num_stages;
  dag.num_microbatches = schedule.num_microbatches;
  dag.schedule_name = schedule.name;
  dag.end_delay_seconds = fixed.iteration_overhead_seconds;
  dag.fixed = fixed;

  const std::vector<int> order = StepsInTopologicalOrder(*graph);
  std::vector<int> computation_of(graph->size());
  for (int i = 0; i < graph->size(); ++i) computation_of[order[i]] = i;
  dag.computations.resize(graph->size());
  dag.rank_order.resize(schedule.num_ranks);
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    const auto& steps = schedule.ranks[rank];
    for (int position = 0; position < static_cast<int>(steps.size()); ++position) {
      const int computation = computation_of[graph->first_step(rank) + position];
      dag.computations[computation] = {rank, position, steps[position].id, steps[position].fused};
      dag.rank_order[rank].push_back(computation);
    }
  }

  dag.start_delay_seconds.assign(graph->size(), 0.0);
  dag.first_precedence.reserve(graph->size() + 1);
  dag.first_precedence.push_back(0);
  std::vector<Precedence> incoming;
  for (int to = 0; to < graph->size(); ++to) {
    const auto& [rank, position, id, fused] = dag.computations[to];
    const ScheduleStep& step = schedule.ranks[rank][position];
    const double loading = LoadsData(step) ? fixed.data_loading_seconds : 0;
    incoming.clear();
    if (position == 0) {
      dag.start_delay_seconds[to] = loading;
    } else {
      incoming.push_back({dag.rank_order[rank][position - 1], to, loading});
    }
    for (const StepDependency& dependency : graph->DependenciesOf(step)) {
      const int from = computation_of[dependency.step];
      // Within a rank the chain of program order says it already.
      if (dag.computations[from].rank == rank) continue;
      incoming.push_back({from, to, CommDelay(fixed, dependency.boundary)});
    }
    // One arc per pair: both halves of a fused step may wait for the same one.
    std::sort(incoming.begin(), incoming.end(), [](const Precedence& a, const Precedence& b) {
      return a.from != b.from ? a.from < b.from : a.delay_seconds > b.delay_seconds;
    });
    incoming.erase(std::unique(incoming.begin(), incoming.end(),
                               [](const auto& a, const auto& b) { return a.from == b.from; }),
                   incoming.end());
    dag.precedences.insert(dag.precedences.end(), incoming.begin(), incoming.end());
    dag.first_precedence.push_back(static_cast<int>(dag.precedences.size()));
  }
  return dag;
}

}  // namespace v0
}  // namespace perseus

// Checks that refuse an impossible DAG: all that runs through one relies on them.
namespace perseus {
inline namespace v0 {
namespace {

tl::unexpected<Error> Wrong(const char* field, const std::string& message) {
  return tl::unexpected<Error>({.code = ErrorCode::kInvalidInput,
                                .message = "the pipeline's DAG: " + message,
                                .field = field});
}

bool IsDelay(double seconds) { return seconds >= 0 && std::isfinite(seconds); }

Result<void> CheckComputations(const PipelineDag& dag) {
  const auto is_good = [&dag](const ComputationId& id) {
    return static_cast<int>(id.type) < kNumComputationTypes && id.stage >= 0 &&
           id.stage < dag.num_stages && id.microbatch >= 0 && id.microbatch < dag.num_microbatches;
  };
  for (int i = 0; i < dag.size(); ++i) {
    const Computation& computation = dag.computations[i];
    const ComputationId& id = computation.id;
    if (is_good(id) && (!computation.fused || is_good(*computation.fused))) continue;
    return Wrong(
        "computations",
        fmt::format("computation {} is {} of stage {}, microbatch {}, or runs with what is "
                    "none; there are {} stages and {} microbatches",
                    i, ComputationTypeName(id.type), id.stage, id.microbatch, dag.num_stages,
                    dag.num_microbatches));
  }
  return {};
}

Result<void> CheckRanks(const PipelineDag& dag) {
  if (dag.num_ranks < 1 || dag.rank_order.size() != static_cast<std::size_t>(dag.num_ranks)) {
    return Wrong("rank_order", fmt::format("it has {} ranks and the order of {}", dag.num_ranks,
                                           dag.rank_order.size()));
  }
  std::size_t placed = 0;
  for (int rank = 0; rank < dag.num_ranks; ++rank) {
    const std::vector<int>& order = dag.rank_order[rank];
    placed += order.size();
    for (std::size_t position = 0; position < order.size(); ++position) {
      const int i = order[position];
      const bool is_there = i >= 0 && i < dag.size() && dag.computations[i].rank == rank &&
                            dag.computations[i].position == static_cast<int>(position) &&
                            (position == 0 || order[position - 1] < i);
      if (is_there) continue;
      return Wrong("rank_order",
                   fmt::format("position {} of rank {} is computation {}, which is not there, says "
                               "otherwise, or comes before the one before it",
                               position, rank, i));
    }
  }
  if (placed == dag.computations.size()) return {};
  return Wrong("rank_order",
               fmt::format("{} of {} computations are on ranks", placed, dag.computations.size()));
}

Result<void> CheckPrecedences(const PipelineDag& dag) {
  const auto count = static_cast<int>(dag.precedences.size());
  if (dag.first_precedence.size() != dag.computations.size() + 1 ||
      dag.first_precedence.front() != 0 || dag.first_precedence.back() != count) {
    return Wrong("first_precedence", fmt::format("it should have {} offsets, from 0 to {}",
                                                 dag.computations.size() + 1, count));
  }
  for (int to = 0; to < dag.size(); ++to) {
    const int first = dag.first_precedence[to];
    const int last = dag.first_precedence[to + 1];
    if (first > last || last > count) {
      return Wrong("first_precedence",
                   fmt::format("the offsets of computation {} are {} and {}", to, first, last));
    }
    const Computation& computation = dag.computations[to];
    const int before =
        computation.position == 0 ? -1 : dag.rank_order[computation.rank][computation.position - 1];
    bool follows = before < 0;
    for (int k = first; k < last; ++k) {
      const Precedence& precedence = dag.precedences[k];
      follows = follows || precedence.from == before;
      if (precedence.to == to && precedence.from >= 0 && precedence.from < to &&
          IsDelay(precedence.delay_seconds)) {
        continue;
      }
      return Wrong("precedences",
                   fmt::format("precedence {} is from {} to {} with {} s; expected one to {}, from "
                               "a computation before it, with a number >= 0",
                               k, precedence.from, precedence.to, precedence.delay_seconds, to));
    }
    if (follows) continue;
    return Wrong("precedences",
                 fmt::format("computation {} does not wait for the one before it on its rank, {}",
                             to, before));
  }
  return {};
}

}  // namespace

std::optional<int> PipelineDag::Find(const ComputationId& id) const {
  for (int i = 0; i < size(); ++i) {
    if (computations[i].id == id || computations[i].fused == id) return i;
  }
  return std::nullopt;
}

Result<void> PipelineDag::Validate() const {
  if (computations.empty()) return Wrong("computations", "there is no computation");
  if (auto good = CheckComputations(*this); !good) return good;
  if (auto good = CheckRanks(*this); !good) return good;
  if (start_delay_seconds.size() != computations.size()) {
    return Wrong("start_delay_seconds",
                 fmt::format("there are {} start delays for {} computations",
                             start_delay_seconds.size(), computations.size()));
  }
  for (const double seconds : start_delay_seconds) {
    if (IsDelay(seconds)) continue;
    return Wrong("start_delay_seconds",
                 fmt::format("a start delay is {} s; expected a number >= 0", seconds));
  }
  if (!IsDelay(end_delay_seconds)) {
    return Wrong("end_delay_seconds",
                 fmt::format("the end delay is {} s; expected a number >= 0", end_delay_seconds));
  }
  return CheckPrecedences(*this);
}

namespace {

using pipeline::StepGraph;

// A drawing that no terminal could show.
constexpr std::int64_t kMostCharacters = std::int64_t{1} << 26;

// "F3"; with its stage, "2F3", where a rank has several.
std::string LabelOf(const ComputationId& id, bool with_stage) {
  const std::string stage = with_stage ? fmt::format("{}", id.stage) : std::string();
  return fmt::format("{}{}{}", stage, ComputationTypeLetter(id.type), id.microbatch);
}

std::string StepLabel(const ScheduleStep& step, bool with_stage) {
  std::string label = LabelOf(step.id, with_stage);
  if (step.fused) label.append("+").append(LabelOf(*step.fused, with_stage));
  return label;
}

// The time axis: a number under every tenth unit, at the column where it starts.
std::string Axis(std::int64_t end_units, int unit_width, std::size_t margin) {
  constexpr std::int64_t kUnitsPerMark = 10;
  std::string axis(margin, ' ');
  for (std::int64_t unit = 0; unit < end_units; unit += kUnitsPerMark) {
    axis.resize(margin + static_cast<std::size_t>(unit * unit_width), ' ');
    axis += fmt::format("{}", unit);
  }
  return axis;
}

}  // namespace

std::string DrawSchedule(const Schedule& schedule) {
  const auto graph = StepGraph::Connect(schedule);
  if (!graph) return graph.error().message + "\n";

  const bool with_stage = schedule.num_stages != schedule.num_ranks;
  const std::int64_t end_units = graph->end_units();
  const ComputationId longest{ComputationType::kForward, schedule.num_stages - 1,
                              schedule.num_microbatches - 1};
  const auto unit_width = static_cast<int>(LabelOf(longest, with_stage).size()) + 1;
  const std::string last_rank = fmt::format("{}", schedule.num_ranks - 1);
  const std::size_t margin = std::string_view("rank ").size() + last_rank.size() + 2;
  if (schedule.num_ranks * (end_units * unit_width) > kMostCharacters) {
    return fmt::format("{} is too large to draw: {} ranks, {} time units\n", schedule.name,
                       schedule.num_ranks, end_units);
  }

  std::string drawing;
  std::int64_t busy_units = 0;
  bool recomputes = false;
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    std::string line = fmt::format("rank {:>{}}  ", rank, last_rank.size());
    const auto idle_until = [&](std::int64_t unit) {
      for (auto now = static_cast<std::int64_t>((line.size() - margin) / unit_width); now < unit;
           ++now) {
        line += fmt::format("{:<{}}", '.', unit_width);
      }
    };
    const auto& order = schedule.ranks[rank];
    for (std::size_t position = 0; position < order.size(); ++position) {
      const ScheduleStep& step = order[position];
      const int units = StepGraph::DurationUnits(step);
      busy_units += units;
      recomputes = recomputes || step.id.type == ComputationType::kRecompute;
      idle_until(graph->start_units(graph->first_step(rank) + static_cast<int>(position)));
      // A box as wide as its time, with one space to its neighbour.
      line += fmt::format("{:-<{}} ", StepLabel(step, with_stage), units * unit_width - 1);
    }
    idle_until(end_units);
    drawing += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  drawing += Axis(end_units, unit_width, margin) + "\n";
  drawing += fmt::format(
      "{}F forward 1 unit, B backward 2, I input and W weight gradient 1 each{}; '.' idle: {:.1f} "
      "% "
      "of {} units\n",
      std::string(margin, ' '), recomputes ? ", R recompute 1" : "",
      100.0 * (1.0 - static_cast<double>(busy_units) /
                         static_cast<double>(end_units * schedule.num_ranks)),
      end_units);
  return drawing;
}

Timing Replay(const PipelineDag& dag, std::span<const double> durations_seconds) {
  Timing timing;
  if (durations_seconds.size() != dag.computations.size()) {
    timing.iteration_time_seconds = std::numeric_limits<double>::quiet_NaN();
    return timing;
  }
  const auto run = [&](int i, double ready, double* start, double* end) {
    *start = ready;
    *end = ready + durations_seconds[i];
  };
  ReplayBy(dag, run, &timing);
  return timing;
}

std::vector<bool> CriticalComputations(const PipelineDag& dag, const Timing& timing) {
  if (timing.start_seconds.size() != dag.computations.size() ||
      timing.end_seconds.size() != dag.computations.size()) {
    return std::vector<bool>(dag.computations.size());
  }
  const double tolerance_seconds = 1e-9 * timing.iteration_time_seconds;
  double last_end = 0;
  for (const double end : timing.end_seconds) last_end = std::max(last_end, end);
  // How much later each may end without delaying the last one.
  std::vector<double> slack_seconds(dag.size());
  for (int i = 0; i < dag.size(); ++i) slack_seconds[i] = last_end - timing.end_seconds[i];
  for (int to = dag.size() - 1; to >= 0; --to) {
    for (int k = dag.first_precedence[to]; k < dag.first_precedence[to + 1]; ++k) {
      const Precedence& precedence = dag.precedences[k];
      const double gap = timing.start_seconds[to] -
                         (timing.end_seconds[precedence.from] + precedence.delay_seconds);
      double& slack = slack_seconds[precedence.from];
      slack = std::min(slack, gap + slack_seconds[to]);
    }
  }
  std::vector<bool> critical(dag.size());
  for (int i = 0; i < dag.size(); ++i) critical[i] = slack_seconds[i] <= tolerance_seconds;
  return critical;
}

std::vector<Phase> ComputationPhases(const PipelineDag& dag) {
  std::vector<Phase> phases(dag.size(), Phase::kSteady);
  const auto is_forward = [&](int i) {
    return dag.computations[i].id.type == ComputationType::kForward;
  };
  const auto is_backward = [&](int i) {
    return !is_forward(i) || dag.computations[i].fused.has_value();
  };
  for (const std::vector<int>& order : dag.rank_order) {
    const auto first_backward = std::find_if(order.begin(), order.end(), is_backward);
    const auto last_forward = std::find_if(order.rbegin(), order.rend(), is_forward);
    for (auto it = order.begin(); it != first_backward; ++it) phases[*it] = Phase::kWarmUp;
    for (auto it = last_forward.base(); it != order.end(); ++it) phases[*it] = Phase::kCoolDown;
  }
  return phases;
}

}  // namespace v0
}  // namespace perseus
