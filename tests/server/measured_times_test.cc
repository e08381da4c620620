// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What training shows of times: it is collected, it corrects a profile, and it asks for plans.

#include "server/planning/measured_times.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "perseus/job.h"
#include "perseus/job_file.h"
#include "perseus/profile.h"
#include "server/detect/conditions_watch.h"

namespace perseus::server {
namespace {

constexpr int kStages = 8;
constexpr int kClocks[] = {1400, 1300, 1200, 1100, 1000, 900};

double TrueSeconds(ComputationType type, int mhz) {
  return (type == ComputationType::kForward ? 0.1 : 0.2) * 1400 / mhz;
}

// A profile of other GPUs, with errors of so much for each option, which it states.
Profile ProfileWith(double error, std::mt19937_64* random) {
  std::normal_distribution<double> normal;
  std::string csv = "stage,instruction,frequency,time,energy,error_sources\n";
  for (int stage = 0; stage < kStages; ++stage) {
    for (const auto type : {ComputationType::kForward, ComputationType::kBackward}) {
      for (const int mhz : kClocks) {
        const double seconds = TrueSeconds(type, mhz) * (1 + error * normal(*random));
        csv += std::to_string(stage) + "," + std::string(ComputationTypeName(type)) + "," +
               std::to_string(mhz) + "," + std::to_string(seconds) + "," +
               std::to_string(seconds * 0.2 * mhz) + "," + std::to_string(error) + "|0|0\n";
      }
    }
  }
  return ParseProfile(csv, "profile.csv").value();
}

CostedPipeline PipelineOf(const Profile& profile, const std::string& schedule = "1f1b") {
  const auto settings = ParseJobFile(R"({"schedule":")" + schedule +
                                         R"(","stages":8,"microbatches":8,"blocking_power":20)" +
                                         (schedule == "1f1b" ? "}" : R"(,"virtual_stages":2})"),
                                     "job", JobFileFormat::kJson);
  return Job::Make(profile, settings.value()).value().pipeline;
}

// Each kind at some clocks, on GPUs with these factors.
std::vector<MeasuredTime> TrainingShows(const std::vector<double>& factors,
                                        const std::vector<int>& clocks, double error,
                                        std::mt19937_64* random) {
  std::normal_distribution<double> normal;
  std::vector<MeasuredTime> times;
  for (int stage = 0; stage < kStages; ++stage) {
    for (const auto type : {ComputationType::kForward, ComputationType::kBackward}) {
      for (const int mhz : clocks) {
        const double truth = TrueSeconds(type, mhz) * factors[static_cast<std::size_t>(stage)];
        times.push_back({.stage = stage,
                         .type = type,
                         .clock_mhz = mhz,
                         .seconds = truth * (1 + error * normal(*random)),
                         .error_seconds = truth * error,
                         .computations = 1000});
      }
    }
  }
  return times;
}

// The root of the mean square by which times are off, without what is common to all.
double Off(const Profile& profile, const std::vector<double>& factors,
           const std::vector<int>& clocks) {
  double sum = 0;
  double squares = 0;
  double count = 0;
  for (const OptionTable& table : profile.tables) {
    for (const Option& option : table.options) {
      const auto mhz = static_cast<int>(profile.knobs[option.knob].number);
      if (std::find(clocks.begin(), clocks.end(), mhz) == clocks.end()) continue;
      const double truth = TrueSeconds(table.type, mhz) * factors[table.stage];
      const double off = std::log(option.time_seconds / truth);
      sum += off;
      squares += off * off;
      ++count;
    }
  }
  return std::sqrt(squares / count - sum * sum / count / count);
}

TEST(CorrectTimes, BringsAProfileNearerToTheTruth) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  const std::vector<int> all(std::begin(kClocks), std::end(kClocks));
  for (const double spread : {0.0, 0.002, 0.01}) {
    for (const double error : {0.0, 0.0005, 0.002}) {
      double before = 0;
      double after = 0;
      double shown_before = 0;
      double shown_after = 0;
      for (int seed = 0; seed < 20; ++seed) {
        std::vector<double> factors;
        for (int stage = 0; stage < kStages; ++stage) {
          factors.push_back(1.01 * (1 + spread * normal(random)));
        }
        Profile profile = ProfileWith(error, &random);
        before += Off(profile, factors, all);
        shown_before += Off(profile, factors, {1400, 1200, 1000});
        const auto times = TrainingShows(factors, {1400, 1200, 1000}, 0.0002, &random);
        const TimeCorrection said = CorrectTimes(PipelineOf(profile), times, &profile);
        EXPECT_EQ(said.stages, kStages);
        EXPECT_LE(said.least, said.most);
        after += Off(profile, factors, all);
        shown_after += Off(profile, factors, {1400, 1200, 1000});
        EXPECT_TRUE(profile.Validate()) << profile.Validate().error().message;
      }
      constexpr double kExact = 20 * 1e-5;    // What is written of times.
      constexpr double kNothing = 20 * 2e-4;  // What the times themselves are off.
      // Where GPUs do not differ, errors of single options move no others.
      EXPECT_LE(after, kExact + (spread == 0 ? 0.83 : 1) * before) << spread << " " << error;
      EXPECT_LE(shown_after, 0.5 * shown_before + kNothing) << spread << " " << error;
      if (spread > error) {
        EXPECT_LE(after, before / 2 + kNothing) << spread << " " << error;
      }
    }
  }
}

