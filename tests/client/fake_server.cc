// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "client/fake_server.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <utility>

namespace perseus::client {
namespace {

bool EndsWith(const std::string& text, const std::string& suffix) {
  return text.size() >= suffix.size() &&
         text.compare(text.size() - suffix.size(), suffix.size(), suffix) == 0;
}

}  // namespace

FakeServer::FakeServer() {
  const auto handle = [this](const http::Request& request, const std::vector<std::string>&,
                             http::Responder responder) { Handle(request, responder); };
  const auto plan = [this](const http::Request& request, const std::vector<std::string>&,
                           http::Responder responder) { HandlePlan(request, responder); };
  http::ServerOptions options;
  options.listen = "127.0.0.1:0";
  options.worker_threads = 2;
  std::vector<http::Route> routes;
  const auto add = [&](const char* method, const char* pattern, http::Handler handler) {
    http::Route route;
    route.method = method;
    route.pattern = pattern;
    route.at_least = http::Role::kTrain;
    route.handle = std::move(handler);
    routes.push_back(std::move(route));
  };
  add("POST", "/api/v1/jobs", handle);
  add("GET", "/api/v1/jobs/{id}", handle);
  add("POST", "/api/v1/jobs/{id}/ranks", handle);
  add("POST", "/api/v1/jobs/{id}/measurements", handle);
  add("GET", "/api/v1/jobs/{id}/measurements", handle);
  add("POST", "/api/v1/jobs/{id}/iterations", handle);
  add("GET", "/api/v1/jobs/{id}/stragglers", handle);
  add("POST", "/api/v1/jobs/{id}/stragglers", handle);
  add("DELETE", "/api/v1/jobs/{id}/stragglers/{straggler}", handle);
  add("GET", "/api/v1/jobs/{id}/plan", plan);
  auto server = http::Server::Open(std::move(options), std::move(routes));
  if (!server) {
    ADD_FAILURE() << server.error().message;
    std::abort();
  }
  server_ = std::move(*server);
  server_->Serve();
}

FakeServer::~FakeServer() { server_->Stop(0); }

void FakeServer::SetPlan(std::string json, int version) {
  std::vector<http::Responder> parked;
  const std::lock_guard lock(mutex_);
  plan_ = std::move(json);
  version_ = version;
  parked.swap(parked_);
  for (const http::Responder& responder : parked) responder.Send(http::JsonResponse(200, plan_));
}

void FakeServer::SetHasty(bool hasty) {
  const std::lock_guard lock(mutex_);
  hasty_ = hasty;
}

void FakeServer::SetJobState(std::string state) {
  const std::lock_guard lock(mutex_);
  job_state_ = std::move(state);
}

void FakeServer::SetReported(std::string json) {
  const std::lock_guard lock(mutex_);
  reported_ = std::move(json);
}

void FakeServer::SetTrouble(std::string sentence) {
  const std::lock_guard lock(mutex_);
  trouble_ = std::move(sentence);
}

void FakeServer::AnswerAlways(std::optional<std::string> body) {
  const std::lock_guard lock(mutex_);
  always_ = std::move(body);
}

void FakeServer::Handle(const http::Request& request, const http::Responder& responder) {
  const std::lock_guard lock(mutex_);
  calls_.push_back({request.method, request.path, request.body});
  changed_.notify_all();
  if (always_) {
    if (always_->empty()) return responder.AnswerAfter(120, http::JsonResponse(503, "{}"));
    responder.Send(http::JsonResponse(200, *always_));
    return;
  }
  if (request.path == "/api/v1/jobs" || EndsWith(request.path, "/job-1")) {
    responder.Send(http::JsonResponse(200, R"({"id":"job-1","state":")" + job_state_ + "\"}"));
  } else if (request.method == "GET" && EndsWith(request.path, "/measurements")) {
    responder.Send(reported_ ? http::JsonResponse(200, *reported_) : http::JsonResponse(404, "{}"));
  } else if (!trouble_.empty() && EndsWith(request.path, "/iterations")) {
    // Of another client, and of this one.
    const std::string key = R"("client":")";
    const std::size_t begin = request.body.find(key) + key.size();
    const std::string client = request.body.substr(begin, request.body.find('"', begin) - begin);
    responder.Send(http::JsonResponse(
        202, R"({"reports":1,"troubles":[{"client":"0","sentence":"not ours"},{"client":")" +
                 client + R"(","sentence":")" + trouble_ + "\"}]}"));
  } else if (request.method == "GET") {
    responder.Send(http::JsonResponse(200, R"({"stragglers":[{"straggler_id":"s-9","rank":2}]})"));
  } else {
    responder.Send(http::JsonResponse(200, R"({"straggler_id":"s-10"})"));
  }
}

void FakeServer::HandlePlan(const http::Request& request, const http::Responder& responder) {
  const std::lock_guard lock(mutex_);
  calls_.push_back({request.method, request.path, ""});
  changed_.notify_all();
  if (always_) {
    if (always_->empty()) return responder.AnswerAfter(120, http::JsonResponse(503, "{}"));
    responder.Send(http::JsonResponse(200, *always_));
    return;
  }
  const auto after = request.query.find("after");
  if (version_ > 0 &&
      (after == request.query.end() || std::atoi(after->second.c_str()) != version_)) {
    responder.Send(http::JsonResponse(200, plan_));
    return;
  }
  if (version_ == 0 && after != request.query.end() && after->second == "-1") {
    responder.Send(http::JsonResponse(
        200, R"({"version": 0, "reason": "no_plan", "sentence": "There is no plan yet.",)"
             R"( "computations": []})"));
    return;
  }
  http::Response none;
  none.status = 204;
  none.content_type = "";
  if (hasty_) {
    responder.Send(std::move(none));
    return;
  }
  responder.AnswerAfter(30, std::move(none));
  parked_.push_back(responder);
}

std::vector<FakeServer::Call> FakeServer::Calls(const std::string& method,
                                                const std::string& suffix) const {
  const std::lock_guard lock(mutex_);
  std::vector<Call> found;
  for (const Call& call : calls_) {
    if (call.method == method && EndsWith(call.path, suffix)) found.push_back(call);
  }
  return found;
}

bool FakeServer::WaitForCalls(const std::string& method, const std::string& suffix,
                              std::size_t count) const {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (Calls(method, suffix).size() < count) {
    std::unique_lock lock(mutex_);
    if (changed_.wait_until(lock, deadline) == std::cv_status::timeout) return false;
  }
  return true;
}

}  // namespace perseus::client
