// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "http/client_wire.h"
#include "http/message_parser.h"
#include "http/server.h"

namespace perseus::http {
namespace {

using ::testing::HasSubstr;
using Step = MessageParser::Step;

constexpr std::size_t kHeadBytes = 2048;

// What a message comes to when it arrives in pieces of the given sizes, repeated.
struct Outcome {
  Step step = Step::kMore;
  int status = 0;  // Of a failure.
  std::string method, target, body;
  Headers headers;
  std::size_t consumed = 0;
  std::size_t most_kept = 0;

  bool operator==(const Outcome& other) const {
    return step == other.step && status == other.status && method == other.method &&
           target == other.target &&
           // How much came before a failure depends on the pieces.
           (step == Step::kFailed ||
            (headers == other.headers && body == other.body && consumed == other.consumed));
  }
};

Outcome Parse(std::string_view text, const std::vector<std::size_t>& pieces = {1 << 20},
              std::size_t max_body_bytes = 1000) {
  Outcome outcome;
  MessageParser parser(MessageKind::kRequest, kHeadBytes);
  std::string unread;
  for (std::size_t i = 0; !text.empty(); ++i) {
    const std::string_view piece = text.substr(0, pieces[i % pieces.size()]);
    unread += piece;
    text.remove_prefix(piece.size());
    for (bool more = true; more;) {
      const MessageParser::Fed fed = parser.Feed(unread);
      unread.erase(0, fed.consumed);
      outcome.consumed += fed.consumed;
      outcome.step = fed.step;
      if (fed.step == Step::kHead) {
        outcome.method = parser.head().method;
        outcome.target = parser.head().target;
        parser.AllowBody(max_body_bytes);
      }
      if (fed.step == Step::kFailed) outcome.status = parser.failure().status;
      if (fed.step == Step::kFailed || fed.step == Step::kDone) {
        outcome.body = parser.body();
        outcome.headers = parser.head().headers;  // Trailers must not be among them.
        return outcome;
      }
      more = fed.step == Step::kHead;
    }
    outcome.most_kept = std::max(outcome.most_kept, unread.size());
  }
  outcome.body = parser.body();
  return outcome;
}

const char kPost[] =
    "POST /a?b=c HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nX-Y:  spaces \r\n\r\nhelloGET /";
const char kChunked[] =
    "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    "3\r\nhel\r\n2;ext=\"1\"\r\nlo\r\n0\r\nHost: evil\r\nX-Trailer: 1\r\n\r\nGET /";

TEST(MessageParser, ReadsARequestAndLeavesTheNext) {
  for (const char* text : {kPost, kChunked}) {
    const Outcome outcome = Parse(text);
    ASSERT_EQ(outcome.step, Step::kDone);
    EXPECT_EQ(outcome.method, "POST");
    EXPECT_EQ(outcome.body, "hello");
    EXPECT_EQ(outcome.consumed, std::string_view(text).size() - 5);
    EXPECT_EQ(*FindHeader(outcome.headers, "hOsT"), "h");
    EXPECT_EQ(FindHeader(outcome.headers, "X-Trailer"), nullptr);
  }
}

RC_GTEST_PROP(MessageParser, DoesNotCareHowBytesArrive, ()) {
  const auto text = *rc::gen::elementOf(std::vector<std::string>{
      kPost, kChunked, "GET / HTTP/1.1\r\nHost: h\r\n\r\n", "GET / HTTP/1.0\r\n\r\nrest",
      "GET / HTTP/1.1\r\n\r\n", "BAD\r\n\r\n", "GET / HTTP/2.0\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1x\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
      "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5000\r\n\r\n" + std::string(2000, 'x')});
  const auto pieces = *rc::gen::nonEmpty(
      rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(1, 40)));
  RC_ASSERT(Parse(text, pieces) == Parse(text));
}

// Whatever comes: no more is kept than the bound, and nothing is read beyond a failure.
RC_GTEST_PROP(MessageParser, KeepsLittle, ()) {
  const auto parts =
      *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(std::vector<std::string>{
          "POST / HTTP/1.1\r\n", "Host: h\r\n", "A: " + std::string(700, 'a') + "\r\n", "\r\n",
          "Transfer-Encoding: chunked\r\n", "1;x=" + std::string(900, 'y'), "5\r\nhello\r\n",
          "0\r\n", "T: " + std::string(700, 't') + "\r\n", std::string(300, 'z'), "\r", " "}));
  std::string text = "POST / HTTP/1.1\r\nHost: h\r\n";
  for (const std::string& part : parts) text += part;
  const Outcome outcome = Parse(text, {17});
  RC_ASSERT(outcome.most_kept <= kHeadBytes + 17);
  RC_ASSERT(outcome.body.size() <= 1000u);
}

