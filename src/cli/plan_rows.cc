// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/plan_rows.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace perseus::cli {
namespace {

// Plans for different times, each made by itself.
struct Row {
  double seconds = 0;
  bool chosen = false;
  std::optional<Result<Plan>> plan;
};

void PlanAll(const Planner& planner, const PlanConstraints& constraints, double effort, int threads,
             const std::function<void(int, int)>& begun, std::vector<Row>* rows) {
  const int count = static_cast<int>(rows->size());
  std::atomic<int> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;  // The first; std::bad_alloc, most likely.
  const auto work = [&](bool tell) {
    try {
      for (int k = next++; k < count; k = next++) {
        if (tell) begun(k + 1, count);
        Row& row = (*rows)[k];
        if (!row.plan) row.plan = planner.PlanFor(row.seconds, constraints, effort);
      }
    } catch (...) {
      next = count;
      const std::lock_guard<std::mutex> lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  std::vector<std::thread> helpers;
  helpers.reserve(std::max(0, std::min(threads, count) - 1));
  for (int k = 1; k < std::min(threads, count); ++k) {
    try {
      helpers.emplace_back(work, false);
    } catch (const std::system_error&) {  // No more threads: fewer do the same.
      break;
    }
  }
  work(true);
  for (std::thread& helper : helpers) helper.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

Result<void> PlanRows(const Planner& planner, const PlanConstraints& constraints, double effort,
                      int threads, double chosen_seconds,
                      const std::function<void(int, int)>& begun, Plan* chosen,
                      std::vector<PlanPoint>* points) {
  std::vector<Row> rows = {{.seconds = chosen_seconds, .chosen = true, .plan = *chosen}};
  for (const PlanPoint& point : *points) rows.push_back({.seconds = point.seconds, .plan = {}});
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.seconds < b.seconds; });
  std::vector<Row> different;
  for (Row& row : rows) {
    if (!different.empty() && SameTime(different.back().seconds, row.seconds)) {
      if (row.chosen) different.back() = std::move(row);
      continue;
    }
    different.push_back(std::move(row));
  }
  PlanAll(planner, constraints, effort, threads, begun, &different);

  std::vector<Plan> plans;
  std::vector<std::size_t> row_of;
  for (std::size_t k = 0; k < different.size(); ++k) {
    const Result<Plan>& plan = *different[k].plan;
    if (!plan && plan.error().code != ErrorCode::kInfeasible) {
      return tl::unexpected(plan.error());
    }
    if (!plan) continue;
    plans.push_back(*plan);
    row_of.push_back(k);
  }
  CarryForward(planner.pipeline(), &plans);
  for (std::size_t k = 0; k < plans.size(); ++k) {
    const Row& row = different[row_of[k]];
    if (row.chosen) *chosen = plans[k];
    for (PlanPoint& point : *points) {
      if (SameTime(point.seconds, row.seconds)) point.plan = plans[k];
    }
  }
  return {};
}

int UsualThreads() { return static_cast<int>(std::max(1U, std::thread::hardware_concurrency())); }

}  // namespace perseus::cli
