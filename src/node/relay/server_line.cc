// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "relay/server_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace perseus::relay {
namespace {

constexpr double kConnectSeconds = 5;
// A restart of the server is over by then.
constexpr std::chrono::seconds kAwayAfter{3};
constexpr std::chrono::seconds kFailFast{1};
// Above the length of a long poll, so that relays with ranks never ask for this alone.
constexpr std::chrono::seconds kProbeAfter{90};
constexpr int kFailuresForFast = 2;

bool IsForRanks(const std::pair<std::string, std::string>& header) {
  return http::FindHeader({header}, "Retry-After") != nullptr ||
         http::FindHeader({header}, "Location") != nullptr ||
         http::FindHeader({header}, "ETag") != nullptr;
}

}  // namespace

void ServerHealth::Answered() {
  bool is_back = false;
  {
    const MutexLock lock(mutex_);
    failures_ = 0;
    last_answer_ = Clock::now();
    is_back = std::exchange(told_, false);
  }
  if (is_back && log_) log_(false, "server_back", "the server answers again");
}

void ServerHealth::Failed(const std::string& why) {
  bool tell = false;
  {
    const MutexLock lock(mutex_);
    last_failure_ = Clock::now();
    if (failures_++ == 0) first_failure_ = last_failure_;
    why_ = why;
    tell = IsAwayAt(last_failure_) && !std::exchange(told_, true);
  }
  if (tell && log_) log_(true, "server_away", why);
}

bool ServerHealth::IsAwayAt(Clock::time_point now) const {
  return failures_ > 0 && now - first_failure_ >= kAwayAfter;
}

bool ServerHealth::is_away() const {
  const MutexLock lock(mutex_);
  return IsAwayAt(Clock::now());
}

bool ServerHealth::wants_probe() const {
  const MutexLock lock(mutex_);
  return failures_ > 0 || Clock::now() - last_answer_ > kProbeAfter;
}

bool ServerHealth::fails_fast() const {
  const MutexLock lock(mutex_);
  return failures_ >= kFailuresForFast && Clock::now() - last_failure_ < kFailFast;
}

std::string ServerHealth::why() const {
  const MutexLock lock(mutex_);
  return why_;
}

std::optional<double> ServerHealth::seconds_since_answer() const {
  const MutexLock lock(mutex_);
  if (last_answer_ == Clock::time_point()) return std::nullopt;
  return std::chrono::duration<double>(Clock::now() - last_answer_).count();
}

Result<std::shared_ptr<http::Client>> ServerLine::Open() {
  {
    const MutexLock lock(mutex_);
    if (client_ != nullptr) return client_;
  }
  Result<std::string> token = http::ReadTokenFile(address_->token_file);
  if (!token) return tl::unexpected(token.error());
  http::ClientOptions options;
  options.url = address_->url;
  options.token = *std::move(token);
  options.ca_file = address_->ca_file;
  options.connect_seconds = kConnectSeconds;
  Result<http::Client> made = http::Client::Create(std::move(options));
  if (!made) return tl::unexpected(made.error());
  auto client = std::make_shared<http::Client>(*std::move(made));
  const MutexLock lock(mutex_);
  if (cancelled_) return MakeError(ErrorCode::kCancelled, "The relay stops.");
  client_ = std::move(client);
  return client_;
}

Result<http::Response> ServerLine::Call(std::string_view method, std::string_view target,
                                        std::string_view body, double deadline_seconds,
                                        http::Headers headers) {
  const Result<std::shared_ptr<http::Client>> client = Open();
  http::CallOptions options;
  options.deadline_seconds = deadline_seconds;
  options.headers = std::move(headers);
  Result<http::Response> response =
      client ? (*client)->Call(method, target, body, options) : tl::unexpected(client.error());
  if (!response) {
    if (response.error().code == ErrorCode::kCancelled) return response;
    health_->Failed(response.error().message);
    return MakeError(ErrorCode::kIo, response.error().message);
  }
  // Whom they concern is the relay, not the rank that asked.
  if (response->status == 401 || response->status == 403) {
    Close();
    const std::string why = fmt::format(
        "The server refuses the relay (status {}): it needs a token of the role train "
        "(--token-file).",
        response->status);
    health_->Failed(why);
    return MakeError(ErrorCode::kIo, why);
  }
  health_->Answered();
  std::erase_if(response->headers, [](const auto& header) { return !IsForRanks(header); });
  return response;
}

bool ServerLine::is_open() const {
  const MutexLock lock(mutex_);
  return client_ != nullptr;
}

void ServerLine::Close() {
  const MutexLock lock(mutex_);
  client_.reset();
}

void ServerLine::Cancel() {
  std::shared_ptr<http::Client> client;
  {
    const MutexLock lock(mutex_);
    cancelled_ = true;
    client = client_;
  }
  if (client != nullptr) client->Cancel();
}

http::Response UnavailableResponse(const Error& error) {
  return http::TryAgainResponse(fmt::format("The relay has no answer: {}", error.message));
}

}  // namespace perseus::relay
