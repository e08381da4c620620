// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "http/event_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "http/server.h"

namespace perseus::http {
namespace {

std::vector<Event> Read(std::string_view text, std::size_t piece = 1 << 20) {
  EventParser parser;
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) {
    EXPECT_TRUE(parser.Feed(text.substr(0, piece)));
  }
  return {parser.events().begin(), parser.events().end()};
}

TEST(EventParser, FollowsTheStandard) {
  const std::vector<Event> events = Read(
      "\xEF\xBB\xBF: a comment\r\ndata: one\rdata:two\ndata\n\nevent: x\ndata:  y\nid: 7\n\n"
      "event: dropped\n\nretry: 3\nunknown: 1\ndata: z\n\ndata: not finished");
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].name, "message");
  EXPECT_EQ(events[0].data, "one\ntwo\n");
  EXPECT_EQ(events[0].id, "");
  EXPECT_EQ(events[1].name, "x");
  EXPECT_EQ(events[1].data, " y");
  EXPECT_EQ(events[1].id, "7");
  EXPECT_EQ(events[2].name, "message");
  EXPECT_EQ(events[2].data, "z");
  EXPECT_EQ(events[2].id, "7");
}

RC_GTEST_PROP(EventParser, ReadsWhatTheServerFormats, ()) {
  const auto lines = rc::gen::map(
      rc::gen::container<std::vector<std::string>>(
          rc::gen::elementOf(std::vector<std::string>{"a", ":", " ", "\n", "é", "data", "\0"})),
      [](const std::vector<std::string>& parts) {
        std::string text;
        for (const std::string& part : parts) text += part;
        return text;
      });
  const auto data = *rc::gen::container<std::vector<std::string>>(lines);
  std::string text;
  for (std::size_t i = 0; i < data.size(); ++i) {
    text += EventStream::Format("name", data[i], std::to_string(i));
  }
  const std::vector<Event> events = Read(text, *rc::gen::inRange<std::size_t>(1, 30));
  RC_ASSERT(events.size() == data.size());
  for (std::size_t i = 0; i < data.size(); ++i) {
    RC_ASSERT(events[i].name == "name");
    RC_ASSERT(events[i].id == std::to_string(i));
    RC_ASSERT(events[i].data == data[i]);
  }
}

TEST(EventFormat, KeepsNamesAndIdsOnTheirLine) {
  EXPECT_EQ(EventStream::Format("a\nb", "x\r\ny\rz", "1\r2"),
            "id: 1 2\nevent: a b\ndata: x\ndata: y\ndata: z\n\n");
  EXPECT_EQ(EventStream::Format("", ""), "data: \n\n");
}

TEST(EventParser, IsBounded) {
  EventParser parser;
  const std::string megabyte(1 << 20, 'x');
  bool fits = true;
  for (int i = 0; i < 17 && fits; ++i) fits = parser.Feed(megabyte);
  EXPECT_FALSE(fits);
}

}  // namespace
}  // namespace perseus::http
