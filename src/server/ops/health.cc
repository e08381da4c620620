// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/ops/health.h"

#include <functional>
#include <string>
#include <utility>

#include "server/api/api_handlers.h"
#include "server/api/messages.h"

namespace perseus::server {
namespace {

http::Route HealthRoute(std::string path, std::function<http::Response()> answer) {
  http::Route route;
  route.method = "GET";
  route.pattern = std::move(path);
  route.at_least = http::Role::kNone;
  route.is_instant = true;
  route.handle = [answer = std::move(answer)](const http::Request&, const auto&,
                                              const http::Responder& responder) {
    responder.Send(answer());
  };
  return route;
}

http::Response Readiness(const JobService& service) {
  if (!service.store_counters().is_failing) return JsonAnswer(200, kHealth, {"ready"});
  // Not why: the reason names files, and who asks has shown no token.
  return JsonAnswer(503, kHealth,
                    {"store",
                     "the store did not take the last facts; requests that change a job are "
                     "answered with the reason"});
}

}  // namespace

std::vector<http::Route> StartingRoutes(const Opening& opening) {
  const auto answer = [&opening](int status) {
    http::Response response = JsonAnswer(status, kHealth, {"starting", opening.sentence()});
    if (status == 503) response.headers.emplace_back("Retry-After", "1");
    return response;
  };
  return {HealthRoute("/healthz", [answer] { return answer(200); }),
          HealthRoute("/readyz", [answer] { return answer(503); })};
}

void AddHealthRoutes(const JobService& service, std::vector<http::Route>* routes) {
  routes->push_back(HealthRoute("/healthz", [] { return JsonAnswer(200, kHealth, {"ok"}); }));
  routes->push_back(HealthRoute("/readyz", [&service] { return Readiness(service); }));
}

}  // namespace perseus::server
