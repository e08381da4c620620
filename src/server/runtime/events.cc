// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/runtime/events.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <random>
#include <utility>

#include "server/store/store.h"

namespace perseus::server {
namespace {

// Of events that are handed on at a time, so that a new listener waits for no more.
constexpr std::int64_t kMostAtOnce = 256;

constexpr Field kOfJob = Text("job").Says("Its id.");

constexpr Field kJobMembers[] = {
    kOfJob, Text("name").Sometimes().Says("Of a new job."),
    Object("labels").Sometimes().Says("All that it has now, where they changed."),
    Boolean("deleted").Sometimes().Says("Of one that is gone.")};
constexpr Field kStateMembers[] = {kOfJob, Choice("state", store::kJobStateNames), Text("reason")};
constexpr Field kPlanMembers[] = {kOfJob, Integer("version"), Text("reason")};
constexpr Field kStragglerMembers[] = {
    kOfJob, Integer("straggler_id"),
    Integer("gone").Sometimes().Says(
        "How many were cleared or have expired; the id is that of the first.")};
constexpr Field kDetectionMembers[] = {
    kOfJob,
    Choice("kind",
           "straggler factor recovered drift drift_over slow slow_over compared lengthened"),
    Integer("iteration"),
    Text("sentence"),
    Integer("rank").Sometimes(),
    Number("factor").Sometimes(),
    Number("delay_iterations").Sometimes()};
constexpr Field kProfilingMembers[] = {kOfJob, Text("sentence"), Integer("rank").Sometimes()};
constexpr Field kDriftMembers[] = {kOfJob, Choice("kind", "drift drift_over"), Integer("stage"),
                                   Number("percent"), Text("sentence")};
constexpr Field kTroubleMembers[] = {kOfJob, Integer("rank"), Text("state"), Text("sentence")};
constexpr Field kStoreMembers[] = {Boolean("is_up"), Text("sentence")};
constexpr Field kResetMembers[] = {Text("sentence")};

constexpr std::array<EventType, 10> kTypes = {{
    {EventKind::kJob, "job", "A job was created or deleted, or its labels changed.", "JobEvent",
     kJobMembers},
    {EventKind::kState, "state",
     "A job is in another state. Also at the beginning of a stream and after reset, of each job; "
     "its data is then a JobSummary, which is of the moment that its id names.",
     "StateEvent", kStateMembers, true},
    {EventKind::kPlan, "plan", "There is a new version of the plan.", "PlanEvent", kPlanMembers,
     true},
    {EventKind::kStraggler, "straggler", "A straggler was reported or cleared, or expired.",
     "StragglerEvent", kStragglerMembers, true},
    {EventKind::kDetection, "detection", "The server found something in iteration times.",
     "DetectionEvent", kDetectionMembers},
    {EventKind::kProfiling, "profiling", "The state of a job's measurements has changed.",
     "ProfilingEvent", kProfilingMembers},
    {EventKind::kDrift, "drift", "Computations take longer or shorter than in the profile.",
     "DriftEvent", kDriftMembers},
    {EventKind::kTrouble, "trouble", "A rank reports a problem, each one once.", "TroubleEvent",
     kTroubleMembers},
    {EventKind::kStore, "store",
     "The store stops or resumes taking changes. Only in streams of all jobs, without a bound "
     "token.",
     "StoreEvent", kStoreMembers},
    {EventKind::kReset, "reset",
     "Events were missed that are not known any more, or another server answers. What was known "
     "before is old; the state of each job follows.",
     "ResetEvent", kResetMembers},
}};

constexpr bool AreInOrder() {
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    if (static_cast<std::size_t>(kTypes[i].kind) != i) return false;
  }
  return true;
}
static_assert(AreInOrder());

std::string NewEpoch() {
  std::random_device random;
  return fmt::format("{:08x}", random());
}

}  // namespace

std::span<const EventType> EventTypes() { return kTypes; }

EventHub::EventHub(std::size_t kept)
    : kept_(kept), epoch_(NewEpoch()), thread_([this] { Run(); }) {}

EventHub::~EventHub() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

void EventHub::Join(Entry entry) {
  handed_on_ = std::min(handed_on_, entry.next - 1);
  joining_.push_back(std::move(entry));
  changed_.NotifyAll();
}

void EventHub::Listen(std::string job, Listener listener) {
  const MutexLock lock(mutex_);
  Join({std::move(job), std::move(listener), last_ + 1});
}

bool EventHub::ListenAfter(std::int64_t sequence, std::string job, Listener listener) {
  const MutexLock lock(mutex_);
  const std::int64_t oldest = last_ - static_cast<std::int64_t>(events_.size()) + 1;
  if (sequence > last_ || sequence + 1 < oldest) return false;
  Join({std::move(job), std::move(listener), sequence + 1});
  return true;
}

void EventHub::Emit(Event event) {
  {
    const MutexLock lock(mutex_);
    event.sequence = ++last_;
    events_.push_back(std::make_shared<const Event>(std::move(event)));
    if (events_.size() > kept_) events_.pop_front();
  }
  changed_.NotifyAll();
}

std::int64_t EventHub::last() const {
  const MutexLock lock(mutex_);
  return last_;
}

void EventHub::Settle() {
  const MutexLock lock(mutex_);
  const std::int64_t upto = last_;
  while (!joining_.empty() || handed_on_ < upto) changed_.Wait(mutex_);
}

// Hands on the events that the entry has not seen; `events` follow one another, and `oldest` is the
// first that is known. False: it wants no more.
bool EventHub::Deliver(const std::vector<std::shared_ptr<const Event>>& events, std::int64_t oldest,
                       Entry* entry) {
  if (entry->next < oldest) {
    const Event reset{.kind = EventKind::kReset, .job = {}, .data = {}};
    if (!entry->listener(&reset)) return false;
    entry->next = oldest;
  }
  for (const auto& event : events) {
    if (event->sequence < entry->next) continue;
    entry->next = event->sequence + 1;
    const bool is_wanted = entry->job.empty() || entry->job == event->job;
    if (is_wanted && !entry->listener(event.get())) return false;
  }
  return true;
}

void EventHub::Run() {
  const MutexLock lock(mutex_);
  while (true) {
    while (!stopping_ && joining_.empty() && handed_on_ >= last_) changed_.Wait(mutex_);
    if (stopping_) return;
    const bool has_new = !joining_.empty();
    for (Entry& entry : joining_) listeners_.push_back(std::move(entry));
    joining_.clear();
    const std::int64_t oldest = last_ - static_cast<std::int64_t>(events_.size()) + 1;
    const std::int64_t first = std::max(oldest, handed_on_ + 1);
    const std::int64_t end = std::min(last_, first + kMostAtOnce - 1);
    std::vector<std::shared_ptr<const Event>> batch(events_.begin() + (first - oldest),
                                                    events_.begin() + (end - oldest + 1));
    {
      const MutexUnlock open_again(mutex_);
      std::erase_if(listeners_, [&](Entry& entry) {
        // Tests listeners also when nothing happens, so that closed ones are found.
        return (has_new && !entry.listener(nullptr)) || !Deliver(batch, oldest, &entry);
      });
      batch.clear();
    }
    // A listener that joined meanwhile may want earlier events.
    handed_on_ = end;
    for (const Entry& entry : joining_) {
      handed_on_ = std::min(handed_on_, entry.next - 1);
    }
    changed_.NotifyAll();
  }
}

}  // namespace perseus::server
