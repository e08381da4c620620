// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_API_EVENT_SENDER_H_
#define PERSEUS_SERVER_API_EVENT_SENDER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "http/message.h"
#include "server/runtime/job_service.h"

namespace perseus::server {

// Sends one event stream: first states of jobs, then events. It skips events that are older than
// the state of their job that was sent. Not thread-safe.
class EventSender {
 public:
  struct Sink {
    using Send =
        std::function<bool(std::string_view name, std::string_view data, std::string_view id)>;
    Send send_first;  // Sends the beginning of the stream, without a limit of its size.
    Send send;
    std::function<bool()> is_alive;
  };

  // `binding`: the jobs that the client may see. `service` must outlive this object.
  EventSender(JobService& service, http::TokenBinding binding, Sink sink);

  // Sends the present state of a job. It includes all changes up to event `sequence`.
  void SendState(const ManagedJob& job, std::int64_t sequence);
  void SendReset(std::string_view sentence);

  // As EventHub::Listener.
  bool operator()(const Event* event);

 private:
  bool IsOlderThanSent(const Event& event) const;
  bool IsVisible(const std::string& id);

  JobService& service_;
  const http::TokenBinding binding_;
  const Sink sink_;
  std::map<std::string, std::int64_t> revisions_;  // Job -> revision of its state that was sent.
  std::map<std::string, bool> visible_;  // By job. Only used if the token is bound to jobs.
};

// The sequence number in an event id. None: the id is from another server or process, whose
// numbers mean other events.
std::optional<std::int64_t> ParseEventId(const EventHub& hub, std::string_view text);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_API_EVENT_SENDER_H_
