// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "client/hot_page.h"

namespace perseus::client {
namespace {

HotPagePointer Page() {
  Result<HotPagePointer> page = MapHotPage();
  EXPECT_TRUE(page) << page.error().message;
  return std::move(*page);
}

RC_GTEST_PROP(EventRing, GivesBackWhatWasPushed, ()) {
  const HotPagePointer page = Page();
  EventRing::Reader reader;
  const int count = *rc::gen::inRange(1, 50);
  for (int i = 0; i < count; ++i) {
    Event event;
    event.kind = static_cast<EventKind>(*rc::gen::inRange(0, 4));
    event.type = static_cast<ComputationType>(*rc::gen::inRange(0, kNumComputationTypes));
    event.stage = *rc::gen::inRange(-1, 1 << 20);
    event.microbatch = *rc::gen::inRange(-1, 1 << 24);
    event.value = *rc::gen::arbitrary<std::int64_t>();
    event.ticks = *rc::gen::arbitrary<std::uint64_t>();
    page->ring.Push(event);
    Event got;
    RC_ASSERT(page->ring.Pop(&reader, &got));
    RC_ASSERT(got.kind == event.kind);
    RC_ASSERT(got.type == event.type);
    RC_ASSERT(got.stage == event.stage);
    RC_ASSERT(got.microbatch == event.microbatch);
    RC_ASSERT(got.value == event.value);
    RC_ASSERT(got.ticks == event.ticks);
    RC_ASSERT(!page->ring.Pop(&reader, &got));
  }
}

TEST(EventRing, LosesTheOldestAndCountsThem) {
  const HotPagePointer page = Page();
  EventRing::Reader reader;
  constexpr std::int64_t kPushed = 3 * static_cast<std::int64_t>(EventRing::kCapacity);
  for (std::int64_t i = 0; i < kPushed; ++i) {
    Event event;
    event.value = i;
    page->ring.Push(event);
  }
  Event event;
  std::uint64_t read = 0;
  std::int64_t last = -1;
  while (page->ring.Pop(&reader, &event)) {
    EXPECT_GT(event.value, last);
    last = event.value;
    ++read;
  }
  EXPECT_EQ(last, kPushed - 1);
  EXPECT_EQ(read + reader.lost, static_cast<std::uint64_t>(kPushed));
}

// What others say in the meantime is not held up: only the one event is lost.
TEST(EventRing, GivesUpOnAWriterThatIsSuspended) {
  const HotPagePointer page = Page();
  EventRing& ring = page->ring;
  EventRing::Reader reader;
  Event event;
  const std::uint64_t suspended = ring.Reserve();
  for (std::uint64_t i = 1; i < EventRing::kPatience; ++i) ring.Push({.value = 1});
  EXPECT_FALSE(ring.Pop(&reader, &event));  // It may come yet.
  ring.Push({.value = 1});
  std::uint64_t read = 0;
  while (ring.Pop(&reader, &event)) ++read;
  EXPECT_EQ(read, EventRing::kPatience);
  EXPECT_EQ(reader.lost, 1U);
  ring.Write(suspended, {.value = 2});
  EXPECT_FALSE(ring.Pop(&reader, &event));  // Too late.
}

// It puts its old event where a newer one was, for which the reader would wait another lap.
TEST(EventRing, GivesUpOnAnEventThatALapOldWriterReplaced) {
  const HotPagePointer page = Page();
  EventRing& ring = page->ring;
  EventRing::Reader reader;
  Event event;
  const std::uint64_t suspended = ring.Reserve();
  for (std::uint64_t i = 0; i < EventRing::kCapacity; ++i) ring.Push({.value = 1});
  ring.Write(suspended, {.value = 2});
  for (std::uint64_t i = 0; i < EventRing::kPatience; ++i) ring.Push({.value = 1});
  std::uint64_t read = 0;
  while (ring.Pop(&reader, &event)) {
    EXPECT_EQ(event.value, 1);
    ++read;
  }
  const std::uint64_t pushed = 1 + EventRing::kCapacity + EventRing::kPatience;
  EXPECT_EQ(read + reader.lost, pushed);
  EXPECT_EQ(reader.next, pushed);
}

// Under ThreadSanitizer, too: forward and backward run on different threads.
TEST(EventRing, ReadsWholeEventsWhileThreadsWrite) {
  const HotPagePointer page = Page();
  constexpr int kWriters = 3;
  constexpr int kEach = 20'000;
  std::vector<std::thread> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&page, writer] {
      for (int i = 0; i < kEach; ++i) {
        Event event;
        event.kind = EventKind::kBegin;
        event.stage = writer;
        event.microbatch = i;
        event.value = std::int64_t{writer} * kEach + i;
        event.ticks = static_cast<std::uint64_t>(event.value) * 3;
        page->ring.Push(event);
      }
    });
  }
  EventRing::Reader reader;
  std::uint64_t read = 0;
  std::vector<int> last(kWriters, -1);
  const auto drain = [&] {
    Event event;
    while (page->ring.Pop(&reader, &event)) {
      ++read;
      ASSERT_EQ(event.value, std::int64_t{event.stage} * kEach + event.microbatch);
      ASSERT_EQ(event.ticks, static_cast<std::uint64_t>(event.value) * 3);
      ASSERT_GT(event.microbatch, last[static_cast<std::size_t>(event.stage)]);
      last[static_cast<std::size_t>(event.stage)] = event.microbatch;
    }
  };
  while (read + reader.lost < std::uint64_t{kWriters} * kEach / 2) drain();
  for (std::thread& writer : writers) writer.join();
  drain();
  EXPECT_EQ(read + reader.lost, std::uint64_t{kWriters} * kEach);
}

}  // namespace
}  // namespace perseus::client
