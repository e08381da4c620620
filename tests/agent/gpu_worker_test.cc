// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "agent/gpu_worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "agent/agent_testing.h"
#include "common/file.h"
#include "support/mentions.h"

namespace perseus::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

class GpuWorkerTest : public ::testing::Test {
 protected:
  GpuWorkerTest() {
    auto journal = Journal::Open(path_);
    EXPECT_TRUE(journal);
    context_ = {driver_,
                std::make_shared<Journal>(*std::move(journal)),
                log_.log(),
                std::make_shared<Mailbox>(),
                {}};
    context_.settings.retry_least = std::chrono::milliseconds(1);
  }

  void Start(bool is_dirty = false) {
    worker_ = std::make_unique<GpuWorker>(context_, &gpu(), is_dirty);
  }
  FakeGpu& gpu() { return driver_->gpu(0); }
  static Ticket Number(std::int64_t id) { return {1, id, Operation::kSet}; }

  // The answer to ticket `id`.
  decltype(Answer::body) Wait(std::int64_t id) {
    std::optional<decltype(Answer::body)> body;
    EXPECT_TRUE(Eventually([&] {
      for (Outcome& outcome : context_.mailbox->TakeAll()) outcomes_.push_back(std::move(outcome));
      for (const Outcome& outcome : outcomes_) {
        if (outcome.ticket.id == id) body = outcome.body;
      }
      return body.has_value();
    }));
    return body.value_or(Done{});
  }
  std::string Refusal(std::int64_t id) {
    const auto body = Wait(id);
    const auto* refused = std::get_if<Refused>(&body);
    return refused == nullptr ? "" : refused->message;
  }
  bool IsJournaled() {
    return ReadWholeFile(path_, 1 << 20).value_or("").find("locked GPU-fake-0") !=
           std::string::npos;
  }

  TemporaryDirectory folder_;
  std::string path_ = folder_.Path("journal");
  std::shared_ptr<FakeDriver> driver_ = std::make_shared<FakeDriver>(1);
  TestLog log_;
  WorkerContext context_;
  std::unique_ptr<GpuWorker> worker_;
  std::vector<Outcome> outcomes_;
};

TEST_F(GpuWorkerTest, LocksTheNearestSupportedClock) {
  context_.settings.min_interval = {};
  Start();
  const std::pair<int, int> cases[] = {{1, 600},   {700, 600},   {749, 600},
                                       {750, 900}, {1210, 1200}, {99999, 1500}};
  std::int64_t id = 0;
  for (const auto& [asked, locked] : cases) {
    worker_->Lock(asked, Number(++id));
    const auto answer = Wait(id);
    ASSERT_TRUE(std::holds_alternative<SetAnswer>(answer));
    EXPECT_EQ(std::get<SetAnswer>(answer).mhz, locked) << asked;
    EXPECT_EQ(gpu().locked(), locked) << asked;
  }
}

TEST_F(GpuWorkerTest, WritesTheJournalBeforeTheFirstChangeAndClearsItAfterTheLast) {
  Start();
  EXPECT_FALSE(IsJournaled());
  gpu().Hang();
  worker_->Lock(900, Number(1));
  ASSERT_TRUE(gpu().WaitForCalls(1));
  EXPECT_TRUE(IsJournaled());  // Before the driver has done anything.
  EXPECT_EQ(gpu().locked(), std::nullopt);
  gpu().Resume();
  Wait(1);
  worker_->Release(Number(2), false);
  Wait(2);
  EXPECT_EQ(gpu().locked(), std::nullopt);
  EXPECT_TRUE(Eventually([this] { return !IsJournaled(); }));
}

TEST_F(GpuWorkerTest, TheNewestWishWins) {
  Start();
  gpu().Hang();
  worker_->Lock(600, Number(1));
  ASSERT_TRUE(gpu().WaitForCalls(1));
  worker_->Lock(900, Number(2));
  worker_->Lock(1200, Number(3));
  EXPECT_TRUE(std::get<SetAnswer>(Wait(2)).superseded);
  gpu().Resume();
  EXPECT_FALSE(std::get<SetAnswer>(Wait(1)).superseded);
  EXPECT_EQ(std::get<SetAnswer>(Wait(3)).mhz, 1200);
  EXPECT_THAT(gpu().changes(), ElementsAre("lock 600", "lock 1200"));
  EXPECT_EQ(worker_->Status().superseded, 1);
}

TEST_F(GpuWorkerTest, AReleaseOvertakesEverythingThatWaits) {
  Start();
  gpu().Hang();
  worker_->Lock(600, Number(1));
  ASSERT_TRUE(gpu().WaitForCalls(1));
  worker_->ReadEnergy(Number(2));
  worker_->Lock(900, Number(3));
  worker_->Release(Number(4), false);
  gpu().Resume();
  Wait(2);
  EXPECT_TRUE(std::get<SetAnswer>(Wait(3)).superseded);
  EXPECT_TRUE(std::holds_alternative<Done>(Wait(4)));
  EXPECT_EQ(gpu().locked(), std::nullopt);
  const std::vector<std::string> calls = gpu().calls();
  ASSERT_GE(calls.size(), 2U);
  EXPECT_EQ(calls[1], "release");
}

