// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_CLIENT_WITHHOLDING_PROXY_H_
#define PERSEUS_TESTS_CLIENT_WITHHOLDING_PROXY_H_

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent/protocol.h"
#include "common/file_descriptor.h"
#include "support/unix_listener.h"

namespace perseus::client {

// Between clients and an agent. Once it is told to, it passes on no request of a kind, so that its
// sender waits for an answer in vain; all else goes on.
class WithholdingProxy {
 public:
  // `kind`: as in the request's "op".
  WithholdingProxy(const std::string& path, std::string agent, const std::string& kind)
      : agent_(std::move(agent)),
        withheld_text_("\"" + kind + "\""),
        listener_(ListenAt(path, 16)),
        stop_(::eventfd(0, EFD_CLOEXEC)),
        thread_([this] { Run(); }) {}
  WithholdingProxy(const WithholdingProxy&) = delete;
  WithholdingProxy& operator=(const WithholdingProxy&) = delete;
  ~WithholdingProxy() {
    const std::uint64_t one = 1;
    EXPECT_EQ(::write(stop_.get(), &one, sizeof(one)), 8);
    thread_.join();
  }

  void Withhold() { withholds_ = true; }
  // How many were not passed on.
  int withheld() const { return withheld_; }
  // Whether somebody still waits for the answer to one.
  bool is_waited_for() const { return waiting_ > 0; }

 private:
  struct Pair {
    FileDescriptor client;
    FileDescriptor agent;
    std::string unsent;  // The begin of a request.
    int withheld = 0;
  };

  void Run() {
    while (true) {
      std::vector<pollfd> items = {{stop_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
      for (const Pair& pair : pairs_) {
        items.push_back({pair.client.get(), POLLIN, 0});
        items.push_back({pair.agent.get(), POLLIN, 0});
      }
      if (::poll(items.data(), items.size(), -1) <= 0) continue;
      if (items[0].revents != 0) return;
      std::size_t item = 2;
      for (auto pair = pairs_.begin(); pair != pairs_.end(); item += 2) {
        const bool goes_on = (items[item].revents == 0 || PassRequests(&*pair)) &&
                             (items[item + 1].revents == 0 || PassAnswers(&*pair));
        if (!goes_on) waiting_ -= pair->withheld;
        pair = goes_on ? std::next(pair) : pairs_.erase(pair);
      }
      if (items[1].revents != 0) Accept();
    }
  }

  void Accept() {
    FileDescriptor client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    auto agent = agent::ConnectUnix(agent_, std::chrono::seconds(20));
    if (agent && client.valid()) pairs_.push_back({std::move(client), *std::move(agent), ""});
  }

  static bool Send(int to, const std::string& text) {
    return ::send(to, text.data(), text.size(), MSG_NOSIGNAL) == std::ssize(text);
  }

  // False: its sender is gone.
  bool PassRequests(Pair* pair) {
    std::array<char, 4096> bytes;
    const ssize_t count = ::recv(pair->client.get(), bytes.data(), bytes.size(), 0);
    if (count <= 0) return false;
    pair->unsent.append(bytes.data(), static_cast<std::size_t>(count));
    for (std::size_t end = 0; (end = pair->unsent.find('\n')) != std::string::npos;) {
      const std::string request = pair->unsent.substr(0, end + 1);
      pair->unsent.erase(0, end + 1);
      if (withholds_ && request.find(withheld_text_) != std::string::npos) {
        ++pair->withheld;
        ++waiting_;
        ++withheld_;
      } else if (!Send(pair->agent.get(), request)) {
        return false;
      }
    }
    return true;
  }

  static bool PassAnswers(Pair* pair) {
    std::array<char, 4096> bytes;
    const ssize_t count = ::recv(pair->agent.get(), bytes.data(), bytes.size(), 0);
    return count > 0 && Send(pair->client.get(), {bytes.data(), static_cast<std::size_t>(count)});
  }

  const std::string agent_;
  const std::string withheld_text_;
  std::atomic<bool> withholds_ = false;
  std::atomic<int> withheld_ = 0;
  std::atomic<int> waiting_ = 0;  // Of connections that are still there.
  std::list<Pair> pairs_;         // Of the thread.
  const FileDescriptor listener_;
  const FileDescriptor stop_;
  std::thread thread_;
};

}  // namespace perseus::client

#endif  // PERSEUS_TESTS_CLIENT_WITHHOLDING_PROXY_H_
