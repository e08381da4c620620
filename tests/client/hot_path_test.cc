// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What the hot path may not do: allocate, make a system call. A program of its
// own, as it replaces operator new and filters its system calls.

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "perseus/client.h"

namespace {

std::atomic<long> allocations = 0;      // Of all threads,
thread_local long own_allocations = 0;  // and of this one.

void* Allocate(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  ++own_allocations;
  void* memory = std::malloc(size);
  if (memory == nullptr) std::abort();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return Allocate(size); }
void* operator new[](std::size_t size) { return Allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

constexpr int kCalls = 1'000'000;

perseus_client* Open() {
  perseus_client_options options;
  perseus_client_options_init(&options, sizeof(options));
  perseus_client* client = nullptr;
  EXPECT_EQ(perseus_client_open(&options, &client, nullptr), PERSEUS_OK);
  return client;
}

void Train(perseus_client* client, int calls) {
  for (int i = 0; i < calls / 3; ++i) {
    perseus_instruction_work(client, 2048);
    perseus_instruction_begin(client, PERSEUS_FORWARD, 1, i);
    perseus_instruction_end(client, PERSEUS_FORWARD, 1, i);
    if (perseus_client_listens(client) > 1 || perseus_client_problems(client) > 0) std::abort();
  }
}

TEST(HotPath, AMillionCallsAllocateNothing) {
  perseus_client* client = Open();
  perseus_step_begin(client, 1);
  const long before = own_allocations;
  Train(client, kCalls);
  perseus_step_end(client, 0);
  perseus_step_abandon(client);
  EXPECT_EQ(own_allocations, before);
  // The counter counts.
  delete new int;
  EXPECT_EQ(own_allocations, before + 1);
  perseus_client_close(client);
}

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

// From here on this thread is killed at any system call but exit.
void ForbidSystemCalls() {
  std::array<sock_filter, 4> filter = {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  }};
  const sock_fprog program = {.len = filter.size(), .filter = filter.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    _exit(77);
  }
}

// Runs `work` in a child that may make no system call in it; its exit status, or
// minus the signal that killed it.
template <typename Work>
int StatusWithoutSystemCalls(Work work) {
  const pid_t child = fork();
  if (child == 0) {
    // A client of the child's own; its background threads started before the filter,
    // which holds for this thread alone.
    perseus_client* client = Open();
    perseus_step_begin(client, 1);
    ForbidSystemCalls();
    work(client);
    syscall(SYS_exit_group, 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

TEST(HotPath, AMillionCallsMakeNoSystemCall) {
  const int status =
      StatusWithoutSystemCalls([](perseus_client* client) { Train(client, kCalls); });
  if (status == 77) GTEST_SKIP() << "no seccomp here";
  EXPECT_EQ(status, 0);
  // The filter filters.
  EXPECT_EQ(StatusWithoutSystemCalls([](perseus_client*) { getppid(); }), -SIGSYS);
}

#endif

}  // namespace
