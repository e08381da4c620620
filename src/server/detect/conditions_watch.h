// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DETECT_CONDITIONS_WATCH_H_
#define PERSEUS_SERVER_DETECT_CONDITIONS_WATCH_H_

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "perseus/pipeline.h"
#include "server/detect/gap_watch.h"
#include "server/detect/times_watch.h"
#include "server/planning/conditions_state.h"

namespace perseus::server {

using wire::RankClockLatency;
using wire::RankConditions;
using wire::RankFigure;

// Makes one set of conditions of what the ranks of a job measure: means over ranks, each counted by
// how much it saw, without the tenth of the ranks at either end. For one thread.
class ConditionsWatch {
 public:
  void Take(int rank, const RankConditions& conditions);
  void Take(const KindReport& report) { times_.Add(report); }
  // When the computations of a rank of a pipeline ran. See GapWatch::Take().
  std::optional<WholeIteration> Take(const PipelineDag& dag, RankRows told) {
    ranks_of_pipeline_ = dag.num_ranks;
    return gaps_.Take(dag, std::move(told));
  }
  // Of a new profile, which knows better.
  void ForgetTimes() { times_.Reset(); }
  // Whether a rank has told something since the last call.
  bool TakeNews() { return std::exchange(has_news_, false); }
  MeasuredConditions Combined() const;

 private:
  std::map<int, RankConditions> ranks_;  // The last word of each.
  TimesWatch times_;
  GapWatch gaps_;
  std::int64_t ranks_of_pipeline_ = 0;
  bool has_news_ = false;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DETECT_CONDITIONS_WATCH_H_
