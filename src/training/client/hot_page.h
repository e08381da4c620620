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

// Of HotPage::alive.
inline constexpr std::uint32_t kPageAlive = 1;
inline constexpr std::uint32_t kPageStopped = 2;

// What the trainer's threads and the background thread share. The kernel clears
// it in a forked child (MADV_WIPEONFORK, Linux 4.14): there `alive` reads 0,
// and the hot path learns that it is in a child without a system call, a
// handler or a global. No constructor runs: zeros are its first state.
struct HotPage {
  std::atomic<std::uint32_t> alive;
  // The background thread sleeps on `wake` between iterations, and says so in
  // `sleeping`, so that PushAndWake() makes a system call only then.
  std::atomic<std::uint32_t> wake;
  std::atomic<std::uint32_t> sleeping;
  // Whether computations are of use: there is a plan, or a sweep.
  std::atomic<std::uint32_t> listens;
  EventRing ring;

  void Wake();
  void PushAndWake(const Event& event);
  // Until Wake(), or for so long. `seen` is what `wake` was when the caller last
  // looked for work. `lightly`: nobody pays a system call to end it.
  void Sleep(std::uint32_t seen, std::int64_t nanoseconds, bool lightly);
};

struct UnmapHotPage {
  void operator()(HotPage* page) const;
};
using HotPagePointer = std::unique_ptr<HotPage, UnmapHotPage>;

// Errors: kIo, no memory or a kernel without MADV_WIPEONFORK.
Result<HotPagePointer> MapHotPage();

}  // namespace perseus::client

#endif  // PERSEUS_CLIENT_HOT_PAGE_H_