TEST(CorrectTimes, KeepsThePowerAndOneErrorLess) {
  std::mt19937_64 random(6);
  Profile profile = ProfileWith(0.002, &random);
  const Profile before = profile;
  const std::vector<double> factors(kStages, 0.99);
  CorrectTimes(PipelineOf(profile), TrainingShows(factors, {1200}, 0.0002, &random), &profile);
  for (std::size_t t = 0; t < profile.tables.size(); ++t) {
    for (std::size_t i = 0; i < profile.tables[t].options.size(); ++i) {
      const Option& was = before.tables[t].options[i];
      const Option& is = profile.tables[t].options[i];
      EXPECT_NEAR(is.energy_joules / is.time_seconds, was.energy_joules / was.time_seconds, 1e-9);
    }
  }
  for (const OptionErrors& errors : profile.errors) {
    const bool is_shown = profile.knobs[errors.knob].number == 1200;
    EXPECT_NEAR(errors.time_std, is_shown ? 0.0005 : 0.002, is_shown ? 0.0001 : 1e-12);
  }
}

TEST(CorrectTimes, AStageThatWasNotMeasuredHasWhatIsCommon) {
  std::mt19937_64 random(11);
  Profile profile = ProfileWith(0, &random);
  const std::vector<double> factors(kStages, 1.01);
  auto times = TrainingShows(factors, {1400, 1200}, 0.0002, &random);
  times.erase(std::remove_if(times.begin(), times.end(),
                             [](const MeasuredTime& time) { return time.stage == 6; }),
              times.end());
  EXPECT_EQ(CorrectTimes(PipelineOf(profile), times, &profile).stages, kStages - 1);
  EXPECT_NEAR(profile.Find(6, ComputationType::kForward)->options[0].time_seconds, 0.101, 5e-5);
  EXPECT_NEAR(profile.Find(5, ComputationType::kForward)->options[0].time_seconds, 0.101, 5e-5);
}

// GPUs that are 1 % slower are so at default clocks, too: nothing becomes slower against that.
TEST(CorrectTimes, WhatRunsWithNoClockSetHasTheFactorOfItsStage) {
  std::mt19937_64 random(9);
  std::string csv = "stage,instruction,frequency,time,energy\n";
  for (int stage = 0; stage < kStages; ++stage) {
    for (const std::string row : {"forward,1400,0.1,28", "backward,1400,0.2,56",
                                  "forward,default,0.1,30", "backward,default,0.2,60"}) {
      csv += std::to_string(stage) + "," + row + "\n";
    }
  }
  const Profile before = ParseProfile(csv, "profile.csv").value();
  Profile profile = before;
  const std::vector<double> factors(kStages, 1.01);
  CorrectTimes(PipelineOf(profile), TrainingShows(factors, {1400}, 1e-6, &random), &profile);
  ASSERT_EQ(profile.default_clocks.size(), 2 * kStages);
  for (std::size_t i = 0; i < profile.default_clocks.size(); ++i) {
    EXPECT_NEAR(profile.default_clocks[i].time_seconds / before.default_clocks[i].time_seconds,
                1.01, 1e-4);
    EXPECT_NEAR(profile.default_clocks[i].energy_joules / before.default_clocks[i].energy_joules,
                1.01, 1e-4);
  }
}

// A wrong unit, a computation that waits within, a clock that the profile does not have.
TEST(CorrectTimes, WhatIsFarOffCorrectsNothing) {
  std::mt19937_64 random(7);
  Profile profile = ProfileWith(0.001, &random);
  const double before = profile.tables[0].options[0].time_seconds;
  const CostedPipeline pipeline = PipelineOf(profile);
  const MeasuredTime good = {.clock_mhz = 1400, .seconds = 0.1, .error_seconds = 1e-5};
  for (const double seconds : {0.05, 0.094, 0.106, 100.0}) {
    MeasuredTime time = good;
    time.seconds = seconds;
    EXPECT_EQ(CorrectTimes(pipeline, {time}, &profile).stages, 0) << seconds;
    EXPECT_FALSE(TimesHaveMoved(pipeline, {time}));
  }
  for (const MeasuredTime& time :
       {MeasuredTime{.stage = 99, .clock_mhz = 1400, .seconds = 0.1, .error_seconds = 1e-5},
        MeasuredTime{.clock_mhz = 777, .seconds = 0.1, .error_seconds = 1e-5},
        MeasuredTime{.type = ComputationType::kRecompute, .clock_mhz = 1400, .seconds = 0.1}}) {
    EXPECT_EQ(CorrectTimes(pipeline, {time}, &profile).stages, 0);
  }
  EXPECT_EQ(profile.tables[0].options[0].time_seconds, before);
  EXPECT_EQ(CorrectTimes(pipeline, {good}, &profile).stages, 1);
}

