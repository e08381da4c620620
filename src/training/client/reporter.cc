// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "client/reporter.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "client/agent_device.h"
#include "client/server_messages.h"
#include "client/ticks.h"
#include "http/target.h"

namespace perseus::client {
namespace {

constexpr double kReportDeadlineSeconds = 10;
constexpr double kLastReportSeconds = 1;
constexpr double kAgainSeconds = 1;
constexpr double kWaitForJobSeconds = 0.2;
constexpr double kHangingSeconds = 2;
constexpr double kReportsPerAgentWord = 6;

}  // namespace

void Reporter::Run() {
  while (!state_->stopping()) {
    try {
      Step();
    } catch (const std::exception& exception) {  // No memory, or no thread to look a name up.
      state_->ComplainOf("telling the server", exception);
      state_->Pause(kAgainSeconds);
    }
  }
  // The last word of a client that was registered: its state is "closed".
  if (state_->registered()) SendAll(state_->outbox().Wait(0));
}

void Reporter::Step() {
  if (!state_->registered()) {
    WatchDriver();
    state_->Pause(kWaitForJobSeconds);
    return;
  }
  Outbox::Contents contents = state_->outbox().Wait(state_->settings().report_interval_seconds);
  if (state_->stopping()) return state_->outbox().PutBack(std::move(contents));
  WatchDriver();
  SendAll(std::move(contents));
}

void Reporter::WatchDriver() {
  const std::int64_t begin_ns = state_->call_begin_ns().load(std::memory_order_relaxed);
  if (begin_ns == 0) return;
  const double seconds = static_cast<double>(MonotonicNs() - begin_ns) * 1e-9;
  if (seconds < kHangingSeconds) return;
  state_->Complain(
      "a clock call has been in the driver for seconds; no other is made until it comes back");
}

void Reporter::AskAgentNow() {
  const ClientSettings& settings = state_->settings();
  const std::optional<std::string> socket = AgentSocketOf(settings.device);
  const std::int64_t now_ns = MonotonicNs();
  if (!socket || now_ns < next_agent_ns_ || state_->stopping()) return;
  const std::optional<device::GpuInfo> gpu = state_->WaitForDevice(0);
  if (!gpu) return;
  Result<AgentWord> word = AskAgent(*socket, NameOfRank(settings), gpu->uuid);
  agent_ = word ? std::optional(*std::move(word)) : std::nullopt;
  next_agent_ns_ = now_ns + static_cast<std::int64_t>(kReportsPerAgentWord *
                                                      settings.report_interval_seconds * 1e9);
}

void Reporter::SendAll(Outbox::Contents contents) {
  job_ = "/api/v1/jobs/" + http::PercentEncoded(state_->job_id());
  Outbox::Contents left;
  bool later = false;
  for (const StragglerNotice& notice : contents.notices) {
    if (later || SendStraggler(notice) == Sent::kNotNow) {
      later = true;
      left.notices.push_back(notice);
    }
  }
  const int rank = state_->settings().rank;
  if (contents.profile &&
      (later || Send("POST", job_ + "/measurements", FormatMeasurements(rank, *contents.profile)) ==
                    Sent::kNotNow)) {
    later = true;
    left.profile = std::move(contents.profile);
  }
  if (!contents.iterations.empty()) AskAgentNow();
  const std::string error = state_->last_error();
  if (!contents.iterations.empty() || state_->stopping()) {
    std::string answer;
    const Sent sent = later ? Sent::kNotNow
                            : Send("POST", job_ + "/iterations",
                                   FormatIterations(state_->settings(), contents.iterations,
                                                    state_->stats(), error, agent_),
                                   &answer);
    if (sent == Sent::kYes) HearTrouble(ParseTrouble(answer, state_->settings().client_id));
    if (sent == Sent::kNotNow) {
      later = true;
      left.iterations = std::move(contents.iterations);
    }
  }
  if (!later) return;
  state_->outbox().PutBack(std::move(left));
  state_->Pause(kAgainSeconds);
}

void Reporter::HearTrouble(std::string sentence) {
  if (sentence == trouble_) return;
  trouble_ = std::move(sentence);
  if (trouble_.empty()) {
    state_->Recovered(SharedState::About::kJob);
  } else {
    state_->Complain(trouble_, SharedState::About::kJob);
  }
}

Reporter::Sent Reporter::Send(std::string_view method, const std::string& target,
                              const std::string& body, std::string* answer) {
  http::CallOptions options;
  options.deadline_seconds = state_->stopping() ? kLastReportSeconds : kReportDeadlineSeconds;
  const Result<http::Response> response = http_->Call(method, target, body, options);
  if (!response) {
    if (!state_->stopping()) state_->CountServerError();
    return Sent::kNotNow;  // The poller says why.
  }
  const std::string_view text = response->body ? std::string_view(*response->body) : "";
  if (response->status / 100 == 2) {
    if (answer != nullptr) *answer = text;
    return Sent::kYes;
  }
  state_->CountServerError();
  const int status = response->status;
  if (status / 100 == 5 || status == 429 || status == 408) return Sent::kNotNow;
  state_->Complain(fmt::format("the server refused what was reported to {}: {}", target,
                               ErrorSentence(status, text)));
  return Sent::kRefused;
}

// The newest word on a rank replaces those before it.
Reporter::Sent Reporter::SendStraggler(const StragglerNotice& notice) {
  std::string text;
  const std::string stragglers = job_ + "/stragglers";
  if (const Sent listed = Send("GET", stragglers, {}, &text); listed != Sent::kYes) return listed;
  const auto ids = ParseStragglerIds(text, notice.rank);
  if (!ids) {
    state_->Complain(ids.error().message);
    return Sent::kRefused;
  }
  if (notice.degree > 1) {
    const Sent said = Send("POST", stragglers, FormatStraggler(notice));
    if (said != Sent::kYes) return said;
  }
  for (const std::string& id : *ids) {
    const Sent gone = Send("DELETE", stragglers + "/" + http::PercentEncoded(id), {});
    if (gone == Sent::kNotNow) return gone;
  }
  return Sent::kYes;
}

}  // namespace perseus::client
