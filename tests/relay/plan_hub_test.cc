// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "relay/plan_hub.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "relay/relay_testing.h"
#include "support/mentions.h"

// Plans through a relay: one long poll for all ranks of a job, whatever the server does.
namespace perseus::relay {
namespace {

const std::vector<int> kRanks = {0, 1, 2, 3, 4, 5, 6, 7};

TEST_F(RelayTest, EightRanksAreOnePollAtTheServer) {
  ScriptedServer server;
  StartRelay(server.url());
  for (const Answer& answer : Plans(kRanks, -1, 30)) EXPECT_EQ(answer.status, 200);
  for (std::int64_t version = 2; version < 6; ++version) {
    auto waiting =
        std::async(std::launch::async, [&, version] { return Plans(kRanks, version - 1, 30); });
    ASSERT_TRUE(http::Eventually([&] { return relay_->counts().plans.waiting == 8; }));
    ASSERT_TRUE(http::Eventually([&] { return server.waiting() == 1; }));
    server.SetVersion(version);
    const std::vector<Answer> answers = waiting.get();
    for (const int rank : kRanks) {
      EXPECT_EQ(answers[static_cast<std::size_t>(rank)].body,
                ScriptedServer::PlanOf(rank, version));
    }
  }
  // The ranks that came first made the set grow; from then on it is all of them.
  ASSERT_TRUE(http::Eventually([&] { return server.waiting() == 1; }));
  EXPECT_EQ(server.Calls("GET", "/plans").back().query, "after=5&ranks=0-7&wait=30");
  EXPECT_EQ(server.CountOf("GET", "/plan"), 0U);
  EXPECT_LE(relay_->counts().plans.polls, 5U);
}

TEST_F(RelayTest, NoNewsIs204AndAKnownPlanNeedsNoServer) {
  ScriptedServer server;
  StartRelay(server.url());
  EXPECT_EQ(Plan(3, -1, 0).body, ScriptedServer::PlanOf(3, 1));
  ASSERT_TRUE(http::Eventually([&] { return server.waiting() == 1; }));
  const std::size_t calls = server.CountOf("GET", "/plans");
  EXPECT_EQ(Plan(3, 1, 0).status, 204);
  EXPECT_EQ(Plan(3, 1, 1).status, 204);
  EXPECT_EQ(Plan(3, -1, 0).body, ScriptedServer::PlanOf(3, 1));
  EXPECT_EQ(server.CountOf("GET", "/plans"), calls);
}

TEST_F(RelayTest, ARankThatComesLaterHearsTheNextNewsToo) {
  ScriptedServer server;
  StartRelay(server.url());
  EXPECT_EQ(Plan(0, -1, 0).status, 200);
  ASSERT_TRUE(http::Eventually([&] { return server.waiting() == 1; }));
  EXPECT_EQ(Plan(1, -1, 0).status, 200);  // While the poll of rank 0 alone waits.
  auto waiting = std::async(std::launch::async, [&] { return Plans({0, 1}, 1, 30); });
  ASSERT_TRUE(http::Eventually([&] { return relay_->counts().plans.waiting == 2; }));
  server.SetVersion(2);
  const std::vector<Answer> answers = waiting.get();
  EXPECT_EQ(answers[0].body, ScriptedServer::PlanOf(0, 2));
  EXPECT_EQ(answers[1].body, ScriptedServer::PlanOf(1, 2));
}

TEST_F(RelayTest, ARankThatTheServerDoesNotKnowKeepsNobodyFromTheirs) {
  ScriptedServer server;
  server.SetUnknown({5});
  StartRelay(server.url());
  const std::vector<Answer> answers = Plans(kRanks, -1, 30);
  for (const int rank : kRanks) {
    const Answer& answer = answers[static_cast<std::size_t>(rank)];
    if (rank == 5) {
      EXPECT_EQ(answer.status, 404);
      EXPECT_THAT(answer.body, Mentions("rank", "5"));
    } else {
      EXPECT_EQ(answer.body, ScriptedServer::PlanOf(rank, 1));
    }
  }
  server.SetUnknown({});
  EXPECT_EQ(Plan(5, -1, 0).status, 200);
}

TEST_F(RelayTest, AForgottenJobIsToldToAllItsRanksAndForgotten) {
  ScriptedServer server;
  StartRelay(server.url());
  EXPECT_EQ(Plans({0, 1}, -1, 30)[0].status, 200);
  auto waiting = std::async(std::launch::async, [&] { return Plans({0, 1}, 1, 30); });
  ASSERT_TRUE(http::Eventually(
      [&] { return relay_->counts().plans.waiting == 2 && server.waiting() == 1; }));
  server.SetVersion(2);
  for (const Answer& answer : waiting.get()) EXPECT_EQ(answer.status, 200);
  waiting = std::async(std::launch::async, [&] { return Plans({0, 1}, 2, 30); });
  ASSERT_TRUE(http::Eventually(
      [&] { return relay_->counts().plans.waiting == 2 && server.waiting() == 1; }));
  server.ForgetJobs();
  for (const Answer& answer : waiting.get()) EXPECT_EQ(answer.status, 404);
  EXPECT_EQ(Plan(0, 2, 30).status, 404);
  EXPECT_EQ(Plan(1, 2, 30).status, 404);
  EXPECT_TRUE(http::Eventually([&] { return relay_->counts().plans.jobs == 0; }));
}

TEST_F(RelayTest, ARankThatDisappearsMidPollIsForgottenAndHarmsNobody) {
  ScriptedServer server;
  StartRelay(server.url(), [](RelayOptions* options) {
    options->plans.live = std::chrono::milliseconds(300);
    options->plans.poll_seconds = 1;
  });
  EXPECT_EQ(Plans({0, 1}, -1, 30)[0].status, 200);
  {
    http::Client gone = Rank();
    auto call = std::async(std::launch::async, [&] {
      return Call(&gone, "GET", "/api/v1/jobs/j/plan?rank=1&after=1&wait=60");
    });
    ASSERT_TRUE(http::Eventually([&] { return relay_->counts().plans.waiting == 1; }));
    gone.Cancel();
    call.wait();
  }
  EXPECT_TRUE(http::Eventually([&] { return relay_->counts().plans.waiting == 0; }));
  // Rank 0 goes on alone.
  EXPECT_TRUE(http::Eventually([&] {
    EXPECT_EQ(Plan(0, 1, 1).status, 204);
    return server.Calls("GET", "/plans").back().query == "after=1&ranks=0&wait=1";
  }));
  // Then nobody asks, and nothing is kept.
  EXPECT_TRUE(http::Eventually([&] { return relay_->counts().plans.jobs == 0; }));
  EXPECT_EQ(Plan(0, -1, 0).status, 200);
}

TEST_F(RelayTest, TwoJobsOfANodeDoNotMix) {
  ScriptedServer server;
  StartRelay(server.url());
  EXPECT_EQ(Plan(0, -1, 0, "a").status, 200);
  EXPECT_EQ(Plan(0, -1, 0, "b").status, 200);
  ASSERT_TRUE(http::Eventually([&] { return server.waiting() == 2; }));
  EXPECT_EQ(relay_->counts().plans.jobs, 2U);
  // One is gone; the other's poll goes on.
  server.SetScript([](const http::Request& request) -> std::optional<http::Response> {
    if (!request.path.starts_with("/api/v1/jobs/a/")) return std::nullopt;
    return http::ErrorResponse(404, "not_found", "no job a");
  });
  auto waiting = std::async(std::launch::async, [&] { return Plan(0, 1, 30, "b"); });
  server.SetVersion(2);
  EXPECT_EQ(waiting.get().status, 200);
  EXPECT_TRUE(http::Eventually([&] { return Plan(0, 2, 0, "a").status == 404; }));
  EXPECT_EQ(Plan(0, 2, 0, "b").status, 204);
}

TEST_F(RelayTest, AServerThatLostAVersionSaysSoToThoseWhoKnowIt) {
  ScriptedServer server;
  server.SetVersion(7);
  StartRelay(server.url(), [](RelayOptions* options) { options->plans.fetch_seconds = 1; });
  EXPECT_EQ(Plan(0, -1, 0).body, ScriptedServer::PlanOf(0, 7));
  auto waiting = std::async(std::launch::async, [&] { return Plan(0, 7, 30); });
  ASSERT_TRUE(http::Eventually([&] { return server.waiting() == 1; }));
  server.SetVersion(3);
  EXPECT_EQ(waiting.get().body, ScriptedServer::PlanOf(0, 3));
  // One that knows more than the relay ever did: the server decides.
  EXPECT_EQ(Plan(0, 9, 30).body, ScriptedServer::PlanOf(0, 3));
  // A server that knows that there is a later one keeps silent; so does the relay.
  server.SetScript([](const http::Request& request) -> std::optional<http::Response> {
    if (request.query.count("after") == 0 || request.query.at("after") != "9") return std::nullopt;
    http::Response none;
    none.status = 204;
    return none;
  });
  EXPECT_EQ(Plan(0, 9, 1).status, 204);
  // Nor is what others were told an answer for a rank that knows more.
  EXPECT_EQ(Plan(1, 9, 1).status, 204);
}

TEST_F(RelayTest, WhileTheServerIsAwayTheLastPlanIsServedAndNobodyHangs) {
  auto server = std::make_unique<ScriptedServer>("unix:" + folder_.Path("upstream"));
  const std::string url = server->url();
  StartRelay(url);
  EXPECT_EQ(Plans({0, 1}, -1, 30)[1].status, 200);
  server.reset();
  // Who waits for news is told within some seconds that there may be some.
  const Answer away = Plan(0, 1, 60);
  EXPECT_EQ(away.status, 503);
  EXPECT_THAT(away.body, Mentions("\"code\":\"unavailable\""));
  EXPECT_NE(http::FindHeader(away.headers, "Retry-After"), nullptr);
  EXPECT_EQ(Plan(0, 1, 60).status, 503);
  EXPECT_EQ(Call("GET", "/readyz").status, 503);
  EXPECT_EQ(Call("GET", "/healthz").status, 200);
  // Who has no plan gets the last one; who was never there gets none.
  EXPECT_EQ(Plan(1, -1, 30).body, ScriptedServer::PlanOf(1, 1));
  EXPECT_EQ(Plan(2, -1, 30).status, 503);
  EXPECT_EQ(Call("POST", "/api/v1/jobs/j/ranks", "{}").status, 503);

  server = std::make_unique<ScriptedServer>(url);
  server->SetVersion(2);
  EXPECT_TRUE(http::Eventually([&] { return Plan(0, 1, 5).body == ScriptedServer::PlanOf(0, 2); }));
  EXPECT_EQ(Call("GET", "/readyz").status, 200);
  EXPECT_EQ(Call("POST", "/api/v1/jobs/j/ranks", "{}").status, 200);
}

TEST_F(RelayTest, GarbageIsNoPlan) {
  ScriptedServer server;
  server.SetScript([](const http::Request&) { return http::JsonResponse(200, "<html>"); });
  StartRelay(server.url());
  const Answer garbage = Plan(0, -1, 30);
  EXPECT_EQ(garbage.status, 503);
  EXPECT_THAT(garbage.body, Mentions("read"));
  server.SetScript([](const http::Request&) {
    return http::JsonResponse(200, R"({"version":3,"plans":[{"ranks":[9]}]})");
  });
  EXPECT_THAT(Plan(0, -1, 30).body, Mentions("lacks"));
  server.SetScript({});
  EXPECT_EQ(Plan(0, -1, 30).status, 200);
}

TEST_F(RelayTest, ManyPollsAreOneAtTheServerAndBounded) {
  ScriptedServer server;
  StartRelay(server.url(), [](RelayOptions* options) {
    options->max_connections = 40;
    options->max_connections_per_user = 30;
    options->plans.max_jobs = 2;
    options->plans.max_ranks = 4;
  });
  EXPECT_EQ(Plan(0, -1, 0).status, 200);
  std::vector<http::Client> clients;
  for (int i = 0; i < 30; ++i) clients.push_back(Rank());
  std::vector<std::future<Answer>> polls;
  for (http::Client& client : clients) {
    polls.push_back(std::async(std::launch::async, [&client] {
      return Call(&client, "GET", "/api/v1/jobs/j/plan?rank=0&after=1&wait=60");
    }));
  }
  ASSERT_TRUE(http::Eventually([&] { return relay_->counts().plans.waiting == 30; }));
  const Answer more = Plan(0, 1, 60);
  EXPECT_EQ(more.status, 503);
  EXPECT_THAT(more.body, Mentions("30"));
  EXPECT_LE(relay_->counts().plans.polls, 1U);
  server.SetVersion(2);
  for (auto& poll : polls) EXPECT_EQ(poll.get().body, ScriptedServer::PlanOf(0, 2));
  clients.clear();
  ASSERT_TRUE(http::Eventually([&] { return relay_->counts().http.connections_now == 0; }));

  for (const int rank : {1, 2, 3}) EXPECT_EQ(Plan(rank, -1, 0).status, 200);
  EXPECT_THAT(Plan(4, -1, 0).body, Mentions("4", "ranks"));
  EXPECT_EQ(Plan(0, -1, 0, "k").status, 200);
  EXPECT_THAT(Plan(0, -1, 0, "l").body, Mentions("2", "jobs"));
}

TEST_F(RelayTest, JobsThatAreNoneTakeNoPlace) {
  ScriptedServer server;
  server.SetScript(
      [](const http::Request&) { return http::ErrorResponse(404, "not_found", "no such job"); });
  StartRelay(server.url(), [](RelayOptions* options) { options->plans.max_jobs = 2; });
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Plan(0, -1, 30, "x" + std::to_string(i)).status, 404);
  EXPECT_EQ(relay_->counts().plans.jobs, 0U);
}

Result<std::shared_ptr<const PlanSet>> Parse(const std::string& text) {
  return PlanSet::Parse(std::make_shared<const std::string>(text));
}

TEST(PlanSet, GivesEachRankWhatTheServerWouldHave) {
  const auto set = Parse(
      R"({"job":"j","version":12,"plans":[)"
      R"({"job":"j","version":12,"ranks":[0,3],"pipeline":0,"computations":[["F",0,0,1410,0.10]]},)"
      R"({"job":"j","version":12,"ranks":[7],"pipeline":1,"sentence":"\"ranks\":[1]"}]})");
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_EQ((*set)->version(), 12);
  EXPECT_EQ((*set)->size(), 3U);
  EXPECT_TRUE((*set)->Has(3));
  EXPECT_FALSE((*set)->Has(1));
  EXPECT_EQ(
      *(*set)->BodyOf(3),
      R"({"job":"j","version":12,"rank":3,"pipeline":0,"computations":[["F",0,0,1410,0.10]]})");
  EXPECT_EQ(*(*set)->BodyOf(7),
            R"({"job":"j","version":12,"rank":7,"pipeline":1,"sentence":"\"ranks\":[1]"})");
}

