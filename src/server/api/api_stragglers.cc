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

constexpr NumberRange kCounted = {.least = 0, .most = kMaxCount};
constexpr Field kNewStragglerFields[] = {
    Value<&StragglerRequest::pipeline>("pipeline").In(kCounted).Optional(),
    Value<&StragglerRequest::rank>("rank").In(kCounted).Optional(),
    Value<&StragglerRequest::node>("node").Most(256).Optional(),
    Value<&StragglerRequest::factor>("factor").In({.least = 1}).Optional(),
    Value<&StragglerRequest::delay_seconds>("delay_s").In(kPositive).Optional(),
    Value<&StragglerRequest::expires_in_seconds>("expires_s").Optional().Says("Seconds from now"),
    Value<&StragglerRequest::starts_in_seconds>("starts_s").Optional().Says("Seconds from now")};
constexpr Message<StragglerRequest> kNewStraggler =
    Message<StragglerRequest>(
        "NewStraggler", kNewStragglerFields,
        "Exactly one of pipeline, rank and node, and one of factor and delay_s.")
        .Closed();
constexpr Field kStragglerFields[] = {
    Value<&store::StragglerRecord::id>("straggler_id"),
    Value<&store::StragglerRecord::pipeline>("pipeline").Sometimes(),
    Value<&store::StragglerRecord::rank>("rank").Sometimes(),
    Value<&store::StragglerRecord::node>("node").Sometimes().UnlessEmpty(),
    Value<&store::StragglerRecord::factor>("factor").Sometimes().UnlessEmpty(),
    Value<&store::StragglerRecord::delay_seconds>("delay_s").Sometimes().UnlessEmpty(),
    Value<&store::StragglerRecord::starts_at_seconds>("starts_at"),
    Value<&store::StragglerRecord::expires_at_seconds>("expires_at").Optional()};
}  // namespace
constexpr Message<store::StragglerRecord> kStraggler = {"Straggler", kStragglerFields};
namespace {
constexpr Field kStragglerListFields[] = {Object<&JobView::stragglers>("stragglers", kStraggler)};
constexpr Message<JobView> kStragglerList = {"StragglerList", kStragglerListFields};
constexpr Field kStragglerSetFields[] = {Value<&Answer::straggler>("straggler_id"),
                                         Value<&Answer::plan_version>("plan_version")};
constexpr Message<Answer> kStragglerSet = {"StragglerSet", kStragglerSetFields};
constexpr AnyMessage kStragglerSchemas[] = {kNewStraggler, kStraggler, kStragglerList,
                                            kStragglerSet};

void SetStraggler(const JobPointer& job, const CallPointer& call) {
  const auto straggler = ReadBody(kNewStraggler, call->request.body);
  if (!straggler) return Send(*call, FailureResponse(straggler.error()));
  Change(job, call, AddStraggler{*straggler},
         [](const Answer& added) { return JsonAnswer(201, kStragglerSet, added); });
}

http::Response ListStragglers(ManagedJob& job, const Call& /*call*/) {
  return JsonAnswer(200, kStragglerList, job.View());
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
