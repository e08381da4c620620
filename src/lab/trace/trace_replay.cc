// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "trace/trace_replay.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "common/median.h"

namespace perseus::trace {
double MeanOf(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

std::vector<double> OwnSeconds(const Recording& recording, const Links& links) {
  constexpr double kClockSkewSeconds = 0.01;
  std::vector<double> own(recording.operations.size());
  for (int group = 0; group < links.num_groups(); ++group) {
    const auto members = links.MembersOf(group);
    double start = recording.operations[members.front()].start_seconds;
    for (const int member : members) {
      start = std::max(start, recording.operations[member].start_seconds);
    }
    for (const int member : members) {
      const Operation& operation = recording.operations[member];
      own[member] =
          members.size() == 1 ? operation.duration_seconds : operation.end_seconds() - start;
      if (own[member] <= -kClockSkewSeconds) own[member] = 0;
    }
  }
  return own;
}

std::vector<double> UsualSeconds(const Recording& recording, std::span<const double> own_seconds) {
  std::array<std::vector<double>, kNumOperationKinds> by_kind;
  for (std::size_t i = 0; i < own_seconds.size(); ++i) {
    by_kind[static_cast<std::size_t>(recording.operations[i].kind)].push_back(own_seconds[i]);
  }
  std::array<double, kNumOperationKinds> usual = {};
  for (std::size_t kind = 0; kind < by_kind.size(); ++kind) {
    if (by_kind[kind].empty()) continue;
    usual[kind] = IsCommunication(static_cast<OperationKind>(kind)) ? MedianOf(by_kind[kind])
                                                                    : MeanOf(by_kind[kind]);
  }
  std::vector<double> result(own_seconds.size());
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = usual[static_cast<std::size_t>(recording.operations[i].kind)];
  }
  return result;
}

void ReplayTrace(const Recording& recording, const Links& links,
                 std::span<const double> own_seconds, TraceTiming* timing) {
  timing->start_seconds.resize(own_seconds.size());
  timing->end_seconds.resize(own_seconds.size());
  for (int group = 0; group < links.num_groups(); ++group) {
    const auto members = links.MembersOf(group);
    double all_started = 0;
    for (const int member : members) {
      double start = 0;
      for (const int wait : links.WaitsOf(member)) {
        start = std::max(start, timing->end_seconds[wait]);
      }
      timing->start_seconds[member] = start;
      all_started = std::max(all_started, start);
    }
    for (const int member : members) {
      timing->end_seconds[member] = all_started + own_seconds[member];
    }
  }
  timing->step_seconds.assign(recording.steps.size(), 0);
  for (std::size_t step = 0; step < recording.steps.size(); ++step) {
    const int first = recording.first_of[step * recording.places()];
    const int last = recording.first_of[(step + 1) * recording.places()];
    for (int i = first; i < last; ++i) {
      timing->step_seconds[step] = std::max(timing->step_seconds[step], timing->end_seconds[i]);
    }
  }
}

std::vector<double> RecordedSeconds(const Recording& recording) {
  std::vector<double> seconds;
  for (std::size_t step = 0; step < recording.steps.size(); ++step) {
    const int begin = recording.first_of[step * recording.places()];
    const int end = recording.first_of[(step + 1) * recording.places()];
    double first = recording.operations[begin].start_seconds;
    double last = 0;
    for (int i = begin; i < end; ++i) {
      first = std::min(first, recording.operations[i].start_seconds);
      last = std::max(last, recording.operations[i].end_seconds());
    }
    seconds.push_back(last - first);
  }
  return seconds;
}

}  // namespace perseus::trace
