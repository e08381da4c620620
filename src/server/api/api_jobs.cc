// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Jobs: create, list, show, point, export, finish, delete.

#include <fmt/format.h>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perseus/plan_file.h"
#include "server/api/api.h"
#include "server/api/api_handlers.h"
#include "server/api/api_text.h"
#include "server/api/job_json.h"
#include "server/planning/job_spec.h"

namespace perseus::server {
namespace {

using http::Request;
using http::Responder;
using http::Response;
using http::Role;

// A profile of 250,000 rows; it takes twenty times its text while it is read.
constexpr std::size_t kMostJobBytes = std::size_t{8} << 20;
// The profile is one text. The settings are copied to an object whose keys are looked
// for one by one.
constexpr int kMostJobValues = 20'000;

struct NewJob {
  std::string client_key;
  std::string name;
  std::string settings_json;
  std::string profile_csv;
};

Outcome<NewJob> ReadNewJob(const std::string& body) {
  NewJob job;
  const auto read_job = [&](const TreeCursor& root) {
    constexpr std::array<std::string_view, 4> kKeys = {"client_key", "name", "job", "profile_csv"};
    root.AllowOnly(kKeys);
    job.client_key = FindText(root, "client_key", 256);
    job.name = FindText(root, "name", 256);
    job.profile_csv = FindText(root, "profile_csv", kMostJobBytes);
    root.Get("job");
  };
  const Outcome<void> read = ReadBody(body, read_job, kMostJobValues);
  if (!read) return tl::unexpected(read.error());
  // Depth and size were checked by the reader above.
  const auto tree = nlohmann::ordered_json::parse(body, nullptr, false);
  job.settings_json = tree["job"].dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return job;
}

Response CreateJob(JobService& service, const Request& request) {
  Outcome<NewJob> job = ReadNewJob(request.body);
  if (!job) return FailureResponse(job.error());
  Outcome<JobSpec> spec = MakeJobSpec(job->settings_json, job->profile_csv);
  if (!spec) return FailureResponse(spec.error());
  spec->client_key = job->client_key;
  spec->name = job->name;
  const auto created = Await<Outcome<JobService::Created>>(
      [&](auto&& done) { service.Create(*spec, store::JobOrigin::kApi, {}, done); });
  if (!created) return FailureResponse(created.error());
  Response response = JsonAnswer(created->is_new ? 201 : 200, JobJson(created->job->View()));
  response.headers.emplace_back("Location", "/api/v1/jobs/" + created->job->id());
  return response;
}

Response ListJobs(JobService& service) {
  nlohmann::ordered_json jobs = nlohmann::ordered_json::array();
  bool is_stale = false;
  for (const auto& job : service.Jobs()) jobs.push_back(JobSummaryJson(job->View()));
  Response response = JsonAnswer(200, {{"jobs", std::move(jobs)}});
  if (is_stale) response.headers.emplace_back(kStaleHeader, kStaleSentence);
  return response;
}

Response SetPoint(ManagedJob& job, const Request& request) {
  std::string at;
  const Outcome<void> read = ReadBody(request.body, [&](const TreeCursor& root) {
    constexpr std::array<std::string_view, 1> kKeys = {"at"};
    root.AllowOnly(kKeys);
    const TreeCursor value = root.Get("at");
    at = value.IsNumber() ? fmt::format("{}", value.Number(kPositive)) : value.String();
  });
  if (!read) return FailureResponse(read.error());
  const auto set = DoAndWait(job, SetTarget{at});
  return set ? JsonAnswer(200, JobJson(job.View())) : FailureResponse(set.error());
}

// The published plan with a curve, or a failure that says what is missing.
Outcome<std::shared_ptr<const PublishedPlan>> PlanWithCurve(ManagedJob& job) {
  auto plan = job.board().Current();
  if (plan != nullptr && plan->curve != nullptr) return plan;
  return Fail(FailureCode::kConflict,
              plan != nullptr ? plan->sentence : "the job has no frontier yet; ask again later");
}

Response GetFrontier(ManagedJob& job) {
  const auto plan = PlanWithCurve(job);
  if (!plan) return FailureResponse(plan.error());
  Response response;
  response.content_type = "text/csv";
  response.body =
      std::make_shared<const std::string>(FormatFrontierCsv((*plan)->curve->frontier()));
  return response;
}

Response GetPlanFile(ManagedJob& job, const Request& request) {
  const auto pipeline = QueryInteger(request, "pipeline");
  if (!pipeline) return FailureResponse(pipeline.error());
  const std::int64_t number = pipeline->value_or(0);
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
  document.generator_version = "1";
  return http::JsonResponse(200, FormatPlanJson(document));
}

}  // namespace

void AddJobRoutes(JobService& service, std::vector<http::Route>* routes) {
  routes->push_back({"POST", "/api/v1/jobs", Role::kTrain, kMostJobBytes, false,
                     [&service](const Request& request, const auto&, const Responder& responder) {
                       responder.Send(CreateJob(service, request));
                     }});
  routes->push_back({"GET",
                     "/api/v1/jobs",
                     Role::kRead,
                     {},
                     false,
                     [&service](const Request&, const auto&, const Responder& responder) {
                       responder.Send(ListJobs(service));
                     }});
  const auto add = [&](const char* method, const char* pattern, Role role, JobAnswer answer) {
    routes->push_back({method, pattern, role, {}, false, OnJob(service, std::move(answer))});
  };
  add("GET", "/api/v1/jobs/{id}", Role::kRead,
      [](ManagedJob& job, const Request&) { return JsonAnswer(200, JobJson(job.View())); });
  add("DELETE", "/api/v1/jobs/{id}", Role::kOperate, [&service](ManagedJob& job, const Request&) {
    const auto deleted = DoAndWait(job, DeleteJob{});
    service.Forget(job.id());
    return deleted ? NoContent() : FailureResponse(deleted.error());
  });
  add("POST", "/api/v1/jobs/{id}/finish", Role::kTrain, [](ManagedJob& job, const Request&) {
    const auto finished = DoAndWait(job, FinishJob{});
    return finished ? JsonAnswer(200, JobJson(job.View())) : FailureResponse(finished.error());
  });
  add("PUT", "/api/v1/jobs/{id}/point", Role::kOperate, SetPoint);
  add("GET", "/api/v1/jobs/{id}/frontier", Role::kRead,
      [](ManagedJob& job, const Request&) { return GetFrontier(job); });
  add("GET", "/api/v1/jobs/{id}/plan.json", Role::kRead, GetPlanFile);
}

}  // namespace perseus::server
