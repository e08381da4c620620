// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "client/hot_page.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <ctime>
#include <string>

#include "common/file_descriptor.h"

namespace perseus::client {

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));  // A futex.

void HotPage::Wake() {
  wake.fetch_add(1, std::memory_order_seq_cst);
  if (sleeping.load(std::memory_order_seq_cst) == 0) return;
  syscall(SYS_futex, &wake, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void HotPage::PushAndWake(const Event& event) {
  ring.Push(event);
  Wake();
}

void HotPage::Sleep(std::uint32_t seen, std::int64_t nanoseconds, bool lightly) {
  if (nanoseconds <= 0) return;
  const timespec time = {.tv_sec = nanoseconds / 1'000'000'000,
                         .tv_nsec = nanoseconds % 1'000'000'000};
  sleeping.store(lightly ? 0 : 1, std::memory_order_seq_cst);
  // Returns at once where `wake` is no longer `seen`.
  syscall(SYS_futex, &wake, FUTEX_WAIT_PRIVATE, seen, &time, nullptr, 0);
  sleeping.store(0, std::memory_order_seq_cst);
}

void UnmapHotPage::operator()(HotPage* page) const { munmap(page, sizeof(HotPage)); }

Result<HotPagePointer> MapHotPage() {
  void* memory = mmap(nullptr, sizeof(HotPage), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) {
    return MakeError(ErrorCode::kIo, "no memory for the client: " + SystemMessage(errno));
  }
  HotPagePointer page(static_cast<HotPage*>(memory));
  if (madvise(memory, sizeof(HotPage), MADV_WIPEONFORK) != 0) {
    return MakeError(ErrorCode::kIo,
                     "this kernel cannot keep a client from its children (MADV_WIPEONFORK): " +
                         SystemMessage(errno) + "; Linux 4.14 or later is needed");
  }
  return page;
}

}  // namespace perseus::client
