// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/store/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <future>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "server/store/check_request.h"
#include "server/store/schema.h"

namespace perseus::store {
namespace {

// What one commit takes at most: bounds how long the first of them waits.
constexpr std::size_t kMostRequests = 2048;
// Where another transaction is in the way.
constexpr int kMostTries = 5;
// A transaction that takes longer is with a database that does not answer; a large
// one of plans may take its time.
constexpr double kTransactionSeconds = 5;
constexpr double kBytesPerSecond = 2e6;
// Who asked for a change has given up after these: it must not come over newer ones.
constexpr std::chrono::seconds kRequestPatience{10};

bool HasOnlyRows(const Request& request) {
  return !request.expected_revision &&
         std::all_of(request.facts.begin(), request.facts.end(), IsRow);
}

// What may be written twice: a rank that is there already stays as it is. Nobody hears that it is
// not known whether it was written, but where it never can be.
bool IsRepeatable(const Request& request) {
  return !request.expected_revision &&
         std::all_of(request.facts.begin(), request.facts.end(),
                     [](const Fact& fact) { return std::holds_alternative<RankRecord>(fact); });
}

// What is long of a fact.
double BytesOf(const Fact& fact) {
  double bytes = 0;
  if (const auto* const curve = std::get_if<CurveRecord>(&fact)) {
    bytes = static_cast<double>(curve->frontier_json.size());
    for (const PlanRecord& plan : curve->plans)
      bytes += 2.0 * static_cast<double>(plan.knobs.size());
  }
  if (const auto* const job = std::get_if<JobRecord>(&fact)) {
    bytes = static_cast<double>(job->profile_csv.size() + job->settings_json.size());
  }
  return bytes;
}

// Whether others wait for it.
bool IsNews(const Fact& fact) {
  return std::holds_alternative<PlanVersion>(fact) || std::holds_alternative<JobRecord>(fact) ||
         std::holds_alternative<JobGone>(fact);
}

}  // namespace

Writer::Writer(std::shared_ptr<const Backend> backend, Link* link, std::string server_id,
               ProblemCallback on_problem, NewsCallback on_news)
    : backend_(std::move(backend)),
      link_(link),
      server_id_(std::move(server_id)),
      on_problem_(std::move(on_problem)),
      on_news_(std::move(on_news)) {
  writer_ = std::thread([this] { WriteAll(); });
  notifier_ = std::thread([this] { NotifyAll(); });
}

Writer::~Writer() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_writer_.NotifyAll();
  writer_.join();
  wake_notifier_.NotifyAll();
  notifier_.join();
}

void Writer::AddEntry(Entry entry) {
  if (auto good = CheckRequest(*backend_, entry.request); !good) {
    entry.result = tl::unexpected(std::move(good.error()));
  }
  if (!entry.request.deadline) entry.request.deadline = BootClock::now() + kRequestPatience;
  {
    const MutexLock lock(mutex_);
    entries_.push_back(std::move(entry));
  }
  wake_writer_.NotifyOne();
}

void Writer::Add(Request request, WrittenCallback written) {
  AddEntry({.request = std::move(request), .written = std::move(written)});
}

Result<JobMarks> Writer::Write(Request request) {
  // Shared: whoever sets it may still be in it when it is read.
  auto promise = std::make_shared<std::promise<Result<JobMarks>>>();
  std::future<Result<JobMarks>> future = promise->get_future();
  AddEntry({.request = std::move(request),
            .written = [promise](const Result<JobMarks>& result) { promise->set_value(result); },
            .at_once = true});
  return future.get();
}

StoreCounters Writer::counters() const {
  const std::optional<Error> lost = backend_->WhyLost();
  const std::optional<std::uint64_t> free_bytes = backend_->FreeBytes();
  const MutexLock lock(mutex_);
  StoreCounters counters = counters_;
  counters.is_failing = lost || (failed_at_ && Clock::now() - *failed_at_ <
                                                   std::chrono::duration<double>(kFailingSeconds));
  if (lost) counters.last_error = lost->message;
  counters.waiting = writing_ + entries_.size();
  if (counters.waiting > 0) {
    const Clock::time_point since = writing_ > 0 ? writing_since_ : entries_.front().added;
    counters.waiting_seconds = std::chrono::duration<double>(Clock::now() - since).count();
  }
  counters.schema_version = kSchemaVersion;
  counters.free_bytes = free_bytes;
  return counters;
}

