// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// One job whose store answers when the test says so.

#include "server/runtime/managed_job.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "server/planning/characterize.h"
#include "server/service_testing.h"
#include "server/simulation/simulated_store.h"

namespace perseus::server {
namespace {

// A store whose calls throw where the test says so, as without memory.
class ThrowingGate : public SimulatedGate {
 public:
  void Add(std::vector<store::Fact> facts, std::function<bool()> is_wanted,
           Written written) override {
    MayThrow();
    SimulatedGate::Add(std::move(facts), std::move(is_wanted), std::move(written));
  }
  void FindProfile(const std::string& layout, const store::JobRecord& record,
                   ProfileFound found) override {
    MayThrow();
    SimulatedGate::FindProfile(layout, record, std::move(found));
  }

  bool throws = false;

 private:
  void MayThrow() const {
    if (throws) throw std::runtime_error("no memory");
  }
};

class ManagedJobTest : public ::testing::Test {
 protected:
  void SetUp() override { Load(maker().record()); }

  // Plans cost milliseconds.
  static PlanMaker& maker() {
    static PlanMaker the_maker;
    return the_maker;
  }

  void Load(const store::JobRecord& record) {
    rows_ = {};
    ASSERT_TRUE(rows_.Commit({record}));
    job_ = std::make_shared<ManagedJob>(&context_, Replay(rows_.job, {}), StoredSums{});
    job_->Resume(/*ask_for_work=*/false);
    FinishAll();
  }

  // As one whose ranks measure.
  void LoadUnmeasured() {
    store::JobRecord record = maker().record();
    record.profile_csv.clear();
    record.profile_source.clear();
    record.settings_json = MakeJobSpec(kUnmeasured, "")->settings_json;
    Load(record);
  }

  // The next write is in the tables, or refused by them; nobody has heard of it.
  void Commit() {
    ASSERT_FALSE(gate_.writes.empty());
    const SimulatedGate::Write write = std::move(gate_.writes.front());
    gate_.writes.pop_front();
    const bool is_taken = rows_.Commit(write.facts);
    gate_.answers.emplace_back([write, is_taken, revision = rows_.job.revision] {
      if (is_taken) return write.written(revision);
      write.written(MakeError(ErrorCode::kConflict, "the tables refuse it"));
    });
  }
  void Answer() {
    ASSERT_FALSE(gate_.answers.empty());
    const auto answer = std::move(gate_.answers.front());
    gate_.answers.pop_front();
    answer();
  }
  void FinishAll() {
    while (!gate_.writes.empty() || !gate_.answers.empty()) {
      if (!gate_.writes.empty()) {
        Commit();
      } else {
        Answer();
      }
    }
  }

  using Answered = std::shared_ptr<std::optional<Outcome<server::Answer>>>;
  Answered Do(Command command, Caller caller = {}) {
    const auto answered = std::make_shared<std::optional<Outcome<server::Answer>>>();
    job_->Do(std::move(command), std::move(caller),
             [answered](const auto& outcome) { *answered = outcome; });
    return answered;
  }
  void RegisterRanks() {
    for (int rank = 0; rank < 4; ++rank) Do(RegisterRank{SmallRank(rank)});
    FinishAll();
  }

