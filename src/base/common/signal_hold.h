// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_SIGNAL_HOLD_H_
#define PERSEUS_COMMON_SIGNAL_HOLD_H_

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <initializer_list>

#include "common/file_descriptor.h"

namespace perseus {

// While it lives, this thread takes no signal, nor do threads that it starts, ever: they inherit
// that. Signals are for the threads that the program had.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigfillset(&held_);
    ::pthread_sigmask(SIG_BLOCK, &held_, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 protected:
  // Only these. An ignored signal (as under nohup) stays ignored: if it were blocked, it would be
  // pending.
  SignalsBlocked(std::initializer_list<int> signals, bool ignored_too) {
    sigemptyset(&held_);
    for (const int signal : signals) {
      struct sigaction action {};
      if (ignored_too ||
          (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN)) {
        sigaddset(&held_, signal);
      }
    }
    ::pthread_sigmask(SIG_BLOCK, &held_, &before_);
  }

  sigset_t held_{};
  sigset_t before_{};
};

// Blocks the signals that end the program, in this thread, as long as it lives. So a short step is
// done completely or not at all.
class SignalHold : public SignalsBlocked {
 public:
  SignalHold() : SignalsBlocked({SIGINT, SIGTERM, SIGHUP, SIGQUIT}, false) {}

  // Whether a signal that this object blocks has arrived.
  bool IsWaiting() const {
    sigset_t pending;
    if (::sigpending(&pending) != 0) return false;
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
      if (sigismember(&pending, signal) == 1 && sigismember(&held_, signal) == 1 &&
          sigismember(&before_, signal) == 0) {
        return true;
      }
    }
    return false;
  }
};

// As long as it lives, signals that end the program make a descriptor readable instead. Make it
// before any thread starts: threads then inherit that these signals are blocked.
class StopSignals : public SignalsBlocked {
 public:
  // `ignored_too`: takes also those that the program was started to ignore.
  explicit StopSignals(bool ignored_too = false)
      : SignalsBlocked({SIGINT, SIGTERM, SIGHUP}, ignored_too),
        descriptor_(::signalfd(-1, &held_, SFD_CLOEXEC | SFD_NONBLOCK)) {}
  // Discards the signals that came meanwhile: they have been obeyed.
  ~StopSignals() {
    while (Take() != 0) {
    }
  }

  int descriptor() const { return descriptor_.get(); }
  bool Came() const {
    pollfd came = {descriptor_.get(), POLLIN, 0};
    return ::poll(&came, 1, 0) == 1;
  }
  // Waits for a signal and returns it. Returns 0 if none came in time, or if the descriptor `also`
  // (-1: none) became readable.
  int Wait(std::chrono::milliseconds patience, int also) const {
    std::array<pollfd, 2> sources = {pollfd{descriptor_.get(), POLLIN, 0}, {also, POLLIN, 0}};
    ::poll(sources.data(), sources.size(), static_cast<int>(patience.count()));
    return Take();
  }

 private:
  int Take() const {
    signalfd_siginfo taken;
    if (::read(descriptor_.get(), &taken, sizeof(taken)) != sizeof(taken)) return 0;
    return static_cast<int>(taken.ssi_signo);
  }

  FileDescriptor descriptor_;
};

}  // namespace perseus

#endif  // PERSEUS_COMMON_SIGNAL_HOLD_H_
