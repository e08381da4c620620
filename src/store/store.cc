// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "store/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "store/backend.h"
#include "store/link.h"
#include "store/schema.h"
#include "store/tables.h"
#include "store/watchdog.h"
#include "store/work_queue.h"
#include "store/writer.h"

namespace perseus::store {
namespace {

// Of a transaction at most.
constexpr double kMigrateSeconds = 120;
constexpr double kReadAllSeconds = 60;
constexpr double kReadSeconds = 5;
constexpr double kNotifySeconds = 1;

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
        writer_(backend_, &link_, server_id_, std::move(on_problem),
                [this](const std::vector<JobMarks>& marks) { Notify(marks); }) {}

  Result<void> Migrate() {
    Result<void> migrated;
    auto run = link_.Run(backend_->BeginToMigrate(), kMigrateSeconds, [&](soci::session& sql) {
      migrated = store::Migrate(sql, *backend_);
      if (migrated && !backend_->is_shared()) ForgetLeases(sql);
    });
    return run ? migrated : run;
  }

  Result<std::vector<StoredJob>> Load(const std::string& id, Parts parts) {
    Result<std::vector<StoredJob>> jobs;
    auto read = Read(id.empty() ? kReadAllSeconds : kReadSeconds, [&](soci::session& sql) {
      jobs = ReadJobs(sql, backend_->name(), server_id_, id, parts);
    });
    if (!read) return tl::unexpected(read.error());
    return jobs;
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
    return reader().Run(backend_->BeginToRead(seconds), seconds, work);
  }
  // What does no harm when it is done twice.
  Result<void> Change(const Link::Work& work) {
    return reader().Run(backend_->BeginToWrite(kReadSeconds), kReadSeconds, work);
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
  // Nobody who reads waits for a writer, where the database lets both.
  Link& reader() { return backend_->is_shared() ? second_link_ : link_; }

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
  Link second_link_;
  // The last, as their threads use the others.
  Writer writer_;
  std::unique_ptr<Watcher> watcher_;
};

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Store::~Store() = default;

Result<std::unique_ptr<Store>> Store::Open(
    const std::string& spec, std::function<void(const std::string& sentence)> on_problem) {
  Result<std::shared_ptr<const Backend>> backend = OpenBackend(spec);
  if (!backend) return tl::unexpected(backend.error());
  auto impl = std::make_unique<Impl>(*std::move(backend), std::move(on_problem));
  if (auto migrated = impl->Migrate(); !migrated) return tl::unexpected(migrated.error());
  return std::unique_ptr<Store>(new Store(std::move(impl)));
}

Result<JobMarks> Store::Write(std::vector<Fact> facts,
                              std::optional<std::int64_t> expected_revision) {
  return impl_->writer().Write({.facts = std::move(facts), .expected_revision = expected_revision});
}

void Store::Add(std::vector<Fact> facts, WrittenCallback written,
                std::optional<std::int64_t> expected_revision) {
  impl_->writer().Add({.facts = std::move(facts), .expected_revision = expected_revision},
                      std::move(written));
}

Result<std::vector<StoredJob>> Store::LoadJobs() { return impl_->Load("", Parts::kAll); }

Result<std::optional<StoredJob>> Store::LoadJob(const std::string& id, Parts parts) {
  if (id.empty()) return std::nullopt;
  Result<std::vector<StoredJob>> jobs = impl_->Load(id, parts);
  if (!jobs) return tl::unexpected(jobs.error());
  if (jobs->empty()) return std::nullopt;
  return std::move(jobs->front());
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

Result<std::vector<JobMarks>> Store::ListMarks() { return impl_->Marks({}); }

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
