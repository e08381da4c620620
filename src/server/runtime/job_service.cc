// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/runtime/job_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/clocks.h"
#include "common/json_text.h"
#include "server/base/without_throwing.h"
#include "server/planning/characterize.h"
#include "server/planning/job_spec.h"
#include "server/runtime/waiting.h"

namespace perseus::server {

namespace {

using KeepGoing = std::function<bool(double share)>;

// Builds the job that the step is about, from the texts that the store has of it.
Result<void> BuildStep(store::Store& store, const std::string& id, AdoptPlans* made) {
  if (made->step.built.job != nullptr) return {};
  const auto stored = store.LoadJob(id);
  if (!stored) return tl::unexpected(stored.error());
  if (!stored->has_value()) return MakeError(ErrorCode::kCancelled, "the job was deleted");
  store::JobRecord record = (*stored)->job;
  if (made->step.is_pending) {
    record.profile_csv = record.next_profile_csv;
    record.blocking_power_watts = record.next_blocking_power_watts;
    if (auto state = ParseConditionsState(record.conditions_json)) {
      state->plan.times.clear();
      record.conditions_json = FormatConditionsState(*state);
    }
  }
  if (made->step.conditions) {
    ConditionsState state;
    state.plan = *made->step.conditions;
    record.conditions_json = FormatConditionsState(state);
  }
  auto job = BuildJob(record);
  if (!job && made->step.is_pending) {
    return MakeError(job.error().code, fmt::format("the new measurements give no valid profile: {}",
                                                   job.error().message));
  }
  if (!job) return tl::unexpected(job.error());
  made->step.built.job = *std::move(job);
  made->profile_csv = std::move(record.profile_csv);
  made->blocking_power_watts = std::move(record.blocking_power_watts);
  return {};
}

Result<store::CurveRecord> Compute(const std::string& id, const PlanningStep& step,
                                   const KeepGoing& keep_going) {
  Characterizer characterizer(id, step.built.job, keep_going);
  const Curve* const curve = step.built.curve.get();
  // Ranks follow good plans, so no quick ones come between.
  const int revision = step.conditions ? 1 : curve == nullptr ? 0 : curve->revision();
  if (revision < 2) return characterizer.Ladder(step.target, revision + 1, step.first_id);
  const Result<RobustSummary> plan = characterizer.For(step.target);
  if (!plan && plan.error().code == ErrorCode::kCancelled) return tl::unexpected(plan.error());
  // The target was accepted, so the ladder has an answer; only the better one lacks.
  return curve->Record(id, PlanTargetText(step.target), plan ? &*plan : nullptr);
}

// A job that is too large for the memory, or meets a bug, takes no other with it.
Result<void> Make(store::Store& store, const std::string& id, const KeepGoing& keep_going,
                  AdoptPlans* made) {
  return WithoutThrowing("plan this job", [&]() -> Result<void> {
    if (auto built = BuildStep(store, id, made); !built) return built;
    Result<store::CurveRecord> record = Compute(id, made->step, keep_going);
    if (!record) return tl::unexpected(record.error());
    made->record = *std::move(record);
    auto curve = Curve::Make(made->step.built.job, made->record);
    if (!curve) return tl::unexpected(curve.error());
    made->built = {.job = made->step.built.job, .curve = *std::move(curve)};
    return {};
  });
}

bool IsOfStore(const Error& error) { return error.code == ErrorCode::kIo; }

}  // namespace

bool WorkOnPlans(ManagedJob& job, store::Store& store, const std::function<bool()>& keep_going) {
  if (job.is_aside()) return true;
  std::optional<PlanningStep> step = job.NextStep();
  if (!step) return true;
  AdoptPlans made;
  made.step = *std::move(step);
  // Ends a step that is past at once: the job's next step waits for it.
  const auto going_on = [&](double share) {
    job.SetProgress(share);
    return keep_going() && !job.IsPast(made.step);
  };
  if (!going_on(0)) return false;
  const Result<void> done = Make(store, job.id(), going_on, &made);
  if (done) return DoAndWait(job, std::move(made)).has_value();
  if (done.error().code == ErrorCode::kCancelled) return job.IsPast(made.step);
  if (IsOfStore(done.error())) return false;
  if (job.GiveUpBetterPlans(made.step)) return true;
  return DoAndWait(job, GiveUpPlans{made.step, done.error().message}).has_value();
}

namespace {

double SystemSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

double SteadySeconds() {
  return std::chrono::duration<double>(BootClock::now().time_since_epoch()).count();
}

// Between two looks at jobs that have finished.
constexpr double kRestPeriodSeconds = 60;
// A finished job that no client asks for is no longer kept in memory.
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
      readers_(options_.on_problem),
      gate_(store_, readers_),
      context_{.store = gate_,
               .events = events_,
               .now = [this] { return Now(); },
               .has_given_plan =
                   [this](const Shape& shape) {
                     return options_.given_plan && options_.given_plan->Fits(shape);
                   },
               .want_work = [this](const std::string& id,
                                   Work work) { worker_->Want(id, work == Work::kFirstPlans); },
               .history_seconds = store_.history_seconds(),
               .on_change = options_.on_change,
               .on_unwritten = options_.on_unwritten,
               .on_problem = options_.on_problem},
      own_store_(std::move(store)) {
  if (!options_.steady_seconds) options_.steady_seconds = SteadySeconds;
  // The hosts of servers that follow one another need not agree on the time.
  if (!options_.now_seconds) {
    options_.now_seconds = [skew = store_.skew_seconds()] { return SystemSeconds() + skew; };
  }
}

Result<std::unique_ptr<JobService>> JobService::Start(std::unique_ptr<store::Store> store,
                                                      ServiceOptions options) {
  std::unique_ptr<JobService> service(new JobService(std::move(store), std::move(options)));
  JobService* const self = service.get();
  self->worker_ = std::make_unique<Worker>(
      [self](const std::string& id, const std::function<bool()>& keep_going) {
        return self->PerformWork(id, keep_going);
      },
      self->options_.on_problem, self->options_.worker);
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
    // Refused sums are not tried again. It ends after it has written all.
    if (facts.empty() || job->is_gone()) continue;
    store_.Add(facts, [job, facts](const auto& written) {
      job->OnIterationsWritten(facts, written.has_value());
    });
  }
  if (worker_ != nullptr) {
    worker_->Stop();
    worker_->Wait();
  }
  readers_.Stop();
}

Moment JobService::Now() const {
  return {.day_seconds = options_.now_seconds(), .seconds = options_.steady_seconds()};
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
  // Jobs that have not finished go on by themselves, beside the first requests. Work that was given
  // up is tried again.
  for (const store::JobHead& head : *heads) {
    if (head.state == store::JobState::kFinished) continue;
    // A job that cannot be read is no reason to leave the others: the next request for it reads it.
    Load(head.id, /*ask_for_work=*/true, [](const Outcome<JobPointer>& /*job*/) {});
  }
  return {};
}

void JobService::TickAll() {
  const auto pause = std::chrono::duration<double>(options_.tick_seconds);
  const double period =
      std::min(kRestPeriodSeconds, options_.finish_silent_seconds.value_or(kRestPeriodSeconds));
  double looked_at = Now().seconds;
  const MutexLock lock(stop_mutex_);
  while (!stopping_) {
    if (stop_.WaitUntil(stop_mutex_, std::chrono::steady_clock::now() + pause)) continue;
    const MutexUnlock open_again(stop_mutex_);
    TickOnce();
    if (const double now = Now().seconds; now - looked_at > period) {
      // Rows that cannot be deleted now are deleted the next time.
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
  Built built;
  if (!record.profile_csv.empty()) {
    auto made = BuildJob(record);
    if (!made) return created(Invalid(made.error()));
    built.job = *std::move(made);
  }
  const auto on_written = [this, record, built, caller,
                           created = std::move(created)](const auto& written) {
    if (!written && written.error().code == ErrorCode::kConflict) {
      // The store has a job of this key, which another request made.
      return GetByKey(record.client_key, [created](const Outcome<JobPointer>& job) {
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
    stored.revision = *written;
    JobPointer job = Add({.life = Replay(stored, built), .sums = {}}, /*ask_for_work=*/false);
    if (!record.profile_csv.empty()) worker_->Want(record.id, /*is_urgent=*/true);
    events_.Emit({.kind = EventKind::kJob,
                  .job = record.id,
                  .data = FormatCompact({{"job", record.id}, {"name", record.name}})});
    if (context_.on_change) {
      context_.on_change({record.id, "job", "", "created", caller.token_name, caller.peer});
    }
    created(Created{std::move(job), true});
  };
  store_.Add({record}, on_written, caller.is_wanted);
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

std::vector<JobService::Listed> JobService::List() const {
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

// Jobs whose ranks fell silent finish. Finished jobs leave the memory when no client asks for them,
// and the store when they are old.
void JobService::Rest() {
  const Moment now = Now();
  {
    const WriterLock lock(mutex_);
    for (auto next = jobs_.begin(); next != jobs_.end();) {
      const auto entry = next++;
      const JobPointer& job = entry->second;
      // With the lock no thread can come by it, and its holders keep it.
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
  for (const Listed& each : List()) {
    const store::JobHead& head = each.head;
    const bool is_old =
        head.state == store::JobState::kFinished && head.finished_at_seconds > 0 &&
        now.day_seconds - head.finished_at_seconds > *options_.keep_finished_seconds;
    if (is_old) old.push_back(head);
  }
  for (const store::JobHead& head : old) {
    const std::string& id = head.id;
    // At this revision: a job that is looked at again while it is being deleted is deleted once.
    const Caller caller{"--keep-finished", "", head.revision, {}};
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

std::shared_ptr<ManagedJob> JobService::Known(const std::string& id) const {
  const ReaderLock lock(mutex_);
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : found->second;
}

// The id of the job with this key; empty: there is none. One that was deleted is made anew.
std::string JobService::KnownKey(const std::string& client_key) const {
  const ReaderLock lock(mutex_);
  const auto found = ids_.find(client_key);
  if (found == ids_.end()) return "";
  const auto job = jobs_.find(found->second);
  return job != jobs_.end() && job->second->is_gone() ? "" : found->second;
}

// The job of this row; the one that is in memory already, where another thread was first.
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
  const auto head = HeadOf(id);
  if (caller.if_revision && (!head || head->revision != *caller.if_revision)) {
    return deleted(Fail(FailureCode::kPast,
                        fmt::format("job {} has changed meanwhile, or is gone", id), "If-Match"));
  }
  const auto on_written = [this, id, caller, deleted = std::move(deleted)](const auto& written) {
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
  store_.Add({store::JobGone{id}}, on_written, caller.is_wanted);
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

// Reads from the store, whatever is known here. Callers at the same time share one reading.
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
  if (!HeadOf(id)) return found(tl::unexpected(NoSuchJob(id)));
  Load(id, /*ask_for_work=*/false, found);
}

void JobService::GetByKey(const std::string& client_key, const FoundCallback& found) {
  if (const std::string known = KnownKey(client_key); !known.empty()) return Get(known, found);
  found(Fail(FailureCode::kNotFound,
             fmt::format("there is no job with the client key '{}'; 'perseus job list' shows those "
                         "that there are",
                         client_key)));
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
  // A damaged job waits for an operator.
  return job.error().code == FailureCode::kNotFound || IsDamaged(job);
}

}  // namespace perseus::server
