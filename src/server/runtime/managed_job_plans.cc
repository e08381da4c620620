// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// How a job comes by its plans, step by step, on the thread of whichever server
// claimed the work.

#include <fmt/format.h>

#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "server/planning/characterize.h"
#include "server/planning/job_spec.h"
#include "server/runtime/managed_job.h"

namespace perseus::server {
namespace {

constexpr double kRetrySeconds = 5;
constexpr double kMuchLaterSeconds = 3600;
// Changes of other servers between reading a job and writing its curve.
constexpr int kMostCurveAttempts = 10;

}  // namespace

// What is computed next, and from what.
struct ManagedJob::Step {
  std::shared_ptr<const Job> job;
  std::shared_ptr<const Curve> curve;  // The one before; null: none.
  std::int64_t curve_mark = 0;
  PlanTarget target;
  std::int64_t first_id = 1;
  int sweep_round = 0;
  bool is_pending = false;  // The first plans of a new profile, under those of the old one.
};

// Whether there is no curve, a better one is to be made, or the plan for a new target.
bool ManagedJob::Lacks(const Phase& phase) const {
  if (is_gone_) return false;
  if (IsPending(phase)) return next_job_ != nullptr;
  if (job_ == nullptr) return false;
  if (phase.state == store::JobState::kFinished || phase.state == store::JobState::kFailed) {
    return false;
  }
  return phase.curve == nullptr || phase.curve->revision() < 2 ||
         ParsePlanTarget(phase.curve->target()) != phase.target;
}

bool ManagedJob::WantsWork() const {
  const std::lock_guard lock(mutex_);
  return Lacks(phase_);
}

// First plans before better ones: no job waits for its first until another has its best.
void ManagedJob::AddWork(const Phase& next, std::vector<store::Fact>* facts) const {
  if (!Lacks(next)) return;
  facts->emplace_back(store::WorkWanted{.job = record_.id, .urgent = next.curve == nullptr});
}

void ManagedJob::AskForWork() {
  work_again_at_ = 0;
  has_given_up_ = false;
  std::vector<store::Fact> facts;
  AddWork(phase_, &facts);
  if (facts.empty()) return;
  context_->store.Add(std::move(facts), [self = shared_from_this()](const auto& written) {
    if (written) return self->context_->wake_worker();
    const std::lock_guard lock(self->mutex_);
    self->work_again_at_ = self->context_->now_seconds() + kRetrySeconds;
  });
}

bool ManagedJob::Work(const std::function<bool()>& keep_going) {
  // Another server may have done it, and another target be wanted.
  if (!Refresh()) return false;
  const std::optional<Step> step = NextStep();
  if (!step) return true;
  const auto going_on = [&](double share) {
    progress_ = share;
    return keep_going() && !is_gone_;
  };
  if (!going_on(0)) return false;
  const Result<store::CurveRecord> record = Compute(*step, going_on);
  if (record) return Accept(*step, *record);
  if (record.error().code == ErrorCode::kCancelled) return is_gone_;
  return Give(*step, record.error());
}

std::optional<ManagedJob::Step> ManagedJob::NextStep() const {
  const std::lock_guard lock(mutex_);
  if (!Lacks(phase_)) return std::nullopt;
  Step step;
  step.is_pending = IsPending(phase_);
  step.sweep_round = phase_.sweep_round;
  step.job = step.is_pending ? next_job_ : job_;
  step.curve = step.is_pending ? nullptr : phase_.curve;
  step.curve_mark = phase_.curve_mark;
  step.target = phase_.target;
  // Ids of a version whose curve could not be read back stay taken, too.
  step.first_id = phase_.curve != nullptr ? phase_.curve->NextId()
                                          : phase_.version.plan + std::int64_t{kLadderPlans} * 4;
  return step;
}

// A job that is too large for the memory, or meets a bug, takes no other with it.
Result<store::CurveRecord> ManagedJob::Compute(
    const Step& step, const std::function<bool(double)>& keep_going) const {
  try {
    Characterizer characterizer(record_.id, step.job, keep_going);
    const int revision = step.curve == nullptr ? 0 : step.curve->revision();
    if (revision < 2) return characterizer.Ladder(step.target, revision + 1, step.first_id);
    const Result<HeldPlan> plan = characterizer.For(step.target);
    if (!plan && plan.error().code == ErrorCode::kCancelled) return tl::unexpected(plan.error());
    // The target was accepted, so the ladder has an answer; only the better one lacks.
    return step.curve->Record(record_.id, PlanTargetText(step.target), plan ? &*plan : nullptr);
  } catch (const std::bad_alloc&) {
    return MakeError(ErrorCode::kInternal, "the server has too little memory to plan this job");
  } catch (const std::exception& exception) {
    return MakeError(ErrorCode::kInternal,
                     fmt::format("a bug: planning threw: {}", exception.what()));
  }
}

// What was computed is about what was.
bool ManagedJob::IsPast(const Step& step) const {
  return IsOver() || is_gone_ || phase_.curve_mark != step.curve_mark ||
         IsPending(phase_) != step.is_pending ||
         (step.is_pending && phase_.sweep_round != step.sweep_round);
}

// Nothing of a curve that another server replaced meanwhile is kept: this server's
// lease had run out, and what it computed is about what was.
bool ManagedJob::Accept(const Step& step, const store::CurveRecord& record) {
  Result<std::shared_ptr<const Curve>> curve = Curve::Make(step.job, record);
  if (!curve) return Give(step, curve.error());
  for (int attempt = 0; attempt < kMostCurveAttempts; ++attempt) {
    {
      const std::lock_guard lock(mutex_);
      if (IsPast(step)) return true;
      Phase next = phase_;
      next.curve = *curve;
      next.reason = TargetReason(next);
      if (next.state == store::JobState::kCharacterizing) next.state = store::JobState::kRunning;
      std::vector<store::Fact> facts = {record};
      const auto before = job_;
      if (step.is_pending) {
        next.settled_round = next.sweep_round;
        next.profile_source = "measured";
        facts.emplace_back(store::StateChange{.job = record_.id,
                                              .state = next.state,
                                              .reason = next.reason,
                                              .profile_source = next.profile_source,
                                              .next = store::StateChange::Next::kAdopt});
        job_ = step.job;
      }
      AddWork(next, &facts);
      const Outcome<void> committed = Commit(std::move(facts), std::move(next));
      if (committed && step.is_pending) {
        next_job_.reset();
        drift_.Reset();
      }
      if (committed) return true;
      job_ = before;
      if (committed.error().code != FailureCode::kStale) return false;
    }
    if (!Refresh()) return false;
  }
  return false;
}

bool ManagedJob::Give(const Step& step, const Error& error) {
  const std::lock_guard lock(mutex_);
  if (IsPast(step)) return true;
  if (step.is_pending) {
    return GiveUpSweep(
               fmt::format("the new profile has no plan, so the old one stays: {}", error.message))
        .has_value();
  }
  if (phase_.curve != nullptr) {
    // There are plans; only better ones lack.
    has_given_up_ = true;
    work_again_at_ = context_->now_seconds() + kMuchLaterSeconds;
    return true;
  }
  Phase next = phase_;
  next.state = store::JobState::kFailed;
  next.reason = error.message;
  return Commit({}, std::move(next)).has_value();
}

}  // namespace perseus::server
