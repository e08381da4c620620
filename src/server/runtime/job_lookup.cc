// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Jobs that other servers made or deleted.

#include <fmt/format.h>

#include <atomic>
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

#include "server/runtime/job_service.h"
#include "server/runtime/plan_work.h"
#include "server/runtime/waiting.h"

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

// One that was deleted is made anew.
std::shared_ptr<ManagedJob> JobService::KnownKey(const std::string& client_key) const {
  const std::shared_lock lock(mutex_);
  const auto found = ids_.find(client_key);
  if (found == ids_.end()) return nullptr;
  const JobPointer& job = jobs_.at(found->second);
  return job->is_gone() ? nullptr : job;
}

// The job of this row; the one that is known already, where another thread was first.
std::shared_ptr<ManagedJob> JobService::Add(LoadedJob loaded, bool ask_for_work) {
  auto job = std::make_shared<ManagedJob>(&context_, std::move(loaded.life));
  {
    const std::unique_lock lock(mutex_);
    const auto [known, is_new] = jobs_.try_emplace(job->id(), job);
    if (!is_new) return known->second;
    ids_[job->client_key()] = job->id();
  }
  job->Resume(loaded.iterations, ask_for_work);
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

// From the store, whatever is known here. Who asks at the same time shares one reading.
void JobService::Load(const std::string& id, const FoundCallback& found) {
  {
    const std::lock_guard lock(lookup_mutex_);
    std::vector<FoundCallback>& waiting = loading_[id];
    waiting.push_back(found);
    if (waiting.size() > 1) return;
  }
  readers_.Post([this, id] {
    auto loaded = LoadJobLife(*store_, id);
    Outcome<JobPointer> job = NoJob(id);
    if (!loaded) {
      job = Unavailable(loaded.error());
    } else if (loaded->has_value()) {
      job = Add(**std::move(loaded), /*ask_for_work=*/false);
    }
    std::vector<FoundCallback> waiting;
    {
      const std::lock_guard lock(lookup_mutex_);
      if (absent_.size() >= kMostAbsent) absent_.clear();
      if (!job && job.error().code == FailureCode::kNotFound) absent_.insert(id);
      waiting = std::exchange(loading_[id], {});
      loading_.erase(id);
    }
    for (const FoundCallback& each : waiting) each(job);
  });
}

void JobService::Get(const std::string& id, FoundCallback found) {
  if (JobPointer job = Known(id); job != nullptr) {
    return found(job->is_gone() ? Outcome<JobPointer>(NoJob(id)) : job);
  }
  if (!IsId(id, kIdPrefix)) return found(NoJob(id));
  if (MayLookUp(id)) return Load(id, found);
  const std::lock_guard lock(lookup_mutex_);
  if (absent_.contains(id)) return found(NoJob(id));
  found(Fail(FailureCode::kUnavailable,
             "too many jobs that this server does not know are asked for; try again in a second"));
}

void JobService::GetFresh(const std::string& id, FreshCallback found) {
  Get(id, [this, found = std::move(found)](const Outcome<JobPointer>& job) {
    if (!job || !store_->is_shared()) return found(job, false);
    // What a store that is away has last said is shown meanwhile.
    (*job)->RefreshAll([job, found](const Result<void>& read) {
      if ((*job)->is_gone()) return found(NoJob((*job)->id()), false);
      found(job, !read);
    });
  });
}

void JobService::GetByKey(const std::string& client_key, FoundCallback found) {
  if (const JobPointer known = KnownKey(client_key)) return found(known);
  readers_.Post([this, client_key, found = std::move(found)] {
    const auto id = store_->FindKey(client_key);
    if (!id) return found(Unavailable(id.error()));
    if (!id->has_value()) {
      return found(Fail(FailureCode::kNotFound,
                        fmt::format("there is no job with the client key '{}'", client_key)));
    }
    if (JobPointer job = Known(**id); job != nullptr) return found(job);
    Load(**id, found);
  });
}

void JobService::FreshJobs(ListCallback list) {
  if (!store_->is_shared()) return list(Jobs(), false);
  readers_.Post([this, list = std::move(list)] {
    const auto marks = store_->ListMarks();
    if (!marks) return list(Jobs(), true);
    std::set<std::string> ids;
    std::vector<std::string> behind;
    for (const store::JobMarks& mark : *marks) {
      ids.insert(mark.id);
      const JobPointer job = Known(mark.id);
      if (job == nullptr || job->IsBehind(mark)) behind.push_back(mark.id);
    }
    for (const JobPointer& job : Jobs()) {
      if (!ids.contains(job->id())) behind.push_back(job->id());
    }
    if (behind.empty()) return list(Jobs(), false);
    const auto left = std::make_shared<std::atomic<std::size_t>>(behind.size());
    for (const std::string& id : behind) {
      RefreshNow(id, [this, left, list] {
        if (--*left == 0) list(Jobs(), false);
      });
    }
  });
}

// Tried again with the next look at all marks where the store cannot be asked.
void JobService::RefreshNow(const std::string& id, const std::function<void()>& done) {
  const JobPointer job = Known(id);
  if (job == nullptr) {
    return Load(id, [done](const Outcome<JobPointer>&) { done(); });
  }
  job->Refresh([this, job, done](const Result<void>&) {
    if (job->is_gone()) Forget(job->id());
    done();
  });
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
  const auto job = Await<Outcome<JobPointer>>([&](auto&& found) { Get(id, found); });
  if (job) return WorkOnPlans(**job, *store_, keep_going);
  return job.error().code == FailureCode::kNotFound;
}

}  // namespace perseus::server
