// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "relay/relay_testing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <utility>

#include "common/numbers.h"

namespace perseus::relay {
namespace {

std::string QueryText(const http::Request& request) {
  std::string text;
  for (const auto& [name, value] : request.query) {
    text += fmt::format("{}{}={}", text.empty() ? "" : "&", name, value);
  }
  return text;
}

std::vector<int> RanksOf(const std::string& list) {
  std::vector<int> ranks;
  std::string_view text = list;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const int first = *ParseInteger<int>(part.substr(0, part.find('-')));
    const int last = part.find('-') == std::string_view::npos
                         ? first
                         : *ParseInteger<int>(part.substr(part.find('-') + 1));
    for (int rank = first; rank <= last; ++rank) ranks.push_back(rank);
  }
  return ranks;
}

http::Response NoContent() {
  http::Response response;
  response.status = 204;
  return response;
}

}  // namespace

ScriptedServer::ScriptedServer(std::string listen) {
  const auto handle = [this](const http::Request& request, const auto&,
                             const http::Responder& responder) { Handle(request, responder); };
  std::vector<http::Route> routes;
  for (const char* const method : {"GET", "POST", "DELETE"}) {
    for (const char* const pattern :
         {"/api/v1/jobs", "/api/v1/jobs/{id}", "/api/v1/jobs/{id}/{what}",
          "/api/v1/jobs/{id}/{what}/{which}"}) {
      routes.push_back({method, pattern, http::Role::kNone, std::size_t{64} << 20, true, handle});
    }
  }
  http::ServerOptions options;
  options.listen = std::move(listen);
  server_ = http::StartServer(std::move(routes), options);
}

std::string ScriptedServer::PlanOf(int rank, std::int64_t version) {
  return fmt::format(R"({{"job":"j","version":{},"rank":{},"pipeline":{},"reason":"target",)"
                     R"("computations":[["F",0,0,1410,0.10,2.5e-1]]}})",
                     version, rank, rank / 2);
}

// Two ranks of a pipeline have one plan.
std::string ScriptedServer::PlansOf(const std::vector<int>& ranks) const {
  std::map<int, std::vector<int>> pipelines;
  for (const int rank : ranks) pipelines[rank / 2].push_back(rank);
  std::string text = fmt::format(R"({{"job":"j","version":{},"plans":[)", version_);
  bool is_first = true;
  for (const auto& [pipeline, members] : pipelines) {
    std::string plan = PlanOf(members.front(), version_);
    const std::string alone = fmt::format("\"rank\":{}", members.front());
    plan.replace(plan.find(alone), alone.size(),
                 fmt::format("\"ranks\":[{}]", fmt::join(members, ",")));
    text += (std::exchange(is_first, false) ? "" : ",") + plan;
  }
  return text + "]}";
}

void ScriptedServer::Handle(const http::Request& request, const http::Responder& responder) {
  Script script;
  {
    const std::lock_guard lock(mutex_);
    const std::string* token = http::FindHeader(request.headers, "Authorization");
    calls_.push_back({request.method, request.path, QueryText(request), request.body,
                      token != nullptr ? *token : ""});
    if (is_silent_) {
      silenced_.push_back(responder);
      responder.AnswerAfter(3600, NoContent());
      return;
    }
    script = script_;
  }
  if (script) {
    if (auto response = script(request)) {
      responder.Send(*std::move(response));
      return;
    }
  }
  if (request.path.ends_with("/plans")) return HandlePlans(request, responder);
  responder.Send(http::JsonResponse(request.path.ends_with("/iterations") ? 202 : 200,
                                    R"({"plan_version":1})"));
}

