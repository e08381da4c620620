// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/api/event_sender.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/json_text.h"
#include "common/numbers.h"
#include "server/api/api_handlers.h"
#include "server/api/job_json.h"

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
  sink_.send_first(TypeOf(EventKind::kState).name, FormatCompact(JobSummaryJson(view)),
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

}  // namespace perseus::server
