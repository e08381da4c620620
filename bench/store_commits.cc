// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// How many facts a second become durable: one writer that waits for each, many
// that do, and a storm. store_commits FOLDER, or store_commits postgresql://...
// (an empty database; its job is deleted at the end)

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/store/store.h"

namespace {

using perseus::store::JobGone;
using perseus::store::JobRecord;
using perseus::store::RankRecord;
using perseus::store::Store;

RankRecord RankOf(int rank) {
  RankRecord record;
  record.job = "j";
  record.rank = rank;
  record.dp_rank = rank;
  record.gpu_uuid = "GPU-2f7bdc6e-6b1f-4a0e-8f3d-000000000000";
  record.gpu_name = "NVIDIA A100-SXM4-80GB";
  record.node = "node-0001";
  record.clocks_mhz.assign(61, 1410);
  return record;
}

void Measure(const std::string& place, const char* what, int facts,
             const std::function<void(Store&)>& work) {
  const bool is_folder = place.find("://") == std::string::npos;
  auto store = Store::Open(
      is_folder ? fmt::format("sqlite:{}/{:x}.db", place, std::hash<std::string>()(what)) : place);
  if (!store) {
    fmt::print(stderr, "{}\n", store.error().message);
    return;
  }
  if (!(*store)->Write({JobRecord{.id = "j"}})) return;
  const auto start = std::chrono::steady_clock::now();
  const auto before = (*store)->counters().commits;
  work(**store);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const auto commits = (*store)->counters().commits - before;
  fmt::print("{:<28} {:>6} facts in {:.3f} s: {:>7.0f} facts/s, {:>6.0f} commits/s\n", what, facts,
             seconds, facts / seconds, static_cast<double>(commits) / seconds);
  (void)(*store)->Write({JobGone{"j"}});
}

}  // namespace

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : ".";
  constexpr int kOne = 500;
  Measure(folder, "one writer that waits", kOne, [](Store& store) {
    for (int rank = 0; rank < kOne; ++rank) (void)store.Write({RankOf(rank)});
  });
  constexpr int kThreads = 8;
  Measure(folder, "eight writers that wait", kThreads * kOne, [](Store& store) {
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&store, thread] {
        for (int i = 0; i < kOne; ++i) (void)store.Write({RankOf(thread * kOne + i)});
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  constexpr int kStorm = 8192;
  Measure(folder, "a storm of 8192 ranks", kStorm, [](Store& store) {
    std::atomic<int> left = kStorm;
    std::promise<void> all;
    for (int rank = 0; rank < kStorm; ++rank) {
      store.Add({RankOf(rank)}, [&](const perseus::Result<perseus::store::JobMarks>&) {
        if (--left == 0) all.set_value();
      });
    }
    all.get_future().wait();
  });
}
