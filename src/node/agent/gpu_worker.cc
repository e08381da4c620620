// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "agent/gpu_worker.h"

#include "agent/gpu_loop.h"

namespace perseus::agent {

GpuWorker::GpuWorker(const WorkerContext& context, device::Gpu* gpu, bool is_dirty)
    : loop_(std::make_shared<GpuLoop>(context, gpu, is_dirty)),
      thread_([loop = loop_] { loop->Run(); }) {}

GpuWorker::~GpuWorker() {
  if (!thread_.joinable()) return;
  BeginStop();
  FinishStop(std::chrono::steady_clock::now() + std::chrono::seconds(1));
}

void GpuWorker::Lock(int mhz, const Ticket& ticket) { loop_->Lock(mhz, ticket); }
void GpuWorker::Release(const Ticket& ticket, bool force) { loop_->Release(ticket, force); }
void GpuWorker::ReadEnergy(const Ticket& ticket) { loop_->Read(&GpuLoop::energy_readers, ticket); }
void GpuWorker::ReadClock(const Ticket& ticket) { loop_->Read(&GpuLoop::clock_readers, ticket); }
void GpuWorker::ReadConditions(const Ticket& ticket) {
  loop_->Read(&GpuLoop::condition_readers, ticket);
}
bool GpuWorker::HoldsClock() const { return loop_->HoldsClock(); }
GpuStatus GpuWorker::Status() const { return loop_->Status(); }
void GpuWorker::BeginStop() { loop_->BeginStop(); }

bool GpuWorker::FinishStop(std::chrono::steady_clock::time_point deadline) {
  if (!thread_.joinable()) return true;
  const bool ended = loop_->WaitForEnd(deadline);
  // A thread that hangs in the driver cannot be ended. It owns all it uses.
  if (ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
  return ended;
}

}  // namespace perseus::agent
