// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Server-sent events of one job, or of all, for dashboards. A stream begins with the state of each
// job, or goes on where the client was.

#include "server/api/event_sender.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "common/json_text.h"
#include "common/numbers.h"
#include "server/api/api_handlers.h"
#include "server/api/messages.h"

namespace perseus::server {
namespace {

std::string EventId(const EventHub& hub, std::int64_t sequence) {
  return fmt::format("{}-{}", hub.epoch(), sequence);
}

}  // namespace

std::optional<std::int64_t> ParseEventId(const EventHub& hub, std::string_view text) {
  const std::string prefix = hub.epoch() + "-";
  if (!text.starts_with(prefix)) return std::nullopt;
  return ParseInteger<std::int64_t>(text.substr(prefix.size()));
}

EventSender::EventSender(JobService& service, http::TokenBinding binding, Sink sink)
    : service_(service), binding_(std::move(binding)), sink_(std::move(sink)) {}

void EventSender::SendState(const ManagedJob& job, std::int64_t sequence) {
  if (!Sees(binding_, job)) return;
  const JobView view = job.View();
  revisions_[job.id()] = view.revision;
  sink_.send_first(TypeOf(EventKind::kState).name, wire::Write(kJobSummary, view),
                   EventId(service_.events(), sequence));
}

void EventSender::SendReset(std::string_view sentence) {
  sink_.send(TypeOf(EventKind::kReset).name, FormatCompact({{"sentence", sentence}}), "");
}

bool EventSender::operator()(const Event* event) {
  if (event == nullptr) return sink_.is_alive();
  if (event->kind == EventKind::kReset) {
    // The stream ends. The client connects again, with the id of the last event that it saw.
    SendReset("events were missed because there were too many at once; connect again");
    return false;
  }
  if (!IsVisible(event->job) || IsOlderThanSent(*event)) return sink_.is_alive();
  return sink_.send(event->name(), event->data, EventId(service_.events(), event->sequence));
}

bool EventSender::IsOlderThanSent(const Event& event) const {
  if (!TypeOf(event.kind).shows_state) return false;
  const auto sent = revisions_.find(event.job);
  return sent != revisions_.end() && event.revision < sent->second;
}

bool EventSender::IsVisible(const std::string& id) {
  if (binding_.is_free()) return true;
  const auto known = visible_.find(id);
  if (known != visible_.end()) return known->second;
  // Of those in memory: nothing here may wait for the store.
  const auto jobs = service_.Jobs();
  const bool is_visible = std::any_of(jobs.begin(), jobs.end(), [&](const auto& job) {
    return job->id() == id && Sees(binding_, *job);
  });
  return visible_[id] = is_visible;
}

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
  // First the number, then the states: an event between is sent, or is older than the states.
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
