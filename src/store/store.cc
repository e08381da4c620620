// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "store/store.h"

#include <fmt/format.h>

#include <exception>
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
#include "store/work_queue.h"
#include "store/writer.h"

namespace perseus::store {
namespace {

// Of one statement that reads all jobs, or what one needs while others wait.
constexpr double kReadAllSeconds = 60;
constexpr double kReadSeconds = 5;

std::string RandomId() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

}  // namespace

class Store::Impl {
 public:
  Impl(std::unique_ptr<Backend> backend, Writer::ProblemCallback on_problem)
      : backend_(std::move(backend)),
        link_(backend_.get()),
        writer_(backend_.get(), &link_, server_id_, std::move(on_problem), {}) {}

  Result<void> Migrate() {
    Result<void> migrated;
    const std::optional<Failure> failure =
        link_.Try(backend_->BeginToMigrate(), [&](soci::session& sql) {
          migrated = store::Migrate(sql, *backend_);
          if (migrated && !backend_->is_shared()) ForgetLeases(sql);
        });
    if (failure) return tl::unexpected(failure->error);
    return migrated;
  }

  Result<std::vector<StoredJob>> Load(const std::string& id, Parts parts) {
    Result<std::vector<StoredJob>> jobs;
    auto read = Read(id.empty() ? kReadAllSeconds : kReadSeconds, [&](soci::session& sql) {
      jobs = ReadJobs(sql, backend_->name(), server_id_, id, parts);
    });
    if (!read) return tl::unexpected(read.error());
    return jobs;
  }

  Result<void> Read(double seconds, const Link::Work& work) {
    return link_.Run(backend_->BeginToRead(seconds), work, /*is_repeatable=*/true);
  }
  // What does no harm when it is done twice.
  Result<void> Change(const Link::Work& work) {
    return link_.Run(backend_->BeginToWrite(kReadSeconds), work, /*is_repeatable=*/true);
  }

  const Backend& backend() const { return *backend_; }
  Writer& writer() { return writer_; }
  const std::string& server_id() const { return server_id_; }

 private:
  const std::string server_id_ = RandomId();
  const std::unique_ptr<Backend> backend_;
  Link link_;
  Writer writer_;  // The last: its threads use the others.
};

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Store::~Store() = default;

Result<std::unique_ptr<Store>> Store::Open(
    const std::string& spec, std::function<void(const std::string& sentence)> on_problem) {
  Result<std::unique_ptr<Backend>> backend = OpenBackend(spec);
  if (!backend) return tl::unexpected(backend.error());
  auto impl = std::make_unique<Impl>(*std::move(backend), std::move(on_problem));
  if (auto migrated = impl->Migrate(); !migrated) return tl::unexpected(migrated.error());
  return std::unique_ptr<Store>(new Store(std::move(impl)));
}

Result<JobMarks> Store::Write(std::vector<Fact> facts,
                              std::optional<std::int64_t> expected_revision) {
  return impl_->writer().Write({.facts = std::move(facts), .expected_revision = expected_revision});
}

void Store::Add(std::vector<Fact> facts, WrittenCallback written) {
  impl_->writer().Add({.facts = std::move(facts)}, std::move(written));
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

Result<std::vector<JobMarks>> Store::ListMarks() {
  std::vector<JobMarks> marks;
  auto read = impl_->Read(kReadSeconds, [&](soci::session& sql) { marks = ReadMarks(sql); });
  if (!read) return tl::unexpected(read.error());
  return marks;
}

// One process owns what is in SQLite.
void Store::Watch(WatchCallback /*changed*/) {}

Result<std::optional<std::string>> Store::ClaimWork(double lease_seconds) {
  std::optional<std::string> job;
  auto changed = impl_->Change([&](soci::session& sql) {
    job = store::ClaimWork(sql, impl_->backend(), impl_->server_id(), lease_seconds);
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
