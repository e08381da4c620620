// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <variant>

#include "common/temporary_directory.h"
#include "job/job_fields.h"
#include "perseus/plan_file.h"
#include "perseus/work.h"
#include "support/mentions.h"

namespace perseus {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kProfile =
    "stage,instruction,frequency,time,energy\n"
    "0,forward,1400,1,100\n0,forward,1200,1.25,70\n"
    "0,backward,1400,2,200\n0,backward,1200,2.5,140\n"
    "1,forward,1400,1.5,150\n1,forward,1200,1.9,110\n"
    "1,backward,1400,3,300\n1,backward,1200,3.8,220\n";

JobFile SmallJob() {
  JobFile settings;
  settings.schedule = "1f1b";
  settings.microbatches = 4;
  settings.blocking_power_watts = {20};
  return settings;
}

std::string ErrorOf(const Result<Job>& job) { return job ? "" : job.error().message; }

TEST(JobTest, ThreeCallsMakeAPlan) {
  const TemporaryDirectory directory;
  directory.Put("profile.csv", kProfile);
  const auto job = Job::Load(directory.Path("profile.csv"), SmallJob());
  ASSERT_TRUE(job) << job.error().message;
  const auto planner = job->MakePlanner();
  ASSERT_TRUE(planner) << planner.error().message;
  const auto plan = job->MakePlan(*planner);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_GT(plan->saving_percent, 0);
  EXPECT_LE(plan->iteration_time_seconds, planner->baseline().iteration_time_seconds);

  const PlanDocument document = *job->Document(*planner, *plan);
  EXPECT_EQ(document.profile_source, "profile.csv");
  EXPECT_EQ(document.microbatches, 4);
  EXPECT_EQ(document.energy_joules, plan->energy_joules);
}

// Whether it was read, built, or filled in by hand.
TEST(JobTest, AProfileInMemoryHasTheNotesOfAFile) {
  const auto worst = [](Profile profile) {
    const auto job = Job::Make(std::move(profile), SmallJob());
    return job && !job->notes.empty() ? job->notes.front().severity : Severity::kOdd;
  };
  auto profile = ParseProfile(kProfile, "memory.csv");
  ASSERT_TRUE(profile);
  EXPECT_EQ(worst(*profile), Severity::kOdd);
  Profile slow = *profile;  // In milliseconds.
  for (OptionTable& table : slow.tables) {
    for (Option& option : table.options) option.time_seconds *= 1e3;
  }
  EXPECT_EQ(worst(slow), Severity::kImplausible);
  slow.sha256.clear();
  EXPECT_EQ(worst(slow), Severity::kImplausible);
  Profile large = *profile;  // In millijoules.
  for (OptionTable& table : large.tables) {
    for (Option& option : table.options) option.energy_joules *= 1e3;
  }
  EXPECT_EQ(worst(large), Severity::kImplausible);
  JobFile strict = SmallJob();
  strict.strict = true;
  EXPECT_FALSE(Job::Make(large, strict));
}

TEST(JobTest, RefusesWhatWouldNeverEndBeforeItBuildsIt) {
  auto profile = ParseProfile(kProfile, "memory.csv");
  ASSERT_TRUE(profile);
  JobFile settings = SmallJob();
  settings.microbatches = 250'001;
  const auto job = Job::Make(*std::move(profile), settings);
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().code, ErrorCode::kOverflow);
  EXPECT_THAT(job.error().message, Mentions("1000004"));
}

TEST(JobTest, WorkGoesIntoThePlanFileAndComesBack) {
  const TemporaryDirectory directory;
  directory.Put("profile.csv", kProfile);
  directory.Put("work.csv", "microbatch,factor\n0,2\n3,0.5\n");
  JobFile settings = SmallJob();
  settings.work = WorkSetting{.file = directory.Path("work.csv"), .factors = {}};
  const auto from_file = Job::Load(directory.Path("profile.csv"), settings);
  settings.work = WorkSetting{.file = "", .factors = {2, 1, 1, 0.5}};
  const auto job = Job::Load(directory.Path("profile.csv"), settings);
  ASSERT_TRUE(job && from_file) << ErrorOf(job) << ErrorOf(from_file);
  EXPECT_EQ(from_file->pipeline.tables.size(), job->pipeline.tables.size());
  const auto planner = job->MakePlanner();
  ASSERT_TRUE(planner);
  const auto plan = job->MakePlan(*planner);
  ASSERT_TRUE(plan);
  const std::string text = FormatPlanJson(*job->Document(*planner, *plan));
  const auto back = ParsePlanJson(text, "plan.json");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(FormatPlanJson(*back), text);
  const Work work = WorkOf(*back);
  EXPECT_EQ(work.FactorOf({ComputationType::kBackward, 1, 0}), 2);
  EXPECT_EQ(work.FactorOf({ComputationType::kForward, 0, 3}), 0.5);
  EXPECT_EQ(back->baseline.costs.size(), 12U);

  settings.work = WorkSetting{.file = "", .factors = {1, 1, 1, 1}};
  const auto alike = Job::Load(directory.Path("profile.csv"), settings);
  const auto without = Job::Load(directory.Path("profile.csv"), SmallJob());
  ASSERT_TRUE(alike && without);
  const auto document = [](const Job& each) {
    const auto made = each.MakePlanner();
    return FormatPlanJson(*each.Document(*made, *each.MakePlan(*made)));
  };
  EXPECT_EQ(document(*alike), document(*without));
  EXPECT_THAT(document(*alike), Not(HasSubstr("\"work\"")));
}

