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

using store::Parts;

// The server of the test, and another one of the same store.
constexpr int kWriter = 1;
constexpr int kOther = 2;

// A store whose calls throw where the test says so, as without memory.
class ThrowingGate : public SimulatedGate {
 public:
  using SimulatedGate::SimulatedGate;
  void Add(std::vector<store::Fact> facts, std::optional<std::int64_t> expected_revision,
           std::function<bool()> is_wanted, Written written) override {
    MayThrow();
    SimulatedGate::Add(std::move(facts), expected_revision, std::move(is_wanted),
                       std::move(written));
  }
  void ReadJob(const std::string& id, Known known, Read read) override {
    MayThrow();
    SimulatedGate::ReadJob(id, std::move(known), std::move(read));
  }
  void FindProfile(const std::string& layout, const store::JobRecord& record,
                   ProfileFound found) override {
    MayThrow();
    SimulatedGate::FindProfile(layout, record, std::move(found));
  }
  void ReadIterations(const std::string& id, IterationsRead read) override {
    MayThrow();
    SimulatedGate::ReadIterations(id, std::move(read));
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
    ASSERT_TRUE(rows_.Commit(kWriter, {record}, std::nullopt));
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
    const bool is_taken = rows_.Commit(kWriter, write.facts, write.expected_revision);
    gate_.answers.emplace_back([write, is_taken, marks = rows_.job.marks] {
      if (is_taken) return write.written(marks);
      write.written(MakeError(ErrorCode::kConflict, "the tables refuse it"));
    });
  }
  void Answer() {
    ASSERT_FALSE(gate_.answers.empty());
    const auto answer = std::move(gate_.answers.front());
    gate_.answers.pop_front();
    answer();
  }
  // The next reading shows the rows as they are.
  void Read() {
    ASSERT_FALSE(gate_.reads.empty());
    const SimulatedGate::PendingRead pending = std::move(gate_.reads.front());
    gate_.reads.erase(gate_.reads.begin());
    const Parts parts = PartsToRead(rows_.job.marks, pending.known);
    pending.read(gate_.Find(rows_, pending.known, parts));
  }
  void FinishAll() {
    while (!gate_.writes.empty() || !gate_.answers.empty() || !gate_.reads.empty()) {
      if (!gate_.writes.empty()) {
        Commit();
      } else if (!gate_.answers.empty()) {
        Answer();
      } else {
        Read();
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
  ThrowingGate gate_{&maker(), /*is_shared=*/true};
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
                      .wake_worker = [] {},
                      .refresh_soon = [](const std::string&) {},
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

// The revision that a client named is written with the change: this server may not know yet that
// another one has changed the job.
TEST_F(ManagedJobTest, ADeletionHoldsOnlyAtTheRevisionThatItsClientNamed) {
  const std::int64_t revision = job_->revision();
  ASSERT_TRUE(rows_.Commit(kOther, {store::TargetChange{.job = job_->id(), .target = "1.1x"}}, {}));
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

// It would be written over what another server made of the history that there is.
TEST_F(ManagedJobTest, AChangeThatWasDecidedOnALostHistoryIsDecidedAgain) {
  const SimulatedRows standby = rows_;
  Do(SetTarget{"1.1x"});
  FinishAll();
  const Answered watch = Do(SetWatch{.window = 8});
  rows_ = standby;
  rows_.instance = 1;
  job_->Refresh([](const Result<void>&) {});
  Read();
  ASSERT_TRUE(rows_.Commit(kOther, {store::TargetChange{.job = job_->id(), .target = "1.3x"}}, {}));
  FinishAll();
  ASSERT_TRUE(*watch);
  EXPECT_TRUE((*watch)->has_value());
  EXPECT_EQ(job_->revision(), rows_.job.marks.revision);
  EXPECT_EQ(job_->View().target, "1.3x");
  EXPECT_EQ(job_->View().watch.settings.shift.window, 8);
}

TEST_F(ManagedJobTest, AReadingThatNeverFitsIsAnError) {
  std::optional<Result<void>> read;
  job_->Refresh([&](const Result<void>& outcome) { read = outcome; });
  while (!read && !gate_.reads.empty()) {
    const SimulatedGate::PendingRead pending = std::move(gate_.reads.front());
    gate_.reads.erase(gate_.reads.begin());
    // Its curve was replaced after it was looked at.
    ++rows_.job.marks.revision;
    ++rows_.job.marks.curve;
    pending.read(gate_.Find(rows_, pending.known, Parts::kPhase));
  }
  ASSERT_TRUE(read);
  EXPECT_FALSE(*read);
}

TEST_F(ManagedJobTest, WhatThrowsWhileItIsDecidedIsAnsweredAndHoldsUpNothing) {
  throws_at_ = 2;  // The first look is that of Do().
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
    throws_at_ = 2;  // The first look is that of Do().
    EXPECT_FALSE((*Do(made))->has_value());
  }
  EXPECT_TRUE(job_->is_aside());
}

// One that works in between is no reason.
TEST_F(ManagedJobTest, AJobWhoseRulesThrowNowAndThenGoesOn) {
  for (int i = 0; i < 20; ++i) {
    throws_at_ = 2;
    Do(SetTarget{"1.1x"});
    Do(SetTarget{i % 2 == 0 ? "1.2x" : "1.1x"});
    FinishAll();
  }
  EXPECT_EQ(problems_.size(), 20U);
  EXPECT_FALSE(job_->is_aside());
}

// It is durable, so the job reads it.
TEST_F(ManagedJobTest, WhatThrowsWhileItIsAppliedIsReadFromTheStore) {
  RegisterRanks();
  job_->Do(maker().Make(*job_->NextStep(), rows_.job.job), {}, [](const auto&) {});
  Commit();
  throws_at_ = 1;
  Answer();
  ASSERT_EQ(throws_at_, 0);
  EXPECT_EQ(problems_.size(), 1U);
  EXPECT_EQ(job_->board().version(), 0);
  FinishAll();
  EXPECT_EQ(job_->board().version(), 1);
  EXPECT_EQ(job_->View().record.state, store::JobState::kRunning);
  const Answered next = Do(SetTarget{"1.2x"});
  FinishAll();
  ASSERT_TRUE(*next);
  EXPECT_TRUE((*next)->has_value());
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

TEST_F(ManagedJobTest, AReadingThatTheStoreCannotBeginIsAnError) {
  std::vector<bool> reads;
  const auto note = [&](const Result<void>& read) { reads.push_back(read.has_value()); };
  gate_.throws = true;
  job_->Refresh(note);
  EXPECT_EQ(reads, std::vector<bool>({false}));
  gate_.throws = false;
  job_->Refresh(note);
  FinishAll();
  EXPECT_EQ(reads, std::vector<bool>({false, true}));
  // The sums of other servers are shown as they were.
  seconds_ += 10;
  job_->RefreshAll(note);
  gate_.throws = true;
  FinishAll();
  EXPECT_EQ(reads, std::vector<bool>({false, true, true}));
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
  job_->Refresh([](const Result<void>&) {});
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