TEST_F(GpuWorkerTest, AClockThatIsSetNeedsNoCall) {
  Start();
  worker_->Lock(900, Number(1));
  EXPECT_GT(std::get<SetAnswer>(Wait(1)).took_us, 0);
  worker_->Lock(901, Number(2));
  EXPECT_EQ(std::get<SetAnswer>(Wait(2)).took_us, 0);
  EXPECT_THAT(gpu().changes(), ElementsAre("lock 900"));
}

TEST_F(GpuWorkerTest, WaitsBetweenSetsButNotBeforeARestore) {
  context_.settings.min_interval = std::chrono::milliseconds(300);
  Start();
  worker_->Lock(600, Number(1));
  Wait(1);
  worker_->Lock(900, Number(2));
  Wait(2);
  std::vector<FakeGpu::Clock::time_point> at;
  for (std::size_t i = 0; i < gpu().calls().size(); ++i) {
    if (gpu().calls()[i] != "conditions") at.push_back(gpu().call_times()[i]);
  }
  ASSERT_EQ(at.size(), 2U);
  EXPECT_GE(at[1] - at[0], std::chrono::milliseconds(300));
  // One that waits for its time is overtaken, and the restore comes at once: were
  // it to wait for the interval too, the lock would come first.
  worker_->Lock(1200, Number(3));
  worker_->Release(Number(4), false);
  EXPECT_TRUE(std::get<SetAnswer>(Wait(3)).superseded);
  Wait(4);
  EXPECT_THAT(gpu().changes(), ElementsAre("lock 600", "lock 900", "release"));
}

TEST_F(GpuWorkerTest, NeverTouchesAGpuThatItDidNotLock) {
  Start();
  worker_->Release(Number(1), false);
  Wait(1);
  worker_.reset();
  EXPECT_THAT(gpu().changes(), IsEmpty());
}

TEST_F(GpuWorkerTest, AnOperatorMayReleaseWhatOthersLocked) {
  Start();
  worker_->Release(Number(1), true);
  EXPECT_TRUE(std::holds_alternative<Done>(Wait(1)));
  EXPECT_THAT(gpu().changes(), ElementsAre("release"));
}

TEST_F(GpuWorkerTest, GivesBackWhatAKilledAgentLeft) {
  ASSERT_TRUE(context_.journal->Add(gpu().info().uuid));
  Start(/*is_dirty=*/true);
  EXPECT_TRUE(Eventually([this] { return !IsJournaled(); }));
  EXPECT_THAT(gpu().changes(), ElementsAre("release"));
}

TEST_F(GpuWorkerTest, TriesAFailedRestoreAgainUntilItWorks) {
  Start();
  worker_->Lock(900, Number(1));
  Wait(1);
  gpu().FailNext(5);
  worker_->Release(Number(2), false);
  EXPECT_THAT(Refusal(2), Mentions("again"));
  EXPECT_TRUE(gpu().WaitForLocked(std::nullopt));
  EXPECT_TRUE(Eventually([this] { return !IsJournaled(); }));
  EXPECT_EQ(worker_->Status().failures, 5);
  EXPECT_FALSE(worker_->Status().restore_pending);
  // Said once when it begins, once when it is over.
  EXPECT_EQ(log_.Count("event=restore_failed"), 1);
  EXPECT_EQ(log_.Count("event=restored"), 1);
}

TEST_F(GpuWorkerTest, ANewOwnerNeedNotWaitForAFailedRestore) {
  context_.settings.retry_least = std::chrono::hours(1);
  context_.settings.retry_most = std::chrono::hours(1);
  Start();
  worker_->Lock(900, Number(1));
  Wait(1);
  gpu().FailNext(1);
  worker_->Release(Number(2), false);
  Wait(2);
  EXPECT_TRUE(IsJournaled());
  EXPECT_TRUE(worker_->Status().restore_pending);
  worker_->Lock(900, Number(3));
  // The driver is asked, although 900 was set before: nobody knows what holds now.
  EXPECT_GT(std::get<SetAnswer>(Wait(3)).took_us, 0);
  EXPECT_FALSE(worker_->Status().restore_pending);
}

TEST_F(GpuWorkerTest, AFailedRestoreIsNotForgottenWhenTheNewClockFailsToo) {
  context_.settings.retry_least = std::chrono::milliseconds(200);
  Start();
  worker_->Lock(900, Number(1));
  Wait(1);
  gpu().FailNext(2);
  worker_->Release(Number(2), false);
  Wait(2);
  worker_->Lock(1200, Number(3));
  EXPECT_THAT(Refusal(3), Mentions("refuses"));
  EXPECT_TRUE(gpu().WaitForLocked(std::nullopt));
  EXPECT_TRUE(Eventually([this] { return !IsJournaled(); }));
}

