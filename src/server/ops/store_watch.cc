// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/ops/store_watch.h"

#include <nlohmann/json.hpp>

#include "common/json_text.h"

namespace perseus::server {
namespace {

Event StoreEvent(bool is_up, const std::string& sentence) {
  return {.kind = EventKind::kStore,
          .job = {},
          .data = FormatCompact({{"is_up", is_up}, {"sentence", sentence}})};
}

}  // namespace

std::optional<Event> StoreWatch::Look(const store::StoreCounters& now) {
  if (is_up() && now.is_failing) {
    is_up_.store(false, std::memory_order_relaxed);
    commits_before_ = now.commits;
    since_ = std::chrono::steady_clock::now();
    log_->Write(LogLevel::kError, "store_away", {{"message", now.last_error}});
    return StoreEvent(false, now.last_error);
  }
  if (!is_up() && !now.is_failing && now.commits > commits_before_) {
    // It stops failing by itself when there are no writes; that says nothing.
    is_up_.store(true, std::memory_order_relaxed);
    const std::chrono::duration<double> away = std::chrono::steady_clock::now() - since_;
    log_->Write(LogLevel::kInfo, "store_back", {{"seconds", away.count()}});
    return StoreEvent(true, "the store takes changes again");
  }
  return std::nullopt;
}

}  // namespace perseus::server
