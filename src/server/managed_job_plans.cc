// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// How a job comes by its plans, step by step on the thread of tasks.

#include <fmt/format.h>

#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "server/characterize.h"
#include "server/job_spec.h"
#include "server/managed_job.h"

namespace perseus::server {
namespace {

constexpr double kRetrySeconds = 5;
constexpr double kMuchLaterSeconds = 3600;

}  // namespace

// Has the task thread compute what is missing: the curve, a better one, the
// plan for a new target.
void ManagedJob::RequestImprovement() {
  if (is_improving_ || job_ == nullptr || IsOver() || is_gone_) return;
  const bool is_done = phase_.curve != nullptr && phase_.curve->revision() > 1 &&
                       phase_.curve->target() == TargetText(phase_.target);
  if (is_done) return;
  is_improving_ = true;
  improve_again_at_ = 0;
  // One step a task: no job waits for its first plan until another has its best.
  context_->tasks.Add(
      [weak = weak_from_this()](const std::atomic<bool>& stopping) {
        if (const auto job = weak.lock()) job->Improve(stopping);
      },
      /*urgent=*/phase_.curve == nullptr);
}

void ManagedJob::Improve(const std::atomic<bool>& stopping) {
  std::shared_ptr<const Job> job;
  {
    const std::lock_guard lock(mutex_);
    job = job_;
  }
  const auto keep_going = [&](double share) {
    progress_ = share;
    return !stopping && !is_gone_;
  };
  Characterizer characterizer(record_.id, job, keep_going);
  if (keep_going(0)) ImproveOrGive(&characterizer, job);
  const std::lock_guard lock(mutex_);
  is_improving_ = false;
  progress_ = 1;
  // The next step; or the target has changed since the last look.
  if (!stopping && improve_again_at_ == 0) RequestImprovement();
}

// A job that is too large for the memory, or meets a bug, takes no other with it.
void ManagedJob::ImproveOrGive(Characterizer* characterizer,
                               const std::shared_ptr<const Job>& job) {
  try {
    ImproveOnce(characterizer, job);
  } catch (const std::bad_alloc&) {
    Give({ErrorCode::kInternal, "the server has too little memory to plan this job"});
  } catch (const std::exception& exception) {
    Give({ErrorCode::kInternal, fmt::format("a bug: planning threw: {}", exception.what())});
  }
}

void ManagedJob::ImproveOnce(Characterizer* characterizer, const std::shared_ptr<const Job>& job) {
  std::shared_ptr<const Curve> curve;
  PlanTarget target;
  std::int64_t first_id = 1;
  {
    const std::lock_guard lock(mutex_);
    if (IsOver()) return;
    curve = phase_.curve;
    target = phase_.target;
    // Ids of a version whose curve could not be read back stay taken, too.
    first_id = phase_.version.plan + kLadderPlans * 4;
    if (curve != nullptr) first_id = curve->NextId();
  }
  const int revision = curve == nullptr ? 0 : curve->revision();
  if (revision < 2) {
    const auto record = characterizer->Ladder(target, revision + 1, first_id);
    if (!record) return Give(record.error());
    return Install(*record, job);
  }
  if (curve->target() == TargetText(target)) return;
  const Result<Plan> plan = characterizer->For(target);
  if (!plan) {
    // The target was accepted, so the ladder has an answer; only the better one lacks.
    if (plan.error().code == ErrorCode::kCancelled) return;
    return Install(curve->Record(record_.id, TargetText(target), nullptr), job);
  }
  return Install(curve->Record(record_.id, TargetText(target), &*plan), job);
}

void ManagedJob::Install(const store::CurveRecord& record, std::shared_ptr<const Job> job) {
  Result<std::shared_ptr<const Curve>> curve = Curve::Make(std::move(job), record);
  if (!curve) return Give(curve.error());
  const std::lock_guard lock(mutex_);
  if (IsOver()) return;
  Phase next = phase_;
  next.curve = *std::move(curve);
  next.reason = TargetReason(next);
  if (next.state == store::JobState::kCharacterizing) next.state = store::JobState::kRunning;
  if (Commit({record}, std::move(next))) return;
  improve_again_at_ = context_->now_seconds() + kRetrySeconds;
}

void ManagedJob::Give(const Error& error) {
  if (error.code == ErrorCode::kCancelled) return;
  const std::lock_guard lock(mutex_);
  if (IsOver()) return;
  if (phase_.curve != nullptr) {
    // There are plans; only better ones lack.
    improve_again_at_ = context_->now_seconds() + kMuchLaterSeconds;
    return;
  }
  Phase next = phase_;
  next.state = store::JobState::kFailed;
  next.reason = error.message;
  if (!Commit({}, std::move(next))) improve_again_at_ = context_->now_seconds() + kRetrySeconds;
}

}  // namespace perseus::server
