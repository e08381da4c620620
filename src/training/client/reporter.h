// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLIENT_REPORTER_H_
#define PERSEUS_CLIENT_REPORTER_H_

#include <string>

#include "client/outbox.h"
#include "client/shared_state.h"
#include "http/client.h"

namespace perseus::client {

// The background thread that tells the server: iterations in batches,
// measurements and stragglers at once. What the server does not take for now is
// kept (Outbox says how much) and sent again; what it refuses is dropped, and said
// once. It also notices a clock call that does not come back.
class Reporter {
 public:
  // Both outlive the reporter.
  Reporter(SharedState* state, http::Client* http) : state_(state), http_(http) {}

  // Until the client ends; what is left then gets one attempt.
  void Run();

 private:
  enum class Sent : std::uint8_t { kYes, kRefused, kNotNow };

  void Step();
  void SendAll(Outbox::Contents contents);
  Sent Send(std::string_view method, const std::string& target, const std::string& body,
            std::string* answer = nullptr);
  Sent SendStraggler(const StragglerNotice& notice);
  void WatchDriver();

  SharedState* state_;
  http::Client* http_;
  std::string job_;
};

}  // namespace perseus::client

#endif  // PERSEUS_CLIENT_REPORTER_H_
