// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/store/store.h"

#include <fmt/format.h>
#include <soci/soci.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "common/mutex.h"
#include "perseus/result.h"
#include "server/store/active.h"
#include "server/store/backend.h"
#include "server/store/facts.h"
#include "server/store/link.h"
#include "server/store/tables.h"

namespace perseus::store {
namespace {

using soci::use;
using Clock = std::chrono::steady_clock;

// Requests of one commit at most: bounds how long the first of them waits.
constexpr std::size_t kMostRequests = 2048;
// A transaction that takes longer is with a database that does not answer; a large
// one of plans may take its time.
constexpr double kTransactionSeconds = 5;
constexpr double kBytesPerSecond = 2e6;
// A client gives up its change after these: it must not come over newer ones.
constexpr std::chrono::seconds kRequestPatience{10};
// Of a transaction at most.
constexpr double kMigrateSeconds = 120;
constexpr double kReadAllSeconds = 60;
constexpr double kReadSeconds = 5;
// Rows of the history, in one transaction.
constexpr std::int64_t kMostDeleted = 1000;
// Between two questions whether to go on waiting.
constexpr std::chrono::milliseconds kLookPeriod{50};
// Between two looks of a server that stands by.
constexpr std::chrono::milliseconds kStandbyPeriod{250};

bool HasOnlyRows(const Request& request) {
  return std::all_of(request.facts.begin(), request.facts.end(), IsRow);
}

// The size of a fact's long texts.
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

}  // namespace

bool IsRemote(const std::string& spec) { return !SqliteFileOf(spec); }

// Writes requests; those that arrive during a commit are written together by the next one. It has
// two threads: one writes, the other calls callbacks, so that a slow callback does not delay
// commits. Thread-safe.
class Store::Impl {
 public:
  Impl(std::shared_ptr<const Backend> backend, std::string address,
       std::function<void(const std::string&)> on_problem)
      : backend_(std::move(backend)),
        on_problem_(std::move(on_problem)),
        active_(backend_, &watchdog_, std::move(address)),
        link_(backend_, &watchdog_),
        second_link_(backend_, &watchdog_),
        writer_([this] { WriteAll(); }),
        notifier_([this] { NotifyAll(); }) {}

