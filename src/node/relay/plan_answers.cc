// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "relay/plan_answers.h"

#include <fmt/format.h>

#include <cstddef>

#include "http/target.h"

namespace perseus::relay {
namespace {

http::Response PlanResponse(const PlanSet& plans, int rank) {
  http::Response response;
  response.body = plans.BodyOf(rank);
  return response;
}

// "0-7,12".
std::string RankList(const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += last == i ? fmt::format("{}", ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace

void PlanHub::Answers::Send() {
  for (auto& [responder, response] : responses_) responder.Send(std::move(response));
  http::Response last;  // Several may ask for the same.
  const PlanAnswer* of = nullptr;
  for (const PlanAnswer& answer : plans_) {
    if (of == nullptr || of->rank != answer.rank || of->plans != answer.plans) {
      last = PlanResponse(*answer.plans, answer.rank);
      of = &answer;
    }
    answer.responder.Send(last);
  }
}

bool IsUnavailable(int status) { return status == 408 || status == 429 || status >= 500; }

std::string PlansTarget(const std::string& job, const std::vector<int>& ranks, std::int64_t after,
                        int wait_seconds) {
  return fmt::format("/api/v1/jobs/{}/plans?ranks={}&after={}&wait={}", http::PercentEncoded(job),
                     RankList(ranks), after, wait_seconds);
}

}  // namespace perseus::relay
