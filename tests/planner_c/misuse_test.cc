// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "perseus/planner_c.h"
#include "planner_c/planner_testing.h"

// What can be given to perseus/planner_c.h that is wrong: a status, a sentence, nothing made.
namespace perseus::planner_c {
namespace {

struct Answer {
  perseus_status status = PERSEUS_OK;
  std::string message;
};

Answer Ask(const perseus_planner_input& input) {
  auto* planner = reinterpret_cast<perseus_planner*>(std::uintptr_t{8});
  char* message = nullptr;
  Answer answer;
  answer.status = perseus_planner_create(&input, &planner, &message);
  answer.message = Take(message);
  EXPECT_EQ(planner == nullptr, answer.status != PERSEUS_OK);
  EXPECT_EQ(answer.message.empty(), answer.status == PERSEUS_OK);
  if (answer.status == PERSEUS_OK) perseus_planner_free(planner);
  return answer;
}

TEST(PlannerMisuse, ATextWhoseSizeIsForgottenIsRefused) {
  perseus_planner_input input = InputOf(kProfile, kSettings);
  input.settings_json_size = 0;
  EXPECT_EQ(Ask(input).status, PERSEUS_INVALID);
  EXPECT_EQ(Ask(input).message.rfind("settings_json", 0), 0U) << Ask(input).message;
  input = InputOf(kProfile, kSettings);
  input.profile_csv_size = 0;
  EXPECT_EQ(Ask(input).message.rfind("profile_csv", 0), 0U) << Ask(input).message;
  input = InputOf(kProfile, R"({"blocking_power": 70})");
  input.schedule_csv = "0F0,0B0\n";
  EXPECT_EQ(Ask(input).message.rfind("schedule_csv", 0), 0U) << Ask(input).message;

  const Made made = Create(InputOf(kProfile, kSettings));
  perseus_plan* plan = nullptr;
  char* message = nullptr;
  EXPECT_EQ(perseus_planner_plan(made.planner.get(), "{\"at\": \"1.1x\"}", 0, nullptr, nullptr,
                                 &plan, &message),
            PERSEUS_INVALID);
  EXPECT_NE(Take(message), "");
  EXPECT_EQ(plan, nullptr);
}

TEST(PlannerMisuse, ATextMayEndWithAZeroByte) {
  const std::string profile(kProfile);
  const std::string settings(kSettings);
  perseus_planner_input input = InputOf(profile, settings);
  input.profile_csv_size = PERSEUS_TO_ZERO;
  input.settings_json_size = PERSEUS_TO_ZERO;
  EXPECT_EQ(Ask(input).status, PERSEUS_OK);
}

TEST(PlannerMisuse, SizesOfStructsAreChecked) {
  struct Newer {
    perseus_planner_input input;
    double next;
  };
  Newer newer = {InputOf(kProfile, kSettings), 0};
  newer.input.struct_size = sizeof(Newer);
  EXPECT_EQ(Ask(newer.input).status, PERSEUS_OK);
  newer.next = 1;
  EXPECT_EQ(Ask(newer.input).status, PERSEUS_INVALID);
  for (const std::uint32_t size : {0U, 3U, 7U, 12U, 1U << 20, 0xffffffffU}) {
    perseus_planner_input input = InputOf(kProfile, kSettings);
    input.struct_size = size;
    EXPECT_EQ(Ask(input).status, PERSEUS_INVALID) << size;
  }
  perseus_planner_input input = InputOf(kProfile, kSettings);
  input.reserved = 1;
  EXPECT_EQ(Ask(input).status, PERSEUS_INVALID);
}

TEST(PlannerMisuse, ALargerStructLearnsWhatWasFilledIn) {
  struct Newer {
    perseus_frontier frontier;
    double next;
  };
  const Made made = Create(InputOf(kProfile, kSettings));
  Newer newer = {};
  newer.frontier.struct_size = sizeof(Newer);
  newer.next = 7;
  ASSERT_EQ(perseus_planner_frontier(made.planner.get(), &newer.frontier, nullptr), PERSEUS_OK);
  EXPECT_EQ(newer.frontier.struct_size, sizeof(perseus_frontier));
  EXPECT_EQ(newer.next, 7);
}

TEST(PlannerMisuse, EveryFunctionSaysWhatIsMissing) {
  const Made made = Create(InputOf(kProfile, kSettings));
  char* message = nullptr;
  char* text = nullptr;
  perseus_frontier frontier;
  std::memset(&frontier, 0x5a, sizeof(frontier));  // Never begun.
  perseus_plan_figures figures = {};
  perseus_plan_columns columns = {};
  perseus_plan* plan = nullptr;
  perseus_dag_solution* solution = nullptr;
  const auto refused = [&](perseus_status status) {
    const std::string sentence = Take(message);
    message = nullptr;
    return status == PERSEUS_INVALID && !sentence.empty();
  };
  EXPECT_TRUE(refused(perseus_planner_frontier(nullptr, &frontier, &message)));
  EXPECT_TRUE(refused(perseus_planner_frontier(made.planner.get(), nullptr, &message)));
  EXPECT_TRUE(refused(perseus_planner_frontier(made.planner.get(), &frontier, &message)));
  EXPECT_TRUE(refused(perseus_planner_frontier_csv(nullptr, &text, &message)));
  EXPECT_TRUE(refused(perseus_planner_frontier_csv(made.planner.get(), nullptr, &message)));
  perseus_note note = {};
  EXPECT_TRUE(refused(perseus_planner_get_note(nullptr, 0, &note, &message)));
  EXPECT_TRUE(refused(perseus_planner_get_note(made.planner.get(), 0, nullptr, &message)));
  EXPECT_TRUE(
      refused(perseus_planner_plan(nullptr, nullptr, 0, nullptr, nullptr, &plan, &message)));
  EXPECT_TRUE(refused(
      perseus_planner_plan(made.planner.get(), nullptr, 0, nullptr, nullptr, nullptr, &message)));
  EXPECT_TRUE(refused(perseus_planner_baseline(nullptr, &plan, &message)));
  EXPECT_TRUE(refused(perseus_plan_get_figures(nullptr, &figures, &message)));
  EXPECT_TRUE(refused(perseus_plan_get_columns(nullptr, &columns, &message)));
  EXPECT_TRUE(refused(perseus_plan_json(nullptr, &text, &message)));
  EXPECT_TRUE(refused(perseus_plan_zeus(nullptr, &text, &message)));
  EXPECT_TRUE(refused(perseus_plan_report(nullptr, &text, &message)));
  EXPECT_TRUE(refused(perseus_plan_read(nullptr, 0, nullptr, &plan, &message)));
  EXPECT_TRUE(refused(perseus_plan_read("{}", 2, nullptr, nullptr, &message)));
  EXPECT_TRUE(refused(perseus_planner_profile_csv(nullptr, &text, &message)));
  EXPECT_TRUE(refused(perseus_planner_profile_csv(made.planner.get(), nullptr, &message)));
  EXPECT_TRUE(refused(perseus_dag_frontier(nullptr, &frontier, &message)));
  EXPECT_TRUE(refused(perseus_dag_solve(nullptr, nullptr, nullptr, &solution, &message)));
  ASSERT_EQ(perseus_planner_baseline(made.planner.get(), &plan, nullptr), PERSEUS_OK);
  const PlanHandle owned(plan);
  EXPECT_TRUE(refused(perseus_plan_get_figures(plan, &figures, &message)));
  EXPECT_TRUE(refused(perseus_plan_get_columns(plan, nullptr, &message)));
}

TEST(PlannerMisuse, WorkOfAnotherCountIsNotRead) {
  const Made made = Create(InputOf(kProfile, kSettings));
  const std::array<double, 4> work = {1, 1, 1, std::nan("")};
  auto* plan = reinterpret_cast<perseus_plan*>(std::uintptr_t{8});
  for (const std::size_t count :
       {std::size_t{0}, std::size_t{3}, std::size_t{4}, std::size_t{1} << 60}) {
    char* message = nullptr;
    EXPECT_EQ(perseus_planner_plan_work(made.planner.get(), work.data(), count, nullptr, 0, nullptr,
                                        nullptr, &plan, &message),
              PERSEUS_INVALID);
    EXPECT_NE(Take(message), "") << count;
    EXPECT_EQ(plan, nullptr);
  }
}

}  // namespace
}  // namespace perseus::planner_c