TEST(JobTest, RefusesWorkThatIsNotOfThisPipeline) {
  const TemporaryDirectory directory;
  directory.Put("profile.csv", kProfile);
  directory.Put("work.csv", "microbatch,factor\n4,2\n");
  directory.Put("tokens.csv", "microbatch,tokens\n0,1\n1,1\n2,1\n3,5\n");
  const auto error_of = [&](const JobFile& settings) {
    return ErrorOf(Job::Load(directory.Path("profile.csv"), settings));
  };
  JobFile settings = SmallJob();
  settings.work = WorkSetting{.file = "", .factors = {1, 2}};
  EXPECT_THAT(error_of(settings), Mentions("'work'", "2", "4"));
  settings.work = WorkSetting{.file = directory.Path("work.csv"), .factors = {}};
  EXPECT_THAT(error_of(settings), Mentions("work.csv:2:3:", "4"));
  settings.work_tokens = 3;
  EXPECT_THAT(error_of(settings), Mentions("'work_tokens'"));
  settings.work = WorkSetting{.file = directory.Path("tokens.csv"), .factors = {}};
  const auto job = Job::Load(directory.Path("profile.csv"), settings);
  ASSERT_TRUE(job) << ErrorOf(job);
  EXPECT_THAT(job->notes,
              ::testing::Contains(::testing::Field(&Note::text, Mentions("(work_fit)", "tokens"))));
}

TEST(JobTest, TakesAProfileInMemory) {
  auto profile = ParseProfile(kProfile, "memory.csv");
  ASSERT_TRUE(profile) << profile.error().message;
  JobFile settings = SmallJob();
  settings.at = PlanTarget{PlanTarget::Kind::kTStar, 0};
  settings.granularity = Granularity::kStage;
  const auto job = Job::Make(*std::move(profile), settings);
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->Constraints().granularity, Granularity::kStage);
  const auto planner = job->MakePlanner();
  const auto plan = job->MakePlan(*planner);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->requested_time_seconds, planner->frontier().tstar_seconds);
}

TEST(JobTest, OverridesWinOverTheFile) {
  const TemporaryDirectory directory;
  directory.Put("profile.csv", kProfile);
  directory.Put("job.toml",
                "profile = \"profile.csv\"\nschedule_file = \"none.csv\"\nmicrobatches = 2\n"
                "blocking_power = 20\ndp = 3\n");
  const auto job = Job::Load(directory.Path("job.toml"), SmallJob());
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->schedule.name, "1f1b");
  EXPECT_EQ(job->schedule.num_microbatches, 4);
  EXPECT_EQ(job->DataParallel(), 3);
  EXPECT_FALSE(job->settings.places.contains("microbatches"));
}

TEST(JobTest, NamesTheFieldAndItsPlaceAndNoFlag) {
  const TemporaryDirectory directory;
  directory.Put("profile.csv", kProfile);
  const std::string head = "profile = \"profile.csv\"\nschedule = \"1f1b\"\n";
  const auto error = [&](const std::string& rest) {
    directory.Put("job.toml", head + rest);
    const std::string message = ErrorOf(Job::Load(directory.Path("job.toml")));
    EXPECT_THAT(message, ::testing::Not(HasSubstr("--")));
    return message;
  };
  EXPECT_THAT(error(""), Mentions("'microbatches'", "'blocking_power'"));
  EXPECT_THAT(error("microbatches = 2\nblocking_power = 20\nstages = 3\n"),
              AllOf(StartsWith(directory.Path("job.toml") + ":5:"), Mentions("'stages'")));
  EXPECT_THAT(error("microbatches = 2\nblocking_power = [1, 2, 3]\n"),
              StartsWith(directory.Path("job.toml") + ":4:"));
  EXPECT_THAT(error("microbatches = 2\nblocking_power = 1\ncomm_delay = [1, 2, 3]\n"),
              StartsWith(directory.Path("job.toml") + ":5:"));
  const std::string four = "microbatches = 4\nblocking_power = 20\n";
  EXPECT_THAT(error(four + "virtual_stages = 2\n"),
              AllOf(StartsWith(directory.Path("job.toml") + ":5:"), Mentions("1f1b")));
  EXPECT_THAT(
      error(four + "microbatch_group_size = 3\n"),
      AllOf(StartsWith(directory.Path("job.toml") + ":5:"), Mentions("microbatch_group_size")));
  directory.Put("job.toml",
                "profile = \"profile.csv\"\nvirtual_stages = 1\nmicrobatches = 1\n"
                "schedule = \"megatron-interleaved\"\nblocking_power = 20\n");
  EXPECT_THAT(ErrorOf(Job::Load(directory.Path("job.toml"))),
              AllOf(StartsWith(directory.Path("job.toml") + ":3:"), Mentions("microbatches")));
  EXPECT_THAT(ErrorOf(Job::Load("", SmallJob())), Mentions("'profile'"));
}

