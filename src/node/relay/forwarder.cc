// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "relay/forwarder.h"

#include <exception>
#include <utility>

namespace perseus::relay {
namespace {

constexpr double kLeastSeconds = 0.2;  // For a call; less is not worth beginning.

}  // namespace

Forwarder::Forwarder(const ServerAddress* address, ServerHealth* health, ForwarderOptions options)
    : options_(options), health_(health) {
  idle_.reserve(static_cast<std::size_t>(options_.lines));
  for (int i = 0; i < options_.lines; ++i) {
    workers_.push_back(std::make_unique<Worker>(address, health));
  }
  try {
    for (const std::unique_ptr<Worker>& worker : workers_) {
      worker->thread = std::thread([this, worker = worker.get()] { Run(worker); });
    }
  } catch (...) {  // No thread; those that run have to be joined.
    Stop();
    throw;
  }
}

Forwarder::~Forwarder() { Stop(); }

bool Forwarder::Send(Request request, Callback callback) {
  const MutexLock lock(mutex_);
  const std::size_t bytes = request.body.size();
  const bool fits = queue_.size() < options_.max_waiting &&
                    (queue_.empty() || queued_bytes_ + bytes <= options_.max_waiting_bytes);
  if (!fits) ++counts_.refused;
  if (stopped_ || !fits) return false;
  const auto patience = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(options_.deadline_seconds));
  queue_.push_back({std::move(request), std::move(callback), Clock::now() + patience});
  queued_bytes_ += bytes;
  if (!idle_.empty()) {
    idle_.back()->is_woken = true;
    idle_.back()->wake.NotifyOne();
    idle_.pop_back();
  }
  return true;
}

Forwarder::Counts Forwarder::counts() {
  const MutexLock lock(mutex_);
  Counts counts = counts_;
  counts.waiting = queue_.size();
  counts.limit = options_.max_waiting;
  return counts;
}

bool Forwarder::Next(Worker* worker, Item* item) {
  const MutexLock lock(mutex_);
  while (queue_.empty() && !stopped_) {
    worker->is_woken = false;
    idle_.push_back(worker);
    const Clock::time_point until = Clock::now() + options_.idle;
    bool is_idle = !worker->line.is_open();
    while (!worker->is_woken && !stopped_) {
      if (is_idle) {
        worker->wake.Wait(mutex_);
      } else if (!worker->wake.WaitUntil(mutex_, until)) {
        is_idle = true;
        const MutexUnlock unlocked(mutex_);
        worker->line.Close();
      }
    }
  }
  if (stopped_) return false;
  *item = std::move(queue_.front());
  queue_.pop_front();
  queued_bytes_ -= item->request.body.size();
  return true;
}

void Forwarder::Run(Worker* worker) {
  Item item;
  while (Next(worker, &item)) {
    try {
      const Result<http::Response> answer = Ask(worker, item);
      Count(answer);
      item.callback(answer);
    } catch (const std::exception&) {  // No memory: who waits is answered by the engine.
    }
    item = Item();  // What it holds is not kept until the next.
  }
}

void Forwarder::Count(const Result<http::Response>& answer) {
  const MutexLock lock(mutex_);
  ++counts_.sent;
  if (!answer) ++counts_.unanswered;
}

Result<http::Response> Forwarder::Ask(Worker* worker, const Item& item) {
  const double left = std::chrono::duration<double>(item.deadline - Clock::now()).count();
  if (left < kLeastSeconds) {
    return MakeError(ErrorCode::kIo, "the server takes too long to answer earlier requests");
  }
  if (health_->fails_fast()) return MakeError(ErrorCode::kIo, health_->why());
  const Request& request = item.request;
  try {
    return worker->line.Call(request.method, request.target, request.body, left, request.headers);
  } catch (const std::exception& exception) {  // No memory, or no thread to look a name up.
    return MakeError(ErrorCode::kIo, exception.what());
  }
}

void Forwarder::Stop() {
  std::deque<Item> left;
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    left.swap(queue_);
    for (const std::unique_ptr<Worker>& worker : workers_) worker->wake.NotifyOne();
  }
  for (const std::unique_ptr<Worker>& worker : workers_) worker->line.Cancel();
  for (const std::unique_ptr<Worker>& worker : workers_) {
    if (worker->thread.joinable()) worker->thread.join();
  }
  for (const Item& item : left) {
    item.callback(MakeError(ErrorCode::kCancelled, "the relay stops"));
  }
}

http::Response TooManyRequests() {
  return http::TryAgainResponse("The relay has too many requests at once; try again soon.");
}

void Forward(Forwarder* forwarder, Forwarder::Request request, const http::Responder& responder) {
  const bool is_sent =
      forwarder->Send(std::move(request), [responder](const Result<http::Response>& result) {
        responder.Send(result ? *result : UnavailableResponse(result.error()));
      });
  if (!is_sent) responder.Send(TooManyRequests());
}

}  // namespace perseus::relay