  // Completes and acknowledges all requests.
  ~Impl() {
    {
      const MutexLock lock(mutex_);
      stopping_ = true;
    }
    wake_writer_.NotifyAll();
    writer_.join();
    wake_notifier_.NotifyAll();
    notifier_.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Result<void> Open(const OpenWait& wait);
  void Add(Request request, WrittenCallback written, bool at_once = false);
  StoreCounters counters() const;

  // The result of `ask`, which runs in a transaction to read.
  template <typename Ask>
  auto Read(double seconds, const Ask& ask)
      -> Result<decltype(ask(std::declval<soci::session&>()))> {
    decltype(ask(std::declval<soci::session&>())) found = {};
    auto failure = second_link_.Run(backend_->BeginToRead(seconds), seconds,
                                    [&](soci::session& sql) { found = ask(sql); });
    if (failure) return tl::unexpected(std::move(failure->error));
    return found;
  }

  // Runs `change` in a transaction to write.
  Result<void> Change(const Link::Work& change) {
    auto failure = TryToWrite(kReadSeconds, change);
    if (failure) return tl::unexpected(std::move(failure->error));
    return {};
  }

  Result<std::optional<ProfileRecord>> FindProfile(const ProfileQuery& wanted) {
    auto found = Read(kReadSeconds, [&](soci::session& sql) { return ReadProfiles(sql, wanted); });
    if (!found) return tl::unexpected(found.error());
    if (found->empty()) return std::nullopt;
    return std::move(found->front());
  }

  const Backend& backend() const { return *backend_; }
  Active& active() { return active_; }

 private:
  struct Entry {
    Request request;
    WrittenCallback written;
    bool at_once = false;  // The writing thread calls `written` itself; it must not block.
    Clock::time_point added = Clock::now();
    std::optional<Revision> result = {};
  };
  struct Acknowledgement {
    WrittenCallback written;
    Revision result;
  };
  // What came of an attempt to take the store: it was taken, another server has it, or there is no
  // database yet.
  struct Attempt {
    std::optional<std::string> holder = {};
    std::string why_not = {};
  };

  Result<Attempt> TryToTake();
  std::optional<Failure> TryToWrite(double seconds, const Link::Work& work);
  void WriteAll();
  void CommitBatch(std::vector<Entry>* batch);
  void CommitOrAnswer(std::span<Entry* const> entries);
  std::optional<Failure> Commit(std::span<Entry* const> entries);
  std::size_t WriteEntries(soci::session& sql, std::span<Entry* const> entries) const;
  void Acknowledge(Entry* entry);
  void NotifyAll();
  void Notify(const Acknowledgement& next) const;
  void Tell(const std::string& sentence) const {
    if (on_problem_) on_problem_(sentence);
  }

  const std::shared_ptr<const Backend> backend_;
  const std::function<void(const std::string&)> on_problem_;
  Watchdog watchdog_;
  Active active_;
  Link link_;
  Link second_link_;  // Readers do not wait for commits.

  mutable Mutex mutex_;
  ConditionVariable wake_writer_;
  ConditionVariable wake_notifier_;
  std::deque<Entry> entries_ PERSEUS_GUARDED_BY(mutex_);
  std::deque<Acknowledgement> acknowledgements_ PERSEUS_GUARDED_BY(mutex_);
  StoreCounters counters_ PERSEUS_GUARDED_BY(mutex_);
  std::size_t writing_ PERSEUS_GUARDED_BY(mutex_) = 0;  // Requests of the commit under way, ...
  Clock::time_point writing_since_
      PERSEUS_GUARDED_BY(mutex_);  // ... of which the oldest came then.
  std::optional<Clock::time_point> failed_at_ PERSEUS_GUARDED_BY(mutex_);
  bool stopping_ PERSEUS_GUARDED_BY(mutex_) = false;
  bool written_all_ PERSEUS_GUARDED_BY(mutex_) = false;
  bool is_notifying_ PERSEUS_GUARDED_BY(mutex_) = false;

  // The last, as they use the others.
  std::thread writer_;
  std::thread notifier_;
};

Result<Store::Impl::Attempt> Store::Impl::TryToTake() {
  Attempt attempt;
  auto locked = backend_->Lock();
  if (!locked) return tl::unexpected(locked.error());
  attempt.holder = *std::move(locked);
  Result<void> migrated;
  std::optional<Failure> failure;
  if (!attempt.holder) {
    failure = link_.Try(backend_->BeginToMigrate(), kMigrateSeconds, [&](soci::session& sql) {
      const std::vector<std::string> tables = Tables(sql, *backend_);
      const bool is_there = std::find(tables.begin(), tables.end(), kActiveTable) != tables.end();
      // The tables of a store that another server has stay as they are.
      if (is_there && backend_->is_remote()) attempt.holder = ActiveServer(sql, *backend_);
      if (attempt.holder) return;
      migrated = Migrate(sql, *backend_);
      if (migrated) active_.Take(sql);
    });
  }
  if (attempt.holder) {
    attempt.why_not = fmt::format(
        "{}: the store is in use by another server ({}); stop that one, or "
        "name another store",
        backend_->name(), *attempt.holder);
  }
  if (!failure && migrated) return attempt;
  if (!failure) return tl::unexpected(migrated.error());
  const bool helps = failure->kind == FaultKind::kLost || failure->kind == FaultKind::kInTheWay;
  if (!helps) return tl::unexpected(std::move(failure->error));
  attempt.why_not = std::move(failure->error.message);
  return attempt;
}

Result<void> Store::Impl::Open(const OpenWait& wait) {
  const auto until = Clock::now() + std::chrono::duration<double>(kWaitSeconds);
  const auto keep_going = [&] {
    return wait.keep_going ? wait.keep_going() : Clock::now() < until;
  };
  link_.SetKeepGoing(wait.keep_going);
  std::string told;
  Backoff backoff;
  while (true) {
    const Result<Attempt> attempt = TryToTake();
    if (!attempt) return tl::unexpected(attempt.error());
    const std::string& why_not = attempt->why_not;
    if (why_not.empty()) break;
    const auto& holder = attempt->holder;
    if (holder && wait.on_standby) wait.on_standby(*holder);
    if (!holder && told != why_not) Tell(why_not + "; Perseus waits for it");
    told = why_not;
    // The lease of a dead server ends; the lock of a file is only another's while that one lives.
    const bool is_hopeless = holder && !wait.keep_going && !backend_->is_remote();
    auto left = holder ? kStandbyPeriod : backoff.Next();
    for (; left.count() > 0 && !is_hopeless && keep_going(); left -= kLookPeriod) {
      std::this_thread::sleep_for(kLookPeriod);
    }
    if (!is_hopeless && keep_going()) continue;
    if (wait.keep_going) return MakeError(kTooLate, why_not + "; the start was ended");
    return MakeError(ErrorCode::kIo, why_not);
  }
  link_.SetKeepGoing({});
  active_.Begin();
  return {};
}

// SQLite has one writer at a time: those of one link take turns.
std::optional<Failure> Store::Impl::TryToWrite(double seconds, const Link::Work& work) {
  const auto failed = [](std::string why) {
    return Failure{.kind = FaultKind::kFailed, .error = {ErrorCode::kIo, std::move(why)}};
  };
  if (auto why_not = active_.WhyNot()) return failed(*std::move(why_not));
  if (auto lost = backend_->WhyLost()) return failed(lost->message);
  bool is_active = true;
  auto failure = link_.Run(backend_->BeginToWrite(seconds), seconds, [&](soci::session& sql) {
    is_active = active_.Check(sql);
    if (is_active) work(sql);
  });
  if (!failure && !is_active) failure = failed(active_.TakenSentence());
  // This process cannot know then what the store holds.
  if (failure && (failure->is_unknown || !is_active)) active_.GiveUp(failure->error.message);
  if (failure) return failure;
  if (auto lost = backend_->WhyLost()) return failed(lost->message);
  return std::nullopt;
}

void Store::Impl::Add(Request request, WrittenCallback written, bool at_once) {
  Entry entry = {.request = std::move(request), .written = std::move(written), .at_once = at_once};
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

StoreCounters Store::Impl::counters() const {
  const std::optional<Error> lost = backend_->WhyLost();
  const std::optional<std::uint64_t> free_bytes = backend_->FreeBytes();
  std::optional<std::string> why_not_active = active_.WhyNot();
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
  counters.why_not_active = std::move(why_not_active);
  counters.schema_version = kSchemaVersion;
  counters.free_bytes = free_bytes;
  return counters;
}

void Store::Impl::WriteAll() {
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
      const MutexUnlock open_again(mutex_);
      CommitBatch(&batch);
    }
    writing_ = 0;
  }
}

void Store::Impl::CommitBatch(std::vector<Entry>* batch) {
  std::vector<Entry*> entries;
  for (Entry& entry : *batch) {
    if (!entry.result) entries.push_back(&entry);
  }
  // Ranks of one job are written by one statement.
  std::stable_sort(entries.begin(), entries.end(), [](const Entry* a, const Entry* b) {
    return JobOf(a->request.facts.front()) < JobOf(b->request.facts.front());
  });
  CommitOrAnswer(entries);
  // One that lost to another one of the batch is answered after that one is known.
  const auto is_written = [](const Entry& entry) { return entry.result->has_value(); };
  for (Entry& entry : *batch) {
    if (is_written(entry)) Acknowledge(&entry);
  }
  for (Entry& entry : *batch) {
    if (!is_written(entry)) Acknowledge(&entry);
  }
}

// All together; where the tables refuse that, in halves, so that one request that
// they refuse takes no other with it.
void Store::Impl::CommitOrAnswer(std::span<Entry* const> entries) {
  if (entries.empty()) return;
  const std::optional<Failure> failure = Commit(entries);
  if (!failure) return;
  if (failure->kind == FaultKind::kRefused && entries.size() > 1) {
    const std::size_t half = entries.size() / 2;
    CommitOrAnswer(entries.first(half));
    CommitOrAnswer(entries.subspan(half));
    return;
  }
  for (Entry* const entry : entries) entry->result = tl::unexpected(failure->error);
}

std::optional<Failure> Store::Impl::Commit(std::span<Entry* const> entries) {
  double bytes = 0;
  for (const Entry* const entry : entries) {
    for (const Fact& fact : entry->request.facts) bytes += BytesOf(fact);
  }
  std::size_t facts = 0;
  std::optional<Failure> failure =
      TryToWrite(kTransactionSeconds + bytes / kBytesPerSecond,
                 [&](soci::session& sql) { facts = WriteEntries(sql, entries); });
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

// Returns the number of facts that were written. No server can take the store before the
// transaction ends, even if this process is stopped here for a while.
std::size_t Store::Impl::WriteEntries(soci::session& sql, std::span<Entry* const> entries) const {
  std::vector<Entry*> in_time;
  for (Entry* const entry : entries) {
    if (entry->request.IsInTime()) {
      in_time.push_back(entry);
      continue;
    }
    entry->result = MakeError(
        kTooLate,
        fmt::format("{}: the change of job {} came too late to the store, as this server was "
                    "stopped, the client is gone or the store was slow; nothing was written",
                    backend_->name(), JobOf(entry->request.facts.front())));
  }
  std::size_t facts = 0;
  for (auto begin = in_time.begin(); begin != in_time.end();) {
    auto end = begin + 1;
    const std::string& job = JobOf((*begin)->request.facts.front());
    while (HasOnlyRows((*begin)->request) && end != in_time.end() &&
           JobOf((*end)->request.facts.front()) == job && HasOnlyRows((*end)->request)) {
      ++end;
    }
    std::vector<const Request*> requests;
    std::transform(begin, end, std::back_inserter(requests),
                   [](const Entry* entry) { return &entry->request; });
    const Revision revision = WriteRequests(sql, backend_->name(), requests);
    for (; begin != end; ++begin) {
      (*begin)->result = revision;
      if (revision) facts += (*begin)->request.facts.size();
    }
  }
  return facts;
}

void Store::Impl::Acknowledge(Entry* entry) {
  const Revision& result = *entry->result;
  if (!result) {
    const MutexLock lock(mutex_);
    ++counters_.failures;
    counters_.last_error = result.error().message;
  }
  if (entry->at_once) {
    // The caller waits for this call.
    entry->written(result);
    return;
  }
  {
    const MutexLock lock(mutex_);
    acknowledgements_.push_back({std::move(entry->written), result});
  }
  wake_notifier_.NotifyOne();
}

// Calls a callback. If it throws, its facts stay durable, and the next ones are called.
void Store::Impl::Notify(const Acknowledgement& next) const {
  try {
    next.written(next.result);
  } catch (const std::exception& exception) {
    Tell(std::string("A bug: what follows a commit threw: ") + exception.what());
  }
}

void Store::Impl::NotifyAll() {
  const MutexLock lock(mutex_);
  while (true) {
    while (!written_all_ && acknowledgements_.empty()) wake_notifier_.Wait(mutex_);
    if (acknowledgements_.empty()) return;
    Acknowledgement next = std::move(acknowledgements_.front());
    acknowledgements_.pop_front();
    is_notifying_ = true;
    {
      const MutexUnlock open_again(mutex_);
      Notify(next);
      next = {};  // Frees the callback now, not with the next one.
    }
    is_notifying_ = false;
    if (stopping_) wake_writer_.NotifyAll();
  }
}

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Store::~Store() = default;

Result<void> Store::Check(const std::string& spec) { return CheckSpec(spec); }

Result<std::unique_ptr<Store>> Store::Open(
    const std::string& spec, std::function<void(const std::string& sentence)> on_problem,
    const OpenWait& wait) {
  Result<std::shared_ptr<const Backend>> backend = OpenBackend(spec);
  if (!backend) return tl::unexpected(backend.error());
  auto impl = std::make_unique<Impl>(*std::move(backend), wait.address, std::move(on_problem));
  if (auto opened = impl->Open(wait); !opened) return tl::unexpected(opened.error());
  // Both connections of SQLite hold the file that was found, whatever becomes of its name.
  const auto read = impl->Read(
      kReadSeconds, [&](soci::session& sql) { return Tables(sql, impl->backend()).size(); });
  if (!read) return tl::unexpected(read.error());
  return std::unique_ptr<Store>(new Store(std::move(impl)));
}

Revision Store::Write(std::vector<Fact> facts, std::optional<BootClock::time_point> deadline) {
  // Shared: the setting thread may still be in it when it is read.
  auto promise = std::make_shared<std::promise<Revision>>();
  std::future<Revision> future = promise->get_future();
  impl_->Add(
      {.facts = std::move(facts), .deadline = deadline},
      [promise](const Revision& result) { promise->set_value(result); }, /*at_once=*/true);
  return future.get();
}

void Store::Add(std::vector<Fact> facts, WrittenCallback written, std::function<bool()> is_wanted) {
  impl_->Add({.facts = std::move(facts), .is_wanted = std::move(is_wanted)}, std::move(written));
}

Result<std::vector<JobHead>> Store::ListHeads() { return impl_->Read(kReadAllSeconds, ReadHeads); }

Result<std::optional<StoredJob>> Store::LoadJob(const std::string& id) {
  auto job = impl_->Read(
      kReadSeconds, [&](soci::session& sql) { return ReadJob(sql, impl_->backend().name(), id); });
  if (!job) return tl::unexpected(job.error());
  return *std::move(job);
}

Result<std::vector<ProfileRecord>> Store::ListProfiles() {
  return impl_->Read(kReadSeconds, [&](soci::session& sql) { return ReadProfiles(sql, {}); });
}

Result<std::optional<ProfileRecord>> Store::FindProfile(const std::string& id) {
  if (id.empty()) return std::nullopt;
  return impl_->FindProfile({.id = id});
}

Result<std::optional<ProfileRecord>> Store::FindProfileOfLayout(const std::string& layout) {
  if (layout.empty()) return std::nullopt;
  return impl_->FindProfile({.layout = layout});
}

Result<void> Store::DeleteProfile(const std::string& id) {
  return impl_->Change(
      [&](soci::session& sql) { sql << "DELETE FROM profiles WHERE id = :i", use(id); });
}

Result<std::vector<NamedHistoryRow>> Store::ListHistory(const HistoryQuery& wanted) {
  return impl_->Read(kReadSeconds, [&](soci::session& sql) { return ReadHistory(sql, wanted); });
}

Result<void> Store::ForgetHistory(double now_seconds) {
  for (const Resolution resolution : {Resolution::kMinute, Resolution::kHour}) {
    const std::int64_t oldest = static_cast<std::int64_t>(now_seconds) - KeptOf(resolution);
    // In several transactions: no request waits long for one.
    for (std::int64_t deleted = kMostDeleted; deleted == kMostDeleted;) {
      auto changed = impl_->Change([&](soci::session& sql) {
        deleted = DeleteHistory(sql, resolution, oldest, kMostDeleted);
      });
      if (!changed) return changed;
    }
  }
  return {};
}

std::int64_t Store::history_seconds() const { return impl_->active().history_seconds(); }
double Store::skew_seconds() const { return impl_->active().skew_seconds(); }
void Store::GiveUp(const std::string& why) { impl_->active().GiveUp(why); }
bool Store::is_active() const { return !impl_->active().WhyNot(); }
const std::string& Store::name() const { return impl_->backend().name(); }

StoreCounters Store::counters() const { return impl_->counters(); }

}  // namespace perseus::store
