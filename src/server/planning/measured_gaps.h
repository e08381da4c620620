// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_PLANNING_MEASURED_GAPS_H_
#define PERSEUS_SERVER_PLANNING_MEASURED_GAPS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "perseus/pipeline.h"
#include "wire/reports.h"

// Gaps between computations: transfers from stage to stage, and the delays of clock changes. A plan
// that does not know them is late, since it takes them for slack.
namespace perseus::server {

// When a rank ran a computation, since it began its iteration, by its own clock. Ranks begin at
// different times.
struct RowSpan {
  double begin_seconds = 0;
  double end_seconds = 0;
  bool changes = false;  // The plan has another clock for the computation before it on the rank.

  friend bool operator==(const RowSpan&, const RowSpan&) = default;
};

std::vector<RowSpan> RowsOf(const wire::RankTimeline& timeline);

// How long a transfer between stage `boundary` and the next one takes, one way.
struct MeasuredTransfer {
  int boundary = 0;
  double seconds = 0;
  double error_seconds = 0;     // Standard error.
  std::int64_t iterations = 0;  // That it comes from.

  friend bool operator==(const MeasuredTransfer&, const MeasuredTransfer&) = default;
};

// How long a rank does nothing before a computation because its clock changes.
struct MeasuredStall {
  double seconds = 0;
  double error_seconds = 0;
  std::int64_t iterations = 0;
};

// Whether there is a row for each computation of the pipeline. `ranks`: [rank][position].
bool Fits(const PipelineDag& dag, const std::vector<std::vector<RowSpan>>& ranks);

// Estimates both from iterations whose computations all ranks of a pipeline timed.
//
// Transfers. A computation that begins some time after the one before it on its rank waited for
// another rank, so it began when that rank's result came. From the end there to the begin here is a
// transfer, plus how far the two clocks are apart. The way back has the same with the other sign,
// so the mean of both ways is the transfer. (It is taken to be the same for both, as in
// FixedTimes::comm_delay_seconds.)
// Stalls. Where a computation waits for no other rank, its gap is longer by the stall if its clock
// changes.
//
// Each figure is a median over the last iterations: a pause in one of them counts no more than any
// other. For one thread.
class GapEstimate {
 public:
  // [rank][position], of one iteration. Ignores rows that do not fit the pipeline.
  void Add(const PipelineDag& dag, const std::vector<std::vector<RowSpan>>& ranks);

  // Those that are sure, by boundary. Stages on one rank have none.
  std::vector<MeasuredTransfer> Transfers() const;
  // None: not sure yet.
  std::optional<MeasuredStall> Stall() const;

 private:
  std::map<int, std::deque<double>> transfers_;  // By boundary; of the last iterations.
  std::deque<double> stalls_;
};

// The delays of all boundaries: as measured, and the median of these where nothing was. Empty:
// nothing was measured.
std::vector<double> DelaysOf(const std::vector<MeasuredTransfer>& transfers, int num_stages);

// Whether transfers differ from those that plans are made for (DelaysOf()) so much that iterations
// of `iteration_seconds` are later than predicted.
bool TransfersHaveMoved(const std::vector<MeasuredTransfer>& planned,
                        const std::vector<MeasuredTransfer>& measured, double iteration_seconds);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_PLANNING_MEASURED_GAPS_H_
