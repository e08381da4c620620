// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Jobs that other servers made or deleted.

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/planning/job_spec.h"
#include "server/runtime/job_service.h"

namespace perseus::server {
namespace {

// Ids that nobody made cost the store no more than this.
constexpr int kMostLookupsPerSecond = 200;
constexpr std::size_t kMostAbsent = 10'000;
constexpr std::size_t kIdDigits = 16;

tl::unexpected<Failure> NoJob(const std::string& id) {
  return Fail(FailureCode::kNotFound, fmt::format("there is no job {}", id));
}

bool IsId(std::string_view text, std::string_view prefix) {
  return text.starts_with(prefix) && text.size() == prefix.size() + kIdDigits &&
         text.find_first_not_of("0123456789abcdef", prefix.size()) == std::string_view::npos;
}

}  // namespace

std::shared_ptr<ManagedJob> JobService::Known(const std::string& id) const {
  const std::shared_lock lock(mutex_);
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : found->second;
}

// The job of this row; the one that is known already, where another thread was first.
std::shared_ptr<ManagedJob> JobService::Add(store::StoredJob stored, bool ask_for_work,
                                            std::shared_ptr<const Job> built) {
  const bool is_over = stored.job.state == store::JobState::kFinished;
  if (built == nullptr && !stored.job.profile_csv.empty() && !is_over) {
    // What can no longer be built has no plan; the job says so (Resume).
    if (auto made = BuildJob(stored.job)) built = *std::move(made);
  }
  const std::string id = stored.job.id;
  const std::string client_key = stored.job.client_key;
  auto job = std::make_shared<ManagedJob>(&context_, std::move(stored), std::move(built));
  {
    const std::unique_lock lock(mutex_);
    const auto [known, is_new] = jobs_.try_emplace(id, job);
    if (!is_new) return known->second;
    ids_[client_key] = id;
  }
  job->Resume(ask_for_work);
  return job;
}

void JobService::Forget(const std::string& id) {
  const std::unique_lock lock(mutex_);
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return;
  // The key may be another job's by now.
  const auto key = ids_.find(found->second->client_key());
  if (key != ids_.end() && key->second == id) ids_.erase(key);
  jobs_.erase(found);
}

bool JobService::MayLookUp(const std::string& id) {
  const std::lock_guard lock(lookup_mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (now - lookups_since_ >= std::chrono::seconds(1)) {
    lookups_since_ = now;
    lookups_ = 0;
  }
  return !absent_.contains(id) && ++lookups_ <= kMostLookupsPerSecond;
}

// From the store, whatever is known here.
Outcome<std::shared_ptr<ManagedJob>> JobService::Read(const std::string& id) {
  auto stored = store_->LoadJob(id);
  if (!stored) return Unavailable(stored.error());
  if (stored->has_value()) return Add(**std::move(stored), /*ask_for_work=*/false);
  const std::lock_guard lock(lookup_mutex_);
  if (absent_.size() >= kMostAbsent) absent_.clear();
  absent_.insert(id);
  return NoJob(id);
}

Outcome<std::shared_ptr<ManagedJob>> JobService::Get(const std::string& id) {
  if (JobPointer job = Known(id); job != nullptr) {
    if (!job->is_gone()) return job;
    return NoJob(id);
  }
  if (!store_->is_shared() || !IsId(id, kIdPrefix)) return NoJob(id);
  if (MayLookUp(id)) return Read(id);
  const std::lock_guard lock(lookup_mutex_);
  if (absent_.contains(id)) return NoJob(id);
  return Fail(FailureCode::kUnavailable,
              "too many jobs that this server does not know are asked for; try again in a second");
}

Outcome<std::shared_ptr<ManagedJob>> JobService::GetFresh(const std::string& id, bool* is_stale) {
  auto job = Get(id);
  if (!job || !store_->is_shared()) return job;
  // What a store that is away has last said is shown meanwhile.
  const bool is_read = (*job)->Refresh().has_value();
  if (is_stale != nullptr) *is_stale = !is_read;
  (*job)->RefreshIterations();
  if ((*job)->is_gone()) return NoJob(id);
  return job;
}

Outcome<std::shared_ptr<ManagedJob>> JobService::GetByKey(const std::string& client_key) {
  {
    const std::shared_lock lock(mutex_);
    const auto found = ids_.find(client_key);
    if (found != ids_.end() && !jobs_.at(found->second)->is_gone()) return jobs_.at(found->second);
  }
  const auto none = [&] {
    return Fail(FailureCode::kNotFound,
                fmt::format("there is no job with the client key '{}'", client_key));
  };
  if (!store_->is_shared()) return none();
  const auto id = store_->FindKey(client_key);
  if (!id) return Unavailable(id.error());
  if (!id->has_value()) return none();
  if (JobPointer job = Known(**id); job != nullptr) return job;
  return Read(**id);
}

std::vector<std::shared_ptr<ManagedJob>> JobService::FreshJobs(bool* is_stale) {
  if (store_->is_shared()) {
    const auto marks = store_->ListMarks();
    if (is_stale != nullptr) *is_stale = !marks;
    if (marks) {
      std::set<std::string> ids;
      for (const store::JobMarks& mark : *marks) {
        ids.insert(mark.id);
        const JobPointer job = Known(mark.id);
        if (job == nullptr || job->IsBehind(mark)) RefreshJob(mark.id);
      }
      for (const JobPointer& job : Jobs()) {
        if (!ids.contains(job->id())) RefreshJob(job->id());
      }
    }
  }
  return Jobs();
}

void JobService::RefreshJob(const std::string& id) {
  const JobPointer job = Known(id);
  if (job == nullptr) {
    static_cast<void>(Read(id));
    return;
  }
  // Tried again with the next look at all marks where the store cannot be asked.
  static_cast<void>(job->Refresh());
  if (job->is_gone()) Forget(id);
}

void JobService::OnChanged(const std::vector<store::JobMarks>& marks, bool are_all) {
  std::set<std::string> ids;
  for (const store::JobMarks& mark : marks) {
    if (are_all) ids.insert(mark.id);
    const JobPointer job = Known(mark.id);
    if (job == nullptr ? mark.revision > 0 : job->IsBehind(mark)) refresher_->Ask(mark.id);
  }
  if (!are_all) return;
  // Deleted, or made here after the list was.
  for (const JobPointer& job : Jobs()) {
    if (!ids.contains(job->id())) refresher_->Ask(job->id());
  }
}

Outcome<std::vector<store::ProfileRecord>> JobService::ListProfiles() {
  auto profiles = store_->ListProfiles();
  if (!profiles) return Unavailable(profiles.error());
  return *std::move(profiles);
}

Outcome<store::ProfileRecord> JobService::FindProfile(const std::string& id) {
  auto profile = store_->FindProfile(id);
  if (!profile) return Unavailable(profile.error());
  if (!profile->has_value()) {
    return Fail(FailureCode::kNotFound, fmt::format("there is no profile {}", id));
  }
  return **std::move(profile);
}

Outcome<void> JobService::DeleteProfile(const std::string& id) {
  if (auto known = FindProfile(id); !known) return tl::unexpected(known.error());
  if (auto deleted = store_->DeleteProfile(id); !deleted) return Unavailable(deleted.error());
  return {};
}

bool JobService::PerformWork(const std::string& id, const std::function<bool()>& keep_going) {
  Outcome<JobPointer> job = Get(id);
  if (!job && job.error().code == FailureCode::kNotFound) {
    // It may be durable already, and its creator about to tell us of it.
    { const std::lock_guard creation(creation_mutex_); }
    job = Get(id);
  }
  if (job) return (*job)->Work(keep_going);
  return job.error().code == FailureCode::kNotFound;
}

}  // namespace perseus::server
