// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLIENT_PLAN_POLLER_H_
#define PERSEUS_CLIENT_PLAN_POLLER_H_

#include <cstdint>
#include <string>

#include "client/shared_state.h"
#include "http/client.h"

namespace perseus::client {

// The background thread that gets plans: it creates or joins the job, registers the rank, and waits
// for plans by long polls. If the server fails in any way (away, slow, invalid answers, unknown
// job), it tries again with growing pauses and reports each problem once.
class PlanPoller {
 public:
  // Both must outlive the poller.
  PlanPoller(SharedState* state, http::Client* http) : state_(state), http_(http) {}

  // Runs until the client ends.
  void Run();

 private:
  enum class Step : std::uint8_t { kDone, kAgain, kRegister };

  Step Try(Step step);
  Step Register();
  Step Poll();
  void AskForProfile();
  void NoteProfileWanted(bool wanted);
  Step Fail(const std::string& what, Step next);
  Result<http::Response> Call(std::string_view method, const std::string& target,
                              std::string_view body, double deadline_seconds);

  SharedState* state_;
  http::Client* http_;
  std::string job_;  // Percent-encoded.
  std::int64_t version_ = -1;
  bool profile_wanted_ = false;  // From the server's last answer.
  double pause_seconds_ = 0;
};

}  // namespace perseus::client

#endif  // PERSEUS_CLIENT_PLAN_POLLER_H_
