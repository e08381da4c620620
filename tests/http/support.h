// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_HTTP_SUPPORT_H_
#define PERSEUS_TESTS_HTTP_SUPPORT_H_

#include <gmock/gmock.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "common/file_descriptor.h"
#include "common/temporary_directory.h"
#include "http/client.h"
#include "http/server.h"

// Servers and sockets for the tests of this room. Every wait ends by itself.
namespace perseus::http {

// Long enough that only what hangs misses it.
inline constexpr double kPatience = 30;

// A certificate for 127.0.0.1 and localhost with its key, signed by itself.
struct Certificate {
  std::string certificate_file, key_file;
};
Certificate MakeCertificate(const TemporaryDirectory& folder, const std::string& name = "server",
                            int valid_days = 30);

// A socket to a server, with nothing between the test and the bytes.
class RawClient {
 public:
  explicit RawClient(int port, int receive_buffer_bytes = 0);
  RawClient& Send(std::string_view bytes);
  // False: the server no longer takes anything, or takes no more now.
  bool TrySend(std::string_view bytes);
  void HalfClose();
  void Reset();  // As a machine that crashes: RST.
  // One whole response: head and body (by its Content-Length). "" at the end.
  std::string ReadResponse(bool has_body = true);
  std::string ReadUntil(std::string_view mark);
  std::string ReadToEnd();
  bool IsClosed();  // Within kPatience, reading what comes.
  int descriptor() const { return socket_.get(); }

 private:
  bool ReadMore();
  FileDescriptor socket_;
  std::string unread_;
};

int StatusOf(std::string_view response);

// The head of a response has a line `name: value`.
MATCHER_P2(HasHeader, name, value, "") {
  return std::string_view(arg).find("\r\n" + std::string(name) + ": " + value + "\r\n") !=
         std::string_view::npos;
}

std::string BodyOf(std::string_view response);

// Open() and Serve(); the test ends where that fails.
std::unique_ptr<Server> StartServer(std::vector<Route> routes, ServerOptions options = {});
Client ClientOf(const Server& server);

// GET without a token.
Route Get(std::string pattern, Handler handle);
Route Post(std::string pattern, Handler handle);
// Answers with the method, the path, the query and the body.
Handler Echo();

// True once `condition` is; false after kPatience.
bool Eventually(const std::function<bool()>& condition);

// Keeps responders and streams beyond their handler, and lets a test wait for them.
template <typename T>
class Kept {
 public:
  void Add(T item) {
    const std::lock_guard lock(mutex_);
    items_.push_back(std::move(item));
  }
  std::size_t size() {
    const std::lock_guard lock(mutex_);
    return items_.size();
  }
  std::vector<T> Take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(items_, {});
  }
  bool WaitFor(std::size_t count) {
    return Eventually([&] { return size() >= count; });
  }

 private:
  std::mutex mutex_;
  std::vector<T> items_;
};

}  // namespace perseus::http

#endif  // PERSEUS_TESTS_HTTP_SUPPORT_H_
