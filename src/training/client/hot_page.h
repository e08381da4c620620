// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLIENT_HOT_PAGE_H_
#define PERSEUS_CLIENT_HOT_PAGE_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "client/event_ring.h"
#include "perseus/result.h"

namespace perseus::client {

// Value of HotPage::alive in the process that opened the client.
inline constexpr std::uint32_t kPageAlive = 1;
inline constexpr std::uint32_t kPageStopped = 2;

// Memory that the trainer's threads and the background thread share. The kernel clears it in a
// forked child (MADV_WIPEONFORK, Linux 4.14), so `alive` is 0 there. In this way the hot path
// detects a child without a system call, a fork handler or a global. No constructor runs: the first
// state is all zeros.
struct HotPage {
  std::atomic<std::uint32_t> alive;
  // The background thread sleeps on `wake` between iterations. It sets `sleeping` meanwhile, so
  // that PushAndWake() makes a system call only if necessary.
  std::atomic<std::uint32_t> wake;
  std::atomic<std::uint32_t> sleeping;
  // Whether events of computations are needed, because there is a plan or a sweep.
  std::atomic<std::uint32_t> listens;
  // Counts what changes the newest problem or the job's id, so that the trainer need not take a
  // lock to see that there is nothing new.
  std::atomic<std::uint32_t> problems;
  EventRing ring;

  void Wake();
  void PushAndWake(const Event& event);
  // Sleeps until Wake(), but at most for `nanoseconds`. `seen`: the value of `wake` when the caller
  // last looked for work. `lightly`: do not set `sleeping`, so no writer makes a system call.
  void Sleep(std::uint32_t seen, std::int64_t nanoseconds, bool lightly);
};

struct UnmapHotPage {
  void operator()(HotPage* page) const;
};
using HotPagePointer = std::unique_ptr<HotPage, UnmapHotPage>;

// kIo: no memory, or the kernel has no MADV_WIPEONFORK.
Result<HotPagePointer> MapHotPage();

}  // namespace perseus::client

#endif  // PERSEUS_CLIENT_HOT_PAGE_H_
