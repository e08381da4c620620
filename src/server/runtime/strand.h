// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_RUNTIME_STRAND_H_
#define PERSEUS_SERVER_RUNTIME_STRAND_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/mutex.h"

namespace perseus::server {

// One state behind a mutex, and what changes of it lead to, done in their order outside of it, on
// whichever thread came last. Whoever changes the state waits neither for a disk nor for another's
// callback.
class PERSEUS_CAPABILITY("strand") Strand {
 public:
  using Effect = std::function<void()>;

  // `on_problem` is told of effects that threw.
  explicit Strand(std::function<void(const std::string&)> on_problem)
      : on_problem_(std::move(on_problem)) {}

  // Holds the mutex as long as it lives. In the end, also when a change threw, does what was added
  // and nobody else does already.
  class PERSEUS_SCOPED_CAPABILITY Turn {
   public:
    explicit Turn(const Strand& strand) PERSEUS_ACQUIRE(strand) : strand_(strand) {
      strand_.mutex_.Lock();
    }
    ~Turn() PERSEUS_RELEASE() {
      strand_.Drain();
      strand_.mutex_.Unlock();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    const Strand& strand_;
  };

  // Tells clang, within a lambda that is called at once, that this is a turn.
  void IsHeld() const PERSEUS_ASSERTS(this) {}

  // Within a turn: `effect` is to be done once the mutex is free.
  void Then(Effect effect) const PERSEUS_REQUIRES(this) PERSEUS_NO_THREAD_SAFETY_ANALYSIS {
    effects_.push_back(std::move(effect));
  }

 private:
  void Drain() const PERSEUS_REQUIRES(mutex_) {
    if (is_draining_) return;
    is_draining_ = true;
    while (!effects_.empty()) {
      std::vector<Effect> effects = std::exchange(effects_, {});
      const MutexUnlock unlocked(mutex_);
      for (Effect& effect : effects) {
        Do(effect);
        effect = nullptr;  // What it holds may call back: it goes without the mutex.
      }
    }
    is_draining_ = false;
  }

  void Do(const Effect& effect) const {
    try {
      effect();
    } catch (const std::exception& exception) {
      if (on_problem_) on_problem_(std::string("A bug: an answer threw: ") + exception.what());
    }
  }

  const std::function<void(const std::string&)> on_problem_;
  mutable Mutex mutex_;
  mutable std::vector<Effect> effects_ PERSEUS_GUARDED_BY(mutex_);
  mutable bool is_draining_ PERSEUS_GUARDED_BY(mutex_) = false;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_RUNTIME_STRAND_H_
