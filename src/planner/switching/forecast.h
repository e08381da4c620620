// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SWITCHING_FORECAST_H_
#define PERSEUS_SWITCHING_FORECAST_H_

#include <memory>
#include <span>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "perseus/pipeline.h"
#include "perseus/plan.h"
#include "switching/clock_state.h"

namespace perseus::switching {

// A computation of a rank: its duration, and the gap before it since the end of the computation
// before (for the first: since the start of the iteration).
struct Row {
  double duration_seconds = 0;
  double gap_seconds = 0;
  double doubt_seconds = 0;  // How far `gap_seconds` is usually off; learned where ranks wait.

  friend bool operator==(const Row&, const Row&) = default;
};

// A plan as its ranks' clients get it: the rows of all ranks, rank by rank, in order of execution.
struct PlannedRows {
  std::vector<int> first_row;  // [rank], and the number of rows.
  std::vector<int> knobs;      // [row]
  std::vector<Row> rows;       // From the plan's replay.
  // [rank] The knob at which it waits. Empty: nothing sets a clock for waiting.
  std::vector<int> waiting_knobs;
  // [row] The next row of the same rank that has another knob. Number of the rank's rows: the first
  // row of the next iteration has another knob. One more than that: no row has. Empty: not filled.
  std::vector<int> next_other;

  int RowOf(const Computation& computation) const {
    return first_row[computation.rank] + computation.position;
  }
  std::span<const int> KnobsOf(int rank) const {
    return std::span(knobs).subspan(first_row[rank], first_row[rank + 1] - first_row[rank]);
  }
};

// Fills in rows->next_other.
void FindNextOthers(PlannedRows* rows);

// [rank] The knobs at which the ranks of a plan wait under the rules; empty: nothing sets a clock
// for waiting.
std::vector<int> WaitingKnobsOf(const CostedPipeline& pipeline, Waiting waiting,
                                const SwitchingRules& rules);

// The rows of a plan with these knobs and planned durations, both [computation].
PlannedRows MakeRows(const PipelineDag& dag, std::span<const int> knobs,
                     std::span<const double> durations_seconds);

// What the clients of one pipeline's ranks expect of the next iteration: the times of the newest
// iterations, at first those of the plan (docs/explanation/emulation.md, "Clocks").
struct Forecast {
  std::shared_ptr<const PlannedRows> plan;
  std::vector<Row> rows;
  // [rank] From a rank's last end to its first start of the next iteration. 0: not known.
  std::vector<double> wrap_gap_seconds;
  // [rank] End of the rank's last computation in the iteration before, relative to the start of
  // this iteration: 0 or less.
  std::vector<double> last_end_seconds;
  bool measured = false;  // `rows` are measured; false: they come from the plan.
  bool has_last = false;  // There was an iteration before.

  // An iteration of the plan `next` begins. If rows were measured under another plan, they correct
  // the times that `next` promises.
  void Follow(const std::shared_ptr<const PlannedRows>& next);
  // The iteration has ended.
  void EndIteration(double iteration_seconds);

  friend bool operator==(const Forecast&, const Forecast&) = default;
};

}  // namespace perseus::switching

#endif  // PERSEUS_SWITCHING_FORECAST_H_
