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
#include "switching/clock_replay.h"

namespace perseus::emulate {

// Pipelines with equal keys have the same replay of an iteration, unless each computation has its
// own noise.
struct ReplayKey {
  int pipeline = 0;  // 0 unless GPUs differ.
  int plan = 0;      // LimitedPlan::serial
  std::vector<switching::ClockState> clocks;
  std::int64_t forecast = 0;  // Number of the Forecast. 0: calls are not predicted.

  friend auto operator<=>(const ReplayKey&, const ReplayKey&) = default;
};

// A cache of replays of all iterations, within the memory limit.
class KeptRuns {
 public:
  explicit KeptRuns(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  // nullptr: not in the cache. The result lives until MakeRoom() or Clear().
  const PipelineRun* Find(const ReplayKey& key) const {
    const auto found = runs_.find(key);
    return found == runs_.end() ? nullptr : &found->second;
  }

  void Keep(ReplayKey key, const PipelineRun& run) {
    if (bytes_ > most_bytes_) return;
    bytes_ += sizeof(ReplayKey) + sizeof(PipelineRun) + run.segments.size() * sizeof(PowerSegment) +
              (key.clocks.size() + run.clocks.size()) * sizeof(switching::ClockState) +
              run.last_ends.size() * sizeof(double) +
              run.forecast.rows.size() * sizeof(switching::Row);
    runs_.emplace(std::move(key), run);
  }

  // Drops all replays if there is no room for another.
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
