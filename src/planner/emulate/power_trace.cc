// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "emulate/power_trace.h"

#include <algorithm>
#include <cmath>

namespace perseus::emulate {
namespace {

// An end that rounding puts behind the end of an interval begins no other.
constexpr double kSameTime = 1e-12;

}  // namespace

PowerTraceBuilder::PowerTraceBuilder(double interval_seconds, bool may_lengthen,
                                     std::int64_t most_values)
    : interval_seconds_(interval_seconds), may_lengthen_(may_lengthen), most_values_(most_values) {}

void PowerTraceBuilder::BeginIteration(double start_seconds) {
  start_seconds_ = start_seconds;
  // Places within the iteration are small numbers: no digits are lost late in a
  // long job.
  first_ = static_cast<std::int64_t>(start_seconds / interval_seconds_);
  offset_seconds_ = start_seconds - static_cast<double>(first_) * interval_seconds_;
}

bool PowerTraceBuilder::Add(std::span<const PowerSegment> segments, double last_end_seconds,
                            double copies) {
  if (!MakeRoom(start_seconds_ + last_end_seconds)) return false;
  const double per_second = 1 / interval_seconds_;
  double* const joules = joules_.data() + first_;
  double* const watts_step = watts_step_.data() + first_;
  for (const PowerSegment& segment : segments) {
    const double start = offset_seconds_ + segment.start_seconds;
    const double end = offset_seconds_ + segment.end_seconds;
    const double watts = copies * segment.watts;
    const auto a = static_cast<std::int64_t>(start * per_second);
    const auto b = static_cast<std::int64_t>(end * per_second);
    if (a == b) {
      joules[a] += watts * (end - start);
      continue;
    }
    joules[a] += watts * (static_cast<double>(a + 1) * interval_seconds_ - start);
    joules[b] += watts * (end - static_cast<double>(b) * interval_seconds_);
    watts_step[a + 1] += watts;
    watts_step[b] -= watts;
  }
  return true;
}

bool PowerTraceBuilder::MakeRoom(double end_seconds) {
  // One more for where rounding puts an end.
  while (end_seconds / interval_seconds_ + 2 > static_cast<double>(most_values_)) {
    if (!may_lengthen_) return false;
    Lengthen();
  }
  const auto needed = static_cast<std::size_t>(end_seconds / interval_seconds_) + 3;
  if (needed > joules_.size()) {
    const std::size_t size = std::max(needed, 2 * joules_.size());
    joules_.resize(size, 0);
    watts_step_.resize(size, 0);
  }
  return true;
}

void PowerTraceBuilder::SpreadWatts() {
  double watts = 0;
  for (std::size_t k = 0; k < joules_.size(); ++k) {
    watts += watts_step_[k];
    watts_step_[k] = 0;
    joules_[k] += watts * interval_seconds_;
  }
}

void PowerTraceBuilder::Lengthen() {
  SpreadWatts();
  for (std::size_t k = 0; k < joules_.size(); ++k) {
    const double joules = joules_[k];
    joules_[k] = 0;
    joules_[k / 2] += joules;
  }
  interval_seconds_ *= 2;
  BeginIteration(start_seconds_);
}

PowerTrace PowerTraceBuilder::Finish(double seconds) {
  SpreadWatts();
  const auto values = static_cast<std::size_t>(
      std::max(1.0, std::ceil(seconds / interval_seconds_ * (1 - kSameTime))));
  joules_.resize(std::max(values, joules_.size()), 0);
  // What rounding put behind the end.
  for (std::size_t k = values; k < joules_.size(); ++k) joules_[values - 1] += joules_[k];
  PowerTrace trace;
  trace.interval_seconds = interval_seconds_;
  trace.watts.reserve(values);
  for (std::size_t k = 0; k < values; ++k) {
    trace.watts.push_back(std::max(0.0, joules_[k]) / interval_seconds_);  // Not -0 W by rounding.
  }
  return trace;
}

}  // namespace perseus::emulate
