// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_OPS_SIGNALS_H_
#define PERSEUS_SERVER_OPS_SIGNALS_H_

#include <poll.h>
#include <sys/signalfd.h>

#include <array>
#include <chrono>
#include <csignal>

#include "common/file_descriptor.h"

namespace perseus::server {

// Receives SIGTERM, SIGINT and SIGHUP for the server. Make it before any thread starts: threads
// then inherit that these signals are blocked.
class Signals {
 public:
  Signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
    ::pthread_sigmask(SIG_BLOCK, &set, &before_);
    descriptor_ = FileDescriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  }

  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  // Unblocks the signals, so that a process that hangs on a full pipe at its end can be killed.
  ~Signals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  // Waits for a signal and returns it. Returns 0 if none came in time, or if the descriptor `also`
  // (-1: none) became readable.
  int Wait(std::chrono::milliseconds patience, int also) const {
    std::array<pollfd, 2> sources = {pollfd{descriptor_.get(), POLLIN, 0}, {also, POLLIN, 0}};
    ::poll(sources.data(), sources.size(), static_cast<int>(patience.count()));
    signalfd_siginfo taken;
    if (::read(descriptor_.get(), &taken, sizeof(taken)) != sizeof(taken)) return 0;
    return static_cast<int>(taken.ssi_signo);
  }

 private:
  sigset_t before_{};
  FileDescriptor descriptor_;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_OPS_SIGNALS_H_
