// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/clock_order.h"

#include <algorithm>
#include <map>
#include <random>

namespace perseus::measure {
namespace {

constexpr std::size_t kMeasuredPerRefinement = 4;

// The same on every machine, unlike std::shuffle.
void ShuffleQueue(std::deque<std::size_t>* queue, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (std::size_t i = queue->size(); i > 1; --i)
    std::swap((*queue)[i - 1], (*queue)[random() % i]);
}

}  // namespace

ClockOrder::ClockOrder(const std::vector<int>& clocks_mhz, const OrderSettings& settings)
    : coarse_(settings.coarse) {
  const auto stride = static_cast<std::size_t>(std::max(1, settings.stride));
  for (std::size_t i = 0; i < clocks_mhz.size(); i += stride) {
    const int mhz = clocks_mhz[clocks_mhz.size() - 1 - i];
    if (mhz >= settings.least_mhz || clocks_mhz_.empty()) clocks_mhz_.push_back(mhz);
  }
  visited_.resize(clocks_mhz_.size());
  const std::size_t step = coarse_ ? kCoarseStride : 1;
  for (std::size_t i = step; i < clocks_mhz_.size(); i += step) queue_.push_back(i);
  if (settings.shuffle) shuffle_seed_ = settings.seed;
  if (shuffle_seed_) ShuffleQueue(&queue_, *shuffle_seed_);
  if (clocks_mhz_.empty()) return;
  current_ = 0;
  visited_[0] = true;
}

void ClockOrder::Leave(const std::vector<int>& clocks_mhz) {
  for (const int mhz : clocks_mhz) {
    const auto found = std::find(clocks_mhz_.begin(), clocks_mhz_.end(), mhz);
    if (found == clocks_mhz_.end()) continue;
    const auto index = static_cast<std::size_t>(found - clocks_mhz_.begin());
    visited_[index] = true;
    std::erase(queue_, index);
    if (current_ == index) current_.reset();
  }
  if (!current_ && !queue_.empty()) {
    current_ = queue_.front();
    queue_.pop_front();
    visited_[*current_] = true;
  }
}

std::vector<int> ClockOrder::PassedOver() const {
  std::vector<int> passed;
  const auto last = std::find(visited_.rbegin(), visited_.rend(), true);
  const auto end = static_cast<std::size_t>(visited_.rend() - last);
  for (std::size_t i = 0; i < end; ++i) {
    if (!visited_[i]) passed.push_back(clocks_mhz_[i]);
  }
  return passed;
}

std::vector<std::vector<ClockOrder::Point>> ClockOrder::CurvesOf(
    const std::vector<Estimate>& rows) const {
  std::map<Kind, std::vector<Point>> curves;
  for (const Estimate& row : rows) {
    const auto found = std::find(clocks_mhz_.begin(), clocks_mhz_.end(), row.mhz);
    if (found == clocks_mhz_.end()) continue;
    curves[row.kind].push_back({static_cast<std::size_t>(found - clocks_mhz_.begin()), row.seconds,
                                row.joules, static_cast<double>(row.samples)});
  }
  std::vector<std::vector<Point>> sorted;
  for (auto& [kind, points] : curves) {
    std::sort(points.begin(), points.end(),
              [](const Point& a, const Point& b) { return a.index < b.index; });
    sorted.push_back(std::move(points));
  }
  return sorted;
}

void ClockOrder::DropNeedless(const std::vector<std::vector<Point>>& curves) {
  std::size_t last_needed = 0;
  for (const std::vector<Point>& points : curves) {
    std::size_t run_begin = 0;
    std::optional<std::size_t> stop;
    for (std::size_t i = 1; i < points.size() && !stop; ++i) {
      if (points[i].joules <= points[i - 1].joules) run_begin = i;
      const std::size_t rises = coarse_ ? kCoarseRisesToStop : kRisesToStop;
      if (i - run_begin >= rises) stop = points[i].index;
    }
    if (!stop) return;
    last_needed = std::max(last_needed, *stop);
  }
  if (!curves.empty()) {
    std::erase_if(queue_, [&](std::size_t index) { return index > last_needed; });
  }
}

// The middle of the interval in which the hull may lie furthest below its chord:
// within the triangle that the chord and the neighbours' slopes make.
std::optional<std::size_t> ClockOrder::Refinement(const std::vector<std::vector<Point>>& curves,
                                                  double blocking_watts) const {
  std::map<std::size_t, double> joules;  // By the clock that would be measured.
  for (const std::vector<Point>& points : curves) {
    const auto slope = [&](std::size_t i) {  // Joules saved per second from i to i + 1.
      const double seconds = points[i + 1].seconds - points[i].seconds;
      const double saved = points[i].joules - points[i + 1].joules + blocking_watts * seconds;
      return seconds > 0 ? saved / seconds : 0;
    };
    for (std::size_t i = 0; i + 1 < points.size(); ++i) {
      const std::size_t middle = (points[i].index + points[i + 1].index) / 2;
      if (middle == points[i].index || visited_[middle]) continue;
      const double seconds = points[i + 1].seconds - points[i].seconds;
      const double own = slope(i);
      const double next = i + 2 < points.size() ? std::max(0.0, slope(i + 1)) : 0;
      if (!(seconds > 0) || own <= next) continue;
      double depth = seconds * (own - next);
      if (i > 0) {
        const double before = slope(i - 1);
        depth = before > own ? depth * (before - own) / (before - next) : 0;
      }
      joules[middle] += depth * points[i].count;
    }
  }
  const auto most =
      std::max_element(joules.begin(), joules.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == joules.end() || !(most->second > 0)) return std::nullopt;
  return most->first;
}

// All that the coarse pass left out, and what it stopped before: energy that jumps, too,
// may have seemed to rise.
void ClockOrder::QueueTheRest() {
  for (std::size_t i = 0; i < visited_.size(); ++i) {
    if (!visited_[i]) queue_.push_back(i);
  }
  if (shuffle_seed_) ShuffleQueue(&queue_, *shuffle_seed_);
}

void ClockOrder::Next(const std::vector<Estimate>& rows, double blocking_watts, double jump) {
  if (!current_) return;
  current_.reset();
  ++measured_;
  const std::vector<std::vector<Point>> curves = CurvesOf(rows);
  DropNeedless(curves);
  if (queue_.empty() && coarse_ && !refinements_left_ && jump >= kRoughJump) {
    rough_ = true;
    coarse_ = false;
    QueueTheRest();
    DropNeedless(curves);
  }
  if (!queue_.empty()) {
    current_ = queue_.front();
    queue_.pop_front();
  } else if (coarse_) {
    if (!refinements_left_) refinements_left_ = measured_ / kMeasuredPerRefinement;
    if (*refinements_left_ == 0) return;
    --*refinements_left_;
    current_ = Refinement(curves, blocking_watts);
  }
  if (current_) visited_[*current_] = true;
}

}  // namespace perseus::measure
