// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "client/fake_server.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <utility>

namespace perseus::client {
FakeServer::FakeServer() {
  const auto handle = [this](const http::Request& request, const std::vector<std::string>&,
                             const http::Responder& responder) { Handle(request, responder); };
  http::ServerOptions options;
  options.listen = "127.0.0.1:0";
  options.worker_threads = 2;
  std::vector<http::Route> routes;
  for (const char* const method : {"GET", "POST", "DELETE"}) {
    for (const char* const pattern :
         {"/api/v1/jobs", "/api/v1/jobs/{id}", "/api/v1/jobs/{id}/{what}",
          "/api/v1/jobs/{id}/{what}/{which}"}) {
      routes.push_back({.method = method,
                        .pattern = pattern,
                        .at_least = http::Role::kTrain,
                        .max_body_bytes = {},
                        .handle = handle});
    }
  }
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

void FakeServer::Handle(const http::Request& request, const http::Responder& responder) {
  const std::lock_guard lock(mutex_);
  calls_.push_back({request.method, request.path, request.body});
  changed_.notify_all();
  if (always_) {
    if (always_->empty()) return responder.AnswerAfter(120, http::JsonResponse(503, "{}"));
    responder.Send(http::JsonResponse(200, *always_));
    return;
  }
  if (request.path.ends_with("/plan")) {
    HandlePlan(request, responder);
  } else if (request.path == "/api/v1/jobs" || request.path.ends_with("/job-1")) {
    responder.Send(http::JsonResponse(200, R"({"id":"job-1","state":")" + job_state_ + "\"}"));
  } else if (request.method == "GET" && request.path.ends_with("/measurements")) {
    responder.Send(reported_ ? http::JsonResponse(200, *reported_) : http::JsonResponse(404, "{}"));
  } else if (!trouble_.empty() && request.path.ends_with("/iterations")) {
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
    if (call.method == method && call.path.ends_with(suffix)) found.push_back(call);
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
