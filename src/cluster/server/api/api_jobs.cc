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
    .about = "The fields of job files (docs/reference/files.md) but those that name files.",
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

void ShowCreated(const Call& call, const Outcome<JobService::Created>& created) {
  if (!created) return Send(call, FailureResponse(created.error()));
  Response response = ShowJob(*created->job, created->is_new ? 201 : 200);
  response.headers.emplace_back("Location", "/api/v1/jobs/" + created->job->id());
  call.responder.Send(std::move(response));
}

void CreateNew(const CallPointer& call, const NewJob& job) {
  if (auto refusal = CheckMayCreate(*call, job.client_key)) {
    return Send(*call, *std::move(refusal));
  }
  Outcome<JobSpec> spec = MakeJobSpec(job.settings_json, job.profile_csv);
  if (!spec) return Send(*call, FailureResponse(spec.error()));
  spec->client_key = job.client_key;
  spec->name = job.name;
  call->service.Create(*spec, store::JobOrigin::kApi, call->caller,
                       [call](const auto& created) { ShowCreated(*call, created); });
}

// Every rank may ask for the job: the key is looked up before anything is built.
void CreateJob(const CallPointer& call) {
  const Outcome<NewJob> job = ReadNewJob(call->request.body);
  if (!job) return Send(*call, FailureResponse(job.error()));
  if (job->client_key.empty()) return CreateNew(call, *job);
  call->service.GetByKey(job->client_key, [call, job = *job](const Outcome<JobPointer>& known) {
    if (known && Sees(call->request.binding, **known)) {
      return ShowCreated(*call, JobService::Created{*known, false});
    }
    if (!known && known.error().code == FailureCode::kUnavailable) {
      return Send(*call, FailureResponse(known.error()));
    }
    CreateNew(call, job);
  });
}

void SetPoint(const JobPointer& job, const CallPointer& call) {
  std::string at;
  const Outcome<void> read = ReadBody(call->request.body, [&](const TreeCursor& root) {
    AllowOnly(kPointSchema, root);
    const TreeCursor value = root.Get("at");
    at = value.IsNumber() ? fmt::format("{}", value.Number(kPositive)) : value.String();
  });
  if (!read) return Send(*call, FailureResponse(read.error()));
  ChangeAndShow(job, call, SetTarget{at});
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
  routes->OnLook(RowOf("getJob"), [](ManagedJob& job, const Call&) { return ShowJob(job); });
  routes->OnJob(RowOf("deleteJob"), [](const JobPointer& job, const CallPointer& call) {
    Change(job, call, DeleteJob{}, [job, call](const Answer&) {
      call->service.Forget(job->id());
      return NoContent();
    });
  });
  routes->OnJob(RowOf("finishJob"), [](const JobPointer& job, const CallPointer& call) {
    ChangeAndShow(job, call, FinishJob{});
  });
  routes->OnJob(RowOf("setPoint"), SetPoint);
  routes->OnLook(RowOf("getFrontier"), GetFrontier);
  routes->OnLook(RowOf("getPlanFile"), GetPlanFile);
}

}  // namespace perseus::server
