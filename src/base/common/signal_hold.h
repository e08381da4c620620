// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_SIGNAL_HOLD_H_
#define PERSEUS_COMMON_SIGNAL_HOLD_H_

#include <csignal>

namespace perseus {

// Blocks the signals that end the program, in this thread, as long as it lives. So a short step is
// done completely or not at all.
class SignalHold {
 public:
  SignalHold() {
    sigemptyset(&held_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
      // An ignored signal (as under nohup) must not be blocked: IsWaiting() would find it.
      struct sigaction action {};
      if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) {
        sigaddset(&held_, signal);
      }
    }
    ::pthread_sigmask(SIG_BLOCK, &held_, &before_);
  }
  SignalHold(const SignalHold&) = delete;
  SignalHold& operator=(const SignalHold&) = delete;
  ~SignalHold() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

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

 private:
  sigset_t held_{};
  sigset_t before_{};
};

// While it lives, this thread takes no signal, nor do threads that it starts, ever: they inherit
// that. Signals are for the threads that the program had.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace perseus

#endif  // PERSEUS_COMMON_SIGNAL_HOLD_H_
