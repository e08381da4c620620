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
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "common/mutex.h"
#include "perseus/result.h"
#include "server/store/backend.h"
#include "server/store/facts.h"
#include "server/store/link.h"
#include "server/store/tables.h"

// The queue of planning work: rows that WorkWanted facts made. Each is leased to one server until a
// time of Backend::lease_now(). All functions run within a transaction that the caller began, and
// throw as SOCI does.
namespace perseus::store {

using soci::use;

// Writes requests; those that arrive during a commit are written together by the next one. It has
// two threads: one writes, the other calls callbacks, so that a slow callback does not delay
// commits. Thread-safe.
class Writer {
 public:
  using ProblemCallback = std::function<void(const std::string& sentence)>;
  // Called on the writing thread, after a commit that other servers wait for, with the marks of the
  // changed jobs.
  using NewsCallback = std::function<void(const std::vector<JobMarks>&)>;

  // `link` must outlive this object.
  Writer(std::shared_ptr<const Backend> backend, Link* link, std::string server_id,
         ProblemCallback on_problem, NewsCallback on_news);
  // Completes and acknowledges all requests.
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void Add(Request request, WrittenCallback written);
  // Returns when the request is durable or has failed.
  Result<JobMarks> Write(Request request);

  StoreCounters counters() const;

 private:
  using Clock = std::chrono::steady_clock;

  struct Entry {
    Request request;
    WrittenCallback written;
    bool at_once = false;  // The writing thread calls `written` itself; it must not block.
    Clock::time_point added = Clock::now();
    std::optional<Result<JobMarks>> result = {};
  };
  struct Acknowledgement {
    WrittenCallback written;
    Result<JobMarks> result;
  };

  void AddEntry(Entry entry);
  void WriteAll();
  void CommitBatch(std::vector<Entry>* batch);
  void CommitOrAnswer(std::span<Entry* const> entries);
  static double SecondsFor(std::span<Entry* const> entries);
  std::optional<Failure> Commit(std::span<Entry* const> entries);
  std::optional<Failure> TryToCommit(std::span<Entry* const> entries, std::size_t* facts);
  std::vector<Entry*> InTime(std::span<Entry* const> entries) const;
  Error TooLate(const Entry& entry) const;
  bool MayTryAgain(const Failure& failure, bool is_repeatable, Clock::time_point since, int tries);
  bool Pause(std::chrono::milliseconds time);
  void Acknowledge(Entry* entry);
  void TellNews(const std::vector<Entry>& batch) const;
  void Notify(const Acknowledgement& next) const;
  void NotifyAll();

  const std::shared_ptr<const Backend> backend_;
  Link* const link_;
  const std::string server_id_;
  const ProblemCallback on_problem_;
  const NewsCallback on_news_;

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

  std::thread writer_;
  std::thread notifier_;
};

namespace {

// Requests of one commit at most: bounds how long the first of them waits.
constexpr std::size_t kMostRequests = 2048;
// If another transaction is in the way.
constexpr int kMostTries = 5;
// A transaction that takes longer is with a database that does not answer; a large
// one of plans may take its time.
constexpr double kTransactionSeconds = 5;
constexpr double kBytesPerSecond = 2e6;
// A client gives up its change after these: it must not come over newer ones.
constexpr std::chrono::seconds kRequestPatience{10};

bool HasOnlyRows(const Request& request) {
  return !request.expected_revision &&
         std::all_of(request.facts.begin(), request.facts.end(), IsRow);
}

// Requests that may be written twice, so that an unknown result is tried again: a rank that is
// there already stays as it is.
bool IsRepeatable(const Request& request) {
  return !request.expected_revision &&
         std::all_of(request.facts.begin(), request.facts.end(),
                     [](const Fact& fact) { return std::holds_alternative<RankRecord>(fact); });
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
  // Shared: the setting thread may still be in it when it is read.
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
      const MutexUnlock open_again(mutex_);
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

// Calls a callback. If it throws, its facts stay durable, and the next ones are called.
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
      const MutexUnlock open_again(mutex_);
      Notify(next);
      next = {};  // Frees the callback now, not with the next one.
    }
    is_notifying_ = false;
    if (stopping_) wake_writer_.NotifyAll();
  }
}

