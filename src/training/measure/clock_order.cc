// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/clock_order.h"

#include <algorithm>
#include <map>
#include <random>

namespace perseus::measure {
namespace {

constexpr std::size_t kMeasuredPerRefinement = 4;

}  // namespace

ClockOrder::ClockOrder(const std::vector<int>& clocks_mhz, const OrderSettings& settings)
    : coarse_(settings.coarse) {
  const auto stride = static_cast<std::size_t>(std::max(1, settings.stride));
  for (std::size_t i = 0; i < clocks_mhz.size(); i += stride) {
    const int mhz = clocks_mhz[clocks_mhz.size() - 1 - i];
    if (mhz >= settings.least_mhz || clocks_mhz_.empty()) clocks_mhz_.push_back(mhz);
  }
  visited_.resize(clocks_mhz_.size());
  if (settings.shuffle) shuffle_seed_ = settings.seed;
  for (std::size_t i = kCoarseStride; i < clocks_mhz_.size(); i += kCoarseStride) {
    first_pass_.push_back(i);
  }
  Shuffle(&first_pass_);
  if (!coarse_) QueueTheRest();
  if (clocks_mhz_.empty()) return;
  reach_ =
      static_cast<std::size_t>(std::count_if(clocks_mhz_.begin(), clocks_mhz_.end(), [&](int mhz) {
        return mhz >= kLeastShare * clocks_mhz_.front();
      }));
  current_ = 0;
  visited_[0] = true;
}

// The same on every machine, unlike std::shuffle.
void ClockOrder::Shuffle(std::deque<std::size_t>* queue) {
  if (!shuffle_seed_) return;
  std::mt19937_64 random(*shuffle_seed_ + queue->size());
  for (std::size_t i = queue->size(); i > 1; --i)
    std::swap((*queue)[i - 1], (*queue)[random() % i]);
}

void ClockOrder::Leave(const std::vector<int>& clocks_mhz) {
  for (const int mhz : clocks_mhz) {
    const auto found = std::find(clocks_mhz_.begin(), clocks_mhz_.end(), mhz);
    if (found == clocks_mhz_.end()) continue;
    const auto index = static_cast<std::size_t>(found - clocks_mhz_.begin());
    visited_[index] = true;
    if (current_ == index) current_.reset();
  }
  if (!current_) current_ = Take(&first_pass_, clocks_mhz_.size());
  if (!current_) current_ = Take(&fill_in_, clocks_mhz_.size());
  if (current_) visited_[*current_] = true;
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

std::vector<ClockOrder::Curve> ClockOrder::CurvesOf(
    const std::vector<Estimate>& rows, const std::optional<BlockingPower>& waiting) const {
  std::map<Kind, Curve> curves;
  for (const Estimate& row : rows) {
    const auto found = std::find(clocks_mhz_.begin(), clocks_mhz_.end(), row.mhz);
    if (found == clocks_mhz_.end()) continue;
    curves[row.kind].points.push_back({static_cast<std::size_t>(found - clocks_mhz_.begin()),
                                       row.seconds, row.joules, row.joules_std,
                                       static_cast<double>(row.samples)});
  }
  std::vector<Curve> sorted;
  for (auto& [kind, curve] : curves) {
    std::sort(curve.points.begin(), curve.points.end(),
              [](const Point& a, const Point& b) { return a.index < b.index; });
    const Point& highest = curve.points.front();
    curve.waiting = waiting.value_or(BlockingPower{
        highest.seconds > 0 ? kAssumedWaiting * highest.joules / highest.seconds : 0, 0});
    sorted.push_back(std::move(curve));
  }
  return sorted;
}

ClockOrder::Ends ClockOrder::EndsOf(const std::vector<Curve>& curves) const {
  const std::size_t all = clocks_mhz_.size();
  // The index from which on, to the lowest clock, a curve's energy has risen, less `share` of the
  // energy of waiting. `all`: it has not, or at too few clocks.
  const auto risen_from = [&](const Curve& curve, double share) {
    const std::vector<Point>& points = curve.points;
    const auto effective = [&](const Point& point) {
      return point.joules - share * curve.waiting.watts * point.seconds;
    };
    const Point& least = *std::min_element(
        points.begin(), points.end(),
        [&](const Point& a, const Point& b) { return effective(a) < effective(b); });
    std::size_t begin = points.size();
    for (; begin > 0 && points[begin - 1].index > least.index; --begin) {
      const Point& point = points[begin - 1];
      const double rise = effective(point) - effective(least);
      const double error =
          std::hypot(point.joules_std, least.joules_std,
                     share * curve.waiting.watts_std * (point.seconds - least.seconds));
      if (rise <= kSigmas * error || rise <= kLeastRise * least.joules) break;
    }
    return points.size() < begin + kRisesToStop ? all : points[begin].index;
  };
  Ends ends;
  for (const Curve& curve : curves) {
    const std::size_t joules = risen_from(curve, 0);
    std::size_t effective = risen_from(curve, 1);
    // Slower, and of more joules: only a rank that waits and waits could use it.
    if (joules < all) effective = std::min(effective, reach_);
    ends.measured = std::max(ends.measured, effective);
    ends.filled = std::max(ends.filled, std::min(joules, effective));
  }
  return curves.empty() ? Ends{all, all} : ends;
}

// A clock half way between an end and the lowest one that could be needed, to see whether energy
// falls again there. None: that was seen already.
std::optional<std::size_t> ClockOrder::Look(std::size_t end) const {
  if (end >= reach_) return std::nullopt;
  const std::size_t middle = (end + reach_) / 2;
  const auto begin = visited_.begin() + static_cast<std::ptrdiff_t>(middle);
  return std::find(begin, visited_.end(), true) == visited_.end() ? std::optional(middle)
                                                                  : std::nullopt;
}

// The middle of the interval in which the hull may lie furthest below its chord:
// within the triangle that the chord and the neighbours' slopes make.
std::optional<std::size_t> ClockOrder::Refinement(const std::vector<Curve>& curves) const {
  std::map<std::size_t, double> joules;  // By the clock that would be measured.
  for (const Curve& curve : curves) {
    const std::vector<Point>& points = curve.points;
    const double blocking_watts = curve.waiting.watts;
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

// Queues the clocks that the first pass leaves out.
void ClockOrder::QueueTheRest() {
  const std::size_t all = clocks_mhz_.size();
  for (std::size_t pass = 1; pass < kCoarseStride; ++pass) {
    const bool is_up = pass != 2;
    std::deque<std::size_t> queue;
    // The middles first, then what is beside them.
    const std::size_t offset = pass == 1 ? kCoarseStride / 2 : pass == 2 ? 1 : kCoarseStride - 1;
    for (std::size_t i = offset; i < all; i += kCoarseStride) queue.push_back(i);
    if (is_up) std::reverse(queue.begin(), queue.end());
    Shuffle(&queue);
    fill_in_.insert(fill_in_.end(), queue.begin(), queue.end());
  }
}

std::optional<std::size_t> ClockOrder::Take(std::deque<std::size_t>* queue, std::size_t end) {
  std::erase_if(*queue, [&](std::size_t index) { return visited_[index]; });
  const auto found =
      std::find_if(queue->begin(), queue->end(), [&](std::size_t index) { return index < end; });
  return found == queue->end() ? std::nullopt : std::optional(*found);
}

void ClockOrder::Next(const std::vector<Estimate>& rows,
                      const std::optional<BlockingPower>& waiting, double jump) {
  if (!current_) return;
  ++measured_;
  const std::vector<Curve> curves = CurvesOf(rows, waiting);
  const Ends ends = EndsOf(curves);
  current_ = Take(&first_pass_, ends.measured);
  if (!current_) current_ = Look(ends.measured);
  first_pass_ended_ = first_pass_ended_ || !current_;
  if (!current_ && coarse_ && !refinements_left_) {
    refinements_left_ = measured_ / kMeasuredPerRefinement;
    rough_ = jump >= kRoughJump;
    if (rough_) {
      coarse_ = false;
      QueueTheRest();
    }
  }
  if (!current_ && coarse_ && *refinements_left_ > 0) {
    --*refinements_left_;
    current_ = Refinement(curves);
  }
  if (!current_ && !coarse_) current_ = Take(&fill_in_, ends.filled);
  if (current_) visited_[*current_] = true;
}

}  // namespace perseus::measure
