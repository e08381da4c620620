// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_RELAY_PLAN_ANSWERS_H_
#define PERSEUS_RELAY_PLAN_ANSWERS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "http/server.h"
#include "relay/plan_hub.h"
#include "relay/plan_set.h"

namespace perseus::relay {

// Collects answers while the hub's lock is held and sends them after it is released. Construct it
// before taking the lock.
class PlanHub::Answers {
 public:
  Answers() = default;
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;
  ~Answers() {
    try {
      Send();
    } catch (const std::exception&) {  // No memory: who is left is answered by the engine.
    }
  }

  void Add(http::Responder responder, http::Response response) {
    responses_.emplace_back(std::move(responder), std::move(response));
  }
  void Add(http::Responder responder, std::shared_ptr<const PlanSet> plans, int rank) {
    plans_.push_back({std::move(responder), std::move(plans), rank});
  }

 private:
  struct PlanAnswer {
    http::Responder responder;
    std::shared_ptr<const PlanSet> plans;
    int rank;
  };

  void Send();

  std::vector<std::pair<http::Responder, http::Response>> responses_;
  std::vector<PlanAnswer> plans_;
};

// Whether the status means that the server cannot answer now, so that the request can be tried
// again.
bool IsUnavailable(int status);

// The target of GET plans for ranks in ascending order.
std::string PlansTarget(const std::string& job, const std::vector<int>& ranks, std::int64_t after,
                        int wait_seconds);

}  // namespace perseus::relay

#endif  // PERSEUS_RELAY_PLAN_ANSWERS_H_
