// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/runtime/events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/api/event_sender.h"
#include "server/service_testing.h"

namespace perseus::server {
namespace {

using ::testing::ElementsAre;

// The numbers of the events that a listener was told of; -1 for a reset.
class Told {
 public:
  EventHub::Listener Listener() {
    return [numbers = numbers_](const Event* event) {
      if (event != nullptr) {
        numbers->push_back(event->kind == EventKind::kReset ? -1 : event->sequence);
      }
      return true;
    };
  }
  const std::vector<std::int64_t>& numbers() const { return *numbers_; }

 private:
  std::shared_ptr<std::vector<std::int64_t>> numbers_ =
      std::make_shared<std::vector<std::int64_t>>();
};

Event Of(const std::string& job) { return {EventKind::kState, job, "{}"}; }

TEST(EventHub, TellsEachOfHisJobInOrder) {
  EventHub hub;
  Told all;
  Told one;
  hub.Listen("", all.Listener());
  hub.Listen("a", one.Listener());
  for (const char* const job : {"a", "b", "a"}) hub.Emit(Of(job));
  hub.Settle();
  EXPECT_THAT(all.numbers(), ElementsAre(1, 2, 3));
  EXPECT_THAT(one.numbers(), ElementsAre(1, 3));
  EXPECT_EQ(hub.last(), 3);
}

TEST(EventHub, GoesOnAfterAnyEventThatItKeeps) {
  EventHub hub(4);
  for (int i = 0; i < 6; ++i) hub.Emit(Of("a"));
  Told told;
  EXPECT_FALSE(hub.ListenAfter(1, "", told.Listener()));  // 2 is not kept.
  EXPECT_FALSE(hub.ListenAfter(7, "", told.Listener()));  // Not one of this hub.
  ASSERT_TRUE(hub.ListenAfter(2, "", told.Listener()));
  hub.Settle();  // The next one pushes the first of them out.
  hub.Emit(Of("a"));
  hub.Settle();
  EXPECT_THAT(told.numbers(), ElementsAre(3, 4, 5, 6, 7));
}

TEST(EventHub, ASlowListenerStopsNoEmitterAndIsToldThatItMissedSome) {
  std::promise<void> go;
  std::promise<void> is_called;
  Told slow;
  EventHub hub(4);
  hub.Listen("", [&, is_first = true, tell = slow.Listener()](const Event* event) mutable {
    if (event != nullptr && std::exchange(is_first, false)) {
      is_called.set_value();
      go.get_future().wait();
    }
    return tell(event);
  });
  hub.Emit(Of("a"));
  is_called.get_future().wait();
  for (int i = 1; i < 300; ++i) hub.Emit(Of("a"));
  go.set_value();
  hub.Settle();
  // It goes on with those that are kept.
  EXPECT_THAT(slow.numbers(), ElementsAre(1, -1, 297, 298, 299, 300));
}

TEST(EventHub, WhoWantsNoMoreIsForgotten) {
  EventHub hub;
  int calls = 0;
  hub.Listen("", [&](const Event* /*event*/) {
    ++calls;
    return false;
  });
  hub.Settle();
  for (int i = 0; i < 3; ++i) hub.Emit(Of("a"));
  hub.Settle();
  EXPECT_EQ(calls, 1);
}

using EventsTest = ServiceTest;

// What a member's value has to be, as far as its kind says it.
bool Fits(const wire::Field& member, const nlohmann::json& value) {
  switch (member.kind) {
    case wire::Kind::kInteger:
      return value.is_number_integer();
    case wire::Kind::kNumber:
      return value.is_number();
    case wire::Kind::kText:
      return value.is_string();
    case wire::Kind::kBoolean:
      return value.is_boolean();
    case wire::Kind::kChoice: {
      const std::string words = " " + std::string(member.of) + " ";
      const auto in_list = std::find(member.words.begin(), member.words.end(),
                                     value.get<std::string>()) != member.words.end();
      return in_list || words.find(" " + value.get<std::string>() + " ") != std::string::npos;
    }
    default:
      return false;
  }
}

TEST_F(EventsTest, EachIsAsItsSchemaSays) {
  const auto events = std::make_shared<std::vector<Event>>();
  service_->events().Listen("", [events](const Event* event) {
    if (event != nullptr) events->push_back(*event);
    return true;
  });
  const auto job = Create();
  RegisterAll(*job);
  AwaitRefined(*job);
  ASSERT_TRUE(sync::AddStraggler(*job, {.pipeline = 1, .factor = 1.2}));
  ASSERT_TRUE(sync::Report(*job, {}, {{.rank = 0, .error = "late"}}));
  const auto unmeasured = Create(kUnmeasured, "", "unmeasured");
  RegisterAll(*unmeasured);
  store::Measurements measured = Sweep(0);
  measured.notes = {"odd"};
  ASSERT_TRUE(Measure(*unmeasured, measured));
  ASSERT_TRUE(sync::Finish(*job));
  ASSERT_TRUE(sync::Delete(*service_, job->id()));
  service_->events().Settle();
  std::vector<bool> seen(EventTypes().size(), false);
  for (const Event& event : *events) {
    const EventType& type = TypeOf(event.kind);
    seen[static_cast<std::size_t>(event.kind)] = true;
    const auto data = nlohmann::json::parse(event.data);
    std::size_t known = 0;
    for (const wire::Field& member : type.fields) {
      const std::string name(member.name);
      if (!data.contains(name)) {
        EXPECT_EQ(member.presence, wire::Presence::kSometimes) << event.data << " lacks " << name;
        continue;
      }
      ++known;
      EXPECT_TRUE(Fits(member, data[name])) << type.name << " " << name << " " << event.data;
    }
    EXPECT_EQ(known, data.size()) << type.name << " says more than its schema: " << event.data;
    EXPECT_EQ(event.revision > 0, type.shows_state) << type.name;
  }
  for (const EventKind kind : {EventKind::kJob, EventKind::kState, EventKind::kPlan,
                               EventKind::kStraggler, EventKind::kProfiling, EventKind::kTrouble}) {
    EXPECT_TRUE(seen[static_cast<std::size_t>(kind)]) << TypeOf(kind).name;
  }
}

TEST_F(EventsTest, NoStreamShowsAnOlderStateAfterANewerOne) {
  const auto job = Create();
  RegisterAll(*job);
  AwaitRefined(*job);
  std::vector<std::string> sent;
  const auto send = [&](std::string_view name, std::string_view /*data*/, std::string_view id) {
    sent.push_back(std::string(name) + std::string(id.substr(id.find('-'))));
    return true;
  };
  EventSender sender(*service_, {}, {send, send, [] { return true; }});
  // Two changes come after the number was asked for: the state shows both of them already.
  const std::int64_t now = service_->events().last();
  ASSERT_TRUE(sync::AddStraggler(*job, {.pipeline = 1, .factor = 1.2}));
  const std::int64_t first = job->revision();
  ASSERT_TRUE(sync::ClearStragglers(*job));
  const std::int64_t second = job->revision();
  ASSERT_GT(second, first);
  sender.SendState(*job, now);
  const auto tell = [&](EventKind kind, std::int64_t revision, std::int64_t sequence) {
    const Event event{kind, job->id(), "{}", revision, sequence};
    EXPECT_TRUE(sender(&event));
  };
  tell(EventKind::kPlan, first, now + 1);
  tell(EventKind::kDetection, 0, now + 2);  // No state: not to be lost.
  tell(EventKind::kPlan, second, now + 3);
  tell(EventKind::kState, second + 1, now + 4);
  EXPECT_THAT(sent,
              ElementsAre("state-" + std::to_string(now), "detection-" + std::to_string(now + 2),
                          "plan-" + std::to_string(now + 3), "state-" + std::to_string(now + 4)));
}

TEST_F(EventsTest, ABoundTokenHearsOfItsJobsAlone) {
  const auto theirs = Create(kSmallSettings, kSmallProfile, "bob-1");
  const auto own = Create(kSmallSettings, kSmallProfile, "alice-1");
  int sent = 0;
  const auto send = [&](std::string_view, std::string_view, std::string_view) {
    ++sent;
    return true;
  };
  EventSender sender(*service_, {.key_prefixes = {"alice-"}, .jobs = {}},
                     {send, send, [] { return true; }});
  sender.SendState(*theirs, 0);
  EXPECT_EQ(sent, 0);
  for (const auto& [id, count] : {std::pair(theirs->id(), 0), {own->id(), 1}}) {
    const Event event{EventKind::kTrouble, id, "{}"};
    EXPECT_TRUE(sender(&event));
    EXPECT_EQ(sent, count);
  }
}

}  // namespace
}  // namespace perseus::server
