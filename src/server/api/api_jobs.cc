// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// One job: create, show, point, export, finish, delete.

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perseus/plan_file.h"
#include "server/api/api_handlers.h"
#include "server/api/api_schemas.h"
#include "server/api/api_text.h"
#include "server/api/job_json.h"
#include "server/planning/job_spec.h"

namespace perseus::server {
namespace {

using http::Response;

// The profile is one text. The settings are copied to an object whose keys are looked
// for one by one.
constexpr int kMostJobValues = 20'000;

constexpr Member kNewJobMembers[] = {
    Text("client_key").Most(256).Sometimes(), Text("name").Most(256).Sometimes(),
    Object("job", "JobSettings"),
    Text("profile_csv").Most(rows::kMostJobBytes).Sometimes().Says("Missing: the ranks measure.")};
constexpr ObjectSchema kNewJobSchema = {
    .name = "NewJob", .members = kNewJobMembers, .is_closed = true};
constexpr Member kPointMembers[] = {NumberOrText("at").Says(
    "1.05x (of the time at maximum clocks), seconds, fastest, economic or tstar")};
constexpr ObjectSchema kPointSchema = {
    .name = "Point", .members = kPointMembers, .is_closed = true};
constexpr ObjectSchema kNewJobSchemas[] = {kNewJobSchema, kPointSchema};
// Beside the fields of job files.
constexpr Member kJobSettingsMembers[] = {
    Text("model").Most(256).Optional().Says(
        "A label: the job takes over the profile of an earlier one with the same label, layout "
        "(stages, schedule, tensor parallelism, `microbatch_size` where given) and GPUs, if there "
        "is one."),
    Number("microbatch_size").In(kPositive).Optional(),
    Boolean("reuse_profile").Optional().Says("false: the ranks measure all the same.")};
constexpr ObjectSchema kJobSettings = {
    .name = "JobSettings",
    .members = kJobSettingsMembers,
    .about = "The fields of job files (docs/files.md) but those that name files.",
    .is_closed = true};

struct NewJob {
  std::string client_key;
  std::string name;
  std::string settings_json;
  std::string profile_csv;
};

Outcome<NewJob> ReadNewJob(const std::string& body) {
  NewJob job;
  const auto read_job = [&](const TreeCursor& root) {
    AllowOnly(kNewJobSchema, root);
    job.client_key = FindText(root, "client_key", 256);
    job.name = FindText(root, "name", 256);
    job.profile_csv = FindText(root, "profile_csv", rows::kMostJobBytes);
    root.Get("job");
  };
  const Outcome<void> read = ReadBody(body, read_job, kMostJobValues);
  if (!read) return tl::unexpected(read.error());
  // Depth and size were checked by the reader above.
  const auto tree = nlohmann::ordered_json::parse(body, nullptr, false);
  job.settings_json = tree["job"].dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return job;
}

Response CreateJob(const Call& call) {
  Outcome<NewJob> job = ReadNewJob(call.request.body);
  if (!job) return FailureResponse(job.error());
  if (auto refusal = CheckMayCreate(call, job->client_key)) return *std::move(refusal);
  Outcome<JobSpec> spec = MakeJobSpec(job->settings_json, job->profile_csv);
  if (!spec) return FailureResponse(spec.error());
  spec->client_key = job->client_key;
  spec->name = job->name;
  const Outcome<JobService::Created> created = call.service.Create(*spec);
  if (!created) return FailureResponse(created.error());
  Response response = ShowJob(*created->job, created->is_new ? 201 : 200);
  response.headers.emplace_back("Location", "/api/v1/jobs/" + created->job->id());
  return response;
}

Response SetPoint(ManagedJob& job, const Call& call) {
  std::string at;
  const Outcome<void> read = ReadBody(call.request.body, [&](const TreeCursor& root) {
    AllowOnly(kPointSchema, root);
    const TreeCursor value = root.Get("at");
    at = value.IsNumber() ? fmt::format("{}", value.Number(kPositive)) : value.String();
  });
  if (!read) return FailureResponse(read.error());
  return ShowJob(job, job.SetTarget(at));
}

// The published plan with a curve, or a failure that says what is missing.
Outcome<std::shared_ptr<const PublishedPlan>> PlanWithCurve(ManagedJob& job) {
  auto plan = job.board().Current();
  if (plan != nullptr && plan->curve != nullptr) return plan;
  return Fail(FailureCode::kConflict,
              plan != nullptr ? plan->sentence : "the job has no frontier yet; ask again later");
}

Response GetFrontier(ManagedJob& job, const Call& /*call*/) {
  const auto plan = PlanWithCurve(job);
  if (!plan) return FailureResponse(plan.error());
  Response response;
  response.content_type = "text/csv";
  response.body =
      std::make_shared<const std::string>(FormatFrontierCsv((*plan)->curve->frontier()));
  return response;
}

Response GetPlanFile(ManagedJob& job, const Call& call) {
  const std::int64_t number = QueryInteger(call.request, "pipeline").value_or(0);
  if (number < 0 || number >= job.shape().data_parallel) {
    return FailureResponse(
        {FailureCode::kNotFound,
         fmt::format("the job has {} pipelines, counted from 0", job.shape().data_parallel),
         "pipeline"});
  }
  const auto plan = PlanWithCurve(job);
  if (!plan) return FailureResponse(plan.error());
  const CurvePlan* const found = (*plan)->PlanOf(static_cast<int>(number));
  if (found == nullptr) {
    return FailureResponse({FailureCode::kConflict,
                            fmt::format("pipeline {} is a straggler that runs at maximum clocks, "
                                        "without a plan; ask for another pipeline",
                                        number),
                            "pipeline"});
  }
  PlanDocument document = (*plan)->curve->Document(*found);
  document.generator_name = "perseus serve";
  return http::JsonResponse(200, FormatPlanJson(document));
}

}  // namespace

Schemas NewJobSchemas() { return kNewJobSchemas; }
const ObjectSchema& JobSettingsSchema() { return kJobSettings; }

void AddJobRoutes(RouteMaker* routes) {
  routes->On(RowOf("createJob"), CreateJob);
  routes->OnJob(RowOf("getJob"), [](ManagedJob& job, const Call&) { return ShowJob(job); });
  routes->OnJob(RowOf("deleteJob"), [](ManagedJob& job, const Call& call) {
    const Outcome<void> deleted = call.service.Delete(job.id());
    return deleted ? NoContent() : FailureResponse(deleted.error());
  });
  routes->OnJob(RowOf("finishJob"),
                [](ManagedJob& job, const Call&) { return ShowJob(job, job.Finish()); });
  routes->OnJob(RowOf("setPoint"), SetPoint);
  routes->OnJob(RowOf("getFrontier"), GetFrontier);
  routes->OnJob(RowOf("getPlanFile"), GetPlanFile);
}

}  // namespace perseus::server
