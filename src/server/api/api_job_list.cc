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
#include <vector>

#include "common/numbers.h"
#include "server/api/api_handlers.h"
#include "server/api/api_text.h"
#include "server/api/job_json.h"
#include "server/api/label_texts.h"
#include "server/store/facts.h"

namespace perseus::server {
namespace {

// Where a page ends. Jobs are listed by the time of their creation, those of one moment by id,
// so that a job that is deleted meanwhile does no harm.
struct ListPlace {
  double created_at_seconds = 0;
  std::string id;

  static ListPlace Of(const JobService::Listed& each) {
    return {each.head.created_at_seconds, each.head.id};
  }
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

// What a request asks for.
struct ListQuery {
  std::string state;
  std::string name;
  JobLabels labels = {};
  std::string client_key;
  std::optional<std::int64_t> limit;
  std::optional<ListPlace> from;

  bool Fits(const Call& call, const JobService::Listed& each) const {
    const store::JobHead& head = each.head;
    return (!from || *from < ListPlace::Of(each)) &&
           Sees(call.request.binding, head.id, head.client_key) &&
           (client_key.empty() || head.client_key == client_key) &&
           (name.empty() || head.name == name) && HasLabels(head.labels, labels) &&
           (state.empty() || store::JobStateName(head.state) == state);
  }
};

// One page. Finished jobs that nobody asked for lately are read from the store, one by one.
struct ListPage {
  CallPointer call;
  bool is_stale = false;
  std::vector<JobService::Listed> jobs;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  nlohmann::ordered_json next = nullptr;

  void Send() const {
    http::Response response = JsonAnswer(200, {{"jobs", list}, {"next", next}});
    if (is_stale) response.headers.emplace_back(kStaleHeader, kStaleSentence);
    call->responder.Send(std::move(response));
  }
};

void Fill(const std::shared_ptr<ListPage>& page, std::size_t from) {
  for (std::size_t i = from; i < page->jobs.size(); ++i) {
    const JobService::Listed& each = page->jobs[i];
    if (each.job != nullptr) {
      page->list.push_back(JobSummaryJson(each.job->View()));
      continue;
    }
    return page->call->service.Get(each.head.id, [page, i](const Outcome<JobPointer>& job) {
      // One that was deleted meanwhile, or cannot be read, is left out.
      if (job) page->list.push_back(JobSummaryJson((*job)->View()));
      page->call->service.OnReader([page, i] { Fill(page, i + 1); });
    });
  }
  page->Send();
}

void ListJobs(const CallPointer& call) {
  ListQuery query{.state = QueryText(call->request, "state"),
                  .name = QueryText(call->request, "name"),
                  .client_key = QueryText(call->request, "client_key"),
                  .limit = QueryInteger(call->request, "limit"),
                  .from = ParseListPlace(QueryText(call->request, "after"))};
  if (!QueryText(call->request, "after").empty() && !query.from) {
    return Send(
        *call, FailureResponse({FailureCode::kInvalid,
                                "'after' must be what `next` of an earlier answer says", "after"}));
  }
  Outcome<JobLabels> labels = WantedLabels(call->request);
  if (!labels) return Send(*call, FailureResponse(labels.error()));
  query.labels = *std::move(labels);
  call->service.List(
      call->caller.is_wanted, [call, query](std::vector<JobService::Listed> jobs, bool is_stale) {
        std::sort(jobs.begin(), jobs.end(),
                  [](const auto& a, const auto& b) { return ListPlace::Of(a) < ListPlace::Of(b); });
        const auto page = std::make_shared<ListPage>();
        page->call = call;
        page->is_stale = is_stale;
        for (JobService::Listed& each : jobs) {
          if (!query.Fits(*call, each)) continue;
          if (query.limit && static_cast<std::int64_t>(page->jobs.size()) == *query.limit) {
            page->next = ListPlace::Of(page->jobs.back()).text();
            break;
          }
          page->jobs.push_back(std::move(each));
        }
        Fill(page, 0);
      });
}

}  // namespace

void AddJobListRoute(RouteMaker* routes) { routes->On(RowOf("listJobs"), ListJobs); }

}  // namespace perseus::server
