// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_AGENT_STOP_SIGNALS_H_
#define PERSEUS_AGENT_STOP_SIGNALS_H_

#include <poll.h>
#include <sys/signalfd.h>

#include <csignal>

#include "common/file_descriptor.h"

namespace perseus::agent {

// As long as it lives, signals that end the program make a descriptor readable instead. Make it
// before any thread starts: threads then inherit that these signals are blocked.
class StopSignals {
 public:
  StopSignals() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      // An ignored signal (as under nohup) stays ignored.
      struct sigaction action {};
      if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) {
        sigaddset(&signals, signal);
      }
    }
    ::pthread_sigmask(SIG_BLOCK, &signals, &before_);
    descriptor_ = FileDescriptor(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  // What came meanwhile has been obeyed.
  ~StopSignals() {
    signalfd_siginfo taken;
    while (::read(descriptor_.get(), &taken, sizeof(taken)) > 0) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  int descriptor() const { return descriptor_.get(); }
  bool Came() const {
    pollfd came = {descriptor_.get(), POLLIN, 0};
    return ::poll(&came, 1, 0) == 1;
  }

 private:
  sigset_t before_{};
  FileDescriptor descriptor_;
};

}  // namespace perseus::agent

#endif  // PERSEUS_AGENT_STOP_SIGNALS_H_