void Writer::WriteAll() {
  const MutexLock lock(mutex_);
  while (true) {
    // Callbacks may write, so that there is an end only after the last of them.
    while (entries_.empty() && (!stopping_ || !acknowledgements_.empty() || is_notifying_)) {
      wake_writer_.Wait(mutex_);
    }
    if (entries_.empty()) {
      written_all_ = true;
      return;
    }
    const auto count = static_cast<std::ptrdiff_t>(std::min(entries_.size(), kMostRequests));
    std::vector<Entry> batch(std::make_move_iterator(entries_.begin()),
                             std::make_move_iterator(entries_.begin() + count));
    entries_.erase(entries_.begin(), entries_.begin() + count);
    writing_ = batch.size();
    writing_since_ = batch.front().added;
    {
      const MutexUnlock unlocked(mutex_);
      CommitBatch(&batch);
    }
    writing_ = 0;
  }
}

void Writer::CommitBatch(std::vector<Entry>* batch) {
  std::vector<Entry*> entries;
  for (Entry& entry : *batch) {
    if (!entry.result) entries.push_back(&entry);
  }
  // Servers that lock jobs in one order do not wait for each other in a circle.
  std::stable_sort(entries.begin(), entries.end(), [](const Entry* a, const Entry* b) {
    return JobOf(a->request.facts.front()) < JobOf(b->request.facts.front());
  });
  CommitOrAnswer(entries);
  for (Entry& entry : *batch) Acknowledge(&entry);
  TellNews(*batch);
}

// All together; where the tables refuse that, in halves, so that one request that
// they refuse takes no other with it.
void Writer::CommitOrAnswer(std::span<Entry* const> entries) {
  if (entries.empty()) return;
  const Clock::time_point since =
      (*std::min_element(entries.begin(), entries.end(), [](const Entry* a, const Entry* b) {
        return a->added < b->added;
      }))->added;
  Backoff backoff;
  const auto repeatable = [](const Entry* entry) { return IsRepeatable(entry->request); };
  const bool are_repeatable = std::all_of(entries.begin(), entries.end(), repeatable);
  std::optional<Failure> failure = Commit(entries);
  for (int tries = 1; failure && MayTryAgain(*failure, are_repeatable, since, tries); ++tries) {
    if (!Pause(backoff.Next())) break;
    failure = Commit(entries);
  }
  if (!failure) return;
  if (failure->kind == FaultKind::kRefused && entries.size() > 1) {
    const std::size_t half = entries.size() / 2;
    CommitOrAnswer(entries.first(half));
    CommitOrAnswer(entries.subspan(half));
    return;
  }
  for (Entry* const entry : entries) entry->result = tl::unexpected(failure->error);
  if (!failure->is_unknown || are_repeatable) return;
  std::vector<Entry*> again;
  std::copy_if(entries.begin(), entries.end(), std::back_inserter(again), repeatable);
  CommitOrAnswer(again);
}

// Of requests of which the first came at `since`.
bool Writer::MayTryAgain(const Failure& failure, bool is_repeatable, Clock::time_point since,
                         int tries) {
  if (failure.is_unknown && !is_repeatable) return false;
  if (Clock::now() - since > std::chrono::duration<double>(kWaitSeconds)) return false;
  if (failure.kind == FaultKind::kInTheWay) return tries < kMostTries;
  return failure.kind == FaultKind::kLost && !link_->IsAway();
}

// False: the store is closing.
bool Writer::Pause(std::chrono::milliseconds time) {
  const Clock::time_point until = Clock::now() + time;
  const MutexLock lock(mutex_);
  while (!stopping_ && wake_writer_.WaitUntil(mutex_, until)) {
  }
  return !stopping_;
}

double Writer::SecondsFor(std::span<Entry* const> entries) {
  double bytes = 0;
  for (const Entry* const entry : entries) {
    for (const Fact& fact : entry->request.facts) bytes += BytesOf(fact);
  }
  return kTransactionSeconds + bytes / kBytesPerSecond;
}

