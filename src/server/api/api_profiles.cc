// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The library of profiles, and sweeps of jobs that run.

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "server/api/api.h"
#include "server/api/api_handlers.h"
#include "server/api/api_text.h"
#include "server/api/job_json.h"
#include "server/api/profile_json.h"

namespace perseus::server {
namespace {

using http::Request;
using http::Responder;
using http::Response;
using http::Role;
using Parameters = std::vector<std::string>;

Response ListProfiles(JobService& service) {
  const auto profiles = service.ListProfiles();
  if (!profiles) return FailureResponse(profiles.error());
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const store::ProfileRecord& profile : *profiles) list.push_back(ProfileRecordJson(profile));
  return JsonAnswer(200, {{"profiles", std::move(list)}});
}

Response ShowProfile(JobService& service, const std::string& id) {
  const auto profile = service.FindProfile(id);
  if (!profile) return FailureResponse(profile.error());
  nlohmann::ordered_json json = ProfileRecordJson(*profile);
  json["profile_csv"] = profile->profile_csv;
  return JsonAnswer(200, json);
}

Response DeleteProfile(JobService& service, const std::string& id) {
  const Outcome<void> deleted = service.DeleteProfile(id);
  return deleted ? NoContent() : FailureResponse(deleted.error());
}

Response ShowJob(ManagedJob& job, const Outcome<Answer>& done) {
  return done ? JsonAnswer(200, JobJson(job.View())) : FailureResponse(done.error());
}

}  // namespace

void AddProfileRoutes(JobService& service, std::vector<http::Route>* routes) {
  constexpr const char* kOne = "/api/v1/profiles/{id}";
  routes->push_back({"GET",
                     "/api/v1/profiles",
                     Role::kRead,
                     {},
                     false,
                     [&service](const Request&, const Parameters&, const Responder& responder) {
                       responder.Send(ListProfiles(service));
                     }});
  routes->push_back(
      {"GET",
       kOne,
       Role::kRead,
       {},
       false,
       [&service](const Request&, const Parameters& parameters, const Responder& responder) {
         responder.Send(ShowProfile(service, parameters[0]));
       }});
  routes->push_back(
      {"DELETE",
       kOne,
       Role::kOperate,
       {},
       false,
       [&service](const Request&, const Parameters& parameters, const Responder& responder) {
         responder.Send(DeleteProfile(service, parameters[0]));
       }});
  constexpr const char* kAgain = "/api/v1/jobs/{id}/reprofile";
  const auto add = [&](const char* method, JobAnswer answer) {
    routes->push_back(
        {method, kAgain, Role::kOperate, {}, false, OnJob(service, std::move(answer))});
  };
  add("POST",
      [](ManagedJob& job, const Request&) { return ShowJob(job, DoAndWait(job, Reprofile{})); });
  add("DELETE", [](ManagedJob& job, const Request&) {
    return ShowJob(job, DoAndWait(job, CancelReprofile{}));
  });
}

}  // namespace perseus::server
