// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/runtime/job_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/boot_clock.h"
#include "common/json_text.h"
#include "server/runtime/waiting.h"

namespace perseus::server {
namespace {

double SystemSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

double SteadySeconds() {
  return std::chrono::duration<double>(BootClock::now().time_since_epoch()).count();
}

// Between two looks at the store's clock, as quartz drifts by some milliseconds meanwhile, and at
// jobs that have finished.
constexpr double kClockPeriodSeconds = 60;
// A finished job that nobody asks for is no longer kept in memory.
constexpr double kRestSeconds = 600;

// 64 random bits in hexadecimal digits: not to be guessed or to collide.
std::string RandomName() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

store::JobRecord RecordOf(const JobSpec& spec, store::JobOrigin origin, const std::string& owner,
                          double created_at) {
  return {.id = JobService::kIdPrefix + RandomName(),
          .client_key = spec.client_key.empty() ? "-" + RandomName() : spec.client_key,
          .name = spec.name,
          .owner = owner,
          .labels = spec.labels,
          .origin = origin,
          .pipeline_parallel = spec.shape.pipeline_parallel,
          .data_parallel = spec.shape.data_parallel,
          .tensor_parallel = spec.shape.tensor_parallel,
          .settings_json = spec.settings_json,
          .profile_csv = spec.profile_csv,
          .conditions_json = spec.conditions_json,
          .library_json = spec.library_json,
          .profile_source = spec.profile_csv.empty() ? "" : kGivenSource,
          .created_at_seconds = created_at};
}

}  // namespace

JobService::JobService(std::unique_ptr<store::Store> store, ServiceOptions options)
    : options_(std::move(options)),
      store_(*store),
      clock_(options_.now_seconds ? options_.now_seconds : SystemSeconds,
             options_.steady_seconds ? options_.steady_seconds : SteadySeconds),
      readers_(options_.on_problem),
      gate_(store_, readers_),
      context_{.store = gate_,
               .events = events_,
               .now = [this] { return Now(); },
               .has_given_plan =
                   [this](const Shape& shape) {
                     return options_.given_plan && options_.given_plan->Fits(shape);
                   },
               .wake_worker = [this] { worker_->Wake(); },
               .refresh_soon =
                   [this](const std::string& id) {
                     if (store_.is_shared()) refresher_->Ask(id);
                   },
               .on_change = options_.on_change,
               .on_unwritten = options_.on_unwritten,
               .on_problem = options_.on_problem},
      own_store_(std::move(store)) {
  if (!options_.steady_seconds) options_.steady_seconds = SteadySeconds;
  refresher_ = std::make_unique<Refresher>(
      [this](const std::string& id) {
        Await<bool>([&](auto&& done) { RefreshNow(id, [done] { done(true); }); });
      },
      options_.on_problem);
  MeasureClock();
}

Result<std::unique_ptr<JobService>> JobService::Start(std::unique_ptr<store::Store> store,
                                                      ServiceOptions options) {
  std::unique_ptr<JobService> service(new JobService(std::move(store), std::move(options)));
  JobService* const self = service.get();
  self->worker_ = std::make_unique<Worker>(
      self->store_,
      [self](const std::string& id, const std::function<bool()>& keep_going) {
        return self->PerformWork(id, keep_going);
      },
      self->options_.on_problem, self->options_.worker);
  // From here on, lest a change between the reading and the watch is missed.
  self->store_.Watch([self](const std::vector<store::JobMarks>& marks, bool are_all) {
    self->OnChanged(marks, are_all);
  });
  if (auto restored = self->Restore(); !restored) return tl::unexpected(restored.error());
  self->ticker_ = std::thread([self] { self->TickAll(); });
  return service;
}

JobService::~JobService() {
  {
    const MutexLock lock(stop_mutex_);
    stopping_ = true;
  }
  stop_.NotifyAll();
  if (ticker_.joinable()) ticker_.join();
  // Before the waits below: the process may be ended in them.
  for (const JobPointer& job : Jobs()) {
    std::vector<store::Fact> facts = job->TakeIterations();
    // There is no next time for what the store refuses. It ends after it has written all.
    if (facts.empty() || job->is_gone()) continue;
    store_.Add(facts, [job, facts](const auto& written) {
      job->OnIterationsWritten(facts, written.has_value());
    });
  }
  if (worker_ != nullptr) {
    worker_->Stop();
    worker_->Wait();
  }
  refresher_->Stop();
  readers_.Stop();
}

Moment JobService::Now() const {
  return {.day_seconds = clock_.Now(), .seconds = options_.steady_seconds()};
}

Result<void> JobService::Restore() {
  const Result<std::vector<store::JobHead>> heads = store_.ListHeads();
  if (!heads) return tl::unexpected(heads.error());
  {
    const WriterLock lock(mutex_);
    for (const store::JobHead& head : *heads) {
      heads_[head.id] = head;
      ids_[head.client_key] = head.id;
    }
  }
  // Those that have not finished go on by themselves, beside the first requests. What this process
  // or the one before gave up is tried again.
  for (const store::JobHead& head : *heads) {
    if (head.state == store::JobState::kFinished) continue;
    Load(head.id, /*ask_for_work=*/true, [](const Outcome<JobPointer>&) {});
  }
  return {};
}

// By the store's clock, where several machines go by it.
void JobService::MeasureClock() {
  if (!store_.is_shared() || options_.now_seconds) return;
  clock_.Measure([this] { return store_.NowSeconds(); });
}

void JobService::TickAll() {
  const auto pause = std::chrono::duration<double>(options_.tick_seconds);
  const double period =
      std::min(kClockPeriodSeconds, options_.finish_silent_seconds.value_or(kClockPeriodSeconds));
  double looked_at = Now().seconds;
  const MutexLock lock(stop_mutex_);
  while (!stopping_) {
    if (stop_.WaitUntil(stop_mutex_, std::chrono::steady_clock::now() + pause)) continue;
    const MutexUnlock unlocked(stop_mutex_);
    TickOnce();
    if (const double now = Now().seconds; now - looked_at > period) {
      readers_.Post([this] { MeasureClock(); });
      // What was not deleted is deleted the next time.
      readers_.Post(
          [this, day = Now().day_seconds] { static_cast<void>(store_.ForgetHistory(day)); });
      Rest();
      looked_at = now;
    }
  }
}

void JobService::TickOnce() {
  for (const JobPointer& job : Jobs()) {
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

void JobService::Create(const JobSpec& spec, store::JobOrigin origin, const Caller& caller,
                        CreatedCallback created) {
  if (const std::string known = KnownKey(spec.client_key); !known.empty()) {
    return Get(known, [created](const Outcome<JobPointer>& job) {
      created(job ? Outcome<Created>(Created{*job, false}) : tl::unexpected(job.error()));
    });
  }
  if (!spec.doubt.empty()) {
    return created(Fail(FailureCode::kInvalid, spec.doubt, "job.blocking_power"));
  }
  if (unfinished_jobs() >= options_.max_jobs) {
    return created(
        Fail(FailureCode::kTooLarge,
             fmt::format("the server has {} jobs that have not finished, its limit; finish or "
                         "delete some, or start it with a higher --max-jobs",
                         options_.max_jobs)));
  }
  const store::JobRecord record =
      RecordOf(spec, origin, caller.token_name, context_.now().day_seconds);
  std::vector<store::Fact> facts = {record};
  Built built;
  if (!record.profile_csv.empty()) {
    auto made = BuildJob(record);
    if (!made) return created(Invalid(made.error()));
    built.job = *std::move(made);
    facts.emplace_back(store::WorkWanted{.job = record.id, .urgent = true});
  }
  const auto on_written = [this, record, built, caller,
                           created = std::move(created)](const auto& written) {
    if (!written && written.error().code == ErrorCode::kConflict) {
      // The store has a job of this key, which another request or server made.
      return GetByKey(
          record.client_key, caller.is_wanted, [created](const Outcome<JobPointer>& job) {
            if (job) return created(Created{*job, false});
            if (job.error().code == FailureCode::kUnavailable) {
              return created(tl::unexpected(job.error()));
            }
            created(Fail(FailureCode::kUnavailable, "this job is being deleted; try again"));
          });
    }
    if (!written) return created(Unavailable(written.error()));
    store::StoredJob stored;
    stored.job = record;
    stored.marks = *written;
    JobPointer job = Add({.life = Replay(stored, built), .sums = {}}, /*ask_for_work=*/false);
    worker_->Wake();
    events_.Emit({.kind = EventKind::kJob,
                  .job = record.id,
                  .data = FormatCompact({{"job", record.id}, {"name", record.name}})});
    if (context_.on_change) {
      context_.on_change({record.id, "job", "", "created", caller.token_name, caller.peer});
    }
    created(Created{std::move(job), true});
  };
  store_.Add(std::move(facts), on_written, std::nullopt, caller.is_wanted);
}

std::vector<std::shared_ptr<ManagedJob>> JobService::Jobs() const {
  std::vector<JobPointer> jobs;
  {
    const ReaderLock lock(mutex_);
    for (const auto& [id, job] : jobs_) jobs.push_back(job);
  }
  std::stable_sort(jobs.begin(), jobs.end(), [](const auto& a, const auto& b) {
    return a->created_at_seconds() < b->created_at_seconds();
  });
  return jobs;
}

std::vector<JobService::Listed> JobService::All() const {
  std::vector<Listed> all;
  std::vector<JobPointer> at_work;
  {
    const ReaderLock lock(mutex_);
    all.reserve(heads_.size() + jobs_.size());
    for (const auto& [id, head] : heads_) all.push_back({.head = head, .job = nullptr});
    for (const auto& [id, job] : jobs_) at_work.push_back(job);
  }
  for (const JobPointer& job : at_work) all.push_back({.head = job->head(), .job = job});
  std::stable_sort(all.begin(), all.end(), [](const Listed& a, const Listed& b) {
    return a.head.created_at_seconds < b.head.created_at_seconds;
  });
  return all;
}

std::size_t JobService::unfinished_jobs() const {
  const ReaderLock lock(mutex_);
  const auto unfinished = [](const auto& entry) {
    return entry.second.state != store::JobState::kFinished;
  };
  const auto at_work = [](const auto& entry) { return !entry.second->is_finished(); };
  return static_cast<std::size_t>(std::count_if(heads_.begin(), heads_.end(), unfinished) +
                                  std::count_if(jobs_.begin(), jobs_.end(), at_work));
}

// Jobs whose ranks fell silent finish. Finished jobs leave the memory when nobody asks for them,
// and the store when they are old.
void JobService::Rest() {
  const Moment now = Now();
  {
    const WriterLock lock(mutex_);
    for (auto next = jobs_.begin(); next != jobs_.end();) {
      const auto entry = next++;
      const JobPointer& job = entry->second;
      // With the lock nobody can come by it, and who has it keeps it.
      if (job.use_count() > 1 || !job->MayRest(now.seconds - kRestSeconds)) continue;
      heads_[entry->first] = job->head();
      jobs_.erase(entry);
    }
  }
  if (options_.finish_silent_seconds) {
    for (const JobPointer& job : Jobs()) job->FinishIfSilent(*options_.finish_silent_seconds);
  }
  if (!options_.keep_finished_seconds) return;
  std::vector<store::JobHead> old;
  for (const Listed& each : All()) {
    const store::JobHead& head = each.head;
    const bool is_old =
        head.state == store::JobState::kFinished && head.finished_at_seconds > 0 &&
        now.day_seconds - head.finished_at_seconds > *options_.keep_finished_seconds;
    if (is_old) old.push_back(head);
  }
  for (const store::JobHead& head : old) {
    const std::string& id = head.id;
    // At this revision: a job that is looked at again while it is being deleted is deleted once.
    const Caller caller{"--keep-finished", "", head.marks.revision, {}};
    Get(id, [this, id, caller](const Outcome<JobPointer>& job) {
      if (IsDamaged(job)) return DeleteDamaged(id, caller, [](const auto&) {});
      if (!job) return;
      (*job)->Do(DeleteJob{}, caller, [this, id](const auto& deleted) {
        if (deleted) Forget(id);
      });
    });
  }
}

std::size_t JobService::jobs_that_want_work() const {
  const auto jobs = Jobs();
  return static_cast<std::size_t>(
      std::count_if(jobs.begin(), jobs.end(), [](const auto& job) { return job->WantsWork(); }));
}

}  // namespace perseus::server