TEST(JobTest, NamesTheLineOfAFileThatIsNotThere) {
  const TemporaryDirectory directory;
  directory.Put("profile.csv", kProfile);
  const std::string job = directory.Path("job.toml");
  const auto error = [&](const std::string& lines) {
    directory.Put("job.toml", "blocking_power = 20\n" + lines);
    return ErrorOf(Job::Load(job));
  };
  EXPECT_THAT(error("profile = \"none.csv\"\n"), AllOf(StartsWith(job + ":2:"), Mentions("file;")));
  const std::string profile = "profile = \"profile.csv\"\n";
  EXPECT_THAT(error(profile + "schedule_file = \"none.csv\"\n"), StartsWith(job + ":3:"));
  const std::string schedule = profile + "schedule = \"1f1b\"\nmicrobatches = 2\n";
  EXPECT_THAT(error(schedule + "work = \"none.csv\"\n"), StartsWith(job + ":5:"));
  directory.Put("profile.csv", "x");
  EXPECT_THAT(error(profile), StartsWith(directory.Path("profile.csv")));
}

TEST(JobTest, SaysThatASplitRatioHasNoUse) {
  const TemporaryDirectory directory;
  directory.Put("profile.csv", kProfile);
  JobFile settings = SmallJob();
  settings.split_ratio = 0.4;
  const auto notes = [&] {
    const auto job = Job::Load(directory.Path("profile.csv"), settings);
    std::vector<std::string> texts;
    for (const Note& note : job->notes) texts.push_back(note.text);
    return texts;
  };
  EXPECT_THAT(notes(), ::testing::ElementsAre(Mentions("split", "ratio")));
  settings.schedule = "zb1p";  // One stage a rank leaves it nothing to interleave.
  EXPECT_THAT(notes(), ::testing::ElementsAre(Mentions("interleave;")));
}

// A profile whose last stage is missing looks like one of a shorter pipeline.
TEST(JobTest, AnOddNumberOfStagesIsNotedUnlessItIsStated) {
  const TemporaryDirectory directory;
  std::string csv = kProfile;
  const auto notes = [&](std::optional<int> stages) {
    directory.Put("profile.csv", csv);
    JobFile settings = SmallJob();
    settings.stages = stages;
    return Job::Load(directory.Path("profile.csv"), settings).value().notes;
  };
  EXPECT_TRUE(notes({}).empty());
  csv +=
      "2,forward,1400,1.5,150\n2,forward,1200,1.9,110\n"
      "2,backward,1400,3,300\n2,backward,1200,3.8,220\n";
  ASSERT_EQ(notes({}).size(), 1U);
  EXPECT_EQ(notes({}).front().severity, Severity::kOdd);
  EXPECT_THAT(notes({}).front().text, Mentions("2", "3", "stages"));
  EXPECT_TRUE(notes(3).empty());
}

// Microbatches, seconds of a forward at the highest clock, and what is said of the iteration.
// A clock takes 5 to 200 ms, and an iteration may be shorter; seconds for milliseconds are not
// that.
TEST(JobTest, ALatencyLongerThanAnIterationIsAnErrorOnlyWhereNoClockTakesThatLong) {
  const auto notes = [](double latency_seconds) {
    ProfileBuilder builder("p.csv");
    for (const ComputationType type : {ComputationType::kForward, ComputationType::kBackward}) {
      builder.Add(0, type, 1400, 0.0005, 0.15);
      builder.Add(0, type, 1200, 0.00055, 0.145);
    }
    JobFile settings = SmallJob();
    settings.microbatches = 4;
    settings.switch_latency_seconds = latency_seconds;
    return Job::Make(builder.Build().value(), settings).value().notes;
  };
  ASSERT_EQ(notes(0.02).size(), 1U);
  EXPECT_EQ(notes(0.02).front().severity, Severity::kOdd);
  EXPECT_THAT(notes(0.02).front().text, Mentions("latency", "0.02"));
  EXPECT_THAT(notes(0.02).front().text, ::testing::Not(Mentions("0.02ms")));
  ASSERT_EQ(notes(2).size(), 1U);
  EXPECT_EQ(notes(2).front().severity, Severity::kImplausible);
  EXPECT_THAT(notes(2).front().text, Mentions("2ms"));
}