TEST(MessageParser, RefusesWhatIsAmbiguous) {
  const struct {
    const char* text;
    int status;
  } cases[] = {
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
      {"GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
       400},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
       400},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, gzip\r\n\r\n", 501},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n", 501},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n", 501},
      {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost : h\r\n\r\n", 400},
      {"GET / HTTP/1.1\nHost: h\n\n", 505},
      {"GET /\r\n\r\n", 400},
      {"GET / HTTP/3.0\r\n\r\n", 505},
      {"GET / HTTP/1.1\r\nHost: h\r\nA: \x01\r\n\r\n", 400},
      {"\x16\x03\x01\x02", 400},
  };
  for (const auto& [text, status] : cases) {
    const Outcome outcome = Parse(text);
    EXPECT_EQ(outcome.step, Step::kFailed) << text;
    EXPECT_EQ(outcome.status, status) << text;
  }
}

TEST(MessageParser, BoundsHeadAndBody) {
  std::string many = "GET / HTTP/1.1\r\nHost: h\r\n";
  for (int i = 0; i < 100; ++i) many += "a:\r\n";
  EXPECT_EQ(Parse(many + "\r\n").status, 431);
  // A header at a time, none of them long: it is the sum that counts.
  std::string trickle = "GET / HTTP/1.1\r\nHost: h\r\n";
  for (int i = 0; i < 50; ++i) trickle += "a: " + std::string(50, 'b') + "\r\n";
  EXPECT_EQ(Parse(trickle, {56}).status, 431);
  EXPECT_EQ(Parse("GET /" + std::string(3000, 'a'), {100}).status, 431);
  // The start line and the headers are short enough, but not together.
  EXPECT_EQ(Parse("GET /" + std::string(1500, 'a') +
                  " HTTP/1.1\r\nHost: h\r\nX: " + std::string(1500, 'x') + "\r\n\r\n")
                .status,
            431);
  EXPECT_EQ(Parse(kPost, {7}, 5).step, Step::kDone);
  EXPECT_EQ(Parse(kPost, {7}, 4).status, 413);
  EXPECT_EQ(Parse(kChunked, {7}, 4).status, 413);
}

TEST(MessageParser, ReadsAnswersThatEndWithTheConnection) {
  MessageParser parser(MessageKind::kResponse, kHeadBytes);
  const std::string_view text = "HTTP/1.1 200 OK\r\n\r\nhello";
  MessageParser::Fed fed = parser.Feed(text);
  ASSERT_EQ(fed.step, Step::kHead);
  parser.AllowBody(100);
  fed = parser.Feed(text.substr(fed.consumed));
  EXPECT_EQ(fed.step, Step::kMore);
  EXPECT_TRUE(parser.FeedEnd());
  EXPECT_EQ(parser.body(), "hello");

  MessageParser cut(MessageKind::kResponse, kHeadBytes);
  const std::string_view half = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello";
  fed = cut.Feed(half);
  cut.AllowBody(100);
  cut.Feed(half.substr(fed.consumed));
  EXPECT_FALSE(cut.FeedEnd());
}

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
