// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EMULATE_KEPT_RUNS_H_
#define PERSEUS_EMULATE_KEPT_RUNS_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "emulate/pipeline_replay.h"
#include "switching/clock_state.h"

namespace perseus::emulate {

// Pipelines that have all of this in common do the same thing in an iteration,
// unless every computation has noise of its own.
struct ReplayKey {
  int pipeline = 0;  // Where GPUs differ; else 0.
  int plan = 0;      // LimitedPlan::serial
  std::vector<switching::ClockState> clocks;
  std::int64_t forecast = 0;  // Of those expected: its number. 0: calls are not predicted.

  friend auto operator<=>(const ReplayKey&, const ReplayKey&) = default;
};

// Replays that need not be made again, of all iterations, as far as there is
// room.
class KeptRuns {
 public:
  explicit KeptRuns(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  // nullptr where it is not kept. Lives until MakeRoom() or Clear().
  const PipelineRun* Find(const ReplayKey& key) const {
    const auto found = runs_.find(key);
    return found == runs_.end() ? nullptr : &found->second;
  }

  void Keep(ReplayKey key, const PipelineRun& run) {
    if (bytes_ > most_bytes_) return;
    bytes_ += sizeof(ReplayKey) + sizeof(PipelineRun) + run.segments.size() * sizeof(PowerSegment) +
              (key.clocks.size() + run.clocks.size()) * sizeof(switching::ClockState) +
              run.forecast.rows.size() * sizeof(switching::Row);
    runs_.emplace(std::move(key), run);
  }

  // Drops all where there is no room for another.
  void MakeRoom() {
    if (bytes_ > most_bytes_) Clear();
  }
  void Clear() {
    runs_.clear();
    bytes_ = 0;
  }

 private:
  std::size_t most_bytes_;
  std::size_t bytes_ = 0;
  std::map<ReplayKey, PipelineRun> runs_;
};

}  // namespace perseus::emulate

#endif  // PERSEUS_EMULATE_KEPT_RUNS_H_
