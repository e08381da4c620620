// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What a server says of itself, of its jobs, and of one job in full.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/cluster/server_client.h"
#include "cli/cluster/server_examination.h"
#include "cli/support/support_files.h"
#include "common/json_text.h"
#include "common/numbers.h"
#include "http/client.h"

namespace perseus::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMostBundledJobs = 1000;
constexpr int kMostEvents = 500;
constexpr double kStreamSeconds = 5;
// After the last event that the server has.
constexpr double kLastSeconds = 0.5;

// The id of an event so many before this one: "EPOCH-NUMBER".
std::string IdBefore(const std::string& id, int events) {
  const std::size_t dash = id.rfind('-');
  if (dash == std::string::npos) return id;
  const auto number = ParseInteger<std::int64_t>(std::string_view(id).substr(dash + 1));
  if (!number) return id;
  return fmt::format("{}-{}", id.substr(0, dash), *number > events ? *number - events : 0);
}

// A stream begins with the states of jobs, which have the number of the last event: with an older
// number, it begins with the events since.
Result<std::string> LastEvents(http::Client* client) {
  constexpr const char* kPath = "/api/v1/events";
  auto reader = client->OpenEvents(kPath, kStreamSeconds);
  if (!reader) return tl::unexpected(reader.error());
  const auto first = reader->Next(kLastSeconds);
  if (!first) return tl::unexpected(first.error());
  if (!*first) return std::string("(no jobs, and no events)\n");
  reader = client->OpenEvents(kPath, kStreamSeconds, IdBefore((*first)->id, kMostEvents));
  if (!reader) return tl::unexpected(reader.error());
  std::string text;
  for (int i = 0; i < 2 * kMostEvents; ++i) {
    const auto event = reader->Next(kLastSeconds);
    if (!event || !*event) break;
    text += fmt::format("{} {} {}\n", (*event)->id, (*event)->name, (*event)->data);
  }
  return text;
}

// A job with trouble, else the newest that has not ended, or has; nothing: there is none.
std::optional<std::string> JobToShow(const Json& jobs) {
  std::optional<std::string> chosen;
  bool runs = false;  // The chosen one has not ended.
  for (const Json& job : jobs) {
    const std::string state = job.value("state", "");
    if (state == "failed" || job.value("complaining", 0LL) > 0) return job.value("id", "");
    const bool has_not_ended = std::find(kUnfinishedStates.begin(), kUnfinishedStates.end(),
                                         state) != kUnfinishedStates.end();
    if (runs && !has_not_ended) continue;
    chosen = job.value("id", "");
    runs = has_not_ended;
  }
  return chosen;
}

// Those that have not ended come first: a server may hold thousands that have.
Result<Json> JobsToBundle(ServerClient* client) {
  std::vector<std::string> filters;
  filters.reserve(kUnfinishedStates.size() + 1);
  for (const char* const state : kUnfinishedStates) {
    filters.push_back(ServerClient::Filter("state", state));
  }
  filters.emplace_back("");
  Json jobs = Json::array();
  std::set<std::string> seen;  // A job may change its state between two questions.
  for (const std::string& filter : filters) {
    const Result<Json> found = client->Jobs(filter, kMostBundledJobs);
    if (!found) return tl::unexpected(found.error());
    for (const Json& job : found->at("jobs")) {
      if (jobs.size() >= std::size_t{kMostBundledJobs}) break;
      if (seen.insert(job.value("id", "")).second) jobs.push_back(job);
    }
  }
  return Json{{"jobs", std::move(jobs)}};
}

void AddJob(ServerClient* client, const std::string& job, SupportFiles* files) {
  const Result<std::string> path = client->JobPath(job);
  if (!path) return files->AddMissing("job/job.json", path.error().message);
  for (const auto& [name, target] :
       {std::pair("job", ""), std::pair("ranks", "/ranks"), std::pair("plan", "/plan.json"),
        std::pair("stragglers", "/stragglers"), std::pair("detection", "/detection"),
        std::pair("savings", "/savings")}) {
    files->AddResult(fmt::format("job/{}.json", name), client->Text("GET", *path + target));
  }
}

}  // namespace

void AddServer(const SupportBundleFlags& flags, SupportFiles* files) {
  Result<ServerClient> client = ServerClient::Connect(flags.server);
  const Result<ServerExamination> examination = ExamineServer(flags.server);
  if (!client || !examination) {
    return files->AddMissing("server/",
                             client ? examination.error().message : client.error().message);
  }
  files->Add("server/doctor.json", ServerExaminationJson(*examination));
  // Also of a server that is starting; where nobody answers, the others would only wait, too.
  const auto health = client->http().Call("GET", "/healthz", "");
  if (!health) {
    return files->AddMissing("server/", health.error().message);
  }
  files->Add("server/healthz.json", health->body == nullptr ? "" : *health->body);
  const auto ready = client->http().Call("GET", "/readyz", "");
  if (ready) files->Add("server/readyz.json", ready->body == nullptr ? "" : *ready->body);
  files->AddResult("server/metrics.txt", client->Text("GET", "/metrics"));
  files->AddResult("server/events.txt", LastEvents(&client->http()));
  const Result<Json> jobs = JobsToBundle(&*client);
  if (!jobs) return files->AddMissing("server/jobs.json", jobs.error().message);
  files->Add("server/jobs.json", FormatByLine(*jobs));
  const auto job =
      flags.job.empty() ? JobToShow(jobs->at("jobs")) : std::optional<std::string>(flags.job);
  if (!job) return files->AddMissing("job/", "the server has no job");
  AddJob(&*client, *job, files);
}

}  // namespace perseus::cli
