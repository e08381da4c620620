// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The client's follower against the emulator's calls ahead of time
// (switching/clock_replay.h): the same rank runs the same clocks at the same times.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "client/follower.h"
#include "client/rank_conditions.h"
#include "client/rank_plan.h"
#include "common/word_hash.h"
#include "switching/clock_replay.h"

namespace perseus::client {
namespace {

constexpr double kNs = 1e9;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// A rank's computations: what each lasts at its first clock, and waits before it.
struct Work {
  double gap_seconds = 0;
  double seconds = 0;
};
struct Case {
  std::vector<double> latency_seconds;  // [knob]
  double min_interval_seconds = 0;
  int waiting_knob = switching::kNoCall;
  std::vector<int> knobs;
  std::vector<std::vector<Work>> iterations;
};

constexpr int kKnobs = 5;
int MhzOf(int knob) { return 1400 - 200 * knob; }
double SecondsAt(const Work& work, int knob) { return work.seconds * (1 + 0.2 * knob); }

// `waits`: with a clock for waiting, and gaps that are long enough for it.
Case RandomCase(unsigned seed, bool waits) {
  std::mt19937 random(seed);
  const auto share = [&] { return static_cast<double>(random() % 100'000) / 100'000; };
  Case made;
  const double latency = 0.004 + 0.03 * share();
  const bool alike = random() % 2 == 0;
  for (int knob = 0; knob < kKnobs; ++knob) {
    made.latency_seconds.push_back(alike ? latency : (0.4 + 1.6 * share()) * latency);
  }
  made.min_interval_seconds = random() % 3 == 0 ? 0.06 * share() : 0;
  const int rows = 2 + static_cast<int>(random() % 14);
  std::vector<Work> mean(rows);
  for (Work& work : mean) {
    made.knobs.push_back(static_cast<int>(random() % 4));
    work = {random() % 2 == 0 ? 0.001 * share() : 0.05 * share(), 0.005 + 0.06 * share()};
    if (waits && random() % 2 == 0) work.gap_seconds = 0.5 * share();
  }
  if (waits) made.waiting_knob = static_cast<int>(random() % 5);
  for (int n = 0; n < (waits ? 9 : 5); ++n) {
    std::vector<Work>& own = made.iterations.emplace_back(mean);
    for (Work& work : own) {
      work.gap_seconds *= 0.9 + 0.2 * share();
      work.seconds *= 0.9 + 0.2 * share();
    }
  }
  return made;
}

// `ends`: of all computations, from the first iteration's start.
struct Emulated {
  std::vector<double> ends;
  double waited_seconds = 0;  // At the clock of waiting.
};

Emulated Emulate(const Case& made) {
  CostedPipeline pipeline;
  ClockSwitching switching = {.latency_seconds = made.latency_seconds.front(),
                              .call_ahead = CallAhead::kPredicted,
                              .min_interval_seconds = made.min_interval_seconds};
  for (int knob = 0; knob < kKnobs; ++knob) {
    pipeline.knobs.push_back({.label = "", .number = static_cast<double>(MhzOf(knob))});
    switching.latency_at.push_back({pipeline.knobs.back().number, made.latency_seconds[knob]});
  }
  const switching::SwitchingRules rules(switching, pipeline);
  auto planned = std::make_shared<switching::PlannedRows>();
  planned->knobs = made.knobs;
  planned->first_row = {0, static_cast<int>(made.knobs.size())};
  for (std::size_t k = 0; k < made.knobs.size(); ++k) {
    const Work& work = made.iterations[0][k];
    planned->rows.push_back({SecondsAt(work, made.knobs[k]), work.gap_seconds, work.gap_seconds});
  }
  if (made.waiting_knob != switching::kNoCall) planned->waiting_knobs = {made.waiting_knob};
  switching::Forecast forecast;
  forecast.Follow(planned);
  switching::ClockState clock = switching::SettledAt(made.knobs.front());
  Emulated emulated;
  double begin = 0;
  for (const std::vector<Work>& iteration : made.iterations) {
    switching::RankCaller caller(rules, 0, WordHash(0), &forecast, &clock);
    double now = 0;
    for (const Work& work : iteration) {
      now += work.gap_seconds;
      caller.Start(now, [&](int knob, double from, double to) {
        if (knob == made.waiting_knob) emulated.waited_seconds += to - from;
      });
      now = caller.Run(
          now, [&](int knob) { return SecondsAt(work, knob); },
          [](int /*knob*/, double /*from*/, double /*to*/, double /*share*/) {});
      caller.End(now);
      emulated.ends.push_back(begin + now);
    }
    switching::EndIteration(rules, WordHash(0), now, &clock);
    forecast.EndIteration(now);
    begin += now;
  }
  return emulated;
}

// A trainer on an imaginary clock, and a device whose calls take their latency.
class Trainer {
 public:
  explicit Trainer(const Case& made)
      : made_(made),
        follower_({.min_interval_ns = std::llround(made.min_interval_seconds * kNs),
                   .max_overhead = 1e9}),
        knob_(made.knobs.front()) {
    for (int knob = 0; knob < kKnobs; ++knob) {
      for (int call = 0; call < 8; ++call) latency_.AddCall(MhzOf(knob), LatencyNs(knob));
    }
    auto plan = std::make_shared<RankPlan>();
    double end = 0;
    for (std::size_t k = 0; k < made.knobs.size(); ++k) {
      const Work& work = made.iterations[0][k];
      PlanRow row;
      row.id = IdOf(k);
      row.mhz = MhzOf(made.knobs[k]);
      row.start_seconds = end + work.gap_seconds;
      row.duration_seconds = SecondsAt(work, made.knobs[k]);
      end = row.start_seconds + row.duration_seconds;
      plan->rows.push_back(row);
    }
    plan->iteration_time_seconds = end;
    if (made.waiting_knob != switching::kNoCall) plan->waiting_mhz = MhzOf(made.waiting_knob);
    follower_.Offer(plan);
    follower_.Called(MhzOf(knob_), 0, 0);  // Long ago.
  }

  // Likewise, of what the follower did.
  Emulated Run() {
    Emulated followed;
    for (std::size_t n = 0; n < made_.iterations.size(); ++n) {
      Say({.kind = EventKind::kStepBegin, .value = static_cast<std::int64_t>(n)});
      for (std::size_t k = 0; k < made_.knobs.size(); ++k) {
        const Work& work = made_.iterations[n][k];
        Pass(now_ + std::llround(work.gap_seconds * kNs));
        const ComputationId id = IdOf(k);
        Event event = {.kind = EventKind::kBegin, .type = id.type, .stage = id.stage};
        event.microbatch = id.microbatch;
        Say(event);
        Compute(work);
        event.kind = EventKind::kEnd;
        Say(event);
        followed.ends.push_back(static_cast<double>(now_ - kStartNs) / kNs);
      }
      Say({.kind = EventKind::kStepEnd});
    }
    followed.waited_seconds = static_cast<double>(waited_ns_) / kNs;
    return followed;
  }

 private:
  static constexpr std::int64_t kStartNs = 1'000'000'000'000;

  static ComputationId IdOf(std::size_t k) {
    return {ComputationType::kForward, 0, static_cast<int>(k)};
  }

  static int KnobOf(int mhz) { return (1400 - mhz) / 200; }
  std::int64_t LatencyNs(int knob) const { return std::llround(made_.latency_seconds[knob] * kNs); }
  std::int64_t Next() const { return call_begin_ns_ != kNever ? call_end_ns_ : wake_ns_; }

  // The client's thread hears of nothing while a call is under way.
  void Say(const Event& event) {
    if (call_begin_ns_ != kNever) {
      unheard_.emplace_back(event, now_);
      return;
    }
    follower_.Handle(event, now_);
    Decide();
  }

  void Decide() {
    const Follower::Decision decision = follower_.Decide(now_, latency_);
    wake_ns_ = decision.wake_at_ns;
    if (!decision.call_mhz) return;
    called_mhz_ = *decision.call_mhz;
    call_begin_ns_ = now_;
    call_end_ns_ = now_ + LatencyNs(KnobOf(called_mhz_));
  }

  void Step() {
    now_ = Next();
    if (call_begin_ns_ != kNever) {
      knob_ = KnobOf(called_mhz_);
      follower_.Called(called_mhz_, std::exchange(call_begin_ns_, kNever), now_);
      for (const auto& [event, at_ns] : unheard_) follower_.Handle(event, at_ns);
      unheard_.clear();
    }
    Decide();
  }

  void Pass(std::int64_t until) {
    const auto wait_until = [&](std::int64_t to) {
      if (knob_ == made_.waiting_knob) waited_ns_ += std::max<std::int64_t>(0, to - now_);
    };
    while (Next() <= until) {
      wait_until(Next());
      Step();
    }
    wait_until(until);
    now_ = until;
  }

  void Compute(const Work& work) {
    double left = 1;
    while (true) {
      const int knob = knob_;
      const std::int64_t begin = now_;
      const double ns = SecondsAt(work, knob) * kNs;
      const std::int64_t end = begin + std::llround(left * ns);
      while (Next() < end && knob_ == knob) Step();
      if (knob_ == knob) {
        now_ = end;
        return;
      }
      left = std::max(0.0, left - static_cast<double>(now_ - begin) / ns);
    }
  }

  const Case& made_;
  Follower follower_;
  LatencyRecord latency_;
  int knob_;
  std::int64_t now_ = kStartNs;
  std::int64_t wake_ns_ = kNever;
  std::int64_t call_begin_ns_ = kNever;
  std::int64_t call_end_ns_ = 0;
  std::int64_t waited_ns_ = 0;
  int called_mhz_ = 0;
  std::vector<std::pair<Event, std::int64_t>> unheard_;
};

// Returns how long the emulated rank waited at its clock for waiting.
double CompareClocks(unsigned seed, bool waits) {
  const Case made = RandomCase(seed, waits);
  const Emulated emulated = Emulate(made);
  const Emulated followed = Trainer(made).Run();
  if (emulated.ends.size() != followed.ends.size()) {
    ADD_FAILURE() << "seed " << seed << ": another number of computations";
    return 0;
  }
  EXPECT_NEAR(emulated.waited_seconds, followed.waited_seconds, 1e-5) << "seed " << seed;
  for (std::size_t k = 0; k < followed.ends.size(); ++k) {
    EXPECT_NEAR(emulated.ends[k], followed.ends[k], 1e-6)
        << "seed " << seed << ", computation " << k;
    if (::testing::Test::HasFailure()) break;
  }
  return emulated.waited_seconds;
}

TEST(FollowerEmulatedTest, ClientAndEmulatorRunTheSameClocks) {
  for (unsigned seed = 0; seed < 300 && !HasFailure(); ++seed) CompareClocks(seed, false);
}

TEST(FollowerEmulatedTest, ClientAndEmulatorWaitAtTheSameClocks) {
  double waited_seconds = 0;
  for (unsigned seed = 0; seed < 300 && !HasFailure(); ++seed) {
    waited_seconds += CompareClocks(seed, true);
  }
  EXPECT_GT(waited_seconds, 300);
}

}  // namespace
}  // namespace perseus::client
