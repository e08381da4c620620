// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_RELAY_RELAY_TESTING_H_
#define PERSEUS_TESTS_RELAY_RELAY_TESTING_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "common/file_descriptor.h"
#include "http/client.h"
#include "http/server.h"
#include "http/support.h"
#include "relay/relay.h"

// A relay between real sockets: ranks at its Unix socket, a server that a test scripts.
namespace perseus::relay {

// A server of /api/v1 that has plans of any rank of any job. Thread-safe.
class ScriptedServer {
 public:
  explicit ScriptedServer(std::string listen = "127.0.0.1:0");

  std::string url() const { return server_->url(); }
  http::Server& server() { return *server_; }

  // The version of all plans from now on; tells those who wait.
  void SetVersion(std::int64_t version);
  // Ranks that are not registered: whoever asks for one with others is told 404.
  void SetUnknown(std::set<int> ranks);
  // Answers instead, where it answers something.
  using Script = std::function<std::optional<http::Response>(const http::Request&)>;
  void SetScript(Script script);
  // No job is known any more: 404 to those who wait and to all who ask.
  void ForgetJobs();
  // While it is, nothing is answered: connections stay open.
  void SetSilent(bool is_silent);

  struct Call {
    std::string method, path, query, body, authorization;
  };
  std::vector<Call> Calls(const std::string& method, const std::string& suffix) const;
  std::size_t CountOf(const std::string& method, const std::string& suffix) const {
    return Calls(method, suffix).size();
  }
  // Long polls that wait now.
  std::size_t waiting() const;

  // What GET plan answers a rank.
  static std::string PlanOf(int rank, std::int64_t version);

 private:
  struct Parked {
    std::vector<int> ranks;
    std::int64_t after;
    http::Responder responder;
  };
  void Handle(const http::Request& request, const http::Responder& responder);
  void HandlePlans(const http::Request& request, const http::Responder& responder);
  std::string PlansOf(const std::vector<int>& ranks) const;

  mutable std::mutex mutex_;
  std::vector<Call> calls_;
  std::vector<Parked> parked_;
  std::vector<http::Responder> silenced_;
  std::set<int> unknown_;
  std::int64_t version_ = 1;
  Script script_;
  bool is_silent_ = false;
  std::unique_ptr<http::Server> server_;
};

class RelayTest : public ::testing::Test {
 protected:
  using Change = std::function<void(RelayOptions*)>;

  // A relay to `url`; the test ends where that fails.
  void StartRelay(const std::string& url, const Change& change = {});
  std::string RelayUrl() const { return relay_->url(); }

  // A rank's connection.
  http::Client Rank() const;
  // What a rank is answered; status 0: no answer.
  struct Answer {
    int status = 0;
    std::string body;
    http::Headers headers;
  };
  static Answer Call(http::Client* client, const std::string& method, const std::string& target,
                     const std::string& body = "");
  Answer Call(const std::string& method, const std::string& target,
              const std::string& body = "") const;
  Answer Plan(int rank, std::int64_t after, int wait, const std::string& job = "j") const;
  // Many at once, each on a connection of its own.
  std::vector<Answer> Plans(const std::vector<int>& ranks, std::int64_t after, int wait) const;

  TemporaryDirectory folder_;
  std::unique_ptr<Relay> relay_;
};

}  // namespace perseus::relay

#endif  // PERSEUS_TESTS_RELAY_RELAY_TESTING_H_
