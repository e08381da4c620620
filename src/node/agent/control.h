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

// Connects a blocking socket. kIo: no process listens, no permission, or the listener has accepted
// no connection within `patience` (for example, because the agent is stopped). Nor does a send take
// longer.
Result<FileDescriptor> ConnectUnix(const std::string& path, std::chrono::milliseconds patience);

// A connection to an agent that sends one request at a time and waits for its answer. Its errors
// name the agent. Not thread-safe.
class Control {
 public:
  // Connects within `patience` and sends the request hello. kIo: no answer within `answers` (0: as
  // `patience`), which is also the time limit of each Ask(). kDenied: the agent refuses.
  static Result<Control> Connect(const std::string& socket_path, const std::string& name,
                                 std::chrono::milliseconds patience,
                                 std::chrono::milliseconds answers = {});

  void set_patience(std::chrono::milliseconds patience) { patience_ = patience; }
  const HelloAnswer& hello() const { return hello_; }
  int descriptor() const { return socket_.get(); }

  // Sends a request with the next number and waits for its answer, which may be a refusal. Drops
  // answers to other requests. kIo: no answer came.
  Result<Answer> Ask(Request request);
  // The parts of Ask. Send returns the request's number.
  Result<std::int64_t> Send(Request request);
  Result<Answer> Receive();

 private:
  Control(std::string path, FileDescriptor socket, std::chrono::milliseconds patience)
      : path_(std::move(path)), socket_(std::move(socket)), patience_(patience) {}

  std::string path_;
  FileDescriptor socket_;
  std::chrono::milliseconds patience_;
  std::string buffer_;
  std::int64_t next_id_ = 1;
  HelloAnswer hello_;
};

}  // namespace perseus::agent

#endif  // PERSEUS_AGENT_CONTROL_H_
