// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLIENT_REPORTER_H_
#define PERSEUS_CLIENT_REPORTER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "client/agent_word.h"
#include "client/outbox.h"
#include "client/shared_state.h"
#include "http/client.h"

namespace perseus::client {

// The background thread that reports to the server: iterations in batches, measurements and
// stragglers at once. If the server is not available, it keeps reports (up to the Outbox's limit)
// and sends them again. It drops reports that the server refuses, and complains once. It also
// detects a clock call that does not return, and asks the agent what it has to say.
class Reporter {
 public:
  // Both must outlive the reporter.
  Reporter(SharedState* state, http::Client* http) : state_(state), http_(http) {}

  // Runs until the client ends, and then tries once to send the remaining reports.
  void Run();

 private:
  enum class Sent : std::uint8_t { kYes, kRefused, kNotNow };

  void Step();
  void SendAll(Outbox::Contents contents);
  void HearTrouble(std::string sentence);
  Sent Send(std::string_view method, const std::string& target, const std::string& body,
            std::string* answer = nullptr);
  Sent SendStraggler(const StragglerNotice& notice);
  void WatchDriver();
  void AskAgentNow();

  SharedState* state_;
  http::Client* http_;
  std::string job_;
  std::string trouble_;             // What the server says is wrong with this rank.
  std::optional<AgentWord> agent_;  // None: there is no agent, or it does not answer.
  std::int64_t next_agent_ns_ = 0;  // When it is asked again.
};

}  // namespace perseus::client

#endif  // PERSEUS_CLIENT_REPORTER_H_
