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

// A socket in the file system that takes connections, not blocking; its file
// goes with it. Anybody may connect: who may do what is decided by who connects,
// and refused with a sentence. Movable.
class ListeningSocket {
 public:
  // Makes the directory where it is missing; replaces a socket that nobody
  // listens at. Errors (kIo, kInvalidInput): another agent listens, no permission,
  // a path that is too long.
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

// A blocking socket that is connected. kIo: nobody is there, no permission, or whoever
// listens has not made room for one more within `patience` (an agent that is stopped).
Result<FileDescriptor> ConnectUnix(const std::string& path, std::chrono::milliseconds patience);

}  // namespace perseus::agent

#endif  // PERSEUS_AGENT_SOCKET_H_
