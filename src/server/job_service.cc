// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/job_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include "common/json_text.h"

namespace perseus::server {
namespace {

double SystemSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// 64 random bits in hexadecimal digits: not to be guessed or to collide.
std::string RandomName() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

}  // namespace

JobService::JobService(std::unique_ptr<store::Store> store, ServiceOptions options)
    : options_(std::move(options)),
      store_(std::move(store)),
      tasks_(options_.on_problem),
      context_{.store = *store_,
               .events = events_,
               .tasks = tasks_,
               .now_seconds = options_.now_seconds ? options_.now_seconds : SystemSeconds,
               .has_given_plan = [this](const Shape& shape) {
                 return options_.given_plan && options_.given_plan->Fits(shape);
               }} {}

Result<std::unique_ptr<JobService>> JobService::Start(std::unique_ptr<store::Store> store,
                                                      ServiceOptions options) {
  std::unique_ptr<JobService> service(new JobService(std::move(store), std::move(options)));
  if (auto restored = service->Restore(); !restored) return tl::unexpected(restored.error());
  service->ticker_ = std::thread([service = service.get()] { service->TickAll(); });
  return service;
}

JobService::~JobService() {
  {
    const std::lock_guard lock(stop_mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  if (ticker_.joinable()) ticker_.join();
  tasks_.Stop();
  tasks_.Wait();
  if (store_ != nullptr) {
    for (const auto& job : Jobs()) job->FlushIterations();
  }
  // Its last callbacks use what is destroyed after it.
  store_.reset();
}

Result<void> JobService::Restore() {
  Result<std::vector<store::StoredJob>> stored = store_->LoadJobs();
  if (!stored) return tl::unexpected(stored.error());
  for (store::StoredJob& job : *stored) {
    std::shared_ptr<const Job> built;
    if (!job.job.profile_csv.empty() && job.job.state != store::JobState::kFinished) {
      // What can no longer be built has no plan; the job says so (Resume).
      if (auto made = BuildJob(job.job)) built = *std::move(made);
    }
    const std::string id = job.job.id;
    ids_[job.job.client_key] = id;
    jobs_[id] = std::make_shared<ManagedJob>(&context_, std::move(job), std::move(built));
  }
  for (const auto& [id, job] : jobs_) job->Resume();
  return {};
}

void JobService::TickAll() {
  const auto pause = std::chrono::duration<double>(options_.tick_seconds);
  std::unique_lock lock(stop_mutex_);
  while (!stop_.wait_for(lock, pause, [this] { return stopping_; })) {
    lock.unlock();
    TickOnce();
    lock.lock();
  }
}

void JobService::TickOnce() {
  for (const auto& job : Jobs()) {
    try {
      job->Tick();
    } catch (const std::exception& exception) {
      // Tried again at the next tick; the other jobs go on.
      if (options_.on_problem) {
        options_.on_problem(fmt::format("A bug: job {} threw: {}", job->id(), exception.what()));
      }
    }
  }
}

Outcome<JobService::Created> JobService::Create(const JobSpec& spec, store::JobOrigin origin) {
  const std::lock_guard creation(creation_mutex_);
  store::JobRecord record;
  record.client_key = spec.client_key.empty() ? "-" + RandomName() : spec.client_key;
  {
    const std::shared_lock lock(mutex_);
    if (const auto known = ids_.find(record.client_key); known != ids_.end()) {
      return Created{jobs_.at(known->second), false};
    }
    if (jobs_.size() >= options_.max_jobs) {
      return Fail(FailureCode::kTooLarge,
                  fmt::format("the server has {} jobs, its limit; delete some", jobs_.size()));
    }
  }
  record.id = "j-" + RandomName();
  record.name = spec.name;
  record.origin = origin;
  record.pipeline_parallel = spec.shape.pipeline_parallel;
  record.data_parallel = spec.shape.data_parallel;
  record.tensor_parallel = spec.shape.tensor_parallel;
  record.settings_json = spec.settings_json;
  record.profile_csv = spec.profile_csv;
  record.created_at_seconds = context_.now_seconds();
  std::shared_ptr<const Job> built;
  if (!record.profile_csv.empty()) {
    Result<std::shared_ptr<const Job>> made = BuildJob(record);
    if (!made) return Invalid(made.error());
    built = *std::move(made);
  }
  if (auto written = store_->Write({record}); !written) return Unavailable(written.error());
  store::StoredJob stored;
  stored.job = record;
  auto job = std::make_shared<ManagedJob>(&context_, std::move(stored), std::move(built));
  {
    const std::unique_lock lock(mutex_);
    jobs_[record.id] = job;
    ids_[record.client_key] = record.id;
  }
  job->Resume();
  events_.Emit({"job", record.id, FormatCompact({{"job", record.id}, {"name", record.name}})});
  return Created{std::move(job), true};
}

std::shared_ptr<ManagedJob> JobService::Find(const std::string& id) const {
  const std::shared_lock lock(mutex_);
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : found->second;
}

std::shared_ptr<ManagedJob> JobService::FindByKey(const std::string& client_key) const {
  const std::shared_lock lock(mutex_);
  const auto found = ids_.find(client_key);
  return found == ids_.end() ? nullptr : jobs_.at(found->second);
}

std::vector<std::shared_ptr<ManagedJob>> JobService::Jobs() const {
  std::vector<std::shared_ptr<ManagedJob>> jobs;
  {
    const std::shared_lock lock(mutex_);
    for (const auto& [id, job] : jobs_) jobs.push_back(job);
  }
  std::stable_sort(jobs.begin(), jobs.end(), [](const auto& a, const auto& b) {
    return a->created_at_seconds() < b->created_at_seconds();
  });
  return jobs;
}

Outcome<void> JobService::Delete(const std::string& id) {
  const std::lock_guard creation(creation_mutex_);
  const std::shared_ptr<ManagedJob> job = Find(id);
  if (job == nullptr) return Fail(FailureCode::kNotFound, fmt::format("there is no job {}", id));
  if (auto deleted = job->Delete(); !deleted) return deleted;
  const std::unique_lock lock(mutex_);
  ids_.erase(job->client_key());
  jobs_.erase(id);
  return {};
}

}  // namespace perseus::server
