// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "fleet/level_search.h"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace perseus::fleet {
namespace {

// The first index from `low` to `high` for which `above` is true, if it never turns false again.
template <typename Above>
std::size_t FirstAbove(std::size_t low, std::size_t high, const Above& above) {
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (above(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

// What all draw at a key; each job's count goes to `counts`.
template <typename Order>
double WattsAtKey(double key, const std::vector<Filled>& jobs, std::vector<std::size_t>* counts) {
  double sum = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Filled& job = jobs[i];
    const std::size_t count = Order::Count(*job.member, key, job.low, job.high);
    (*counts)[i] = count;
    sum += key >= job.stop.key ? job.stop_watts : Order::Watts(*job.member, key, count);
  }
  return sum;
}

// Doubles of 0 and more are in the order of their bits.
std::uint64_t Bits(double value) { return std::bit_cast<std::uint64_t>(value); }

}  // namespace

std::size_t ValueOrder::Count(const Member& member, double key, std::size_t low, std::size_t high) {
  return FirstAbove(low, high, [&](std::size_t k) { return Key(member, k) > key; });
}

std::size_t RatioOrder::Count(const Member& member, double key, std::size_t low, std::size_t high) {
  return FirstAbove(low, high, [&](std::size_t k) { return Key(member, k + 1) > key; });
}

double RatioOrder::Throughput(const Member& member, double key, std::size_t count) {
  const PowerCurve& curve = member.curve;
  const double x = key * (member.per_speed * member.weight);
  if (count + 1 >= curve.size()) return curve.x.back();
  return std::clamp(x, curve.x[count], curve.x[count + 1]);
}

double RatioOrder::Watts(const Member& member, double key, std::size_t count) {
  const PowerCurve& curve = member.curve;
  if (count + 1 >= curve.size()) return curve.watts.back();
  const double share =
      (Throughput(member, key, count) - curve.x[count]) / (curve.x[count + 1] - curve.x[count]);
  return curve.watts[count] + share * (curve.watts[count + 1] - curve.watts[count]);
}

template <typename Order>
KeyBracket FindKey(double limit, std::vector<Filled>* jobs) {
  double least = std::numeric_limits<double>::infinity();
  double most = 0;
  for (Filled& job : *jobs) {
    least = std::min(least, Order::FirstKey(*job.member));
    most = std::max(most, Order::LastKey(*job.member));
    job.low = 0;
    job.high = job.member->curve.size() - 1;
  }
  std::vector<std::size_t> counts(jobs->size());
  if (WattsAtKey<Order>(most, *jobs, &counts) <= limit) return {};
  // Below the least key, all jobs have their least, which keeps the limit.
  std::uint64_t kept = std::max<std::uint64_t>(Bits(least), 1) - 1;
  std::uint64_t broken = Bits(most);
  if (broken <= kept) return {};  // Nobody can have more than the least.
  while (broken - kept > 1) {
    const std::uint64_t middle = kept + (broken - kept) / 2;
    const bool keeps = WattsAtKey<Order>(std::bit_cast<double>(middle), *jobs, &counts) <= limit;
    (keeps ? kept : broken) = middle;
    for (std::size_t i = 0; i < jobs->size(); ++i) {
      ((*jobs)[i].*(keeps ? &Filled::low : &Filled::high)) = counts[i];
    }
  }
  return {true, std::bit_cast<double>(kept), std::bit_cast<double>(broken)};
}

template KeyBracket FindKey<ValueOrder>(double limit, std::vector<Filled>* jobs);
template KeyBracket FindKey<RatioOrder>(double limit, std::vector<Filled>* jobs);

}  // namespace perseus::fleet
