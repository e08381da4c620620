// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/store/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/store/backend.h"
#include "server/store/link.h"
#include "server/store/schema.h"
#include "server/store/tables.h"
#include "server/store/watchdog.h"
#include "server/store/work_queue.h"
#include "server/store/writer.h"

namespace perseus::store {
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
      if (migrated && !backend_->is_shared()) ForgetLeases(sql);
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

  Result<std::optional<StoredJob>> Load(const std::string& id, Parts parts) {
    Result<std::optional<StoredJob>> job;
    auto read = Read(kReadSeconds, [&](soci::session& sql) {
      job = ReadJob(sql, backend_->name(), server_id_, id, parts);
    });
    if (!read) return tl::unexpected(read.error());
    return job;
  }

  Result<std::vector<JobHead>> Heads() {
    std::vector<JobHead> heads;
    std::vector<Error> damaged;
    auto read = Read(kReadAllSeconds, [&](soci::session& sql) {
      damaged.clear();
      heads = ReadHeads(sql, backend_->name(), &damaged);
    });
    if (!read) return tl::unexpected(read.error());
    for (const Error& error : damaged) Tell(error.message);
    return heads;
  }

  void Tell(const std::string& sentence) const {
    if (on_problem_) on_problem_(sentence);
  }

  Result<std::vector<JobMarks>> Marks(const std::vector<std::string>& ids) {
    std::vector<JobMarks> marks;
    auto read = Read(kReadSeconds, [&](soci::session& sql) { marks = ReadMarks(sql, ids); });
    if (!read) return tl::unexpected(read.error());
    return marks;
  }

  Result<std::optional<ProfileRecord>> FindProfile(const ProfileQuery& wanted) {
    std::vector<ProfileRecord> found;
    auto read = Read(kReadSeconds, [&](soci::session& sql) { found = ReadProfiles(sql, wanted); });
    if (!read) return tl::unexpected(read.error());
    if (found.empty()) return std::nullopt;
    return std::move(found.front());
  }

  Result<void> Read(double seconds, const Link::Work& work) {
    return second_link_.Run(backend_->BeginToRead(seconds), seconds, work);
  }
  // What does no harm when it is done twice.
  Result<void> Change(const Link::Work& work) {
    if (std::optional<Error> lost = backend_->WhyLost()) return tl::unexpected(*std::move(lost));
    // SQLite has one writer at a time: those of one link take turns.
    Link& link = backend_->is_shared() ? second_link_ : link_;
    return link.Run(backend_->BeginToWrite(kReadSeconds), kReadSeconds, work);
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
  Link second_link_;  // Nobody who reads waits for a commit.
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

Result<std::vector<JobHead>> Store::ListHeads() { return impl_->Heads(); }

Result<std::optional<StoredJob>> Store::LoadJob(const std::string& id, Parts parts) {
  return impl_->Load(id, parts);
}

Result<std::optional<std::string>> Store::FindKey(const std::string& client_key) {
  std::optional<std::string> id;
  auto read =
      impl_->Read(kReadSeconds, [&](soci::session& sql) { id = ReadIdOfKey(sql, client_key); });
  if (!read) return tl::unexpected(read.error());
  return id;
}

Result<std::vector<ProfileRecord>> Store::ListProfiles() {
  std::vector<ProfileRecord> profiles;
  auto read =
      impl_->Read(kReadSeconds, [&](soci::session& sql) { profiles = ReadProfiles(sql, {}); });
  if (!read) return tl::unexpected(read.error());
  return profiles;
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
      [&](soci::session& sql) { sql << "DELETE FROM profiles WHERE id = :i", soci::use(id); });
}

Result<std::vector<NamedHistoryRow>> Store::ListHistory(const HistoryQuery& wanted) {
  std::vector<NamedHistoryRow> rows;
  auto read =
      impl_->Read(kReadSeconds, [&](soci::session& sql) { rows = ReadHistory(sql, wanted); });
  if (!read) return tl::unexpected(read.error());
  return rows;
}

Result<void> Store::ForgetHistory(double now_seconds) {
  for (const Resolution resolution : {Resolution::kMinute, Resolution::kHour}) {
    const std::int64_t oldest = static_cast<std::int64_t>(now_seconds) - KeptOf(resolution);
    // In several transactions: nobody waits long for one.
    for (std::int64_t deleted = kMostDeleted; deleted == kMostDeleted;) {
      auto changed = impl_->Change([&](soci::session& sql) {
        deleted = DeleteHistory(sql, resolution, oldest, kMostDeleted);
      });
      if (!changed) return changed;
    }
  }
  return {};
}

void Store::Watch(WatchCallback changed) { impl_->Watch(std::move(changed)); }

Result<double> Store::NowSeconds() {
  double seconds = 0;
  auto read = impl_->Read(kReadSeconds, [&](soci::session& sql) {
    sql << fmt::format("SELECT {}", impl_->backend().now()), soci::into(seconds);
  });
  if (!read) return tl::unexpected(read.error());
  return seconds;
}

Result<std::optional<std::string>> Store::ClaimWork(double lease_seconds, WorkKind kind) {
  std::optional<std::string> job;
  auto changed = impl_->Change([&](soci::session& sql) {
    job = store::ClaimWork(sql, impl_->backend(), impl_->server_id(), lease_seconds, kind);
  });
  if (!changed) return tl::unexpected(changed.error());
  return job;
}

Result<bool> Store::RenewWork(const std::string& job, double lease_seconds) {
  bool is_ours = false;
  auto changed = impl_->Change([&](soci::session& sql) {
    is_ours = store::RenewWork(sql, impl_->backend(), impl_->server_id(), job, lease_seconds);
  });
  if (!changed) return tl::unexpected(changed.error());
  return is_ours;
}

Result<void> Store::FinishWork(const std::string& job) {
  return impl_->Change([&](soci::session& sql) {
    store::FinishWork(sql, impl_->backend(), impl_->server_id(), job);
  });
}

const std::string& Store::server_id() const { return impl_->server_id(); }
bool Store::is_shared() const { return impl_->backend().is_shared(); }

StoreCounters Store::counters() const { return impl_->writer().counters(); }

}  // namespace perseus::store
