// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "switching/forecast.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace perseus::switching {

void FindNextOthers(PlannedRows* rows) {
  rows->next_other.resize(rows->knobs.size());
  for (std::size_t rank = 0; rank + 1 < rows->first_row.size(); ++rank) {
    const int first = rows->first_row[rank];
    const int size = rows->first_row[rank + 1] - first;
    for (int k = size; k-- > 0;) {
      const int knob = rows->knobs[first + k];
      if (k + 1 == size) {
        rows->next_other[first + k] = rows->knobs[first] != knob ? size : size + 1;
      } else {
        rows->next_other[first + k] =
            rows->knobs[first + k + 1] != knob ? k + 1 : rows->next_other[first + k + 1];
      }
    }
  }
}

std::vector<double> LatenciesOf(const ClockSwitching& switching, const CostedPipeline& pipeline) {
  std::vector<double> latencies(pipeline.knobs.size(), switching.latency_seconds);
  for (const ClockLatency& own : switching.latency_at) {
    for (std::size_t knob = 0; knob < latencies.size(); ++knob) {
      if (pipeline.knobs[knob].number == own.clock) latencies[knob] = own.seconds;
    }
  }
  return latencies;
}

std::vector<int> WaitingKnobsOf(const CostedPipeline& pipeline, Waiting waiting,
                                const SwitchingRules& rules) {
  std::vector<int> knobs;
  if (waiting != Waiting::kCheapest || !pipeline.waiting_depends_on_clock() ||
      !rules.may_wait_cheaply()) {
    return knobs;
  }
  knobs.reserve(pipeline.dag.rank_order.size());
  for (int rank = 0; rank < pipeline.dag.num_ranks; ++rank) {
    knobs.push_back(*pipeline.WaitingKnob(rank));
  }
  return knobs;
}

PlannedRows MakeRows(const PipelineDag& dag, std::span<const int> knobs,
                     std::span<const double> durations_seconds) {
  const Timing timing = Replay(dag, durations_seconds);
  PlannedRows planned;
  planned.knobs.reserve(dag.computations.size());
  planned.rows.reserve(dag.computations.size());
  for (const std::vector<int>& order : dag.rank_order) {
    planned.first_row.push_back(static_cast<int>(planned.rows.size()));
    double end = 0;
    for (const int i : order) {
      const double gap = std::max(0.0, timing.start_seconds[i] - end);
      planned.knobs.push_back(knobs[i]);
      planned.rows.push_back(
          {.duration_seconds = durations_seconds[i], .gap_seconds = gap, .doubt_seconds = gap});
      end = timing.end_seconds[i];
    }
  }
  planned.first_row.push_back(static_cast<int>(planned.rows.size()));
  FindNextOthers(&planned);
  return planned;
}

void Forecast::Follow(const std::shared_ptr<const PlannedRows>& next) {
  const std::shared_ptr<const PlannedRows> old = std::exchange(plan, next);
  if (old == nullptr) {
    const std::size_t ranks = next->first_row.size() - 1;
    rows = next->rows;
    wrap_gap_seconds.assign(ranks, 0);
    last_end_seconds.assign(ranks, 0);
    return;
  }
  if (old == next || old->knobs == next->knobs) return;
  const std::vector<Row> learned = std::exchange(rows, next->rows);
  if (!std::exchange(measured, false)) return;
  for (std::size_t rank = 0; rank + 1 < next->first_row.size(); ++rank) {
    double planned_seconds = 0;
    double measured_seconds = 0;
    for (int k = next->first_row[rank]; k < next->first_row[rank + 1]; ++k) {
      planned_seconds += old->rows[k].duration_seconds;
      measured_seconds += learned[k].duration_seconds;
    }
    const double overall = planned_seconds > 0 ? measured_seconds / planned_seconds : 1;
    for (int k = next->first_row[rank]; k < next->first_row[rank + 1]; ++k) {
      const double promised = old->rows[k].duration_seconds;
      rows[k].duration_seconds *= promised > 0 ? learned[k].duration_seconds / promised : overall;
      rows[k].gap_seconds *= overall;
    }
  }
}

void Forecast::EndIteration(double iteration_seconds) {
  for (double& end : last_end_seconds) end -= iteration_seconds;
  measured = true;
  has_last = true;
}

}  // namespace perseus::switching
