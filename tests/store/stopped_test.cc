// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// A server that is stopped for a while, and a database that is not there yet.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/boot_clock.h"
#include "server/store/store.h"
#include "store/facts_testing.h"
#include "support/mentions.h"
#include "support/postgres.h"

namespace perseus::store {
namespace {

constexpr std::chrono::seconds kPatienceWithStops{60};

class PostgresqlFailuresStoppedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = PostgresServer::WhyMissing(); !why.empty()) GTEST_SKIP() << why;
    server_ = std::make_unique<PostgresServer>();
  }
  bool WaitUntil(const std::function<bool()>& condition) const {
    const auto until = std::chrono::steady_clock::now() + kPatienceWithStops;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return true;
  }

  std::unique_ptr<PostgresServer> server_;
};

// What a child says of two changes: the first is in its transaction when it is stopped, and
// the second waits behind it.
[[noreturn]] void ChangeTwice(const std::string& uri, int out) {
  {
    // The store, which calls it, is closed before it ends.
    const auto answer = [out](char name, const Result<JobMarks>& written) {
      const std::array<char, 2> said = {name, written                            ? 'w'
                                              : written.error().code == kTooLate ? 'l'
                                                                                 : 'f'};
      if (::write(out, said.data(), said.size()) != 2) ::_exit(1);
    };
    const auto store = OpenOrThrow(uri);
    store->Add({TargetChange{"a", "1.1x"}}, [&](const auto& written) { answer('1', written); });
    // The writer has taken the first one alone.
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const auto until = BootClock::now() + std::chrono::seconds(5);
    store->Add(
        {TargetChange{"a", "1.2x"}}, [&](const auto& written) { answer('2', written); },
        std::nullopt, [until] { return BootClock::now() < until; });
    if (::write(out, "2a", 2) != 2) ::_exit(1);
  }
  ::_exit(0);
}

TEST_F(PostgresqlFailuresStoppedTest, ItWritesNothingOverWhatOthersWroteMeanwhile) {
  // The first change waits in the database, where the test can see it.
  {
    const auto store = OpenOrThrow(server_->Uri());
    ASSERT_TRUE(store->Write({SampleJob("a")}));
  }
  server_->Run(
      "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "IF NEW.target = '1.1x' THEN PERFORM pg_sleep(2); END IF; RETURN NEW; END $$; "
      "CREATE TRIGGER waits BEFORE UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION wait()");
  std::array<int, 2> ends = {};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) ChangeTwice(server_->Uri(), ends[1]);
  ::close(ends[1]);
  const bool has_begun = WaitUntil([&] {
    return server_->Ask(
               "SELECT COUNT(*) FROM pg_stat_activity WHERE query LIKE 'UPDATE jobs%' "
               "AND state = 'active'") == "1";
  });
  std::array<char, 2> text = {};
  EXPECT_EQ(::read(ends[0], text.data(), 2), 2);
  EXPECT_EQ(std::string(text.data(), 2), "2a");
  ::kill(child, SIGSTOP);
  EXPECT_TRUE(has_begun);
  const auto stopped = BootClock::now();
  // Before the write, as connecting takes its time.
  const auto store = OpenOrThrow(server_->Uri());
  Result<JobMarks> newer = store->Write({TargetChange{"a", "1.3x"}});
  for (int i = 0; i < 2 && !newer; ++i) newer = store->Write({TargetChange{"a", "1.3x"}});
  EXPECT_TRUE(newer) << newer.error().message;
  // The database has given the first one up after kStoppedSeconds.
  EXPECT_LT(BootClock::now() - stopped, std::chrono::seconds(10));
  std::this_thread::sleep_until(std::chrono::steady_clock::now() + std::chrono::seconds(6) -
                                (BootClock::now() - stopped));
  ::kill(child, SIGCONT);
  std::string said;
  while (::read(ends[0], text.data(), 2) == 2) said.append(text.data(), 2);
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(said, "1f2l");
  EXPECT_EQ(JobOrThrow(*store, "a").job.target, "1.3x");
  EXPECT_EQ(JobOrThrow(*store, "a").marks, *newer);
}

TEST_F(PostgresqlFailuresStoppedTest, ADatabaseThatIsNotThereYetIsWaitedFor) {
  { ASSERT_TRUE(OpenOrThrow(server_->Uri())->Write({SampleJob("a")})); }
  server_->Kill();
  std::mutex mutex;
  std::vector<std::string> told;
  auto opened = std::async(std::launch::async, [&] {
    return Store::Open(
        server_->Uri(),
        [&](const std::string& sentence) {
          const std::lock_guard lock(mutex);
          told.push_back(sentence);
        },
        [] { return true; });
  });
  // Longer than a call of an open store would wait.
  EXPECT_EQ(opened.wait_for(std::chrono::seconds(7)), std::future_status::timeout);
  server_->Start();
  ASSERT_EQ(opened.wait_for(kPatienceWithStops), std::future_status::ready);
  const auto store = opened.get();
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_EQ((*store)->ListHeads()->size(), 1);
  const std::lock_guard lock(mutex);
  ASSERT_FALSE(told.empty());
  EXPECT_THAT(told.front(), Mentions("reached"));
  EXPECT_THAT(told.front(), Mentions("waits"));
}

TEST_F(PostgresqlFailuresStoppedTest, WhoWaitsForItCanBeStopped) {
  server_->Kill();
  std::atomic<bool> keep_going = true;
  auto opened = std::async(std::launch::async, [&] {
    return Store::Open(server_->Uri(), {}, [&] { return keep_going.load(); });
  });
  EXPECT_EQ(opened.wait_for(std::chrono::seconds(1)), std::future_status::timeout);
  keep_going = false;
  ASSERT_EQ(opened.wait_for(std::chrono::seconds(2)), std::future_status::ready);
  EXPECT_EQ(opened.get().error().code, kTooLate);
}

TEST_F(PostgresqlFailuresStoppedTest, WhatNoWaitingMendsFailsAtOnce) {
  const auto open = [](const std::string& uri) {
    auto opened =
        std::async(std::launch::async, [uri] { return Store::Open(uri, {}, [] { return true; }); });
    if (opened.wait_for(kPatienceWithStops) != std::future_status::ready) std::abort();
    const auto store = opened.get();
    return store ? "" : store.error().message;
  };
  EXPECT_THAT(open(server_->Uri("nowhere")), Mentions("database", "role;"));
  EXPECT_THAT(open(server_->Uri("perseus", "nobody")), Mentions("database", "role;"));
}

}  // namespace
}  // namespace perseus::store
