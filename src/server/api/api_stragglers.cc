// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <array>
#include <charconv>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "server/api/api.h"
#include "server/api/api_handlers.h"
#include "server/api/api_text.h"
#include "server/api/job_json.h"

namespace perseus::server {
namespace {

using http::Request;
using http::Responder;
using http::Role;

Outcome<StragglerRequest> ReadStraggler(const std::string& body) {
  StragglerRequest straggler;
  const Outcome<void> read = ReadBody(body, [&](const TreeCursor& root) {
    constexpr std::array<std::string_view, 7> kKeys = {"pipeline", "rank",      "node",    "factor",
                                                       "delay_s",  "expires_s", "starts_s"};
    root.AllowOnly(kKeys);
    if (const auto pipeline = FindSet(root, "pipeline")) straggler.pipeline = pipeline->Integer(0);
    if (const auto rank = FindSet(root, "rank")) straggler.rank = rank->Integer(0);
    straggler.node = FindText(root, "node", 256);
    straggler.factor = FindNumber(root, "factor", kPositive).value_or(0);
    straggler.delay_seconds = FindNumber(root, "delay_s", kPositive).value_or(0);
    straggler.expires_in_seconds = FindNumber(root, "expires_s");
    straggler.starts_in_seconds = FindNumber(root, "starts_s").value_or(0);
  });
  if (!read) return tl::unexpected(read.error());
  return straggler;
}

http::Response SetStraggler(ManagedJob& job, const Request& request) {
  const auto straggler = ReadStraggler(request.body);
  if (!straggler) return FailureResponse(straggler.error());
  const auto id = DoAndWait(job, AddStraggler{*straggler});
  if (!id) return FailureResponse(id.error());
  const auto plan = job.board().Current();
  return JsonAnswer(201, {{"straggler_id", id->straggler},
                          {"plan_version", plan == nullptr ? 0 : plan->version.version}});
}

http::Response ListStragglers(ManagedJob& job, const Request& /*request*/) {
  nlohmann::ordered_json stragglers = nlohmann::ordered_json::array();
  for (const auto& straggler : job.View().stragglers) {
    stragglers.push_back(StragglerJson(straggler));
  }
  return JsonAnswer(200, {{"stragglers", std::move(stragglers)}});
}

http::Response ClearAll(ManagedJob& job, const Request& /*request*/) {
  const auto cleared = DoAndWait(job, ClearStragglers{});
  return cleared ? NoContent() : FailureResponse(cleared.error());
}

http::Response ClearOne(ManagedJob& job, const std::string& text) {
  std::int64_t id = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (fault != std::errc() || end != text.data() + text.size()) {
    return FailureResponse({FailureCode::kNotFound, "there is no straggler " + text});
  }
  const auto cleared = DoAndWait(job, ClearStraggler{id});
  return cleared ? NoContent() : FailureResponse(cleared.error());
}

}  // namespace

void AddStragglerRoutes(JobService& service, std::vector<http::Route>* routes) {
  constexpr const char* kPattern = "/api/v1/jobs/{id}/stragglers";
  routes->push_back({"POST", kPattern, Role::kTrain, {}, false, OnJob(service, SetStraggler)});
  routes->push_back({"GET", kPattern, Role::kRead, {}, false, OnJob(service, ListStragglers)});
  routes->push_back({"DELETE", kPattern, Role::kTrain, {}, false, OnJob(service, ClearAll)});
  routes->push_back({"DELETE",
                     "/api/v1/jobs/{id}/stragglers/{straggler_id}",
                     Role::kTrain,
                     {},
                     false,
                     [&service](const Request&, const std::vector<std::string>& parameters,
                                const Responder& responder) {
                       service.Get(parameters[0], [=](const auto& job) {
                         responder.Send(job ? ClearOne(**job, parameters[1])
                                            : FailureResponse(job.error()));
                       });
                     }});
}

}  // namespace perseus::server
