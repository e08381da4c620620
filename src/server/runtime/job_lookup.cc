// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Jobs that other servers made or deleted.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/json_text.h"
#include "server/base/without_throwing.h"
#include "server/runtime/job_service.h"
#include "server/runtime/plan_work.h"
#include "server/runtime/waiting.h"

namespace perseus::server {
namespace {

// Ids that nobody made cost the store no more than this.
constexpr int kMostLookupsPerSecond = 200;
constexpr std::size_t kMostAbsent = 10'000;
constexpr std::size_t kIdDigits = 16;

// Of a reading that has waited for its turn for longer than its client.
tl::unexpected<Error> NobodyWaits() {
  return MakeError(store::kTooLate, "the client no longer waits for the answer");
}

bool IsId(std::string_view text, std::string_view prefix) {
  return text.starts_with(prefix) && text.size() == prefix.size() + kIdDigits &&
         text.find_first_not_of("0123456789abcdef", prefix.size()) == std::string_view::npos;
}

}  // namespace

std::shared_ptr<ManagedJob> JobService::Known(const std::string& id) const {
  const ReaderLock lock(mutex_);
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : found->second;
}

// The id of the job with this key; empty: none is known here. One that was deleted is made anew.
std::string JobService::KnownKey(const std::string& client_key) const {
  const ReaderLock lock(mutex_);
  const auto found = ids_.find(client_key);
  if (found == ids_.end()) return "";
  const auto job = jobs_.find(found->second);
  return job != jobs_.end() && job->second->is_gone() ? "" : found->second;
}

// The job of this row; the one that is known already, where another thread was first.
std::shared_ptr<ManagedJob> JobService::Add(LoadedJob loaded, bool ask_for_work) {
  auto job = std::make_shared<ManagedJob>(&context_, std::move(loaded.life), loaded.sums);
  {
    const WriterLock lock(mutex_);
    const auto [known, is_new] = jobs_.try_emplace(job->id(), job);
    if (!is_new) return known->second;
    heads_.erase(job->id());
    ids_[job->client_key()] = job->id();
  }
  job->Resume(ask_for_work);
  return job;
}

void JobService::Forget(const std::string& id) {
  const WriterLock lock(mutex_);
  // The key may be another job's by now.
  std::erase_if(ids_, [&](const auto& key) { return key.second == id; });
  jobs_.erase(id);
  heads_.erase(id);
  const MutexLock lookup_lock(lookup_mutex_);
  damaged_.erase(id);
}

void JobService::DeleteDamaged(const std::string& id, const Caller& caller,
                               DeletedCallback deleted) {
  const auto on_written = [this, id, caller, deleted = std::move(deleted)](const auto& written) {
    if (!written && written.error().code == ErrorCode::kConflict) {
      return deleted(Fail(FailureCode::kPast, written.error().message, "If-Match"));
    }
    if (!written) return deleted(Unavailable(written.error()));
    Forget(id);
    events_.Emit({.kind = EventKind::kJob,
                  .job = id,
                  .data = FormatCompact({{"job", id}, {"deleted", true}})});
    if (context_.on_change) {
      context_.on_change({id, "job", "damaged", "deleted", caller.token_name, caller.peer});
    }
    deleted({});
  };
  store_.Add({store::JobGone{id}}, on_written, caller.if_revision, caller.is_wanted);
}

std::size_t JobService::damaged_jobs() const {
  const auto jobs = Jobs();
  const auto aside =
      std::count_if(jobs.begin(), jobs.end(), [](const auto& job) { return job->is_aside(); });
  const MutexLock lock(lookup_mutex_);
  return damaged_.size() + static_cast<std::size_t>(aside);
}

std::optional<store::JobHead> JobService::HeadOf(const std::string& id) const {
  if (const JobPointer job = Known(id); job != nullptr) return job->head();
  const ReaderLock lock(mutex_);
  const auto head = heads_.find(id);
  if (head == heads_.end()) return std::nullopt;
  return head->second;
}

bool JobService::MayLookUp(const std::string& id) {
  const MutexLock lock(lookup_mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (now - lookups_since_ >= std::chrono::seconds(1)) {
    lookups_since_ = now;
    lookups_ = 0;
  }
  return !absent_.contains(id) && ++lookups_ <= kMostLookupsPerSecond;
}

// From the store, whatever is known here. Who asks at the same time shares one reading.
void JobService::Load(const std::string& id, bool ask_for_work, const FoundCallback& found) {
  {
    const MutexLock lock(lookup_mutex_);
    std::vector<FoundCallback>& waiting = loading_[id];
    waiting.push_back(found);
    if (waiting.size() > 1) return;
  }
  const auto load = [this, id, ask_for_work]() -> Outcome<JobPointer> {
    auto loaded = LoadJobLife(store_, id);
    if (!loaded) return Unavailable(loaded.error());
    if (!loaded->has_value()) return tl::unexpected(NoSuchJob(id));
    return Add(**std::move(loaded), ask_for_work);
  };
  readers_.Read("load a job", load, [this, id](const Outcome<JobPointer>& job) {
    const bool is_absent = !job && job.error().code == FailureCode::kNotFound;
    bool is_news = false;
    std::vector<FoundCallback> waiting;
    {
      const MutexLock lock(lookup_mutex_);
      is_news = IsDamaged(job) && damaged_.insert(id).second;
      if (absent_.size() >= kMostAbsent) absent_.clear();
      if (is_absent) absent_.insert(id);
      waiting = std::exchange(loading_[id], {});
      loading_.erase(id);
    }
    if (is_absent) Forget(id);
    if (is_news && options_.on_problem) options_.on_problem(job.error().message);
    for (const FoundCallback& each : waiting) {
      const Result<void> told = WithoutThrowing("answer with a job", [&]() -> Result<void> {
        each(job);
        return {};
      });
      if (!told && options_.on_problem) options_.on_problem(told.error().message);
    }
  });
}

void JobService::Get(const std::string& id, const FoundCallback& found) {
  if (JobPointer job = Known(id); job != nullptr) {
    job->Touch();
    return found(job->is_gone() ? Outcome<JobPointer>(tl::unexpected(NoSuchJob(id))) : job);
  }
  if (!IsId(id, kIdPrefix)) return found(tl::unexpected(NoSuchJob(id)));
  const bool is_listed = [&] {
    const ReaderLock lock(mutex_);
    return heads_.contains(id);
  }();
  if (is_listed || MayLookUp(id)) return Load(id, /*ask_for_work=*/false, found);
  const bool is_absent = [&] {
    const MutexLock lock(lookup_mutex_);
    return absent_.contains(id);
  }();
  if (is_absent) return found(tl::unexpected(NoSuchJob(id)));
  found(Fail(FailureCode::kUnavailable,
             "too many requests name jobs that this server does not know; try again in a second"));
}

void JobService::GetFresh(const std::string& id, FreshCallback found) {
  Get(id, [this, found = std::move(found)](const Outcome<JobPointer>& job) {
    if (!job || !store_.is_shared()) return found(job, false);
    // What a store that is away has last said is shown meanwhile.
    (*job)->RefreshAll([job, found](const Result<void>& read) {
      if ((*job)->is_gone()) return found(tl::unexpected(NoSuchJob((*job)->id())), false);
      found(job, !read);
    });
  });
}

void JobService::GetByKey(const std::string& client_key, IsWanted is_wanted, FoundCallback found) {
  if (const std::string known = KnownKey(client_key); !known.empty()) return Get(known, found);
  const auto find = [this, client_key,
                     is_wanted = std::move(is_wanted)]() -> Result<std::optional<std::string>> {
    if (is_wanted && !is_wanted()) return NobodyWaits();
    return store_.FindKey(client_key);
  };
  readers_.Read("find a job", find, [this, client_key, found = std::move(found)](const auto& id) {
    if (!id) return found(Unavailable(id.error()));
    if (!id->has_value()) {
      return found(Fail(FailureCode::kNotFound,
                        fmt::format("there is no job with the client key '{}'; 'perseus job list' "
                                    "shows those that there are",
                                    client_key)));
    }
    if (JobPointer job = Known(**id); job != nullptr) return found(job);
    Load(**id, /*ask_for_work=*/false, found);
  });
}

void JobService::List(IsWanted is_wanted, ListCallback list) {
  if (!store_.is_shared()) return list(All(), false);
  const auto read = [this,
                     is_wanted = std::move(is_wanted)]() -> Result<std::vector<store::JobHead>> {
    if (is_wanted && !is_wanted()) return NobodyWaits();
    return store_.ListHeads();
  };
  readers_.Read("list the jobs", read, [this, list = std::move(list)](const auto& heads) {
    if (!heads) return list(All(), true);
    std::set<std::string> ids;
    std::vector<std::string> behind;
    for (const store::JobHead& head : *heads) {
      ids.insert(head.id);
      const JobPointer job = Known(head.id);
      const bool is_at_rest = job == nullptr && head.state == store::JobState::kFinished;
      if (is_at_rest) {
        const WriterLock lock(mutex_);
        heads_[head.id] = head;
        ids_[head.client_key] = head.id;
      } else if (job == nullptr || job->IsBehind(head.marks)) {
        behind.push_back(head.id);
      }
    }
    for (const Listed& each : All()) {
      if (!ids.contains(each.head.id)) behind.push_back(each.head.id);
    }
    if (behind.empty()) return list(All(), false);
    const auto left = std::make_shared<std::atomic<std::size_t>>(behind.size());
    for (const std::string& id : behind) {
      RefreshNow(id, [this, left, list] {
        if (--*left == 0) list(All(), false);
      });
    }
  });
}

// Tried again with the next look at all marks where the store cannot be asked.
void JobService::RefreshNow(const std::string& id, const std::function<void()>& done) {
  const JobPointer job = Known(id);
  if (job == nullptr) {
    return Load(id, /*ask_for_work=*/false, [done](const Outcome<JobPointer>&) { done(); });
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
    if (job != nullptr ? job->IsBehind(mark) : IsNews(mark)) refresher_->Ask(mark.id);
  }
  if (!are_all) return;
  // Deleted, or made here after the list was.
  for (const Listed& each : All()) {
    if (!ids.contains(each.head.id)) refresher_->Ask(each.head.id);
  }
}

// Of a job that is not at work here.
bool JobService::IsNews(const store::JobMarks& mark) const {
  const ReaderLock lock(mutex_);
  const auto head = heads_.find(mark.id);
  return head == heads_.end() ? mark.revision > 0 : head->second.marks != mark;
}

Outcome<std::vector<store::ProfileRecord>> JobService::ListProfiles() {
  auto profiles = store_.ListProfiles();
  if (!profiles) return Unavailable(profiles.error());
  return *std::move(profiles);
}

Outcome<store::ProfileRecord> JobService::FindProfile(const std::string& id) {
  auto profile = store_.FindProfile(id);
  if (!profile) return Unavailable(profile.error());
  if (!profile->has_value()) {
    return tl::unexpected(NoSuchProfile(id));
  }
  return **std::move(profile);
}

Outcome<std::vector<store::NamedHistoryRow>> JobService::ListHistory(
    const store::HistoryQuery& wanted) {
  auto rows = store_.ListHistory(wanted);
  if (!rows) return Unavailable(rows.error());
  return *std::move(rows);
}

Outcome<void> JobService::DeleteProfile(const std::string& id, const Caller& caller) {
  const auto known = FindProfile(id);
  if (!known) return tl::unexpected(known.error());
  if (auto deleted = store_.DeleteProfile(id); !deleted) return Unavailable(deleted.error());
  if (context_.on_change) {
    context_.on_change({known->job, "profile", id, "deleted", caller.token_name, caller.peer});
  }
  return {};
}

bool JobService::PerformWork(const std::string& id, const std::function<bool()>& keep_going) {
  const auto job = Await<Outcome<JobPointer>>([&](auto&& found) { Get(id, found); });
  if (job) return WorkOnPlans(**job, store_, keep_going);
  // What is damaged waits for an operator.
  return job.error().code == FailureCode::kNotFound || IsDamaged(job);
}

}  // namespace perseus::server