namespace {

// Of a transaction at most.
constexpr double kMigrateSeconds = 120;
constexpr double kReadAllSeconds = 60;
constexpr double kReadSeconds = 5;
constexpr double kNotifySeconds = 1;
// Rows of the history, in one transaction.
constexpr std::int64_t kMostDeleted = 1000;
// Between two questions whether to go on waiting.
constexpr std::chrono::milliseconds kLookPeriod{50};

std::string RandomId() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

}  // namespace

class Store::Impl {
 public:
  Impl(std::shared_ptr<const Backend> backend, Writer::ProblemCallback on_problem)
      : backend_(std::move(backend)),
        link_(backend_, &watchdog_),
        second_link_(backend_, &watchdog_),
        on_problem_(std::move(on_problem)),
        writer_(backend_, &link_, server_id_, on_problem_,
                [this](const std::vector<JobMarks>& marks) { Notify(marks); }) {}

  // `keep_going` empty: without waiting for longer than a read would.
  Result<void> Migrate(const std::function<bool()>& keep_going) {
    Result<void> migrated;
    const auto migrate = [&](soci::session& sql) {
      migrated = store::Migrate(sql, *backend_);
      if (!migrated || backend_->is_shared()) return;
      // The process that had leases is dead, and the clock of leases may have started again with a
      // boot. Waiting work keeps its order, before all later work.
      sql << "UPDATE work SET server = '', leased_until = 0, wanted_at = wanted_at - (SELECT "
             "MAX(wanted_at) FROM work)";
    };
    const std::string begin = backend_->BeginToMigrate();
    if (!keep_going) {
      auto run = link_.Run(begin, kMigrateSeconds, migrate);
      return run ? migrated : run;
    }
    link_.SetKeepGoing(keep_going);
    std::string told;
    Backoff backoff;
    while (const std::optional<Failure> failure = link_.Try(begin, kMigrateSeconds, migrate)) {
      const std::string& why = failure->error.message;
      if (!keep_going()) return MakeError(kTooLate, why + "; the start was ended");
      const bool helps = failure->kind == FaultKind::kLost || failure->kind == FaultKind::kInTheWay;
      if (!helps) return tl::unexpected(failure->error);
      if (told != why) Tell(why + "; Perseus waits for it");
      told = why;
      for (auto left = backoff.Next(); left.count() > 0 && keep_going(); left -= kLookPeriod) {
        std::this_thread::sleep_for(kLookPeriod);
      }
    }
    link_.SetKeepGoing({});
    return migrated;
  }

  // The result of `ask`, which runs in a transaction to read.
  template <typename Ask>
  auto Read(double seconds, const Ask& ask)
      -> Result<decltype(ask(std::declval<soci::session&>()))> {
    decltype(ask(std::declval<soci::session&>())) found = {};
    auto read = second_link_.Run(backend_->BeginToRead(seconds), seconds,
                                 [&](soci::session& sql) { found = ask(sql); });
    if (!read) return tl::unexpected(read.error());
    return found;
  }

  // The same in a transaction to write, for changes that do no harm when done twice.
  template <typename Work>
  auto Change(const Work& change) -> Result<decltype(change(std::declval<soci::session&>()))> {
    if (std::optional<Error> lost = backend_->WhyLost()) return tl::unexpected(*std::move(lost));
    // SQLite has one writer at a time: those of one link take turns.
    Link& link = backend_->is_shared() ? second_link_ : link_;
    decltype(change(std::declval<soci::session&>())) result = {};
    auto changed = link.Run(backend_->BeginToWrite(kReadSeconds), kReadSeconds,
                            [&](soci::session& sql) { result = change(sql); });
    if (!changed) return tl::unexpected(changed.error());
    return result;
  }

  void Tell(const std::string& sentence) const {
    if (on_problem_) on_problem_(sentence);
  }

  // A change without a result.
  template <typename Work>
  Result<void> Done(const Work& change) {
    auto changed = Change(change);
    if (!changed) return tl::unexpected(changed.error());
    return {};
  }

