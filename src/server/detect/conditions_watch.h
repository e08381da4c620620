// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DETECT_CONDITIONS_WATCH_H_
#define PERSEUS_SERVER_DETECT_CONDITIONS_WATCH_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "perseus/pipeline.h"
#include "server/detect/drift_watch.h"
#include "server/planning/conditions_state.h"
#include "server/planning/measured_gaps.h"
#include "server/planning/measured_times.h"

namespace perseus::server {

// The mean time of each kind of computation at each clock that training has run, over the last
// reports of all ranks that are steady. For one thread.
class TimesWatch {
 public:
  // A time is told only after so many reports and computations, with at most this error.
  static constexpr std::int64_t kLeastReports = 5;
  static constexpr double kLeastComputations = 100;
  static constexpr double kMostError = 0.001;  // Of the time.

  void Add(const KindReport& report);
  // Forgets everything. For a new profile.
  void Reset() { kinds_.clear(); }
  // In the order of keys.
  std::vector<MeasuredTime> Measured() const;

 private:
  // Sums over reports, each with the weight of its computations. Old ones fade.
  struct Kind {
    double reports = 0;
    double weight = 0;
    double squares = 0;  // Of weights.
    double mean = 0;
    double spread = 0;  // Sum of weight x (time - mean)^2.
  };
  std::map<ProfileKey, Kind> kinds_;
};

// The report of one rank of a pipeline on one iteration.
struct RankRows {
  int rank = 0;  // In the pipeline.
  std::int64_t iteration = 0;
  std::int64_t plan_version = 0;
  std::vector<RowSpan> rows = {};
  bool as_planned = true;    // Its clocks were those of the plan.
  double heard_seconds = 0;  // When it told; of Moment::seconds.
};

// An iteration of which all ranks of the pipeline told.
struct WholeIteration {
  std::vector<std::vector<RowSpan>> ranks = {};  // [rank][position]
  bool as_planned = true;                        // On all ranks.
};

// Puts together the reports of a pipeline's ranks on the same iteration, in any order. For one
// thread.
class GapWatch {
 public:
  // The iteration, if this was the last rank that was missing. Ignores rows that do not fit the
  // pipeline.
  std::optional<WholeIteration> Take(const PipelineDag& dag, RankRows told);

  const GapEstimate& estimate() const { return estimate_; }

 private:
  using Key = std::pair<std::int64_t, std::int64_t>;  // Version of the plan, iteration.
  struct Waiting {
    std::map<int, std::vector<RowSpan>> ranks = {};
    bool as_planned = true;
    double since_seconds = 0;
  };

  std::map<Key, Waiting> waiting_;  // For the other ranks.
  std::deque<Key> order_;  // Of waiting_, as they came: training may begin again before them.
  GapEstimate estimate_;
};

using wire::RankClockLatency;
using wire::RankConditions;
using wire::RankFigure;

// Makes one set of conditions of the measurements of a job's ranks: means over ranks, each counted
// by how much it saw, without the tenth of the ranks at either end. For one thread.
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
