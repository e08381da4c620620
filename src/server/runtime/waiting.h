// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_RUNTIME_WAITING_H_
#define PERSEUS_SERVER_RUNTIME_WAITING_H_

#include <future>
#include <memory>
#include <utility>

#include "server/runtime/managed_job.h"

// For threads that may wait: planning threads and tests. Never for threads that answer requests.
namespace perseus::server {

// Calls `start` with a callback, waits for that callback, and returns its argument.
template <typename T, typename Start>
T Await(const Start& start) {
  // Shared: `start` may throw, and the callback come all the same.
  const auto promise = std::make_shared<std::promise<T>>();
  start([promise](const T& value) { promise->set_value(value); });
  return promise->get_future().get();
}

inline Outcome<Answer> DoAndWait(ManagedJob& job, Command command, Caller caller = {}) {
  return Await<Outcome<Answer>>(
      [&](auto&& reply) { job.Do(std::move(command), std::move(caller), reply); });
}

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_RUNTIME_WAITING_H_
