// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_CLIENT_FOLLOWER_TESTING_H_
#define PERSEUS_TESTS_CLIENT_FOLLOWER_TESTING_H_

// What the tests of the client's follower share: a plan of six computations, and a trainer.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "client/follower.h"
#include "client/rank_conditions.h"
#include "client/rank_plan.h"

namespace perseus::client {

inline constexpr std::int64_t kMs = 1'000'000;

inline PlanRow Row(ComputationType type, int microbatch, int mhz, double start, double duration) {
  PlanRow row;
  row.id = {type, 0, microbatch};
  row.mhz = mhz;
  row.start_seconds = start;
  row.duration_seconds = duration;
  return row;
}

// F0 F1 B0 F2 B1 B2, 40 ms each, at these clocks.
inline std::shared_ptr<const RankPlan> Plan(std::int64_t version, std::vector<int> clocks) {
  const std::vector<std::pair<ComputationType, int>> order = {
      {ComputationType::kForward, 0},  {ComputationType::kForward, 1},
      {ComputationType::kBackward, 0}, {ComputationType::kForward, 2},
      {ComputationType::kBackward, 1}, {ComputationType::kBackward, 2}};
  auto plan = std::make_shared<RankPlan>();
  plan->version = version;
  plan->iteration_time_seconds = 0.24;
  for (std::size_t i = 0; i < clocks.size(); ++i) {
    plan->rows.push_back(
        Row(order[i].first, order[i].second, clocks[i], 0.04 * static_cast<double>(i), 0.04));
  }
  return plan;
}

inline LatencyRecord Latency(std::int64_t least_ns, std::int64_t high_ns) {
  LatencyRecord latency;
  for (int i = 0; i < 5; ++i) latency.AddCall(1000, least_ns);
  for (int i = 0; i < 5; ++i) latency.AddCall(1000, high_ns);
  return latency;
}

// A trainer on an imaginary clock, whose every computation takes `row_ns`.
class FollowerTest : public testing::Test {
 protected:
  void Say(EventKind kind, const ComputationId& id = {}, std::int64_t value = 0) {
    follower_.Handle({.kind = kind,
                      .type = id.type,
                      .stage = id.stage,
                      .microbatch = id.microbatch,
                      .value = value,
                      .ticks = 0},
                     now_);
  }

  // Lets time pass until `until`, and makes the calls that the follower asks for.
  void Pass(std::int64_t until) {
    for (int looks = 0; looks < 100'000; ++looks) {
      const Follower::Decision decision = follower_.Decide(now_, latency_);
      if (decision.call_mhz) {
        calls_.emplace_back(now_, *decision.call_mhz);
        const std::int64_t begin = now_;
        now_ += call_ns_;
        follower_.Called(*decision.call_mhz, begin, now_);
        continue;
      }
      if (decision.wake_at_ns >= until) break;
      ASSERT_GT(decision.wake_at_ns, now_);
      now_ = decision.wake_at_ns;
    }
    now_ = std::max(now_, until);
  }

  // One computation; a call that is under way when it ends lets it end late here,
  // which a real trainer would not notice, so calls take no time by default.
  void Compute(const ComputationId& id) {
    Say(EventKind::kBegin, id);
    Pass(now_ + row_ns_);
    Say(EventKind::kEnd, id);
  }

  void Iterate(const RankPlan& plan, std::int64_t iteration = 0) {
    Say(EventKind::kStepBegin, {}, iteration);
    for (const PlanRow& row : plan.rows) Compute(row.id);
    Say(EventKind::kStepEnd);
  }

  Follower follower_{FollowerSettings{}};
  LatencyRecord latency_ = Latency(15 * kMs, 15 * kMs);
  std::int64_t now_ = 1'000'000 * kMs;
  std::int64_t row_ns_ = 40 * kMs;
  std::int64_t call_ns_ = 0;
  std::vector<std::pair<std::int64_t, int>> calls_;
};

}  // namespace perseus::client

#endif  // PERSEUS_TESTS_CLIENT_FOLLOWER_TESTING_H_