TEST(PlanSet, RefusesWhatIsNoAnswer) {
  for (const char* const text :
       {"", "garbage", "[]", "{}", R"({"version":1})", R"({"plans":[]})",
        R"({"version":"1","plans":[]})", R"({"version":-1,"plans":[]})",
        R"({"version":1.5,"plans":[]})", R"({"version":1,"plans":{}})",
        R"({"version":1,"plans":[1]})", R"({"version":1,"plans":[{"rank":1}]})",
        R"({"version":1,"plans":[{"ranks":["a"]}]})", R"({"version":1,"plans":[{"ranks":[-1]}]})",
        R"({"version":1,"plans":[{"ranks":[0]}])"}) {
    EXPECT_FALSE(Parse(text)) << text;
  }
  EXPECT_FALSE(PlanSet::Parse(nullptr));
  EXPECT_TRUE(Parse(R"({"version":1,"plans":[]})"));
}

using OrderedJson = nlohmann::ordered_json;

TEST(JsonSlices, GivesPartsAsTheyStand) {
  const std::string text = R"( { "a" : 1.50e+0 , "b\"}" :[ {"c":"]}"} , [ ] ,null ],"d":"x,\\"} )";
  ASSERT_TRUE(IsJson(text));
  const auto members = MembersOf(text);
  ASSERT_TRUE(members);
  ASSERT_EQ(members->size(), 3U);
  EXPECT_EQ((*members)[0].key, "a");
  EXPECT_EQ((*members)[0].value, "1.50e+0");
  EXPECT_EQ((*members)[1].key, R"(b\"})");
  const auto elements = ElementsOf((*members)[1].value);
  ASSERT_TRUE(elements);
  ASSERT_EQ(elements->size(), 3U);
  EXPECT_EQ((*elements)[0], R"({"c":"]}"})");
  EXPECT_EQ((*elements)[1], "[ ]");
  EXPECT_EQ((*elements)[2], "null");
  EXPECT_EQ((*members)[2].value, R"("x,\\")");
  EXPECT_FALSE(MembersOf("[]"));
  EXPECT_FALSE(ElementsOf("{}"));
  EXPECT_TRUE(MembersOf("{ }")->empty());
  EXPECT_TRUE(ElementsOf("[]")->empty());
}