std::optional<Failure> Writer::TryToCommit(std::span<Entry* const> entries, std::size_t* facts) {
  const auto write = [&](soci::session& sql) {
    *facts = 0;
    // Not before the transaction has begun: where this process is stopped from here on, the
    // database ends it.
    const std::vector<Entry*> in_time = InTime(entries);
    for (auto begin = in_time.begin(); begin != in_time.end();) {
      auto end = begin + 1;
      const std::string& job = JobOf((*begin)->request.facts.front());
      if (HasOnlyRows((*begin)->request)) {
        while (end != in_time.end() && JobOf((*end)->request.facts.front()) == job &&
               HasOnlyRows((*end)->request)) {
          ++end;
        }
      }
      std::vector<const Request*> requests;
      std::transform(begin, end, std::back_inserter(requests),
                     [](const Entry* entry) { return &entry->request; });
      std::set<const Request*> late;
      const Result<JobMarks> marks = WriteRequests(sql, *backend_, server_id_, requests, &late);
      for (; begin != end; ++begin) {
        if (late.contains(&(*begin)->request)) {
          (*begin)->result = tl::unexpected(TooLate(**begin));
          continue;
        }
        (*begin)->result = marks;
        if (marks) *facts += (*begin)->request.facts.size();
      }
    }
  };
  const auto lost = [this]() -> std::optional<Failure> {
    std::optional<Error> why = backend_->WhyLost();
    if (!why) return std::nullopt;
    return Failure{.kind = FaultKind::kFailed, .error = *std::move(why)};
  };
  if (std::optional<Failure> failure = lost()) return failure;
  const double seconds = SecondsFor(entries);
  std::optional<Failure> failure = link_->Try(backend_->BeginToWrite(seconds), seconds, write);
  return failure ? failure : lost();
}

Error Writer::TooLate(const Entry& entry) const {
  return {.code = kTooLate,
          .message = fmt::format(
              "{}: the change of job {} came too late to the store, as its server was stopped, its "
              "client is gone or the store was slow; nothing was written, so read again and decide "
              "anew",
              backend_->name(), JobOf(entry.request.facts.front()))};
}

// Those that may still be written; the others are answered.
std::vector<Writer::Entry*> Writer::InTime(std::span<Entry* const> entries) const {
  std::vector<Entry*> in_time;
  for (Entry* const entry : entries) {
    if (entry->request.IsInTime()) {
      in_time.push_back(entry);
    } else {
      entry->result = tl::unexpected(TooLate(*entry));
    }
  }
  return in_time;
}

std::optional<Failure> Writer::Commit(std::span<Entry* const> entries) {
  std::size_t facts = 0;
  std::optional<Failure> failure = TryToCommit(entries, &facts);
  const MutexLock lock(mutex_);
  if (!failure) {
    counters_.facts += facts;
    ++counters_.commits;
    counters_.last_error.clear();
    failed_at_.reset();
  } else if (failure->kind == FaultKind::kRefused) {
    failed_at_.reset();
  } else {
    failed_at_ = Clock::now();
  }
  return failure;
}

void Writer::Acknowledge(Entry* entry) {
  const Result<JobMarks>& result = *entry->result;
  if (!result) {
    const MutexLock lock(mutex_);
    // Not where another server wrote first.
    if (result.error().code != ErrorCode::kConflict || !entry->request.expected_revision) {
      ++counters_.failures;
      counters_.last_error = result.error().message;
    }
  }
  if (entry->at_once) {
    // The end of it is the caller's, who goes away with it.
    entry->written(result);
    return;
  }
  {
    const MutexLock lock(mutex_);
    acknowledgements_.push_back({std::move(entry->written), result});
  }
  wake_notifier_.NotifyOne();
}

void Writer::TellNews(const std::vector<Entry>& batch) const {
  if (!on_news_) return;
  std::map<std::string, JobMarks> news;
  for (const Entry& entry : batch) {
    const std::vector<Fact>& facts = entry.request.facts;
    if (*entry.result && std::any_of(facts.begin(), facts.end(), IsNews)) {
      news[(*entry.result)->id] = **entry.result;
    }
  }
  std::vector<JobMarks> marks;
  marks.reserve(news.size());
  for (auto& [id, mark] : news) marks.push_back(std::move(mark));
  if (!marks.empty()) on_news_(marks);
}

// What was written is durable whatever the callback does; the next ones are called.
void Writer::Notify(const Acknowledgement& next) const {
  try {
    next.written(next.result);
  } catch (const std::exception& exception) {
    if (on_problem_) {
      on_problem_(std::string("A bug: what follows a commit threw: ") + exception.what());
    }
  }
}

void Writer::NotifyAll() {
  const MutexLock lock(mutex_);
  while (true) {
    while (!written_all_ && acknowledgements_.empty()) wake_notifier_.Wait(mutex_);
    if (acknowledgements_.empty()) return;
    Acknowledgement next = std::move(acknowledgements_.front());
    acknowledgements_.pop_front();
    is_notifying_ = true;
    {
      const MutexUnlock unlocked(mutex_);
      Notify(next);
      next = {};  // What the callback holds goes now, not with the next one.
    }
    is_notifying_ = false;
    if (stopping_) wake_writer_.NotifyAll();
  }
}

}  // namespace perseus::store
