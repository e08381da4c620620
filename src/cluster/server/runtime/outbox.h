// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_RUNTIME_OUTBOX_H_
#define PERSEUS_SERVER_RUNTIME_OUTBOX_H_

#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace perseus::server {

// A strand: one state behind a mutex, and what changes of it lead to, done in their order outside
// of it, on whichever thread came last. Whoever changes the state waits neither for a disk nor for
// another's callback.
class Outbox {
 public:
  using Effect = std::function<void()>;

  // `on_problem` is told of effects that threw.
  explicit Outbox(std::function<void(const std::string&)> on_problem)
      : on_problem_(std::move(on_problem)) {}

  // Runs `change` with the mutex held, then what it added and nobody else does already.
  template <typename Change>
  auto Within(const Change& change) const -> decltype(change()) {
    struct Leave {
      const Outbox* outbox;
      std::unique_lock<std::mutex> lock;
      // Also after a change that threw.
      ~Leave() { outbox->Drain(&lock); }
    };
    Leave leave{this, std::unique_lock(mutex_)};
    return change();
  }

  // Within a change: `effect` is to be done once the mutex is free.
  void Then(Effect effect) const { effects_.push_back(std::move(effect)); }

 private:
  void Drain(std::unique_lock<std::mutex>* lock) const {
    if (is_draining_) return;
    is_draining_ = true;
    while (!effects_.empty()) {
      const std::vector<Effect> effects = std::exchange(effects_, {});
      lock->unlock();
      for (const Effect& effect : effects) Do(effect);
      lock->lock();
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
  mutable std::mutex mutex_;
  mutable std::vector<Effect> effects_;
  mutable bool is_draining_ = false;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_RUNTIME_OUTBOX_H_
