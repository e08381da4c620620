// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/runtime/refresher.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <string>
#include <utility>

namespace perseus::server {
namespace {

// Of the time of the last refresh, until the next one of the same job.
constexpr int kPauseShare = 3;
constexpr auto kLeastPause = std::chrono::milliseconds(10);

}  // namespace

Refresher::Refresher(Refresh refresh, OnProblem on_problem)
    : refresh_(std::move(refresh)), on_problem_(std::move(on_problem)) {
  for (std::thread& thread : threads_) thread = std::thread([this] { Run(); });
}

Refresher::~Refresher() { Stop(); }

void Refresher::Ask(const std::string& id) {
  {
    const MutexLock lock(mutex_);
    if (stopping_) return;
    jobs_[id].is_asked = true;
  }
  changed_.NotifyOne();
}

void Refresher::Stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void Refresher::Run() {
  const MutexLock lock(mutex_);
  while (!stopping_) {
    const Clock::time_point now = Clock::now();
    std::erase_if(jobs_, [&](const auto& job) {
      return !job.second.is_asked && !job.second.is_running && job.second.not_before <= now;
    });
    auto next = jobs_.end();
    for (auto job = jobs_.begin(); job != jobs_.end(); ++job) {
      if (!job->second.is_asked || job->second.is_running) continue;
      if (next == jobs_.end() || job->second.not_before < next->second.not_before) next = job;
    }
    if (next == jobs_.end()) {
      changed_.Wait(mutex_);
    } else if (next->second.not_before > now) {
      changed_.WaitUntil(mutex_, next->second.not_before);
    } else {
      const std::string id = next->first;
      next->second.is_asked = false;
      next->second.is_running = true;
      {
        const MutexUnlock open_again(mutex_);
        RunOne(id);
      }
      const Clock::time_point end = Clock::now();
      Entry& entry = jobs_[id];
      entry.is_running = false;
      entry.not_before = end + std::max<Clock::duration>(kPauseShare * (end - now), kLeastPause);
      changed_.NotifyOne();
    }
  }
}

void Refresher::RunOne(const std::string& id) {
  try {
    refresh_(id);
  } catch (const std::exception& exception) {
    if (on_problem_) {
      on_problem_("A bug: reading job " + id + " again threw: " + exception.what());
    }
  }
}

}  // namespace perseus::server
