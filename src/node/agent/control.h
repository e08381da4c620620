// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_AGENT_CONTROL_H_
#define PERSEUS_AGENT_CONTROL_H_

#include <chrono>
#include <cstdint>
#include <string>

#include "agent/protocol.h"
#include "common/file_descriptor.h"
#include "perseus/result.h"

namespace perseus::agent {

// A connection to an agent that asks one thing at a time and waits for the
// answer: for the command line and for tests. Movable, not thread-safe.
class Control {
 public:
  // Connects and says hello. Errors: kIo (nobody answers within `patience`, which
  // also bounds each Ask), and the agent's refusal (kDenied).
  static Result<Control> Connect(const std::string& socket_path, const std::string& name,
                                 std::chrono::milliseconds patience);

  void set_patience(std::chrono::milliseconds patience) { patience_ = patience; }
  const HelloAnswer& hello() const { return hello_; }
  int descriptor() const { return socket_.get(); }

  // Sends the request with the next number and waits for its answer, which may be
  // a refusal. Answers to others are dropped. kIo: none came.
  Result<Answer> Ask(Request request);
  // The parts of Ask. Send returns the request's number.
  Result<std::int64_t> Send(Request request);
  Result<Answer> Receive();

 private:
  Control(FileDescriptor socket, std::chrono::milliseconds patience)
      : socket_(std::move(socket)), patience_(patience) {}

  FileDescriptor socket_;
  std::chrono::milliseconds patience_;
  std::string buffer_;
  std::int64_t next_id_ = 1;
  HelloAnswer hello_;
};

}  // namespace perseus::agent

#endif  // PERSEUS_AGENT_CONTROL_H_
