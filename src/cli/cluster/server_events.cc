// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/cluster/server_events.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <optional>
#include <thread>

#include "cli/framework/terminal.h"

namespace perseus::cli {
namespace {

// Without a byte for so long the server is asked whether it lives.
constexpr double kQuietSeconds = 3;
constexpr double kAnswerSeconds = 4;
// Heartbeats come every 15 s: a stream without any is dead, though the server lives.
constexpr double kSilentSeconds = 50;
constexpr double kOpenSeconds = 10;
constexpr std::chrono::seconds kMostPause(4);

}  // namespace

Result<ServerEvents> ServerEvents::Open(ServerClient* client, const std::string& path,
                                        std::string subject) {
  Result<http::EventReader> reader = client->http().OpenEvents(path, kOpenSeconds);
  if (!reader) return tl::unexpected(reader.error());
  return ServerEvents(client, path, std::move(subject), *std::move(reader));
}

Result<std::optional<http::Event>> ServerEvents::Next(const std::function<bool()>& is_wanted) {
  while (is_wanted()) {
    Result<std::optional<http::Event>> event = reader_.Next(kQuietSeconds);
    if (event && *event) {
      last_id_ = (*event)->id;
      return event;
    }
    if (event && IsAlive()) continue;
    const auto back =
        ComeBack(event ? "it gives no sign of life" : event.error().message, is_wanted);
    if (!back) return tl::unexpected(back.error());
  }
  return std::nullopt;
}

bool ServerEvents::IsAlive() {
  if (reader_.silent_seconds() < kQuietSeconds) return true;
  if (reader_.silent_seconds() > kSilentSeconds) return false;
  http::CallOptions options;
  options.deadline_seconds = kAnswerSeconds;
  return client_->http().Call("GET", "/healthz", {}, options).has_value();
}

Result<void> ServerEvents::ComeBack(const std::string& why,
                                    const std::function<bool()>& is_wanted) {
  const auto since = std::chrono::steady_clock::now();
  WriteStandardError(fmt::format("The server is gone since {:%H:%M:%S}: {}. Trying again.\n",
                                 fmt::localtime(std::time(nullptr)), Printable(why)));
  for (std::chrono::seconds pause(1);; pause = std::min(pause * 2, kMostPause)) {
    std::this_thread::sleep_for(pause);
    if (!is_wanted()) return {};
    const Result<bool> is_back = TryAgain();
    if (!is_back) return tl::unexpected(is_back.error());
    if (*is_back) break;
  }
  WriteStandardError(fmt::format(
      "The server is back, after {} s.\n",
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - since)
          .count()));
  return {};
}

// False: it is not back yet.
Result<bool> ServerEvents::TryAgain() {
  int status = 0;
  const Result<std::string> known = client_->Text("GET", subject_, "", &status);
  if (!known && (status == 401 || status == 403 || status == 404)) {
    return tl::unexpected(known.error());
  }
  if (!known) return false;
  Result<http::EventReader> reader = client_->http().OpenEvents(path_, kOpenSeconds, last_id_);
  if (!reader) return false;
  reader_ = *std::move(reader);
  return true;
}

}  // namespace perseus::cli