  Result<std::optional<ProfileRecord>> FindProfile(const ProfileQuery& wanted) {
    auto found = Read(kReadSeconds, [&](soci::session& sql) { return ReadProfiles(sql, wanted); });
    if (!found) return tl::unexpected(found.error());
    if (found->empty()) return std::nullopt;
    return std::move(found->front());
  }

  Result<std::vector<JobMarks>> Marks(const std::vector<std::string>& ids) {
    return Read(kReadSeconds, [&](soci::session& sql) { return ReadMarks(sql, ids); });
  }

  void Watch(WatchCallback changed) {
    auto woken = [this, changed](std::vector<std::string> ids) {
      Result<std::vector<JobMarks>> marks = Marks(ids);
      if (!marks) return;  // A look follows.
      for (std::string& id : ids) {
        const bool is_there = std::any_of(marks->begin(), marks->end(),
                                          [&](const JobMarks& mark) { return mark.id == id; });
        if (!is_there) marks->push_back({.id = std::move(id)});
      }
      changed(*marks, /*are_all=*/false);
    };
    auto look = [this, changed = std::move(changed)] {
      if (const Result<std::vector<JobMarks>> marks = Marks({})) changed(*marks, /*are_all=*/true);
    };
    watcher_ = backend_->Watch(server_id_, std::move(woken), std::move(look));
  }

  const Backend& backend() const { return *backend_; }
  Writer& writer() { return writer_; }
  const std::string& server_id() const { return server_id_; }

 private:
  // A message that is lost costs the others a second.
  void Notify(const std::vector<JobMarks>& marks) {
    if (!backend_->is_shared()) return;
    static_cast<void>(link_.Try(backend_->BeginToNotify(), kNotifySeconds, [&](soci::session& sql) {
      backend_->Notify(sql, marks, server_id_);
    }));
  }

  const std::string server_id_ = RandomId();
  const std::shared_ptr<const Backend> backend_;
  Watchdog watchdog_;
  Link link_;
  Link second_link_;  // Readers do not wait for commits.
  const Writer::ProblemCallback on_problem_;
  // The last, as their threads use the others.
  Writer writer_;
  std::unique_ptr<Watcher> watcher_;
};

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Store::~Store() = default;

Result<void> Store::Check(const std::string& spec) { return CheckSpec(spec); }

Result<std::unique_ptr<Store>> Store::Open(
    const std::string& spec, std::function<void(const std::string& sentence)> on_problem,
    const std::function<bool()>& keep_going) {
  Result<std::shared_ptr<const Backend>> backend = OpenBackend(spec);
  if (!backend) return tl::unexpected(backend.error());
  auto impl = std::make_unique<Impl>(*std::move(backend), std::move(on_problem));
  if (auto migrated = impl->Migrate(keep_going); !migrated) return tl::unexpected(migrated.error());
  std::unique_ptr<Store> store(new Store(std::move(impl)));
  // Both connections of SQLite hold the file that was found, whatever becomes of its name.
  if (!store->is_shared()) {
    if (auto read = store->NowSeconds(); !read) return tl::unexpected(read.error());
  }
  return store;
}

Result<JobMarks> Store::Write(std::vector<Fact> facts,
                              std::optional<std::int64_t> expected_revision,
                              std::optional<BootClock::time_point> deadline) {
  return impl_->writer().Write(
      {.facts = std::move(facts), .expected_revision = expected_revision, .deadline = deadline});
}

void Store::Add(std::vector<Fact> facts, WrittenCallback written,
                std::optional<std::int64_t> expected_revision, std::function<bool()> is_wanted) {
  impl_->writer().Add({.facts = std::move(facts),
                       .expected_revision = expected_revision,
                       .is_wanted = std::move(is_wanted)},
                      std::move(written));
}

Result<std::vector<JobHead>> Store::ListHeads() {
  std::vector<Error> damaged;
  auto heads = impl_->Read(kReadAllSeconds, [&](soci::session& sql) {
    damaged.clear();
    return ReadHeads(sql, impl_->backend().name(), &damaged);
  });
  if (heads) {
    for (const Error& error : damaged) impl_->Tell(error.message);
  }
  return heads;
}

