// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_AGENT_GPU_WORKER_H_
#define PERSEUS_AGENT_GPU_WORKER_H_

#include <chrono>
#include <memory>
#include <thread>

#include "agent/gpu_claim.h"
#include "agent/journal.h"
#include "agent/mailbox.h"
#include "agent/protocol.h"
#include "common/log.h"
#include "device/device.h"

namespace perseus::agent {

struct WorkerSettings {
  bool observe = false;  // No clock is ever changed.
  std::chrono::nanoseconds min_interval = std::chrono::milliseconds(10);  // Between two sets.
  // Between two looks at the conditions of a GPU whose clock is locked.
  std::chrono::nanoseconds poll = std::chrono::seconds(10);
  // After a restore that failed; doubles up to the second.
  std::chrono::nanoseconds retry_least = std::chrono::milliseconds(100);
  std::chrono::nanoseconds retry_most = std::chrono::seconds(5);
};

// All that a worker uses, shared with its thread, which may outlive the worker
// where the driver never answers.
struct WorkerContext {
  std::shared_ptr<device::Driver> driver;
  std::shared_ptr<Journal> journal;
  std::shared_ptr<Log> log;
  std::shared_ptr<Mailbox> mailbox;
  WorkerSettings settings;
  std::shared_ptr<GpuClaim> claim = nullptr;  // Of this GPU; null where none is locked.
};

class GpuLoop;

// The thread that makes all calls for one GPU, so that a call that hangs delays
// no other GPU. The newest wish wins: a `Lock` that waits is overtaken by a newer
// one or by a `Release`. A clock is in the journal before it is first locked. A release that
// fails is tried again until it works, or until a new owner locks the clock.
//
// Functions return at once; what they ask for is answered through the mailbox,
// with the ticket. To be used by one thread.
class GpuWorker {
 public:
  // `gpu` is one of the driver's. `is_dirty`: an agent that was killed may have left
  // its clock locked; it is given back first.
  GpuWorker(const WorkerContext& context, device::Gpu* gpu, bool is_dirty);
  GpuWorker(const GpuWorker&) = delete;
  GpuWorker& operator=(const GpuWorker&) = delete;
  // Gives up on a call that does not return; see Stop.
  ~GpuWorker();

  void Lock(int mhz, const Ticket& ticket);
  // Gives the clock back, ahead of everything that waits. `force`: also where we did not lock it.
  void Release(const Ticket& ticket, bool force);
  void ReadEnergy(const Ticket& ticket);
  void ReadConditions(const Ticket& ticket);

  // Whether a clock of ours is, or is about to be, locked.
  bool HoldsClock() const;
  // All but the owner.
  GpuStatus Status() const;

  // Gives the clock back and ends the thread. True: the clock is back.
  // False: it is not by then; the journal still names it.
  void BeginStop();
  bool FinishStop(std::chrono::steady_clock::time_point deadline);

 private:
  std::shared_ptr<GpuLoop> loop_;
  std::thread thread_;
};

}  // namespace perseus::agent

#endif  // PERSEUS_AGENT_GPU_WORKER_H_
