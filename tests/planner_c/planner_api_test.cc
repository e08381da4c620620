// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "perseus/job.h"
#include "perseus/plan_file.h"
#include "perseus/planner_c.h"
#include "planner_c/planner_testing.h"

namespace perseus::planner_c {
namespace {

TEST(PlannerApi, SaysItsVersion) {
  EXPECT_EQ(perseus_planner_abi_version(), PERSEUS_PLANNER_ABI_VERSION);
}

TEST(PlannerApi, NothingIsNoInput) {
  perseus_planner* planner = nullptr;
  char* message = nullptr;
  EXPECT_EQ(perseus_planner_create(nullptr, &planner, &message), PERSEUS_INVALID);
  EXPECT_NE(Take(message), "");
  const perseus_planner_input unset = {};
  EXPECT_EQ(perseus_planner_create(&unset, &planner, nullptr), PERSEUS_INVALID);
  const perseus_planner_input input = InputOf(kProfile, kSettings);
  EXPECT_EQ(perseus_planner_create(&input, nullptr, nullptr), PERSEUS_INVALID);
  EXPECT_EQ(planner, nullptr);
  perseus_planner_free(nullptr);
  perseus_plan_free(nullptr);
  perseus_dag_free(nullptr);
  perseus_planner_free_text(nullptr);
}

TEST(PlannerApi, FrontierIsThatOfTheLibrary) {
  const Made made = Create(InputOf(kProfile, kSettings));
  ASSERT_EQ(made.status, PERSEUS_OK) << made.message;
  perseus_frontier frontier = {};
  frontier.struct_size = sizeof(frontier);
  ASSERT_EQ(perseus_planner_frontier(made.planner.get(), &frontier, nullptr), PERSEUS_OK);

  const auto profile = ParseProfile(kProfile, "profile");
  ASSERT_TRUE(profile);
  JobFile settings;
  settings.schedule = "1f1b";
  settings.microbatches = 4;
  settings.blocking_power_watts = {70};
  const auto job = Job::Make(*profile, settings);
  ASSERT_TRUE(job);
  const auto planner = job->MakePlanner();
  ASSERT_TRUE(planner);
  const Frontier& expected = planner->frontier();
  ASSERT_EQ(frontier.count, expected.points.size());
  for (std::size_t k = 0; k < frontier.count; ++k) {
    EXPECT_EQ(frontier.time_seconds[k], expected.points[k].iteration_time_seconds);
    EXPECT_EQ(frontier.energy_joules[k], expected.points[k].energy_joules);
    EXPECT_EQ(frontier.slope_watts[k], expected.points[k].slope_watts);
  }
  EXPECT_EQ(frontier.tstar_seconds, expected.tstar_seconds);
  EXPECT_EQ(frontier.baseline_energy_joules, planner->baseline().energy_joules);
  char* csv = nullptr;
  ASSERT_EQ(perseus_planner_frontier_csv(made.planner.get(), &csv, nullptr), PERSEUS_OK);
  EXPECT_EQ(Take(csv), FormatFrontierCsv(expected));
}

// A caller of an older version knows less of a struct; the rest of his memory stays.
TEST(PlannerApi, AProfileIsGivenBackAsItWasRead) {
  const Made made = Create(InputOf(kProfile, kSettings));
  ASSERT_EQ(made.status, PERSEUS_OK) << made.message;
  char* text = nullptr;
  ASSERT_EQ(perseus_planner_profile_csv(made.planner.get(), &text, nullptr), PERSEUS_OK);
  const auto given = ParseProfile(Take(text), "profile");
  const auto read = ParseProfile(kProfile, "profile");
  ASSERT_TRUE(given && read);
  ASSERT_EQ(given->tables.size(), read->tables.size());
  for (std::size_t t = 0; t < read->tables.size(); ++t) {
    const OptionTable& want = read->tables[t];
    const OptionTable& got = given->tables[t];
    EXPECT_EQ(std::tie(got.stage, got.type), std::tie(want.stage, want.type));
    ASSERT_EQ(got.options.size(), want.options.size());
    for (std::size_t k = 0; k < want.options.size(); ++k) {
      EXPECT_EQ(given->knobs[got.options[k].knob].label, read->knobs[want.options[k].knob].label);
      EXPECT_EQ(got.options[k].time_seconds, want.options[k].time_seconds);
      EXPECT_EQ(got.options[k].energy_joules, want.options[k].energy_joules);
    }
  }
}

TEST(PlannerApi, FillsInWhatTheCallerKnows) {
  const Made made = Create(InputOf(kProfile, kSettings));
  ASSERT_EQ(made.status, PERSEUS_OK) << made.message;
  perseus_frontier frontier;
  std::memset(&frontier, 0x5a, sizeof(frontier));
  frontier.struct_size = offsetof(perseus_frontier, tstar_seconds);
  ASSERT_EQ(perseus_planner_frontier(made.planner.get(), &frontier, nullptr), PERSEUS_OK);
  EXPECT_EQ(frontier.struct_size, offsetof(perseus_frontier, tstar_seconds));
  EXPECT_GT(frontier.min_energy_seconds, 0);
  double untouched = 0;
  std::memset(&untouched, 0x5a, sizeof(untouched));
  EXPECT_EQ(frontier.tstar_seconds, untouched);
  frontier.struct_size = 0;
  EXPECT_EQ(perseus_planner_frontier(made.planner.get(), &frontier, nullptr), PERSEUS_INVALID);
}

TEST(PlannerApi, ErrorsNameTheKeyAndNoPlaceOfTheSettings) {
  const auto sentence = [](std::string_view settings) {
    const Made made = Create(InputOf(kProfile, settings));
    EXPECT_EQ(made.status, PERSEUS_INVALID);
    EXPECT_EQ(made.planner, nullptr);
    return made.message;
  };
  EXPECT_EQ(sentence("{}"), "'schedule', 'microbatches', 'blocking_power' are missing");
  EXPECT_EQ(sentence(R"({"microbatchs": 3})"),
            "unknown key 'microbatchs'; did you mean 'microbatches'?");
  EXPECT_EQ(sentence(R"({"microbatches": 0})"),
            "microbatches: expected a whole number from 1 to 1000000, found 0");
  EXPECT_EQ(
      sentence(R"({"schedule": "1f1b", "microbatches": 4, "blocking_power": 70, "stages": 3})"),
      "'stages' is 3, but profile has 2 stages; 'stages' counts the model's stages (ranks x "
      "virtual stages) and may be left out");
}

TEST(PlannerApi, ErrorsOfAProfileNameItsPlace) {
  perseus_planner_input input =
      InputOf("stage,instruction,frequency,time,energy\n0,forward,x,1,\n", kSettings);
  input.profile_name = "mine.csv";
  const Made made = Create(input);
  EXPECT_EQ(made.status, PERSEUS_INVALID);
  EXPECT_TRUE(made.message.starts_with("mine.csv:2:")) << made.message;
}

TEST(PlannerApi, OneProfileOnly) {
  perseus_planner_input input = InputOf(kProfile, kSettings);
  input.path = "profile.csv";
  EXPECT_EQ(Create(input).message, "more than one profile is given; keep one of them");
  input.profile_csv = nullptr;
  input.path = "/nowhere/profile.csv";
  EXPECT_EQ(Create(input).status, PERSEUS_IO);
  input.path = nullptr;
  EXPECT_EQ(Create(input).message, "'profile' is missing");
}

// Arrays and their CSV are one profile.
TEST(PlannerApi, ArraysAreReadLikeText) {
  const std::array<std::int32_t, 4> stage = {0, 0, 0, 0};
  const std::array<const char*, 4> instruction = {"forward", "forward", "backward", "backward"};
  const std::array<double, 4> clock = {1400, 1000, 1400, 1000};
  const std::array<double, 4> time = {0.1, 0.1 + 0.2, 1.0 / 3, 0.5};
  const std::array<double, 4> energy = {10, 9, 30, 2.0 / 3};
  perseus_profile_arrays arrays = {};
  arrays.struct_size = sizeof(arrays);
  arrays.rows = stage.size();
  arrays.stage = stage.data();
  arrays.instruction = instruction.data();
  arrays.clock_mhz = clock.data();
  arrays.time_seconds = time.data();
  arrays.energy_joules = energy.data();
  perseus_planner_input input = InputOf("", kSettings);
  input.profile_csv = nullptr;
  input.profile_arrays = &arrays;
  const Made made = Create(input);
  ASSERT_EQ(made.status, PERSEUS_OK) << made.message;
  const Made from_text =
      Create(InputOf("stage,instruction,frequency,time,energy\n0,forward,1400,0.1,10\n"
                     "0,forward,1000,0.30000000000000004,9\n0,backward,1400,0.3333333333333333,30\n"
                     "0,backward,1000,0.5,0.6666666666666666\n",
                     kSettings));
  ASSERT_EQ(from_text.status, PERSEUS_OK) << from_text.message;
  char* a = nullptr;
  char* b = nullptr;
  ASSERT_EQ(perseus_planner_frontier_csv(made.planner.get(), &a, nullptr), PERSEUS_OK);
  ASSERT_EQ(perseus_planner_frontier_csv(from_text.planner.get(), &b, nullptr), PERSEUS_OK);
  EXPECT_EQ(Take(a), Take(b));

  arrays.instruction = nullptr;
  EXPECT_EQ(Create(input).status, PERSEUS_INVALID);
  arrays.instruction = instruction.data();
  arrays.knob = instruction.data();
  EXPECT_EQ(Create(input).status, PERSEUS_INVALID);
}

TEST(PlannerApi, ScheduleAsText) {
  constexpr std::string_view kCsv = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n";
  perseus_planner_input input = InputOf(kProfile, R"({"blocking_power": 70})");
  input.schedule_csv = kCsv.data();
  input.schedule_csv_size = kCsv.size();
  EXPECT_EQ(Create(input).status, PERSEUS_OK);
  input.settings_json = kSettings.data();
  input.settings_json_size = kSettings.size();
  EXPECT_EQ(Create(input).message,
            "'schedule' is given twice, by name and as CSV; keep one of them");
  constexpr std::string_view kWrong = R"({"blocking_power": 70, "microbatches": 5})";
  input.settings_json = kWrong.data();
  input.settings_json_size = kWrong.size();
  EXPECT_EQ(Create(input).message,
            "'microbatches' is 5, but schedule has 2 microbatches; with a schedule file it may be "
            "left out");
}

TEST(PlannerApi, CallbackCancels) {
  perseus_planner_input input = InputOf(kProfile, kSettings);
  int calls = 0;
  input.user = &calls;
  input.progress = [](void* user, double share) {
    EXPECT_TRUE(share >= 0 && share <= 1);
    return ++*static_cast<int*>(user);
  };
  const Made made = Create(input);
  EXPECT_EQ(made.status, PERSEUS_CANCELLED);
  EXPECT_NE(made.message, "");
  EXPECT_EQ(calls, 1);  // Once it has said so it is not asked again.
}

// Whatever the texts are, there is a planner or a sentence.
RC_GTEST_PROP(PlannerApi, AnyTextIsAnswered,
              (const std::string& profile, const std::string& json)) {
  const bool mend = *rc::gen::arbitrary<bool>();
  const std::string csv = mend ? std::string(kProfile) + profile : profile;
  const std::string settings = mend ? std::string(kSettings) : json;
  const Made made = Create(InputOf(csv, settings));
  RC_ASSERT((made.status == PERSEUS_OK) == (made.planner != nullptr));
  RC_ASSERT((made.status == PERSEUS_OK) == made.message.empty());
  RC_ASSERT(made.status != PERSEUS_INTERNAL);
}

TEST(PlannerApi, ManyThreadsMayUseOne) {
  const Made made = Create(InputOf(kProfile, kSettings));
  ASSERT_EQ(made.status, PERSEUS_OK) << made.message;
  std::array<std::string, 4> texts;
  std::vector<std::thread> threads;
  for (std::string& text : texts) {
    threads.emplace_back([&] {
      perseus_plan* plan = nullptr;
      const perseus_status status =
          perseus_planner_plan(made.planner.get(), nullptr, 0, nullptr, nullptr, &plan, nullptr);
      const PlanHandle handle(plan);
      char* json = nullptr;
      if (status == PERSEUS_OK) perseus_plan_json(plan, &json, nullptr);
      text = Take(json);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_NE(texts[0], "");
  for (const std::string& text : texts) EXPECT_EQ(text, texts[0]);
}

}  // namespace
}  // namespace perseus::planner_c