TEST_F(GpuWorkerTest, AReleaseDuringAFailingOneIsAnswered) {
  context_.settings.retry_least = std::chrono::hours(1);
  context_.settings.retry_most = std::chrono::hours(1);
  Start();
  worker_->Lock(900, Number(1));
  Wait(1);
  gpu().FailNext(1);
  gpu().Hang();
  worker_->Release(Number(2), false);
  ASSERT_TRUE(Eventually([this] { return gpu().changes().size() == 2; }));
  worker_->Release(Number(3), false);
  worker_->Lock(1200, Number(4));
  gpu().Resume();
  EXPECT_THAT(Refusal(2), Mentions("again"));
  EXPECT_EQ(std::get<SetAnswer>(Wait(4)).mhz, 1200);
  EXPECT_THAT(Refusal(3), Mentions("again"));
}

TEST_F(GpuWorkerTest, LocksNothingWithoutAJournal) {
  Start();
  // A folder in the place of the file: it cannot be replaced.
  std::filesystem::remove(path_);
  std::filesystem::create_directories(path_ + "/full");
  worker_->Lock(900, Number(1));
  EXPECT_THAT(Refusal(1), Mentions("journal"));
  EXPECT_THAT(gpu().changes(), IsEmpty());
  std::filesystem::remove_all(path_);
  worker_->Lock(900, Number(2));
  EXPECT_EQ(std::get<SetAnswer>(Wait(2)).mhz, 900);
}

TEST_F(GpuWorkerTest, ManyReadersShareOneRead) {
  Start();
  gpu().Hang();
  worker_->ReadEnergy(Number(1));
  ASSERT_TRUE(gpu().WaitForCalls(1));
  for (std::int64_t id = 2; id <= 9; ++id) worker_->ReadEnergy(Number(id));
  gpu().Resume();
  for (std::int64_t id = 1; id <= 9; ++id) {
    EXPECT_TRUE(std::holds_alternative<EnergyAnswer>(Wait(id)));
  }
  EXPECT_THAT(gpu().calls(), ElementsAre("energy", "energy"));
  EXPECT_EQ(std::get<EnergyAnswer>(Wait(1)).joules, 10);
  EXPECT_EQ(std::get<EnergyAnswer>(Wait(9)).joules, 20);
}

TEST_F(GpuWorkerTest, SaysWhichClockIsInEffect) {
  Start();
  worker_->Lock(900, Number(1));
  Wait(1);
  worker_->ReadClock(Number(2));
  EXPECT_EQ(std::get<ClockAnswer>(Wait(2)).mhz, 900);
}

TEST_F(GpuWorkerTest, LooksAtConditionsOnlyWhileAClockIsLocked) {
  context_.settings.poll = std::chrono::milliseconds(1);
  device::GpuConditions conditions;
  conditions.throttle_reasons = 0x4;
  gpu().SetConditions(conditions);
  Start();
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_THAT(gpu().calls(), IsEmpty());
  worker_->Lock(900, Number(1));
  EXPECT_TRUE(Eventually([this] { return worker_->Status().conflicts.size() == 1; }));
  EXPECT_THAT(worker_->Status().conflicts, ElementsAre(Mentions("power", "cap")));
  EXPECT_TRUE(gpu().WaitForCalls(5));
  worker_->Release(Number(2), false);
  Wait(2);
  EXPECT_EQ(log_.Count("event=clock_fought"), 1);  // Not once a look.
}

TEST_F(GpuWorkerTest, StopsWithTheClockGivenBack) {
  Start();
  worker_->Lock(900, Number(1));
  Wait(1);
  worker_->BeginStop();
  EXPECT_TRUE(worker_->FinishStop(std::chrono::steady_clock::now() + std::chrono::seconds(20)));
  EXPECT_EQ(gpu().locked(), std::nullopt);
  EXPECT_FALSE(IsJournaled());
}

TEST_F(GpuWorkerTest, GivesUpOnADriverThatHangsAndTheJournalKeepsTheGpu) {
  Start();
  worker_->Lock(900, Number(1));
  Wait(1);
  gpu().Hang();
  worker_->BeginStop();
  EXPECT_FALSE(
      worker_->FinishStop(std::chrono::steady_clock::now() + std::chrono::milliseconds(20)));
  EXPECT_TRUE(IsJournaled());
  worker_.reset();  // Its thread lives on, with all it uses.
  gpu().Resume();
  EXPECT_TRUE(gpu().WaitForLocked(std::nullopt));
}

}  // namespace
}  // namespace perseus::agent
