// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_CLIENT_FAKE_SERVER_H_
#define PERSEUS_TESTS_CLIENT_FAKE_SERVER_H_

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "http/server.h"

namespace perseus::client {

// A server of /api/v1 that says what a test wants, over real sockets. Thread-safe.
class FakeServer {
 public:
  FakeServer();
  ~FakeServer();

  std::string url() const { return server_->url(); }

  // The plan of every rank from now on.
  void SetPlan(std::string json, int version);
  // Who waits for a plan is told at once that there is none.
  void SetHasty(bool hasty) {
    Set([&] { hasty_ = hasty; });
  }
  void SetJobState(std::string state) {
    Set([&] { job_state_ = std::move(state); });
  }
  // What GET .../measurements answers; until then 404.
  void SetReported(std::string json) {
    Set([&] { reported_ = std::move(json); });
  }
  // What it says is wrong with the rank that reports iterations. "": nothing.
  void SetTrouble(std::string sentence) {
    Set([&] { trouble_ = std::move(sentence); });
  }
  // Every answer is this; none: as it should be. "": none at all (parked).
  void AnswerAlways(std::optional<std::string> body) {
    Set([&] { always_ = std::move(body); });
  }

  struct Call {
    std::string method;
    std::string path;
    std::string body;
  };
  // The calls so far of one method whose path ends so.
  std::vector<Call> Calls(const std::string& method, const std::string& suffix) const;
  // Waits until there are so many; false: not within 20 s.
  bool WaitForCalls(const std::string& method, const std::string& suffix, std::size_t count) const;
  void Stop() { server_->Stop(0); }

 private:
  void Handle(const http::Request& request, const http::Responder& responder);
  // With the lock.
  void HandlePlan(const http::Request& request, const http::Responder& responder);
  template <typename Change>
  void Set(const Change& change) {
    const std::lock_guard lock(mutex_);
    change();
  }

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<Call> calls_;
  std::string plan_;
  int version_ = 0;
  bool hasty_ = false;
  std::string job_state_ = "running";
  std::optional<std::string> reported_;
  std::string trouble_;
  std::optional<std::string> always_;
  std::vector<http::Responder> parked_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace perseus::client

#endif  // PERSEUS_TESTS_CLIENT_FAKE_SERVER_H_