Result<std::optional<StoredJob>> Store::LoadJob(const std::string& id, Parts parts) {
  auto job = impl_->Read(kReadSeconds, [&](soci::session& sql) {
    return ReadJob(sql, impl_->backend().name(), server_id(), id, parts);
  });
  if (!job) return tl::unexpected(job.error());
  return *std::move(job);
}

Result<std::optional<std::string>> Store::FindKey(const std::string& client_key) {
  return impl_->Read(kReadSeconds,
                     [&](soci::session& sql) { return ReadIdOfKey(sql, client_key); });
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
  return impl_->Done([&](soci::session& sql) {
    sql << "DELETE FROM profiles WHERE id = :i", use(id);
    return true;
  });
}

Result<std::vector<NamedHistoryRow>> Store::ListHistory(const HistoryQuery& wanted) {
  return impl_->Read(kReadSeconds, [&](soci::session& sql) { return ReadHistory(sql, wanted); });
}

Result<void> Store::ForgetHistory(double now_seconds) {
  for (const Resolution resolution : {Resolution::kMinute, Resolution::kHour}) {
    const std::int64_t oldest = static_cast<std::int64_t>(now_seconds) - KeptOf(resolution);
    // In several transactions: no request waits long for one.
    for (std::int64_t deleted = kMostDeleted; deleted == kMostDeleted;) {
      auto changed = impl_->Done([&](soci::session& sql) {
        deleted = DeleteHistory(sql, resolution, oldest, kMostDeleted);
        return true;
      });
      if (!changed) return changed;
    }
  }
  return {};
}

void Store::Watch(WatchCallback changed) { impl_->Watch(std::move(changed)); }

Result<double> Store::NowSeconds() {
  return impl_->Read(kReadSeconds, [&](soci::session& sql) {
    double seconds = 0;
    sql << fmt::format("SELECT {}", impl_->backend().now()), soci::into(seconds);
    return seconds;
  });
}

Result<std::optional<std::string>> Store::ClaimWork(double lease_seconds, WorkKind kind) {
  const Backend& backend = impl_->backend();
  const std::string& server = server_id();
  return impl_->Change([&](soci::session& sql) -> std::optional<std::string> {
    std::string job;
    const char* const which = kind == WorkKind::kUrgent  ? "urgent = 1 AND"
                              : kind == WorkKind::kOther ? "urgent = 0 AND"
                                                         : "";
    sql << fmt::format(
        "SELECT job FROM work WHERE {} leased_until <= {} ORDER BY urgent DESC, wanted_at LIMIT 1 "
        "{}",
        which, backend.lease_now(), backend.lock_or_skip()),
        soci::into(job);
    if (!sql.got_data()) return std::nullopt;
    sql << fmt::format(
        "UPDATE work SET server = :s, leased_until = {} + :l, claimed = wanted WHERE job = :j",
        backend.lease_now()),
        use(server), use(lease_seconds), use(job);
    return job;
  });
}

Result<bool> Store::RenewWork(const std::string& job, double lease_seconds) {
  return impl_->Change([&](soci::session& sql) {
    std::string renewed;
    // Also one that has ended, as long as no other server took it.
    Query query(sql, fmt::format("UPDATE work SET leased_until = {} + :l WHERE job = :j AND "
                                 "server = :s RETURNING job",
                                 impl_->backend().lease_now()));
    query.Use(lease_seconds).Use(job).Use(server_id()).Into(renewed);
    return query.Next();
  });
}

Result<void> Store::FinishWork(const std::string& job) {
  return impl_->Done([&](soci::session& sql) {
    const std::string& server = server_id();
    sql << "DELETE FROM work WHERE job = :j AND server = :s AND wanted = claimed", use(job),
        use(server);
    sql << fmt::format(
        "UPDATE work SET server = '', leased_until = 0, wanted_at = {} WHERE job = :j AND server "
        "= :s",
        impl_->backend().lease_now()),
        use(job), use(server);
    return true;
  });
}

const std::string& Store::server_id() const { return impl_->server_id(); }
bool Store::is_shared() const { return impl_->backend().is_shared(); }

StoreCounters Store::counters() const { return impl_->writer().counters(); }

}  // namespace perseus::store
