// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/runtime/plan_work.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

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
  const auto stored = store.LoadJob(id, store::Parts::kPhase | store::Parts::kProfile);
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
  const Result<HeldPlan> plan = characterizer.For(step.target);
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
  // Another server may have done it, and another target be wanted.
  if (!RefreshAndWait(job)) return false;
  std::optional<PlanningStep> step = job.NextStep();
  if (!step) return true;
  AdoptPlans made;
  made.step = *std::move(step);
  // What is past ends at once: what the job wants now waits for this.
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

}  // namespace perseus::server
