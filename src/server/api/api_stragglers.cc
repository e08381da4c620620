// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "common/numbers.h"
#include "server/api/api_handlers.h"
#include "server/api/api_schemas.h"
#include "server/api/api_text.h"
#include "server/api/job_json.h"

namespace perseus::server {
namespace {

constexpr Member kNewStragglerMembers[] = {Integer("pipeline").Optional(),
                                           Integer("rank").Optional(),
                                           Text("node").Optional(),
                                           Number("factor").In({.least = 1}).Optional(),
                                           Number("delay_s").In(kPositive).Optional(),
                                           Number("expires_s").Optional().Says("Seconds from now"),
                                           Number("starts_s").Optional().Says("Seconds from now")};
constexpr Member kStragglerMembers[] = {
    Integer("straggler_id"),  Integer("pipeline").Sometimes(), Integer("rank").Sometimes(),
    Text("node").Sometimes(), Number("factor").Sometimes(),    Number("delay_s").Sometimes(),
    Number("starts_at"),      Number("expires_at").Optional()};
constexpr Member kStragglerListMembers[] = {Object("stragglers", "Straggler").List()};
constexpr Member kStragglerSetMembers[] = {Integer("straggler_id"), Integer("plan_version")};
constexpr ObjectSchema kNewStragglerSchema = {
    .name = "NewStraggler",
    .members = kNewStragglerMembers,
    .about = "Exactly one of pipeline, rank and node, and one of factor and delay_s.",
    .is_closed = true};
constexpr ObjectSchema kStragglerSchemas[] = {kNewStragglerSchema,
                                              {"Straggler", kStragglerMembers},
                                              {"StragglerList", kStragglerListMembers},
                                              {"StragglerSet", kStragglerSetMembers}};

Outcome<StragglerRequest> ReadStraggler(const std::string& body) {
  StragglerRequest straggler;
  const Outcome<void> read = ReadBody(body, [&](const TreeCursor& root) {
    AllowOnly(kNewStragglerSchema, root);
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

void SetStraggler(const JobPointer& job, const CallPointer& call) {
  const auto straggler = ReadStraggler(call->request.body);
  if (!straggler) return Send(*call, FailureResponse(straggler.error()));
  Change(job, call, AddStraggler{*straggler}, [](const Answer& added) {
    return JsonAnswer(201,
                      {{"straggler_id", added.straggler}, {"plan_version", added.plan_version}});
  });
}

http::Response ListStragglers(ManagedJob& job, const Call& /*call*/) {
  nlohmann::ordered_json stragglers = nlohmann::ordered_json::array();
  for (const auto& straggler : job.View().stragglers) {
    stragglers.push_back(StragglerJson(straggler));
  }
  return JsonAnswer(200, {{"stragglers", std::move(stragglers)}});
}

void ClearAll(const JobPointer& job, const CallPointer& call) {
  Change(job, call, ClearStragglers{}, [](const Answer&) { return NoContent(); });
}

void ClearOne(const JobPointer& job, const CallPointer& call) {
  const std::string& text = call->parameters[1];
  const auto id = ParseInteger<std::int64_t>(text);
  if (!id) {
    return Send(*call, FailureOf(*job, {FailureCode::kNotFound,
                                        "there is no straggler " + text +
                                            "; 'perseus job show' has those that there are"}));
  }
  Change(job, call, ClearStraggler{*id}, [](const Answer&) { return NoContent(); });
}

}  // namespace

Schemas StragglerSchemas() { return kStragglerSchemas; }

void AddStragglerRoutes(RouteMaker* routes) {
  routes->OnJob(RowOf("setStraggler"), SetStraggler);
  routes->OnLook(RowOf("listStragglers"), ListStragglers);
  routes->OnJob(RowOf("clearStragglers"), ClearAll);
  routes->OnJob(RowOf("clearStraggler"), ClearOne);
}

}  // namespace perseus::server
