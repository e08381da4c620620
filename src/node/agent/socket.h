// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_AGENT_SOCKET_H_
#define PERSEUS_AGENT_SOCKET_H_

#include <chrono>
#include <string>

#include "common/file_descriptor.h"
#include "perseus/result.h"

// Unix sockets.
namespace perseus::agent {

// A non-blocking listening socket in the file system. Its file is removed when it is destroyed.
// Every user may connect; the agent then checks the user and refuses with a sentence.
class ListeningSocket {
 public:
  // Makes the directory if it is missing. Replaces a socket on which no process listens. Errors
  // (kIo, kInvalidInput): another agent listens, no permission, the path is too long.
  static Result<ListeningSocket> Listen(const std::string& path);

  ListeningSocket(ListeningSocket&&) noexcept = default;
  ListeningSocket& operator=(ListeningSocket&&) = delete;
  ~ListeningSocket();

  int descriptor() const { return socket_.get(); }

 private:
  ListeningSocket(std::string path, FileDescriptor socket)
      : path_(std::move(path)), socket_(std::move(socket)) {}

  std::string path_;
  FileDescriptor socket_;
};

}  // namespace perseus::agent

#endif  // PERSEUS_AGENT_SOCKET_H_
