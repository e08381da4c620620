// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "trace/made_up_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace perseus::trace {
namespace {

struct Row {
  int pipeline = 0, stage = 0, step = 0;
  std::string kind;
  double start = 0, end = 0;
  int sequence = 0, microbatch = -1;
  bool computes = false;
};

// Runs one pipeline in one step: both stages in lockstep, by hand and not by the
// code under test.
class PipelineRun {
 public:
  PipelineRun(const MadeUpJob& job, int step, int pipeline, std::vector<Row>* rows)
      : job_(job), step_(step), pipeline_(pipeline), rows_(rows) {}

  // When each stage has computed all.
  std::array<double, 2> Run() {
    // 1F1B: stage 0 runs two forwards first, stage 1 one.
    std::array<std::vector<std::pair<bool, int>>, 2> order;
    for (int stage = 0; stage < 2; ++stage) {
      const int ahead = std::min(2 - stage, job_.microbatches);
      for (int m = 0; m < ahead; ++m) order[stage].emplace_back(true, m);
      for (int m = 0; m < job_.microbatches; ++m) {
        order[stage].emplace_back(false, m);
        if (m + ahead < job_.microbatches) order[stage].emplace_back(true, m + ahead);
      }
    }
    std::array<double, 2> now = {job_.launch_seconds, 0};
    std::array<std::size_t, 2> next = {0, 0};
    bool moved = true;
    while (moved) {
      moved = false;
      for (int stage = 0; stage < 2; ++stage) {
        if (next[stage] == order[stage].size()) continue;
        const auto [forward, m] = order[stage][next[stage]];
        const bool receives = forward == (stage == 1);
        const auto sent = sent_.find({forward, m});
        if (receives && sent == sent_.end()) continue;
        if (receives) {
          // The receiver is ready once its last computation of that type is done.
          const double posted = last_of_[{stage, forward}];
          const double both = std::max(posted, sent->second);
          const double arrived = both + job_.transfer_seconds;
          Add(stage, forward ? "forward-recv" : "backward-recv", posted, arrived, m, -1);
          Add(1 - stage, forward ? "forward-send" : "backward-send", sent->second, arrived, m, -1);
          now[stage] = std::max(now[stage], arrived);
        }
        const double end = now[stage] + job_.seconds(step_, pipeline_, stage, m, forward);
        Add(stage, forward ? "forward-compute" : "backward-compute", now[stage], end, m, m);
        if (!receives) sent_[{forward, m}] = end;
        now[stage] = end;
        last_of_[{stage, forward}] = end;
        ++next[stage];
        moved = true;
      }
    }
    return now;
  }

  void Add(int stage, const std::string& kind, double start, double end, int sequence,
           int microbatch) {
    rows_->push_back({pipeline_, stage, step_, kind, start, end, sequence, microbatch,
                      kind.ends_with("compute")});
  }

 private:
  const MadeUpJob& job_;
  int step_;
  int pipeline_;
  std::vector<Row>* rows_;
  std::map<std::pair<bool, int>, double> sent_;       // Forward, microbatch.
  std::map<std::pair<int, bool>, double> last_of_{};  // Stage, forward.
};

}  // namespace

std::string MadeUpTrace(const MadeUpJob& job) {
  std::string text = kHeader;
  for (int step = 0; step < job.steps; ++step) {
    std::vector<Row> rows;
    double all = 0;
    std::vector<std::array<double, 2>> ends;
    for (int pipeline = 0; pipeline < job.pipelines; ++pipeline) {
      ends.push_back(PipelineRun(job, step, pipeline, &rows).Run());
      all = std::max({all, ends.back()[0], ends.back()[1]});
    }
    for (int pipeline = 0; pipeline < job.pipelines; ++pipeline) {
      for (int stage = 0; stage < 2; ++stage) {
        PipelineRun run(job, step, pipeline, &rows);
        run.Add(stage, "params-all-gather", 0, 0, 0, -1);
        run.Add(stage, "optimizer-clip-main-grad", ends[pipeline][stage], all + 0.25, 0, -1);
        run.Add(stage, "optimizer", all + 0.25, all + 0.5, 0, -1);
      }
    }
    for (const Row& row : rows) {
      text += fmt::format("{},{},{},{},{},{},{},{},{},{},{}\n", row.pipeline, row.stage,
                          (row.stage * job.pipelines + row.pipeline) * job.gpus_per_rank,
                          10 + 3 * row.step, row.kind, row.start, row.end - row.start, row.sequence,
                          row.computes ? 0 : -1, row.microbatch, row.computes ? row.stage : -1);
    }
  }
  return text;
}

std::string MadeUpProfile(int stages) {
  std::string text = "stage,instruction,frequency,time,energy\n";
  for (int stage = 0; stage < stages; ++stage) {
    for (const auto& [name, time, energy] :
         {std::tuple("forward", 0.1, 30.0), std::tuple("backward", 0.2, 62.0)}) {
      text += fmt::format("{},{},1400,{},{}\n", stage, name, time, energy);
      text += fmt::format("{},{},1200,{},{}\n", stage, name, 1.12 * time, 0.86 * energy);
      text += fmt::format("{},{},1000,{},{}\n", stage, name, 1.31 * time, 0.79 * energy);
    }
  }
  return text;
}

}  // namespace perseus::trace
