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
  kWork,         // Of the computation that begins next.
  kStepAbandon,  // The step ends and does not count.
};

// What the trainer said, and when.
struct Event {
  EventKind kind = EventKind::kStepBegin;
  ComputationType type = ComputationType::kForward;
  std::int32_t stage = -1;
  std::int32_t microbatch = -1;
  // Of a step: its iteration (begin) or tokens (end); of kBusy: nanoseconds; of kWork: the bits
  // of a double.
  std::int64_t value = 0;
  std::uint64_t ticks = 0;
};

// From the trainer's threads to the background thread. Writers are wait-free
// (one fetch_add and four stores) and never wait for the reader: it loses the
// oldest events when it falls behind by more than kCapacity, and counts them.
//
// Each slot carries the number of its event, odd while it is being written, so
// that the reader sees whether what it copied was whole. It waits for a writer that
// is suspended inside Push() until kPatience later events are there, then counts that
// event as lost. (Suspended for a whole lap of the ring it could also tear one event; the
// follower then sees a wrong order, and lets go of the clocks for an iteration.)
//
// All zeros is a valid, empty ring: it lives in memory that the kernel clears in
// a forked child.
class EventRing {
 public:
  static constexpr std::uint64_t kCapacity = 4096;
  static constexpr std::uint64_t kPatience = 64;

  void Push(const Event& event) { Write(Reserve(), event); }

  // The two halves of Push(), between which a writer may be suspended.
  std::uint64_t Reserve() { return head_.fetch_add(1, std::memory_order_relaxed); }
  void Write(std::uint64_t number, const Event& event) {
    Slot& slot = slots_[number % kCapacity];
    slot.sequence.store(2 * number + 1, std::memory_order_relaxed);
    // Release, so that none of these is seen before the odd number is.
    slot.action.store(Pack(event), std::memory_order_release);
    slot.value.store(event.value, std::memory_order_release);
    slot.ticks.store(event.ticks, std::memory_order_release);
    slot.sequence.store(2 * number + 2, std::memory_order_release);
  }

  // The reader's place. One reader.
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
        // Half a lap ahead of the writers, so that they do not catch up at once.
        const std::uint64_t next = head - kCapacity / 2;
        reader->lost += next - reader->next;
        reader->next = next;
      }
      const Slot& slot = slots_[reader->next % kCapacity];
      const std::uint64_t expected = 2 * reader->next + 2;
      const std::uint64_t before = slot.sequence.load(std::memory_order_acquire);
      if (before < expected) {  // Its writer has not finished, or an older one came in between.
        if (head - reader->next <= kPatience) return false;
        ++reader->lost;
        ++reader->next;
        continue;
      }
      Unpack(slot.action.load(std::memory_order_acquire), event);
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
    std::atomic<std::uint64_t> action;
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
    event->type = static_cast<ComputationType>(word >> 4 & 3);
    event->stage = Field(word, 8);
    event->microbatch = Field(word, 36);
  }

  alignas(64) std::atomic<std::uint64_t> head_;
  alignas(64) std::array<Slot, kCapacity> slots_;
};

}  // namespace perseus::client

#endif  // PERSEUS_CLIENT_EVENT_RING_H_
