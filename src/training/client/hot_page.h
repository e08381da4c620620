// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLIENT_HOT_PAGE_H_
#define PERSEUS_CLIENT_HOT_PAGE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

#include "common/clocks.h"
#include "perseus/computation.h"
#include "perseus/result.h"

namespace perseus::client {

inline constexpr std::int64_t kMillisecondNs = 1'000'000;
inline constexpr std::int64_t kSecondNs = 1'000'000'000;

// A time counter that the hot path can read without a system call. It is the processor's counter
// if that has the same rate on all cores, else the vDSO's clock. (clock_gettime may be a system
// call if the kernel does not trust the processor's counter.)
class TickSource {
 public:
  TickSource() : counter_(HasSteadyCounter()) {}

  std::uint64_t Now() const {
#if defined(__x86_64__)
    if (counter_) return __rdtsc();
#elif defined(__aarch64__)
    std::uint64_t ticks = 0;
    asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#endif
    return static_cast<std::uint64_t>(MonotonicNs());
  }

 private:
  static bool HasSteadyCounter() {
#if defined(__x86_64__)
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1U << 8)) != 0;  // Invariant TSC.
#else
    return true;
#endif
  }

  bool counter_;
};

// Converts ticks to CLOCK_MONOTONIC. The rate is measured since construction, so it becomes more
// exact with time. An event is converted relative to the last Refresh(), so that an error of the
// rate affects only the short time since the event. For one thread.
class TickConverter {
 public:
  explicit TickConverter(TickSource source) : source_(source) {
    ReadBoth();
    first_ticks_ = now_ticks_;
    first_ns_ = now_ns_;
  }

  // Call before a batch of conversions.
  void Refresh() {
    ReadBoth();
    if (now_ticks_ > first_ticks_ && now_ns_ > first_ns_) {
      rate_ =
          static_cast<double>(now_ns_ - first_ns_) / static_cast<double>(now_ticks_ - first_ticks_);
    }
  }

  std::int64_t ToNs(std::uint64_t ticks) const {
    const auto age = static_cast<std::int64_t>(now_ticks_ - ticks);
    return now_ns_ - static_cast<std::int64_t>(static_cast<double>(age) * rate_);
  }

 private:
  // Both at one moment: a thread may lose its core between two reads, so the closest of a few.
  void ReadBoth() {
    constexpr int kTries = 3;
    std::uint64_t closest = std::numeric_limits<std::uint64_t>::max();
    for (int k = 0; k < kTries; ++k) {
      const std::uint64_t before = source_.Now();
      const std::int64_t ns = MonotonicNs();
      const std::uint64_t apart = source_.Now() - before;
      if (apart >= closest) continue;
      closest = apart;
      now_ticks_ = before + apart / 2;
      now_ns_ = ns;
    }
  }

  TickSource source_;
  std::uint64_t first_ticks_ = 0;
  std::int64_t first_ns_ = 0;
  std::uint64_t now_ticks_ = 0;
  std::int64_t now_ns_ = 0;
  double rate_ = 1;  // Nanoseconds a tick.
};

enum class EventKind : std::uint8_t {
  kStepBegin,
  kStepEnd,
  kBegin,
  kEnd,
  kBusy,
  kWork,         // How much work the next computation has.
  kStepAbandon,  // The step ends and must not be used.
};

// The stage of a step's begin at which the trainer was told that nobody listens.
inline constexpr std::int32_t kUnheard = 1;

// A call of the trainer, with its time.
struct Event {
  EventKind kind = EventKind::kStepBegin;
  ComputationType type = ComputationType::kForward;
  std::int32_t stage = -1;
  std::int32_t microbatch = -1;
  // Begin of a step: its iteration, and in `stage` kUnheard if nobody listened to computations
  // then. End of a step: its tokens. kBusy: nanoseconds. kWork: the bits of a double.
  std::int64_t value = 0;
  std::uint64_t ticks = 0;
};