TEST(JsonSlices, AnyDepthIsSafe) {
  const std::string deep = std::string(1 << 20, '[') + std::string(1 << 20, ']');
  ASSERT_TRUE(IsJson(deep));
  EXPECT_EQ(ElementsOf(deep)->size(), 1U);
  EXPECT_FALSE(IsJson(std::string(1 << 20, '[')));
}

OrderedJson AnyJson(int depth) {
  switch (*rc::gen::inRange(0, depth > 0 ? 6 : 4)) {
    case 0:
      return *rc::gen::arbitrary<int>();
    case 1:
      return *rc::gen::container<std::string>(rc::gen::elementOf(std::string("a\"\\{}[],: \n")));
    case 2:
      return *rc::gen::arbitrary<bool>();
    case 3:
      return {};
    case 4: {
      OrderedJson list = OrderedJson::array();
      for (int i = *rc::gen::inRange(0, 4); i > 0; --i) list.push_back(AnyJson(depth - 1));
      return list;
    }
    default: {
      OrderedJson object = OrderedJson::object();
      for (int i = *rc::gen::inRange(0, 4); i > 0; --i) {
        object["k" + std::to_string(i)] = AnyJson(depth - 1);
      }
      return object;
    }
  }
}

RC_GTEST_PROP(JsonSlices, PartsAreThoseOfAParser, ()) {
  const OrderedJson json = AnyJson(4);
  const std::string text = json.dump(*rc::gen::elementOf(std::vector<int>{-1, 0, 2}));
  RC_ASSERT(IsJson(text));
  const auto members = MembersOf(text);
  const auto elements = ElementsOf(text);
  RC_ASSERT(members.has_value() == json.is_object());
  RC_ASSERT(elements.has_value() == json.is_array());
  if (members) {
    RC_ASSERT(members->size() == json.size());
    for (const JsonMember& member : *members) {
      RC_ASSERT(OrderedJson::parse(member.value) == json[std::string(member.key)]);
    }
  }
  if (elements) {
    RC_ASSERT(elements->size() == json.size());
    for (std::size_t i = 0; i < elements->size(); ++i) {
      RC_ASSERT(OrderedJson::parse((*elements)[i]) == json[i]);
    }
  }
}

RC_GTEST_PROP(JsonSlices, AnyBytesAreSafe, ()) {
  const auto text =
      *rc::gen::container<std::string>(rc::gen::elementOf(std::string("\"\\{}[],: \n1a")));
  static_cast<void>(MembersOf(text));
  static_cast<void>(ElementsOf(text));
}

}  // namespace
}  // namespace perseus::relay
