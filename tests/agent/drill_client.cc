// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// A trainer that ends badly: leases GPUs, locks their clocks, says "ready", and
// then does what it is told to once it reads a byte.
//
//   agent_drill_client SOCKET MODE MHZ GPU...
//
// exit    ends without a word          throw   ends by an exception
// close   closes its socket, lives on  wait    does nothing: it is killed or stopped
// fork    has a child that holds the socket open, then does nothing

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>

#include "agent/protocol.h"

namespace {

using perseus::agent::Control;
using perseus::agent::Operation;

bool Ask(Control* control, Operation operation, const std::string& gpu, int mhz) {
  perseus::agent::Request request;
  request.operation = operation;
  request.gpu = gpu;
  request.mhz = mhz;
  const auto answer = control->Ask(request);
  if (!answer) {
    std::fputs(fmt::format("{}\n", answer.error().message).c_str(), stderr);
    return false;
  }
  const auto* refused = std::get_if<perseus::agent::Refused>(&answer->body);
  if (refused != nullptr) std::fputs(fmt::format("{}\n", refused->message).c_str(), stderr);
  return refused == nullptr;
}

// Until the drill is over: its end closes standard input.
void WaitForByte() {
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) < 0) {
  }
}

int Run(const std::string& socket, std::string_view mode, int mhz, char** gpus) {
  auto control = Control::Connect(socket, "drill", std::chrono::seconds(20));
  if (!control) {
    std::fputs(fmt::format("{}\n", control.error().message).c_str(), stderr);
    return 1;
  }
  for (char** gpu = gpus; *gpu != nullptr; ++gpu) {
    if (!Ask(&*control, Operation::kLease, *gpu, 0) ||
        !Ask(&*control, Operation::kSet, *gpu, mhz)) {
      return 1;
    }
  }
  if (mode == "fork" && ::fork() == 0) {
    WaitForByte();  // With a copy of the socket, until standard input ends.
    WaitForByte();
    ::_exit(0);
  }
  std::fputs("ready\n", stdout);
  std::fflush(stdout);
  WaitForByte();
  if (mode == "exit") ::_exit(0);
  if (mode == "throw") throw std::runtime_error("a bug of the trainer");
  if (mode == "close") ::close(control->descriptor());
  WaitForByte();
  ::_exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const rlimit no_core = {0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  return Run(argv[1], argv[2], std::atoi(argv[3]), argv + 4);
}
