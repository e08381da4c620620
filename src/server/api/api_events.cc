// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Server-sent events, for dashboards: what happens to one job, or to all. A stream begins with
// the state of each job, or goes on where the client was.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/api_handlers.h"
#include "server/api/event_sender.h"

namespace perseus::server {
namespace {

// `job`: of which; empty: of all. `jobs` are those whose states are sent, where that is needed.
void Follow(const CallPointer& call, const std::string& job,
            const std::function<std::vector<std::shared_ptr<ManagedJob>>()>& jobs) {
  EventHub& hub = call->service.events();
  const std::string* const header = http::FindHeader(call->request.headers, "Last-Event-ID");
  const std::string seen = header != nullptr ? *header : QueryText(call->request, "after");
  const auto stream = call->responder.StartEvents();
  if (stream == nullptr) return;
  const auto sender = std::make_shared<EventSender>(
      call->service, call->request.binding,
      EventSender::Sink{[stream](std::string_view name, std::string_view data,
                                 std::string_view id) { return stream->SendFirst(name, data, id); },
                        [stream](std::string_view name, std::string_view data,
                                 std::string_view id) { return stream->Send(name, data, id); },
                        [stream] { return stream->alive(); }});
  const auto listener = [sender](const Event* event) { return (*sender)(event); };
  const auto last = ParseEventId(hub, seen);
  if (last && hub.ListenAfter(*last, job, listener)) return;
  // First the number, then the states: what comes in between is sent, or is older than those.
  const std::int64_t now = hub.last();
  if (!seen.empty()) {
    sender->SendReset(
        "the server no longer has the events after this one; the present states of jobs follow");
  }
  for (const auto& each : jobs()) sender->SendState(*each, now);
  if (!hub.ListenAfter(now, job, listener)) {
    sender->SendReset("events were missed because there were too many at once; connect again");
  }
}

}  // namespace

void AddEventRoutes(RouteMaker* routes) {
  routes->On(RowOf("follow"), [](const CallPointer& call) {
    Follow(call, "", [&] { return call->service.Jobs(); });
  });
  routes->OnJob(RowOf("followJob"), [](const JobPointer& job, const CallPointer& call) {
    Follow(call, job->id(), [&] { return std::vector{job}; });
  });
}

}  // namespace perseus::server
