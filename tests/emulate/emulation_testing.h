// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_EMULATOR_REPLAY_EMULATION_TESTING_H_
#define PERSEUS_TESTS_EMULATOR_REPLAY_EMULATION_TESTING_H_

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "perseus/emulator.h"
#include "perseus/plan.h"
#include "perseus/planner.h"
#include "perseus/policy.h"
#include "plan/pipelines.h"

namespace perseus::emulator_testing {

// Plans made by a function.
class FakePolicy : public Policy {
 public:
  using Maker = std::function<Result<Plan>(double)>;
  explicit FakePolicy(Maker make, bool reacts = true) : make_(std::move(make)), reacts_(reacts) {}

  std::string_view name() const override { return "fake"; }
  bool reacts() const override { return reacts_; }
  Result<Plan> PlanFor(double seconds) const override { return make_(seconds); }

 private:
  Maker make_;
  bool reacts_;
};

inline constexpr int kFast = 0;  // Knob: 1000 MHz.
inline constexpr int kSlow = 1;  // Knob: 500 MHz.

// Every stage alike: forwards of 1 s (100 J) or 2 s (60 J), backwards of 2 s
// (300 J) or 4 s (200 J); waiting draws 10 W.
inline CostedPipeline TinyPipeline(int stages, int microbatches = 1) {
  std::string rows;
  for (int s = 0; s < stages; ++s) {
    for (const std::string_view row :
         {"forward,1000,1,100", "forward,500,2,60", "backward,1000,2,300", "backward,500,4,200"}) {
      rows.append(std::to_string(s)).append(",").append(row).append("\n");
    }
  }
  return plan_testing::Costed(rows, plan_testing::DagOf("1f1b", stages, microbatches),
                              plan_testing::Blocking(10));
}

inline Planner Plans(CostedPipeline pipeline) {
  auto planner = Planner::Create(std::move(pipeline), {});
  EXPECT_TRUE(planner) << planner.error().message;
  return *std::move(planner);
}

// The plan with one knob for each computation, or one for all.
inline Plan PlanWith(const Planner& planner, const std::vector<int>& knobs) {
  const CostedPipeline& pipeline = planner.pipeline();
  std::vector<CostOption> options;
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    const int knob = knobs[knobs.size() == 1 ? 0 : i];
    for (const CostOption& option : pipeline.TableOf(i).all_options) {
      if (option.knob == knob) options.push_back(option);
    }
  }
  EXPECT_EQ(static_cast<int>(options.size()), pipeline.dag.size());
  return *planner.Evaluate(std::move(options));
}

// Always the same plan.
inline FakePolicy Only(const Plan& plan) {
  return FakePolicy([plan](double /*seconds*/) -> Result<Plan> { return plan; }, false);
}

inline Emulation Emulated(const Planner& planner, const Policy& policy, const EmulationSpec& spec) {
  auto emulation = Emulate(planner, policy, spec);
  EXPECT_TRUE(emulation) << emulation.error().message;
  return *std::move(emulation);
}

inline std::vector<double> IterationTimes(const Emulation& emulation) {
  std::vector<double> times;
  for (const IterationRecord& record : emulation.iterations) times.push_back(record.time_seconds);
  return times;
}

}  // namespace perseus::emulator_testing

#endif  // PERSEUS_TESTS_EMULATOR_REPLAY_EMULATION_TESTING_H_
