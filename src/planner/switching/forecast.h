// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SWITCHING_FORECAST_H_
#define PERSEUS_SWITCHING_FORECAST_H_

#include <memory>
#include <span>
#include <vector>

#include "perseus/pipeline.h"

namespace perseus::switching {

// A computation of a rank: how long it lasts, and how long the rank waits before
// it since the end of the one before (the first: since the iteration's start).
struct Row {
  double duration_seconds = 0;
  double gap_seconds = 0;

  friend bool operator==(const Row&, const Row&) = default;
};

// A plan as its ranks' clients get it: rows of all ranks, rank by rank, in order.
struct PlannedRows {
  std::vector<int> first_row;  // [rank], and the number of rows.
  std::vector<int> knobs;      // [row]
  std::vector<Row> rows;       // As the plan's replay has them.
  // [row] The next in order of its rank that has another knob. The number of its rank's rows: the
  // first of the next iteration has; one more: none has. Empty: not worked out.
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

// Of a plan with these knobs and planned durations. [computation]
PlannedRows MakeRows(const PipelineDag& dag, std::span<const int> knobs,
                     std::span<const double> durations_seconds);

// What the clients of one pipeline's ranks expect of an iteration: what the
// newest ones taught, at first the plan (docs/explanation/emulation.md, "Calls ahead of
// time"). A plain value.
struct Forecast {
  std::shared_ptr<const PlannedRows> plan;
  std::vector<Row> rows;
  // [rank] From a rank's last end to its first start of the next iteration. 0: not known.
  std::vector<double> wrap_gap_seconds;
  // [rank] In the iteration before, from the start of this one: not above 0.
  std::vector<double> last_end_seconds;
  bool measured = false;  // Rows are, and not only what a plan promises.
  bool has_last = false;  // There was an iteration before.

  // An iteration of this plan begins. What was measured of another one, with other
  // knobs, corrects what this one promises.
  void Follow(const std::shared_ptr<const PlannedRows>& next);
  // The iteration has ended.
  void EndIteration(double iteration_seconds);

  friend bool operator==(const Forecast&, const Forecast&) = default;
};

}  // namespace perseus::switching

#endif  // PERSEUS_SWITCHING_FORECAST_H_
