// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Server-sent events, for dashboards: what happens to one job, or to all.

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/json_text.h"
#include "server/api/api.h"
#include "server/api/api_handlers.h"
#include "server/api/job_json.h"

namespace perseus::server {
namespace {

using http::Request;
using http::Responder;
using http::Role;

// The listener holds the stream until a Send() says that the client is gone.
void Follow(JobService& service, const std::string& job,
            const std::shared_ptr<http::EventStream>& stream) {
  service.events().Listen(job, [stream](const Event* event) {
    return event == nullptr ? stream->alive() : stream->Send(event->name, event->data);
  });
}

}  // namespace

void AddEventRoutes(JobService& service, std::vector<http::Route>* routes) {
  routes->push_back({"GET",
                     "/api/v1/events",
                     Role::kRead,
                     {},
                     true,
                     [&service](const Request&, const auto&, const Responder& responder) {
                       const auto stream = responder.StartEvents();
                       if (stream == nullptr) return;
                       Follow(service, "", stream);
                       for (const auto& job : service.Jobs()) {
                         stream->Send("state", FormatCompact(JobSummaryJson(job->View())));
                       }
                     }});
  routes->push_back({"GET",
                     "/api/v1/jobs/{id}/events",
                     Role::kRead,
                     {},
                     true,
                     OnJobLater(service, [&service](const std::shared_ptr<ManagedJob>& job,
                                                    const Request&, const Responder& responder) {
                       const auto stream = responder.StartEvents();
                       if (stream == nullptr) return;
                       Follow(service, job->id(), stream);
                       stream->Send("state", FormatCompact(JobSummaryJson(job->View())));
                     })});
}

}  // namespace perseus::server
