// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_AGENT_MAILBOX_H_
#define PERSEUS_AGENT_MAILBOX_H_

#include <sys/eventfd.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "agent/protocol.h"
#include "common/file_descriptor.h"
#include "common/mutex.h"

namespace perseus::agent {

// The request of a connection to which an answer belongs. Connection 0: nobody waits for it.
struct Ticket {
  std::uint64_t connection = 0;
  std::int64_t id = 0;
  Operation operation = Operation::kHello;
};

// The result of a GPU worker's call for a ticket.
struct Outcome {
  std::string gpu;  // UUID.
  Ticket ticket;
  decltype(Answer::body) body;
};

// Passes outcomes from the workers to the loop that serves connections, and wakes the loop through
// a descriptor. Thread-safe.
class Mailbox {
 public:
  Mailbox() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  // Readable while there are outcomes.
  int descriptor() const { return event_.get(); }

  void Post(Outcome outcome) {
    {
      const MutexLock lock(mutex_);
      outcomes_.push_back(std::move(outcome));
    }
    const std::uint64_t one = 1;
    // If the counter is full the write fails, but the loop wakes all the same.
    [[maybe_unused]] const ssize_t written = ::write(event_.get(), &one, sizeof(one));
  }

  std::vector<Outcome> TakeAll() {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t taken = ::read(event_.get(), &count, sizeof(count));
    const MutexLock lock(mutex_);
    return std::exchange(outcomes_, {});
  }

 private:
  FileDescriptor event_;
  Mutex mutex_;
  std::vector<Outcome> outcomes_ PERSEUS_GUARDED_BY(mutex_);
};

}  // namespace perseus::agent

#endif  // PERSEUS_AGENT_MAILBOX_H_