void ScriptedServer::HandlePlans(const http::Request& request, const http::Responder& responder) {
  const std::vector<int> ranks = RanksOf(request.query.at("ranks"));
  const std::int64_t after = *ParseInteger<std::int64_t>(request.query.at("after"));
  const std::lock_guard lock(mutex_);
  for (const int rank : ranks) {
    if (unknown_.contains(rank)) {
      responder.Send(
          http::ErrorResponse(404, "not_found", fmt::format("rank {} is not registered", rank)));
      return;
    }
  }
  if (version_ != after) {
    responder.Send(http::JsonResponse(200, PlansOf(ranks)));
    return;
  }
  responder.AnswerAfter(*ParseInteger<int>(request.query.at("wait")), NoContent());
  parked_.push_back({ranks, after, responder});
}

void ScriptedServer::SetVersion(std::int64_t version) {
  const std::lock_guard lock(mutex_);
  version_ = version;
  for (const Parked& each : std::exchange(parked_, {})) {
    each.responder.Send(http::JsonResponse(200, PlansOf(each.ranks)));
  }
}

void ScriptedServer::SetUnknown(std::set<int> ranks) {
  const std::lock_guard lock(mutex_);
  unknown_ = std::move(ranks);
}

void ScriptedServer::SetScript(Script script) {
  const std::lock_guard lock(mutex_);
  script_ = std::move(script);
}

void ScriptedServer::ForgetJobs() {
  const http::Response unknown = http::ErrorResponse(404, "not_found", "no job j");
  const std::lock_guard lock(mutex_);
  script_ = [unknown](const http::Request&) { return unknown; };
  for (const Parked& each : std::exchange(parked_, {})) each.responder.Send(unknown);
}

void ScriptedServer::SetSilent(bool is_silent) {
  const std::lock_guard lock(mutex_);
  is_silent_ = is_silent;
}

std::vector<ScriptedServer::Call> ScriptedServer::Calls(const std::string& method,
                                                        const std::string& suffix) const {
  const std::lock_guard lock(mutex_);
  std::vector<Call> calls;
  for (const Call& call : calls_) {
    if (call.method == method && call.path.ends_with(suffix)) calls.push_back(call);
  }
  return calls;
}

std::size_t ScriptedServer::waiting() const { return server_->counters().parked_now; }

void RelayTest::StartRelay(const std::string& url, const Change& change) {
  relay_.reset();
  RelayOptions options;
  options.server.url = url;
  options.socket_path = folder_.Path("relay/server.sock");
  options.linger_seconds = 0.05;
  if (change) change(&options);
  auto relay = Relay::Start(std::move(options));
  if (!relay) {
    std::fprintf(stderr, "%s\n", relay.error().message.c_str());
    std::abort();
  }
  relay_ = *std::move(relay);
}

http::Client RelayTest::Rank() const {
  http::ClientOptions options;
  options.url = RelayUrl();
  return *http::Client::Create(options);
}

RelayTest::Answer RelayTest::Call(http::Client* client, const std::string& method,
                                  const std::string& target, const std::string& body) {
  http::CallOptions options;
  options.deadline_seconds = http::kPatience;
  auto response = client->Call(method, target, body, options);
  if (!response) return {0, response.error().message, {}};
  return {response->status, response->body ? *response->body : "", response->headers};
}

RelayTest::Answer RelayTest::Call(const std::string& method, const std::string& target,
                                  const std::string& body) const {
  http::Client client = Rank();
  return Call(&client, method, target, body);
}

RelayTest::Answer RelayTest::Plan(int rank, std::int64_t after, int wait,
                                  const std::string& job) const {
  return Call("GET",
              fmt::format("/api/v1/jobs/{}/plan?rank={}&after={}&wait={}", job, rank, after, wait));
}

std::vector<RelayTest::Answer> RelayTest::Plans(const std::vector<int>& ranks, std::int64_t after,
                                                int wait) const {
  std::vector<Answer> answers(ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    threads.emplace_back([&, i] { answers[i] = Plan(ranks[i], after, wait); });
  }
  for (std::thread& thread : threads) thread.join();
  return answers;
}

}  // namespace perseus::relay
