// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLIENT_EVENT_RING_H_
#define PERSEUS_CLIENT_EVENT_RING_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "perseus/computation.h"

namespace perseus::client {

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

}  // namespace perseus::client

#endif  // PERSEUS_CLIENT_EVENT_RING_H_