// Halves of a backward that the profile has whole.
TEST(CorrectTimes, PartsOfABackwardCorrectTheWhole) {
  std::mt19937_64 random(8);
  Profile profile = ProfileWith(0, &random);
  const CostedPipeline pipeline = PipelineOf(profile, "zbv-zero-bubble");
  std::vector<MeasuredTime> times;
  for (const CostTable& table : pipeline.tables) {
    const double factor = table.stage == 3 ? 1.01 : 1.0;
    for (const CostOption& option : table.all_options) {
      times.push_back({.stage = table.stage,
                       .type = table.type,
                       .clock_mhz = static_cast<int>(pipeline.knobs[option.knob].number),
                       .seconds = factor * option.time_seconds,
                       .error_seconds = 1e-4 * option.time_seconds,
                       .computations = 100});
    }
  }
  EXPECT_TRUE(TimesHaveMoved(pipeline, times));
  CorrectTimes(pipeline, times, &profile);
  EXPECT_NEAR(profile.Find(3, ComputationType::kBackward)->options[0].time_seconds, 0.202, 1e-4);
  EXPECT_NEAR(profile.Find(2, ComputationType::kBackward)->options[0].time_seconds, 0.2, 1e-4);
  EXPECT_FALSE(TimesHaveMoved(PipelineOf(profile, "zbv-zero-bubble"), times));
}

TEST(TimesHaveMoved, HeatOfAllAsksForNothingAndOneSlowStageDoes) {
  std::mt19937_64 random(9);
  Profile profile = ProfileWith(0, &random);
  std::vector<double> factors(kStages, 1.02);
  EXPECT_FALSE(
      TimesHaveMoved(PipelineOf(profile), TrainingShows(factors, {1400}, 0.0003, &random)));
  factors[5] = 1.03;
  const auto times = TrainingShows(factors, {1400}, 0.0003, &random);
  EXPECT_TRUE(TimesHaveMoved(PipelineOf(profile), times));
  CorrectTimes(PipelineOf(profile), times, &profile);
  EXPECT_FALSE(TimesHaveMoved(PipelineOf(profile), times));
  // A new draw of the same truth asks for nothing.
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(
        TimesHaveMoved(PipelineOf(profile), TrainingShows(factors, {1400}, 0.0003, &random)));
  }
}

constexpr ProfileKey kKey = {.stage = 2, .type = ComputationType::kBackward, .clock_mhz = 1200};

TEST(TimesWatch, ItsIntervalsHoldTheTruth) {
  std::mt19937_64 random(10);
  std::normal_distribution<double> normal;
  int held = 0;
  constexpr int kTries = 300;
  for (int i = 0; i < kTries; ++i) {
    TimesWatch watch;
    for (int report = 0; report < 200; ++report) {
      // Reports of few computations are less sure.
      const int count = 1 + static_cast<int>(random() % 16);
      const double noise = 0.01 / std::sqrt(count) * normal(random);
      watch.Add({.key = kKey, .count = count, .time_seconds = 2 * (1 + noise), .is_steady = true});
      // What is not steady is not counted.
      watch.Add({.key = kKey, .count = 5, .time_seconds = 2.3, .is_steady = false});
    }
    const auto times = watch.Measured();
    ASSERT_EQ(times.size(), 1U);
    EXPECT_EQ(times[0].stage, 2);
    EXPECT_EQ(times[0].clock_mhz, 1200);
    EXPECT_LT(times[0].error_seconds, 0.001);
    held += std::abs(times[0].seconds - 2) <= 2 * times[0].error_seconds ? 1 : 0;
  }
  EXPECT_GE(held, 0.92 * kTries);
  EXPECT_LE(held, 0.99 * kTries);
}

TEST(TimesWatch, TellsOnlyWhatIsSure) {
  TimesWatch watch;
  for (int report = 0; report < 4; ++report) {
    watch.Add({.key = kKey, .count = 1000, .time_seconds = 2, .is_steady = true});
    EXPECT_TRUE(watch.Measured().empty());  // Few reports.
  }
  watch.Add({.key = kKey, .count = 1000, .time_seconds = 2, .is_steady = true});
  EXPECT_EQ(watch.Measured().size(), 1U);
  for (int report = 0; report < 20; ++report) {
    watch.Add({.key = kKey,
               .count = 1000,
               .time_seconds = report % 2 == 0 ? 1.9 : 2.1,
               .is_steady = true});
  }
  EXPECT_TRUE(watch.Measured().empty());  // Too different.
  watch.Reset();
  for (int report = 0; report < 50; ++report) {
    watch.Add({.key = kKey, .count = 1, .time_seconds = 2, .is_steady = true});
  }
  EXPECT_TRUE(watch.Measured().empty());  // Few computations.
  // What was long ago fades.
  watch.Reset();
  for (int report = 0; report < 20'000; ++report) {
    watch.Add(
        {.key = kKey, .count = 4, .time_seconds = report < 10'000 ? 2.0 : 3.0, .is_steady = true});
  }
  EXPECT_NEAR(watch.Measured().at(0).seconds, 3, 1e-6);
}

}  // namespace
}  // namespace perseus::server
