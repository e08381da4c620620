// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_AGENT_GPU_WORKER_H_
#define PERSEUS_AGENT_GPU_WORKER_H_

#include <sys/eventfd.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent/journal.h"
#include "agent/protocol.h"
#include "common/file_descriptor.h"
#include "common/log.h"
#include "common/mutex.h"
#include "device/device.h"

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

struct WorkerSettings {
  bool observe = false;  // No clock is ever changed.
  // A clock is changed at most once in this time.
  std::chrono::nanoseconds min_interval = std::chrono::milliseconds(10);
  // How often the conditions of a GPU are read while its clock is locked.
  std::chrono::nanoseconds poll = std::chrono::seconds(10);
  // Pause after a failed release; it doubles up to retry_most.
  std::chrono::nanoseconds retry_least = std::chrono::milliseconds(100);
  std::chrono::nanoseconds retry_most = std::chrono::seconds(5);
};

// Objects of a worker, shared with its thread, which outlives it if the driver never returns.
struct WorkerContext {
  std::shared_ptr<device::Driver> driver;
  std::shared_ptr<Journal> journal;
  std::shared_ptr<Log> log;
  std::shared_ptr<Mailbox> mailbox;
  WorkerSettings settings;
  std::shared_ptr<GpuClaim> claim = nullptr;  // Of this GPU; null if no clock is ever locked.
};

// The thread that makes all driver calls for one GPU, so that a hanging call delays no other GPU.
// Only the newest request is carried out: a newer Lock() or a Release() replaces a waiting Lock().
// The journal names a GPU before its clock is first locked. A failed release is tried again until
// it succeeds or a new owner locks the clock.
//
// Functions return at once. Their results come through the mailbox with their ticket. To be used by
// one thread.
class GpuWorker {
 public:
  // `gpu` belongs to the context's driver. `is_dirty`: a killed agent may have left the clock
  // locked; it is then given back first.
  GpuWorker(const WorkerContext& context, device::Gpu* gpu, bool is_dirty);
  GpuWorker(const GpuWorker&) = delete;
  GpuWorker& operator=(const GpuWorker&) = delete;
  // Abandons a call that does not return.
  ~GpuWorker();

  void Lock(int mhz, const Ticket& ticket);
  // Gives the clock back before all waiting requests. `force`: even if this agent did not lock it.
  void Release(const Ticket& ticket, bool force);
  void ReadEnergy(const Ticket& ticket);
  void ReadClock(const Ticket& ticket);
  void ReadConditions(const Ticket& ticket);

  // Whether this agent has locked the clock or is about to.
  bool HoldsClock() const;
  // The GPU's status, without its owner.
  GpuStatus Status() const;

  // BeginStop() starts to give the clock back and to end the thread. FinishStop() waits for that
  // and returns whether the clock is back by the deadline. If not, the journal still names the GPU.
  void BeginStop();
  bool FinishStop(std::chrono::steady_clock::time_point deadline);

 private:
  class Loop;

  std::shared_ptr<Loop> loop_;
  std::thread thread_;
};

}  // namespace perseus::agent

#endif  // PERSEUS_AGENT_GPU_WORKER_H_