// A queue from the trainer's threads to the background thread. Writers are wait-free (one fetch_add
// and four stores). If the reader falls behind by more than kCapacity events, it loses the oldest
// ones and counts them.
//
// Each slot has a sequence number that is odd while its event is written, so the reader notices if
// it copied an incomplete event. If a writer is suspended inside Push(), the reader waits until
// there are kPatience later events and then counts that event as lost. (A writer that is suspended
// while the ring fills once could also corrupt one event. The follower then sees a wrong order and
// sets no clocks for an iteration.)
//
// All zeros is a valid, empty ring, because the kernel clears its memory in a forked child.
class EventRing {
 public:
  static constexpr std::uint64_t kCapacity = 4096;
  static constexpr std::uint64_t kPatience = 64;

  void Push(const Event& event) { Write(Reserve(), event); }

  // The two halves of Push(). A writer may be suspended between them.
  std::uint64_t Reserve() { return head_.fetch_add(1, std::memory_order_relaxed); }
  void Write(std::uint64_t number, const Event& event) {
    Slot& slot = slots_[number % kCapacity];
    slot.sequence.store(2 * number + 1, std::memory_order_relaxed);
    // Release, so that none of these is seen before the odd number is.
    slot.id.store(Pack(event), std::memory_order_release);
    slot.value.store(event.value, std::memory_order_release);
    slot.ticks.store(event.ticks, std::memory_order_release);
    slot.sequence.store(2 * number + 2, std::memory_order_release);
  }

  // The reader's position. There is one reader.
  struct Reader {
    std::uint64_t next = 0;
    std::uint64_t lost = 0;
  };

  // The next event, if there is one.
  bool Pop(Reader* reader, Event* event) const {
    while (true) {
      const std::uint64_t head = head_.load(std::memory_order_acquire);
      if (reader->next >= head) return false;
      if (head - reader->next > kCapacity) {
        // Skip to half a ring behind the newest event, so that writers do not overtake again at
        // once.
        const std::uint64_t next = head - kCapacity / 2;
        reader->lost += next - reader->next;
        reader->next = next;
      }
      const Slot& slot = slots_[reader->next % kCapacity];
      const std::uint64_t expected = 2 * reader->next + 2;
      const std::uint64_t before = slot.sequence.load(std::memory_order_acquire);
      if (before < expected) {  // Its writer, or an older writer of this slot, has not finished.
        if (head - reader->next <= kPatience) return false;
        ++reader->lost;
        ++reader->next;
        continue;
      }
      Unpack(slot.id.load(std::memory_order_acquire), event);
      event->value = slot.value.load(std::memory_order_acquire);
      event->ticks = slot.ticks.load(std::memory_order_acquire);
      if (before == expected && slot.sequence.load(std::memory_order_relaxed) == expected) {
        ++reader->next;
        return true;
      }
      ++reader->lost;  // Overwritten meanwhile.
      ++reader->next;
    }
  }

 private:
  struct alignas(32) Slot {
    std::atomic<std::uint64_t> sequence;
    std::atomic<std::uint64_t> id;
    std::atomic<std::int64_t> value;
    std::atomic<std::uint64_t> ticks;
  };

  // kind, type, stage and microbatch in 4, 4, 28 and 28 bits; -1 is all ones.
  static constexpr std::uint64_t kField = (std::uint64_t{1} << 28) - 1;
  static std::uint64_t Pack(const Event& event) {
    return static_cast<std::uint64_t>(event.kind) | static_cast<std::uint64_t>(event.type) << 4 |
           (static_cast<std::uint64_t>(event.stage) & kField) << 8 |
           (static_cast<std::uint64_t>(event.microbatch) & kField) << 36;
  }
  static std::int32_t Field(std::uint64_t word, int shift) {
    const std::uint64_t field = (word >> shift) & kField;
    return field == kField ? -1 : static_cast<std::int32_t>(field);
  }
  static void Unpack(std::uint64_t word, Event* event) {
    event->kind = static_cast<EventKind>(word & 15);
    event->type = static_cast<ComputationType>(word >> 4 & 15);
    event->stage = Field(word, 8);
    event->microbatch = Field(word, 36);
  }

  alignas(64) std::atomic<std::uint64_t> head_;
  alignas(64) std::array<Slot, kCapacity> slots_;
};

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
