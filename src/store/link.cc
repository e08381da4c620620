// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "store/link.h"

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <mutex>
#include <string>
#include <thread>

namespace perseus::store {

std::optional<Failure> Link::Try(const std::string& begin, const Work& work) {
  const std::lock_guard lock(mutex_);
  bool is_ending = false;
  try {
    if (session_ == nullptr) session_ = backend_->Connect();
    *session_ << begin;
    work(*session_);
    is_ending = true;
    *session_ << "COMMIT";
    return std::nullopt;
  } catch (const std::exception& exception) {
    Fault fault = backend_->FaultOf(exception);
    Failure failure = {.kind = fault.kind, .error = std::move(fault.error)};
    if (failure.kind != FaultKind::kLost) {
      Drop();
      return failure;
    }
    session_.reset();
    failure.is_unknown = is_ending;
    if (is_ending) {
      failure.error.message = fmt::format(
          "{}: the connection was lost at the end of the transaction, so that it is not known "
          "whether it was written; read again",
          backend_->name());
    }
    return failure;
  }
}

// Ends the transaction; and the connection, where even that fails.
void Link::Drop() {
  if (session_ == nullptr) return;
  try {
    *session_ << "ROLLBACK";
  } catch (const std::exception& exception) {
    // SQLite does so by itself, as when the disk is full.
    if (backend_->FaultOf(exception).kind == FaultKind::kLost) session_.reset();
  }
}

Result<void> Link::Run(const std::string& begin, const Work& work, bool is_repeatable) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(kWaitSeconds);
  Backoff backoff;
  while (true) {
    const std::optional<Failure> failure = Try(begin, work);
    if (!failure) return {};
    const bool helps = failure->kind == FaultKind::kLost || failure->kind == FaultKind::kInTheWay;
    const auto pause = backoff.Next();
    if (!helps || (failure->is_unknown && !is_repeatable) ||
        std::chrono::steady_clock::now() + pause > until) {
      return tl::unexpected(failure->error);
    }
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace perseus::store
