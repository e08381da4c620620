// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "trace/recorded_pipeline.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace perseus::trace {
namespace {

// What an operation cannot begin (or has not ended) before.
struct Bound {
  double seconds = 0;             // From the step's start.
  std::vector<Precedence> after;  // `to` is not used.
};

class DagBuilder {
 public:
  DagBuilder(const Recording& recording, const Links& links, int pipeline,
             std::span<const double> own)
      : recording_(recording), links_(links), pipeline_(pipeline), own_(own) {
    made_.dag.num_ranks = recording.stages;
    made_.dag.num_stages = recording.stages * recording.virtual_stages;
    made_.dag.num_microbatches = recording.microbatches;
    made_.dag.schedule_name = "recorded";
    made_.dag.first_precedence.push_back(0);
    made_.dag.rank_order.resize(recording.stages);
  }

  void Run(int group) {
    Bound start;
    bool ours = false;
    for (const int member : links_.MembersOf(group)) {
      const Operation& operation = recording_.operations[member];
      if (operation.pipeline != pipeline_ || operation.kind > OperationKind::kGather) continue;
      ours = true;
      for (const int wait : links_.WaitsOf(member)) Join(ends_[wait], &start);
    }
    if (!ours) return;
    Prune(&start.after);
    for (const int member : links_.MembersOf(group)) {
      const Operation& operation = recording_.operations[member];
      if (operation.pipeline != pipeline_) continue;
      if (IsComputation(operation.kind)) {
        AddComputation(member, start);
        continue;
      }
      Bound end = start;
      const double own = std::max(own_[member], 0.0);
      end.seconds += own;
      for (Precedence& each : end.after) each.delay_seconds += own;
      ends_[member] = std::move(end);
    }
  }

  RecordedPipeline Take() { return std::move(made_); }

 private:
  static void Join(const Bound& from, Bound* into) {
    into->seconds = std::max(into->seconds, from.seconds);
    into->after.insert(into->after.end(), from.after.begin(), from.after.end());
  }

  // Leaves out what others imply: of a rank's computations an earlier one with no
  // longer delay.
  void Prune(std::vector<Precedence>* after) const {
    const auto& computations = made_.dag.computations;
    std::sort(after->begin(), after->end(), [&](const Precedence& a, const Precedence& b) {
      const Computation& x = computations[a.from];
      const Computation& y = computations[b.from];
      if (x.rank != y.rank) return x.rank < y.rank;
      if (x.position != y.position) return x.position > y.position;
      return a.delay_seconds > b.delay_seconds;
    });
    std::vector<Precedence> kept;
    for (const Precedence& each : *after) {
      if (!kept.empty() && computations[kept.back().from].rank == computations[each.from].rank &&
          each.delay_seconds <= kept.back().delay_seconds) {
        continue;
      }
      kept.push_back(each);
    }
    *after = std::move(kept);
  }

  void AddComputation(int operation, const Bound& start) {
    PipelineDag& dag = made_.dag;
    const Operation& each = recording_.operations[operation];
    const int number = dag.size();
    Computation computation;
    computation.rank = each.stage;
    computation.position = static_cast<int>(dag.rank_order[each.stage].size());
    computation.id.stage = each.block;
    computation.id.type = each.kind == OperationKind::kForward ? ComputationType::kForward
                                                               : ComputationType::kBackward;
    computation.id.microbatch = each.microbatch;
    dag.computations.push_back(computation);
    dag.rank_order[each.stage].push_back(number);
    dag.start_delay_seconds.push_back(start.seconds);
    std::vector<Precedence> incoming = start.after;
    std::sort(incoming.begin(), incoming.end(),
              [](const Precedence& a, const Precedence& b) { return a.from < b.from; });
    for (Precedence& precedence : incoming) {
      precedence.to = number;
      dag.precedences.push_back(precedence);
    }
    dag.first_precedence.push_back(static_cast<int>(dag.precedences.size()));
    made_.operations.push_back(operation);
    ends_[operation].after.push_back({number, 0, 0});
  }

  const Recording& recording_;
  const Links& links_;
  int pipeline_;
  std::span<const double> own_;
  std::unordered_map<int, Bound> ends_;  // By operation; only looked up.
  RecordedPipeline made_;
};

}  // namespace

PipelineMaker::PipelineMaker(const Recording& recording, const Links& links)
    : recording_(recording), links_(links) {
  groups_.resize(recording.steps.size() * static_cast<std::size_t>(recording.pipelines));
  std::unordered_map<int, std::size_t> index_of;
  for (std::size_t i = 0; i < recording.steps.size(); ++i) index_of[recording.steps[i]] = i;
  for (int group = 0; group < links.num_groups(); ++group) {
    for (const int member : links.MembersOf(group)) {
      const Operation& operation = recording.operations[member];
      std::vector<int>& groups =
          groups_[index_of[operation.step] * recording.pipelines + operation.pipeline];
      if (groups.empty() || groups.back() != group) groups.push_back(group);
    }
  }
}

RecordedPipeline PipelineMaker::Make(int step_index, int pipeline,
                                     std::span<const double> own_seconds) const {
  DagBuilder builder(recording_, links_, pipeline, own_seconds);
  for (const int group :
       groups_[static_cast<std::size_t>(step_index) * recording_.pipelines + pipeline]) {
    builder.Run(group);
  }
  return builder.Take();
}

}  // namespace perseus::trace
