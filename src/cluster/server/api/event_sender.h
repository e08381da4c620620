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

// What one event stream sends: states of jobs first, then events, none of which is older than
// the state of its job that was sent. One call at a time.
class EventSender {
 public:
  struct Sink {
    using Send =
        std::function<bool(std::string_view name, std::string_view data, std::string_view id)>;
    Send send_first;  // What the stream begins with, however much that is.
    Send send;
    std::function<bool()> is_alive;
  };

  // `binding`: the jobs that it may tell of. `service` outlives it.
  EventSender(JobService& service, http::TokenBinding binding, Sink sink);

  // The job as it is now: of the moment of event `sequence`, or later.
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
  std::map<std::string, std::int64_t> revisions_;  // Of the states that were sent, by job.
  std::map<std::string, bool> visible_;            // By job; only where the token is bound.
};

// The number in the id of an event of this hub; none: it is of another process or server, where
// numbers mean something else.
std::optional<std::int64_t> ParseEventId(const EventHub& hub, std::string_view text);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_API_EVENT_SENDER_H_
