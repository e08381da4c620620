// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/cluster/json_values.h"
#include "cli/fleet/fleet_summary.h"
#include "common/located_error.h"
#include "common/nearest_name.h"
#include "http/target.h"
#include "site/site.h"

// The jobs of a server, for a division of power.
namespace perseus::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ServerJob {
  std::string id;
  std::string name;
  std::string state;
  double stragglers = 0;
};

// Whether a job of this state runs, or will: it draws power.
bool Draws(std::string_view state) { return state != "finished" && state != "failed"; }

Result<std::vector<ServerJob>> JobsOf(ServerClient* server) {
  std::vector<ServerJob> jobs;
  std::string after;
  while (true) {
    const std::string target =
        "/api/v1/jobs?limit=1000" + (after.empty() ? "" : "&after=" + http::PercentEncoded(after));
    const Result<std::string> text = server->Text("GET", target);
    if (!text) return tl::unexpected(text.error());
    const Json page = ServerClient::Parsed(*text);
    for (const Json& each : ListOf(page, "jobs")) {
      ServerJob job = {MemberText(each, "id"), MemberText(each, "name"), MemberText(each, "state"),
                       NumberOf(each, "stragglers").value_or(0)};
      if (!job.id.empty() && Draws(job.state)) jobs.push_back(std::move(job));
    }
    after = MemberText(page, "next");
    if (after.empty()) return jobs;
  }
}

Result<site::SharedModel> ModelOf(ServerClient* server, const ServerJob& job) {
  const std::string path = "/api/v1/jobs/" + http::PercentEncoded(job.id);
  const Result<std::string> frontier = server->Text("GET", path + "/frontier");
  if (!frontier) return tl::unexpected(frontier.error());
  const Result<std::string> plan = server->Text("GET", path + "/plan.json");
  if (!plan) return tl::unexpected(plan.error());
  return site::ParseModel(*plan, path + "/plan.json", *frontier, path + "/frontier");
}

bool IsOfServer(const site::SiteJob& job) {
  return !job.settings.profile && job.plan_folder.empty();
}

}  // namespace

Result<std::vector<site::SharedModel>> AddServerJobs(ServerClient* server, site::SiteFile* file,
                                                     std::vector<Note>* notes) {
  const Result<std::vector<ServerJob>> jobs = JobsOf(server);
  if (!jobs) return tl::unexpected(jobs.error());
  std::map<std::string, int> same_names;
  for (const ServerJob& job : *jobs) ++same_names[job.name];
  std::map<std::string, std::size_t> index;  // Of the file's jobs.
  for (std::size_t j = 0; j < file->jobs.size(); ++j) index[file->jobs[j].name] = j;

  std::vector<site::SharedModel> models(file->jobs.size());
  std::set<std::size_t> found;
  for (const ServerJob& job : *jobs) {
    // A name that several jobs have, or none, says nothing: then it is the id.
    const std::string& name = job.name.empty() || same_names[job.name] > 1 ? job.id : job.name;
    auto known = index.find(name);
    if (known == index.end()) known = index.find(job.id);
    std::optional<std::size_t> at;
    if (known != index.end() && IsOfServer(file->jobs[known->second])) at = known->second;
    if (at) found.insert(*at);
    if (at && file->jobs[*at].is_left_out) continue;
    if (!at && known != index.end()) {
      const JobPlace& place = file->jobs[known->second].place;
      return InvalidAt(place.file, place.line, place.column,
                       fmt::format("the server has a job '{}', too; remove the frontier of this "
                                   "one, or give it another name",
                                   name));
    }
    Result<site::SharedModel> model = ModelOf(server, job);
    if (!model) {
      return InvalidInput(fmt::format(
          "the job '{}' of the server ({}) has no frontier: {}; wait until it has one, or name it "
          "in the site file with 'leave_out = true' and take its power off the budget",
          name, job.state, model.error().message));
    }
    if (job.stragglers > 0) {
      notes->push_back({.severity = Severity::kOdd,
                        .text = fmt::format("the job '{}' of the server has stragglers, and this "
                                            "division does not know them",
                                            name)});
    }
    if (!at) {
      site::SiteJob added;
      added.name = name;
      added.place = file->node_places.front();
      file->jobs.push_back(std::move(added));
      models.emplace_back();
      at = models.size() - 1;
    }
    models[*at] = *std::move(model);
  }
  std::vector<std::string> names;
  for (const ServerJob& job : *jobs) names.push_back(job.name.empty() ? job.id : job.name);
  for (std::size_t j = 0; j < file->jobs.size(); ++j) {
    const site::SiteJob& job = file->jobs[j];
    if (models[j] != nullptr || found.contains(j) || !IsOfServer(job) || job.is_left_out) continue;
    return InvalidAt(job.place.file, job.place.line, job.place.column,
                     fmt::format("the server has no job {}{}; give the job a frontier ('job', "
                                 "'plan' or 'profile'), or remove it",
                                 Shown(job.name), NearestHint(job.name, names)));
  }
  if (file->jobs.empty()) return InvalidInput("the server has no job to divide power among");
  return models;
}

}  // namespace perseus::cli