  SimulatedRows rows_;
  ThrowingGate gate_;
  EventHub events_;
  double seconds_ = 1000;
  int throws_at_ = 0;       // At this look at the clock from now on. 0: at none.
  int advances_ = 0;        // Looks at how the job goes on.
  bool is_broken_ = false;  // Whatever the job decides by itself throws.
  std::vector<std::string> problems_;
  JobContext context_{.store = gate_,
                      .events = events_,
                      .now =
                          [this] {
                            if (throws_at_ > 0 && --throws_at_ == 0) {
                              throw std::runtime_error("no clock");
                            }
                            return Moment{.day_seconds = seconds_, .seconds = seconds_};
                          },
                      .has_given_plan =
                          [this](const Shape&) {
                            ++advances_;
                            if (is_broken_) throw std::runtime_error("a bug");
                            return false;
                          },
                      .want_work = [](const std::string&, Work) {},
                      .on_problem = [this](const std::string& why) { problems_.push_back(why); }};
  std::shared_ptr<ManagedJob> job_;
};

TEST_F(ManagedJobTest, ReportsOfOneRankThatAreUnderwayTogetherEndInAnyOrder) {
  LoadUnmeasured();
  RegisterRanks();
  for (const int first : {0, 1}) {
    store::Measurements rows = Sweep(first, /*done=*/false);
    store::Measurements empty{.rank = first, .done = true};
    if (first == 1) std::swap(rows, empty);
    const Answered one = Do(TakeMeasurements{rows});
    const Answered other = Do(TakeMeasurements{empty});
    const Answered third = Do(TakeMeasurements{{.rank = first, .done = true}});
    FinishAll();
    for (const Answered& answered : {one, other, third}) {
      ASSERT_TRUE(*answered);
      EXPECT_TRUE((*answered)->has_value());
    }
  }
}

TEST_F(ManagedJobTest, ADeletionHoldsOnlyAtTheRevisionThatItsClientNamed) {
  const std::int64_t revision = job_->revision();
  Do(SetTarget{"1.1x"});
  FinishAll();
  const Answered deleted = Do(DeleteJob{}, {.if_revision = revision});
  FinishAll();
  ASSERT_TRUE(*deleted);
  ASSERT_FALSE((*deleted)->has_value());
  EXPECT_EQ((*deleted)->error().code, FailureCode::kPast);
  EXPECT_TRUE(rows_.is_there);

  const Answered again = Do(DeleteJob{}, {.if_revision = job_->revision()});
  FinishAll();
  ASSERT_TRUE(*again);
  EXPECT_TRUE((*again)->has_value());
  EXPECT_FALSE(rows_.is_there);
  EXPECT_TRUE(job_->is_gone());
}

// Ranks may have been told versions that the store lost.
TEST_F(ManagedJobTest, AfterALossVersionsBeginAboveAllThatThereWere) {
  context_.history_seconds = 2000;
  RegisterRanks();
  job_->Do(maker().Make(*job_->NextStep(), rows_.job.job), {}, [](const auto&) {});
  FinishAll();
  ASSERT_EQ(job_->board().version(), 1);
  // Of a job that was made before.
  rows_.job.job.created_at_seconds = 1000;
  job_ = std::make_shared<ManagedJob>(&context_, maker().LifeOf(rows_), rows_.Sums());
  job_->Resume(/*ask_for_work=*/false);
  job_->Tick();
  FinishAll();
  EXPECT_EQ(job_->board().version(), (std::int64_t{2000} << 20) + 1);
}

TEST_F(ManagedJobTest, WhatThrowsWhileItIsDecidedIsAnsweredAndHoldsUpNothing) {
  throws_at_ = 1;
  const Answered thrown = Do(SetTarget{"1.1x"});
  ASSERT_TRUE(*thrown);
  ASSERT_FALSE((*thrown)->has_value());
  EXPECT_EQ((*thrown)->error().code, FailureCode::kInternal);
  EXPECT_EQ(problems_.size(), 1U);
  const Answered next = Do(SetTarget{"1.2x"});
  FinishAll();
  ASSERT_TRUE(*next);
  EXPECT_TRUE((*next)->has_value());
}

// It would be tried at each tick, and told each time.
TEST_F(ManagedJobTest, AJobWhoseRulesAlwaysThrowIsSetAsideOnce) {
  LoadUnmeasured();
  RegisterRanks();
  is_broken_ = true;
  for (int i = 0; i < 4; ++i) job_->Tick();
  EXPECT_FALSE(job_->is_aside());
  for (int i = 0; i < 20; ++i) job_->Tick();
  EXPECT_TRUE(job_->is_aside());
  EXPECT_EQ(problems_.size(), 5U);
  EXPECT_EQ(std::count_if(problems_.begin(), problems_.end(),
                          [](const std::string& each) {
                            return each.find("set aside") != std::string::npos;
                          }),
            1);
  // What somebody asks for is done.
  for (Command command : {Command(SetTarget{"1.2x"}), Command(DeleteJob{})}) {
    const Answered answered = Do(std::move(command));
    FinishAll();
    ASSERT_TRUE(*answered);
    EXPECT_TRUE((*answered)->has_value());
  }
  EXPECT_TRUE(job_->is_gone());
  EXPECT_EQ(problems_.size(), 5U);
}

TEST_F(ManagedJobTest, AJobWhosePlansCannotBeTakenIsSetAside) {
  RegisterRanks();
  const AdoptPlans made = maker().Make(*job_->NextStep(), rows_.job.job);
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(job_->is_aside());
    throws_at_ = 1;
    EXPECT_FALSE((*Do(made))->has_value());
  }
  EXPECT_TRUE(job_->is_aside());
}

// One that works in between is no reason.
TEST_F(ManagedJobTest, AJobWhoseRulesThrowNowAndThenGoesOn) {
  for (int i = 0; i < 20; ++i) {
    throws_at_ = 1;
    Do(SetTarget{"1.1x"});
    Do(SetTarget{i % 2 == 0 ? "1.2x" : "1.1x"});
    FinishAll();
  }
  EXPECT_EQ(problems_.size(), 20U);
  EXPECT_FALSE(job_->is_aside());
}

// It is durable, so the server reads all jobs anew.
TEST_F(ManagedJobTest, WhatThrowsWhileItIsAppliedIsReadFromTheStore) {
  RegisterRanks();
  job_->Do(maker().Make(*job_->NextStep(), rows_.job.job), {}, [](const auto&) {});
  Commit();
  throws_at_ = 1;
  Answer();
  ASSERT_EQ(throws_at_, 0);
  EXPECT_EQ(problems_.size(), 1U);
  EXPECT_EQ(job_->board().version(), 0);
  EXPECT_TRUE(gate_.has_given_up);
}

TEST_F(ManagedJobTest, AChangeThatTheStoreCannotTakeIsAnsweredAndHoldsUpNothing) {
  gate_.throws = true;
  const Answered thrown = Do(SetTarget{"1.1x"});
  ASSERT_TRUE(*thrown);
  ASSERT_FALSE((*thrown)->has_value());
  EXPECT_EQ((*thrown)->error().code, FailureCode::kUnavailable);
  EXPECT_EQ(problems_.size(), 1U);
  const Answered rank = Do(RegisterRank{SmallRank(0)});
  ASSERT_TRUE(*rank);
  EXPECT_FALSE((*rank)->has_value());
  gate_.throws = false;
  const Answered next = Do(SetTarget{"1.2x"});
  const Answered same_rank = Do(RegisterRank{SmallRank(0)});
  FinishAll();
  ASSERT_TRUE(*next);
  EXPECT_TRUE((*next)->has_value());
  ASSERT_TRUE(*same_rank);
  EXPECT_TRUE((*same_rank)->has_value());
}

TEST_F(ManagedJobTest, SumsThatTheStoreCannotTakeAreWrittenLater) {
  RegisterRanks();
  std::optional<Outcome<void>> taken;
  job_->Report({{.rank = 0, .time_seconds = 1.5, .clocks = ReportedClocks::kMaximum}}, {},
               [&](const Outcome<void>& outcome) { taken = outcome; });
  ASSERT_TRUE(taken && taken->has_value());
  gate_.throws = true;
  job_->Tick();
  gate_.throws = false;
  seconds_ += 10;
  job_->Tick();
  FinishAll();
  ASSERT_EQ(rows_.iterations.size(), 1U);
  EXPECT_EQ(rows_.iterations.begin()->second.reports, 1);
}

TEST_F(ManagedJobTest, ARunningJobIsLookedThroughOnceARevision) {
  RegisterRanks();
  Do(maker().Make(*job_->NextStep(), rows_.job.job));
  FinishAll();
  ASSERT_EQ(job_->View().record.state, store::JobState::kRunning);
  const int before = advances_;
  for (int i = 0; i < 10; ++i) job_->Tick();
  EXPECT_LE(advances_, before + 1);
  Do(SetTarget{"1.1x"});
  FinishAll();
  EXPECT_GT(advances_, before);
}

// With each report, as long as the store is away.
TEST_F(ManagedJobTest, ARankThatCanSetClocksAgainIsMeasuredAgainOnce) {
  LoadUnmeasured();
  RegisterRanks();
  for (int rank = 0; rank < 4; ++rank) {
    store::Measurements measured = Sweep(rank);
    if (rank == 0) std::erase_if(measured.rows, [](auto& row) { return row.clock_mhz != 1400; });
    Do(TakeMeasurements{measured});
  }
  FinishAll();
  ASSERT_TRUE(job_->NextStep());
  AdoptPlans made;
  made.step = *job_->NextStep();
  made.built.job = *BuildJob(rows_.job.job);
  Characterizer characterizer(job_->id(), made.built.job, [](double) { return true; });
  made.record = *characterizer.Ladder(PlanTarget{}, 1, 1);
  made.built.curve = *Curve::Make(made.built.job, made.record);
  Do(made);
  FinishAll();
  ASSERT_EQ(job_->View().record.state, store::JobState::kRunning);
  const auto report = [&] {
    job_->Report({}, {{.rank = 0, .state = "following"}}, [](const Outcome<void>&) {});
  };
  for (int i = 0; i < 5; ++i) report();
  ASSERT_EQ(gate_.writes.size(), 1U);
  const SimulatedGate::Write write = std::move(gate_.writes.front());
  gate_.writes.pop_front();
  write.written(MakeError(ErrorCode::kIo, "the store is away"));
  EXPECT_TRUE(gate_.writes.empty());
  report();
  FinishAll();
  EXPECT_EQ(job_->View().record.state, store::JobState::kProfiling);
}

TEST_F(ManagedJobTest, ALibraryThatCannotBeAskedIsAsOneThatHasNothing) {
  store::JobRecord record = maker().record();
  record.profile_csv.clear();
  record.profile_source.clear();
  const auto spec = MakeJobSpec(
      R"({"schedule":"1f1b","microbatches":4,"stages":2,"data_parallel":2,"effort":0.05,)"
      R"("model":"gpt-13b"})",
      "");
  ASSERT_TRUE(spec) << spec.error().message;
  record.settings_json = spec->settings_json;
  record.library_json = spec->library_json;
  Load(record);
  for (int rank = 0; rank < 3; ++rank) Do(RegisterRank{SmallRank(rank)});
  FinishAll();
  Do(RegisterRank{SmallRank(3)});
  Commit();
  gate_.throws = true;
  Answer();
  gate_.throws = false;
  job_->Tick();
  FinishAll();
  EXPECT_EQ(job_->View().record.state, store::JobState::kProfiling);
}

}  // namespace
}  // namespace perseus::server
