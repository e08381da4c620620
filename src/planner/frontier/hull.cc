// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "frontier/hull.h"

#include <algorithm>

namespace perseus::frontier {
namespace {

// Options whose times differ by less than this share are one option to the
// solver, as fast as the faster and as cheap as the cheaper (which keeps the
// result a lower bound): a slope between them would be noise that costs every
// other slope its digits.
constexpr double kSameTime = 1e-9;

}  // namespace

std::vector<TimeCost> LowerHull(std::vector<TimeCost> options, double same_time) {
  std::sort(options.begin(), options.end(), [](const TimeCost& a, const TimeCost& b) {
    return a.time != b.time ? a.time < b.time : a.cost < b.cost;
  });
  std::vector<TimeCost> hull;
  for (const TimeCost& option : options) {
    if (!hull.empty()) {
      if (option.cost >= hull.back().cost) continue;
      if (option.time - hull.back().time <= std::max(kSameTime * option.time, same_time)) {
        hull.back().cost = option.cost;
      } else {
        hull.push_back(option);
      }
    } else {
      hull.push_back(option);
    }
    // The last three must turn left, or the middle one lies above their chord.
    while (hull.size() >= 3) {
      const TimeCost& a = hull[hull.size() - 3];
      const TimeCost& b = hull[hull.size() - 2];
      const TimeCost& c = hull.back();
      // Quotients: products of such differences may overflow or underflow.
      const double left = (a.cost - b.cost) / (b.time - a.time);
      const double right = (b.cost - c.cost) / (c.time - b.time);
      if (left > right) break;
      hull.erase(hull.end() - 2);
    }
  }
  return hull;
}

}  // namespace perseus::frontier
