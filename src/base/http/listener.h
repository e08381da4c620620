// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_HTTP_LISTENER_H_
#define PERSEUS_HTTP_LISTENER_H_

#include <string>
#include <string_view>

#include "common/file_descriptor.h"
#include "perseus/result.h"

namespace perseus::http {

struct ListenAddress {
  std::string host;       // Numeric: "127.0.0.1", "::1". "" for a Unix socket.
  int port = 0;           // 0: the system chooses.
  std::string unix_path;  // "": TCP.
  bool is_local = false;  // Only this machine can reach it.
};

// "127.0.0.1:7787", "[::1]:0", "localhost:7787", "unix:/path".
Result<ListenAddress> ParseListenAddress(std::string_view text);

// Whether `host` is a numeric address. `is_local` is set if it is one of the loopback interface.
bool IsNumericHost(const std::string& host, bool* is_local);

// A listening socket. Removes the file of a Unix socket when it is destroyed.
class Listener {
 public:
  // Replaces the file of a Unix socket if no process listens on it. `unix_mode`: the permissions of
  // that file, which it has from the moment it is made.
  static Result<Listener> Open(const ListenAddress& address, int unix_mode);
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&&) = delete;
  ~Listener();

  int descriptor() const { return socket_.get(); }
  int port() const { return port_; }
  // Does not block. Invalid result: see errno. Sets `peer` to "127.0.0.1:4711" or "unix".
  FileDescriptor Accept(std::string* peer) const;
  void Close();

 private:
  Listener(FileDescriptor socket, int port, std::string unix_path);
  FileDescriptor socket_;
  int port_ = 0;
  std::string unix_path_;
};

}  // namespace perseus::http

#endif  // PERSEUS_HTTP_LISTENER_H_
