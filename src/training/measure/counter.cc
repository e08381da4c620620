// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/counter.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/median.h"

namespace perseus::measure {

std::optional<Tick> CounterReader::Add(double joules, std::int64_t begin_ns, std::int64_t end_ns) {
  const std::optional<double> before = std::exchange(joules_, joules);
  const std::int64_t after_ns = std::exchange(shown_ns_, begin_ns);
  if (before && joules == *before) return std::nullopt;
  if (!before || joules < *before) {  // The first, or the driver was loaded anew.
    Pause();
    return std::nullopt;
  }
  Tick tick{.after_ns = after_ns, .by_ns = end_ns, .joules = joules, .follows = follows_};
  // Of several steps since the read before, this is the last.
  if (const auto period = period_seconds()) {
    const auto latest_ns = static_cast<std::int64_t>(*period * 1.1e9);
    tick.after_ns = std::max(tick.after_ns, tick.by_ns - latest_ns);
  }
  if (last_at_ns_) {
    distances_ns_.push_back(tick.at_ns() - *last_at_ns_);
    if (distances_ns_.size() > kKept) distances_ns_.pop_front();
  }
  last_at_ns_ = tick.at_ns();
  follows_ = true;
  return tick;
}

void CounterReader::Pause() {
  follows_ = false;
  last_at_ns_.reset();
}

std::optional<double> CounterReader::period_seconds() const {
  if (distances_ns_.size() < kFewest) return std::nullopt;
  return UpperMedianOf({distances_ns_.begin(), distances_ns_.end()}) * 1e-9;
}

}  // namespace perseus::measure
