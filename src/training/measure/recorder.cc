// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/recorder.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/numbers.h"

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

void Recorder::BeginIteration(std::int64_t number, std::int64_t at_ns) {
  if (in_iteration_) AbandonIteration();  // Its end was never said.
  in_iteration_ = true;
  depth_ = 0;
  work_ = 0;
  current_ = {};
  current_.number = number;
  current_.recorded.iteration.begin_ns = at_ns;
}

void Recorder::EndIteration(std::int64_t at_ns) {
  if (!in_iteration_) return;
  in_iteration_ = false;
  current_.recorded.iteration.end_ns = at_ns;
  current_.recorded.good = depth_ == 0;
  current_.complete = !has_times_;
  ended_.push_back(std::move(current_));
}

void Recorder::AbandonIteration() {
  if (!in_iteration_) return;
  in_iteration_ = false;
  current_.recorded.good = false;
  current_.complete = true;
  ended_.push_back(std::move(current_));
}

void Recorder::Begin(std::size_t kind, std::int64_t at_ns) {
  if (!in_iteration_) return;
  current_.outer.push_back(depth_ == 0);
  if (depth_++ > 0) return;
  current_.recorded.iteration.spans.push_back(
      {.kind = kind, .begin_ns = at_ns, .end_ns = at_ns, .work = std::exchange(work_, 0)});
}

void Recorder::End(std::int64_t at_ns) {
  if (!in_iteration_ || depth_ == 0 || --depth_ > 0) return;
  current_.recorded.iteration.spans.back().end_ns = at_ns;
}

void Recorder::SetTimes(std::int64_t number,
                        const std::vector<std::pair<std::int64_t, std::int64_t>>& ns) {
  has_times_ = true;
  const auto found = std::find_if(ended_.begin(), ended_.end(), [&](const Open& open) {
    return open.number == number && !open.complete;
  });
  if (found == ended_.end()) return;
  found->complete = true;
  Iteration& iteration = found->recorded.iteration;
  if (ns.size() != found->outer.size()) {
    found->recorded.good = false;
    return;
  }
  std::size_t span = 0;
  std::int64_t end_ns = iteration.begin_ns;
  for (std::size_t i = 0; i < ns.size(); ++i) {
    if (!found->outer[i]) {
      // Within the outer one, as far as it reaches.
      if (span > 0) {
        Span& outer = iteration.spans[span - 1];
        outer.end_ns = std::max(outer.end_ns, iteration.begin_ns + ns[i].second);
      }
      continue;
    }
    Span& outer = iteration.spans[span++];
    // Two clocks are compared: the first may seem to begin before its iteration.
    outer.begin_ns = iteration.begin_ns + std::max<std::int64_t>(ns[i].first, 0);
    outer.end_ns = iteration.begin_ns + ns[i].second;
    if (outer.begin_ns < end_ns || outer.end_ns < outer.begin_ns) found->recorded.good = false;
    end_ns = outer.begin_ns;
  }
  // The device may end after the host has gone on.
  iteration.end_ns = std::max(iteration.end_ns, iteration.begin_ns);
  if (!iteration.spans.empty()) {
    iteration.end_ns = std::max(iteration.end_ns, iteration.spans.back().end_ns);
  }
}

std::vector<Recorded> Recorder::Take() {
  std::vector<Recorded> taken;
  while (!ended_.empty() && (ended_.front().complete || ended_.size() > kPatience)) {
    // Without its device times an iteration says when work was queued.
    if (!ended_.front().complete) ended_.front().recorded.good = false;
    taken.push_back(std::move(ended_.front().recorded));
    ended_.pop_front();
  }
  return taken;
}

}  // namespace perseus::measure
