// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/demo/shared_memory.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <ctime>

#include "common/file_descriptor.h"

namespace perseus::demo {
namespace {

// A waiter looks so often whether it shall stop.
constexpr timespec kLook = {.tv_sec = 0, .tv_nsec = 100'000'000};

Result<SharedMemoryPointer> Map(const std::string& path, int flags) {
  const auto fail = [&] { return MakeError(ErrorCode::kIo, path + ": " + SystemMessage(errno)); };
  const FileDescriptor fd = OpenFile(path, O_RDWR | flags, 0600);
  if (!fd.valid()) return fail();
  if (ftruncate(fd.get(), sizeof(SharedMemory)) != 0) return fail();
  void* memory =
      mmap(nullptr, sizeof(SharedMemory), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return fail();
  return SharedMemoryPointer(static_cast<SharedMemory*>(memory));
}

}  // namespace

void UnmapShared::operator()(SharedMemory* memory) const { munmap(memory, sizeof(SharedMemory)); }

Result<SharedMemoryPointer> CreateSharedMemory(const std::string& path, const DemoPlan& plan) {
  Result<SharedMemoryPointer> memory = Map(path, O_CREAT | O_EXCL);
  if (!memory) return memory;
  (*memory)->plan = plan;
  (*memory)->first_planned.store(-1);
  return memory;
}

Result<SharedMemoryPointer> OpenSharedMemory(const std::string& path) { return Map(path, 0); }

bool WaitFor(const SharedMemory& memory, const std::atomic<std::uint32_t>& word,
             std::uint32_t value) {
  while (true) {
    const std::uint32_t now = word.load(std::memory_order_acquire);
    // Counters only grow, and by far less than half of their range in a run.
    if (static_cast<std::int32_t>(now - value) >= 0) return true;
    if (memory.stop.load(std::memory_order_relaxed) != 0) return false;
    syscall(SYS_futex, &word, FUTEX_WAIT, now, &kLook, nullptr, 0);
  }
}

void Raise(std::atomic<std::uint32_t>* word) {
  word->fetch_add(1, std::memory_order_acq_rel);
  syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace perseus::demo
