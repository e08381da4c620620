// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/runtime/job_service.h"

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

// Between two looks at the store's clock: quartz drifts by some milliseconds meanwhile.
constexpr std::chrono::seconds kClockPeriod(60);

// 64 random bits in hexadecimal digits: not to be guessed or to collide.
std::string RandomName() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

}  // namespace

JobService::JobService(std::unique_ptr<store::Store> store, ServiceOptions options)
    : options_(std::move(options)),
      store_(std::move(store)),
      clock_(options_.now_seconds ? options_.now_seconds : SystemSeconds),
      context_{.store = *store_,
               .events = events_,
               .now_seconds = [this] { return clock_.Now(); },
               .has_given_plan =
                   [this](const Shape& shape) {
                     return options_.given_plan && options_.given_plan->Fits(shape);
                   },
               .wake_worker = [this] { worker_->Wake(); },
               .refresh_soon =
                   [this](const std::string& id) {
                     if (store_->is_shared()) refresher_->Ask(id);
                   }} {
  refresher_ = std::make_unique<Refresher>([this](const std::string& id) { RefreshJob(id); },
                                           options_.on_problem);
  MeasureClock();
}

Result<std::unique_ptr<JobService>> JobService::Start(std::unique_ptr<store::Store> store,
                                                      ServiceOptions options) {
  std::unique_ptr<JobService> service(new JobService(std::move(store), std::move(options)));
  JobService* const self = service.get();
  self->worker_ = std::make_unique<Worker>(
      *self->store_,
      [self](const std::string& id, const std::function<bool()>& keep_going) {
        return self->PerformWork(id, keep_going);
      },
      self->options_.on_problem, self->options_.worker);
  // From here on, lest a change between the reading and the watch is missed.
  self->store_->Watch([self](const std::vector<store::JobMarks>& marks, bool are_all) {
    self->OnChanged(marks, are_all);
  });
  if (auto restored = self->Restore(); !restored) return tl::unexpected(restored.error());
  self->ticker_ = std::thread([self] { self->TickAll(); });
  return service;
}

JobService::~JobService() {
  {
    const std::lock_guard lock(stop_mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  if (ticker_.joinable()) ticker_.join();
  if (worker_ != nullptr) {
    worker_->Stop();
    worker_->Wait();
  }
  refresher_->Stop();
  for (const auto& job : Jobs()) job->FlushIterations();
  // Its last callbacks use what is destroyed after it.
  store_.reset();
}

Result<void> JobService::Restore() {
  Result<std::vector<store::StoredJob>> stored = store_->LoadJobs();
  if (!stored) return tl::unexpected(stored.error());
  // What this process or the one before gave up is tried again.
  for (store::StoredJob& job : *stored) Add(std::move(job), /*ask_for_work=*/true);
  return {};
}

// By the store's clock, where several machines go by it.
void JobService::MeasureClock() {
  if (!store_->is_shared() || options_.now_seconds) return;
  clock_.Measure([this] { return store_->NowSeconds(); });
}

void JobService::TickAll() {
  const auto pause = std::chrono::duration<double>(options_.tick_seconds);
  auto measured = std::chrono::steady_clock::now();
  std::unique_lock lock(stop_mutex_);
  while (!stop_.wait_for(lock, pause, [this] { return stopping_; })) {
    lock.unlock();
    TickOnce();
    if (std::chrono::steady_clock::now() - measured > kClockPeriod) {
      MeasureClock();
      measured = std::chrono::steady_clock::now();
    }
    lock.lock();
  }
}

void JobService::TickOnce() {
  for (const auto& job : Jobs()) {
    try {
      job->Tick();
      if (job->is_gone()) Forget(job->id());
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
    const auto known = ids_.find(record.client_key);
    // One that another server deleted meanwhile is made anew.
    if (known != ids_.end() && !jobs_.at(known->second)->is_gone()) {
      return Created{jobs_.at(known->second), false};
    }
    if (jobs_.size() >= options_.max_jobs) {
      return Fail(FailureCode::kTooLarge,
                  fmt::format("the server has {} jobs, its limit; delete some", jobs_.size()));
    }
  }
  record.id = kIdPrefix + RandomName();
  record.name = spec.name;
  record.origin = origin;
  record.pipeline_parallel = spec.shape.pipeline_parallel;
  record.data_parallel = spec.shape.data_parallel;
  record.tensor_parallel = spec.shape.tensor_parallel;
  record.settings_json = spec.settings_json;
  record.profile_csv = spec.profile_csv;
  record.profile_source = spec.profile_csv.empty() ? "" : "given";
  record.library_json = spec.library_json;
  record.created_at_seconds = context_.now_seconds();
  std::vector<store::Fact> facts = {record};
  std::shared_ptr<const Job> built;
  if (!record.profile_csv.empty()) {
    auto made = BuildJob(record);
    if (!made) return Invalid(made.error());
    built = *std::move(made);
    facts.emplace_back(store::WorkWanted{.job = record.id, .urgent = true});
  }
  const auto written = store_->Write(std::move(facts));
  if (!written && written.error().code == ErrorCode::kConflict) {
    return CreatedElsewhere(record.client_key);
  }
  if (!written) return Unavailable(written.error());
  store::StoredJob stored;
  stored.job = record;
  stored.marks = *written;
  auto job = Add(std::move(stored), /*ask_for_work=*/false, std::move(built));
  worker_->Wake();
  events_.Emit(
      {EventKind::kJob, record.id, FormatCompact({{"job", record.id}, {"name", record.name}})});
  return Created{std::move(job), true};
}

// The store has a job of this key, which another server made.
Outcome<JobService::Created> JobService::CreatedElsewhere(const std::string& client_key) {
  auto job = GetByKey(client_key);
  if (job) return Created{*std::move(job), false};
  if (job.error().code == FailureCode::kUnavailable) return tl::unexpected(job.error());
  return Fail(FailureCode::kUnavailable, "another server deletes this job; try again");
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

std::size_t JobService::jobs_that_want_work() const {
  const auto jobs = Jobs();
  return static_cast<std::size_t>(
      std::count_if(jobs.begin(), jobs.end(), [](const auto& job) { return job->WantsWork(); }));
}

Outcome<void> JobService::Delete(const std::string& id) {
  const std::lock_guard creation(creation_mutex_);
  const auto job = Get(id);
  if (!job) return tl::unexpected(job.error());
  if (auto deleted = (*job)->Delete(); !deleted) return deleted;
  Forget(id);
  return {};
}

}  // namespace perseus::server