TEST(JobTest, IterationsOfManyMinutesAreNotBelieved) {
  const auto notes = [](int microbatches, double seconds) {
    ProfileBuilder builder("p.csv");
    for (const ComputationType type : {ComputationType::kForward, ComputationType::kBackward}) {
      builder.Add(0, type, 1400, seconds, 300 * seconds);
      builder.Add(0, type, 1200, 1.1 * seconds, 290 * seconds);
    }
    JobFile settings = SmallJob();
    settings.microbatches = microbatches;
    return Job::Make(builder.Build().value(), settings).value().notes;
  };
  EXPECT_TRUE(notes(300, 1).empty());
  ASSERT_EQ(notes(301, 1).size(), 1U);
  EXPECT_EQ(notes(301, 1).front().severity, Severity::kOdd);
  EXPECT_THAT(notes(301, 1).front().text, Mentions("10", "milliseconds"));
  EXPECT_EQ(notes(1800, 1).front().severity, Severity::kOdd);
  EXPECT_EQ(notes(1801, 1).front().severity, Severity::kImplausible);
  EXPECT_TRUE(notes(30, 10).empty());
  EXPECT_EQ(notes(31, 10.1).front().severity, Severity::kImplausible);
  // The profile's note on its computations is enough.
  ASSERT_EQ(notes(301, 31).size(), 1U);
  EXPECT_THAT(notes(301, 31).front().text, Mentions("31", "30"));
}

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(JobTest, ThePageShowsTheExampleThatIsBuilt) {
  const std::string example = TextOf("examples/plan_a_job.cc");
  const std::string code = example.substr(example.find("#include"));
  EXPECT_THAT(TextOf("docs/how-to/install.md"), HasSubstr("```cpp\n" + code + "```"));
}

TEST(JobTest, AStrictJobRefusesWhatOthersNote) {
  const TemporaryDirectory directory;
  // An energy that is a tenth of its neighbours'.
  std::string csv = "stage,instruction,frequency,time,energy\n";
  for (int i = 0; i < 8; ++i) {
    csv += "0,forward," + std::to_string(1400 - 50 * i) + "," + std::to_string(1 + 0.04 * i) + "," +
           std::to_string((i == 4 ? 0.1 : 1) * (100 - 3 * i)) + "\n";
  }
  csv += "0,backward,1400,2,200\n0,backward,1200,2.5,140\n";
  directory.Put("profile.csv", csv);
  JobFile settings = SmallJob();
  const auto noted = Job::Load(directory.Path("profile.csv"), settings);
  ASSERT_TRUE(noted) << noted.error().message;
  EXPECT_FALSE(noted->profile.notes.empty());
  settings.strict = true;
  EXPECT_THAT(ErrorOf(Job::Load(directory.Path("profile.csv"), settings)),
              StartsWith(directory.Path("profile.csv")));
}

TEST(JobTest, RowsThatNothingRunsAreRefusedWhereAskedTo) {
  const TemporaryDirectory directory;
  directory.Put("profile.csv",
                "stage,instruction,frequency,time,energy\n0,forward,1400,1,100\n"
                "0,backward,1400,2,200\n0,backward,1200,2.5,140\n0,backward_input,1400,1,100\n");
  JobFile settings = SmallJob();
  EXPECT_TRUE(Job::Load(directory.Path("profile.csv"), settings));
  settings.strict = true;
  EXPECT_THAT(ErrorOf(Job::Load(directory.Path("profile.csv"), settings)),
              AllOf(StartsWith(directory.Path("profile.csv")), Mentions("backward_input")));
}

TEST(JobFieldsTest, HaveDistinctKeysAndAreMergedEachAlone) {
  std::set<std::string_view> keys;
  for (const job::Field& field : job::Fields()) {
    EXPECT_TRUE(keys.insert(field.key).second) << field.key;
    EXPECT_EQ(job::FindField(field.key), &field);
    JobFile overrides;
    std::visit(
        [&](auto member) {
          auto& value = overrides.*member;
          if constexpr (requires { value.emplace(); }) {
            value.emplace();
          } else {
            value.resize(1);
          }
        },
        field.member);
    JobFile settings;
    job::Merge(overrides, &settings);
    for (const job::Field& other : job::Fields()) {
      EXPECT_EQ(job::IsSet(other, settings), &other == &field) << field.key << " " << other.key;
    }
  }
  EXPECT_EQ(job::FindField("none"), nullptr);
}

}  // namespace
}  // namespace perseus
