// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The library of profiles, and sweeps of jobs that run.

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "server/api/api_handlers.h"
#include "server/api/api_text.h"
#include "server/api/profile_json.h"

namespace perseus::server {
namespace {

using http::Response;

// A token that is bound to jobs sees the profiles that these measured.
bool SeesProfile(const Call& call, const store::ProfileRecord& profile) {
  if (call.request.binding.is_free()) return true;
  const auto job = call.service.HeadOf(profile.job);
  return job && Sees(call.request.binding, job->id, job->client_key);
}

Response ListProfiles(const Call& call) {
  const auto profiles = call.service.ListProfiles();
  if (!profiles) return FailureResponse(profiles.error());
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const store::ProfileRecord& profile : *profiles) {
    if (SeesProfile(call, profile)) list.push_back(ProfileRecordJson(profile));
  }
  return JsonAnswer(200, {{"profiles", std::move(list)}});
}

// Of the path, as far as the token sees it.
Outcome<store::ProfileRecord> FindProfile(const Call& call) {
  const std::string& id = call.parameters[0];
  auto profile = call.service.FindProfile(id);
  if (profile && !SeesProfile(call, *profile)) {
    return tl::unexpected(NoSuchProfile(id));
  }
  return profile;
}

Response ShowProfile(const Call& call) {
  const auto profile = FindProfile(call);
  if (!profile) return FailureResponse(profile.error());
  nlohmann::ordered_json json = ProfileRecordJson(*profile);
  json["profile_csv"] = profile->profile_csv;
  return JsonAnswer(200, json);
}

Response DeleteProfile(const Call& call) {
  const auto profile = FindProfile(call);
  if (!profile) return FailureResponse(profile.error());
  const Outcome<void> deleted = call.service.DeleteProfile(profile->id, call.caller);
  return deleted ? NoContent() : FailureResponse(deleted.error());
}

}  // namespace

void AddProfileRoutes(RouteMaker* routes) {
  routes->OnStore(RowOf("listProfiles"), ListProfiles);
  routes->OnStore(RowOf("showProfile"), ShowProfile);
  routes->OnStore(RowOf("deleteProfile"), DeleteProfile);
  routes->OnJob(RowOf("reprofile"), [](const JobPointer& job, const CallPointer& call) {
    ChangeAndShow(job, call, Reprofile{});
  });
  routes->OnJob(RowOf("cancelReprofile"), [](const JobPointer& job, const CallPointer& call) {
    ChangeAndShow(job, call, CancelReprofile{});
  });
}

}  // namespace perseus::server
