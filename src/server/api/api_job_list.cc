// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The list of jobs, page by page.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/numbers.h"
#include "server/api/api_handlers.h"
#include "server/api/api_text.h"
#include "server/api/job_json.h"
#include "store/facts.h"

namespace perseus::server {
namespace {

// Where a page ends. Jobs are listed by the time of their creation, those of one moment by id,
// so that a job that is deleted meanwhile does no harm.
struct ListPlace {
  double created_at_seconds = 0;
  std::string id;

  static ListPlace Of(const ManagedJob& job) { return {job.created_at_seconds(), job.id()}; }
  bool operator<(const ListPlace& other) const {
    return std::pair(created_at_seconds, std::string_view(id)) <
           std::pair(other.created_at_seconds, std::string_view(other.id));
  }
  std::string text() const { return fmt::format("{}_{}", created_at_seconds, id); }
};

std::optional<ListPlace> ParseListPlace(std::string_view text) {
  const std::size_t size = std::min(text.find('_'), text.size());
  const auto seconds = ParseFinite(text.substr(0, size));
  if (!seconds || size == text.size()) return std::nullopt;
  return ListPlace{*seconds, std::string(text.substr(size + 1))};
}

http::Response ListJobs(const Call& call) {
  const std::string state = QueryText(call.request, "state");
  const std::string name = QueryText(call.request, "name");
  const std::string key = QueryText(call.request, "client_key");
  const auto limit = QueryInteger(call.request, "limit");
  const std::string after = QueryText(call.request, "after");
  const auto from = ParseListPlace(after);
  if (!after.empty() && !from) {
    return FailureResponse(
        {FailureCode::kInvalid, "'after' must be what `next` of an earlier answer says", "after"});
  }
  bool is_stale = false;
  auto jobs = call.service.FreshJobs(&is_stale);
  std::sort(jobs.begin(), jobs.end(),
            [](const auto& a, const auto& b) { return ListPlace::Of(*a) < ListPlace::Of(*b); });
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  nlohmann::ordered_json next = nullptr;
  ListPlace last;
  for (const auto& job : jobs) {
    if (from && !(*from < ListPlace::Of(*job))) continue;
    if (!Sees(call.request.binding, *job) || (!key.empty() && job->client_key() != key)) continue;
    const JobView view = job->View();
    if (!name.empty() && view.record.name != name) continue;
    if (!state.empty() && store::JobStateName(view.record.state) != state) continue;
    if (limit && static_cast<std::int64_t>(list.size()) == *limit) {
      next = last.text();
      break;
    }
    list.push_back(JobSummaryJson(view));
    last = ListPlace::Of(*job);
  }
  http::Response response = JsonAnswer(200, {{"jobs", std::move(list)}, {"next", std::move(next)}});
  if (is_stale) response.headers.emplace_back(kStaleHeader, kStaleSentence);
  return response;
}

}  // namespace

void AddJobListRoute(RouteMaker* routes) { routes->On(RowOf("listJobs"), ListJobs); }

}  // namespace perseus::server
