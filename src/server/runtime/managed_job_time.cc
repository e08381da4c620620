// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What time brings: the next state, stragglers that begin or expire, what is written again.

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/json_text.h"
#include "server/runtime/ask_store.h"
#include "server/runtime/managed_job.h"

namespace perseus::server {
namespace {

// Between two writes of the sums.
constexpr double kFlushSeconds = 1;
constexpr double kMuchLaterSeconds = 3600;
// Between two looks at what ranks measure of their conditions.
constexpr double kConditionsSeconds = 2;

// "7 days", "36 hours" or "90 seconds".
std::string SpanText(double seconds) {
  constexpr double kHour = 3'600;
  constexpr double kDay = 24 * kHour;
  if (std::fmod(seconds, kDay) == 0) return fmt::format("{:g} days", seconds / kDay);
  if (std::fmod(seconds, kHour) == 0) return fmt::format("{:g} hours", seconds / kHour);
  return fmt::format("{:g} seconds", seconds);
}

Announcement DetectionNews(const WatchEvent& event) {
  nlohmann::ordered_json json = {
      {"kind", event.kind}, {"iteration", event.finding.iteration}, {"sentence", event.sentence}};
  if (event.finding.rank >= 0) json["rank"] = event.finding.rank;
  if (event.kind != "compared" && event.kind != "lengthened") {
    json["factor"] = event.finding.factor;
    json["delay_iterations"] = event.finding.delay_iterations;
  }
  return {EventKind::kDetection, FormatCompact(json)};
}

}  // namespace

void ManagedJob::Tick() {
  const Strand::Turn turn(strand_);
  if (life_.phase.is_gone) return;
  const double now = context_->now().seconds;
  if (now >= flush_at_seconds_) FlushIterations();
  if (is_changing_) return;
  AdvanceJob();
  LookAtWatch();
  LookAtConditions();
  LookAtTimeNow();
  if (work_again_at_seconds_ > 0 && now >= work_again_at_seconds_) {
    work_again_at_seconds_ = 0;
    has_given_up_ = false;
    RunInternal(AskForPlans{});
  }
}

Advance ManagedJob::AdvanceNow() const {
  return {.has_given_plan = context_->has_given_plan(shape_),
          .all_rows_known = !is_shared() || checked_rows_ == life_.marks.rows,
          .may_reuse = !has_asked_library_,
          .seconds_since_measured = context_->now().seconds - last_measured_seconds_};
}

void ManagedJob::AdvanceJob() {
  if (life_.phase.is_gone || IsOver(life_.phase) || is_changing_ || is_asking_library_) return;
  // A running job goes by its phase alone: each tick would look through its profile again.
  if (life_.marks.revision == stays_running_at_) return;
  RunInternal(Advance{});
}

// Instead of measuring: the newest profile of a job that is the same in all that matters.
void ManagedJob::AskLibrary(const std::string& layout) {
  is_asking_library_ = true;
  strand_.Then([self = shared_from_this(), layout] {
    const auto on_found = [self](std::optional<UseProfile> found) {
      const Strand::Turn turn(self->strand_);
      self->is_asking_library_ = false;
      self->has_asked_library_ = true;
      if (found) return self->RunInternal(*std::move(found));
      self->AdvanceJob();
    };
    AskStore(
        "reuse a profile",
        [&] { self->context_->store.FindProfile(layout, self->record_, on_found); },
        [&](const Error&) { on_found(std::nullopt); });
  });
}

std::vector<store::Fact> ManagedJob::TakeIterations() {
  const Strand::Turn turn(strand_);
  return TakeSums();
}

// In one transaction: both count the same reports.
std::vector<store::Fact> ManagedJob::TakeSums() {
  std::vector<store::Fact> facts = sums_.Take();
  for (store::Fact& row : history_.Take()) facts.push_back(std::move(row));
  return facts;
}

void ManagedJob::FlushIterations() {
  if (!sums_.has_news() && !history_.has_news()) return;
  flush_at_seconds_ = context_->now().seconds + kFlushSeconds;
  strand_.Then([self = shared_from_this(), facts = TakeSums()] {
    const auto add = [&] {
      self->context_->store.Add(facts, std::nullopt, {}, [self, facts](const auto& written) {
        self->OnIterationsWritten(facts, written.has_value());
      });
    };
    AskStore("write the sums of iterations", add, [self, facts](const Error&) {
      self->OnIterationsWritten(facts, /*are_written=*/false);
    });
  });
}

void ManagedJob::OnIterationsWritten(const std::vector<store::Fact>& facts, bool are_written) {
  const Strand::Turn turn(strand_);
  if (are_written) {
    sums_.Written(facts);
    history_.Written(facts);
  } else {
    sums_.Unwritten(facts);  // Kept for the next time.
    history_.Unwritten(facts);
  }
  CountUnwritten();
}

// Nobody misses those of a job that was deleted.
void ManagedJob::CountUnwritten() {
  if (!context_->on_unwritten) return;
  const std::int64_t reports = is_gone_ ? 0 : sums_.unwritten_reports();
  context_->on_unwritten(reports - std::exchange(counted_unwritten_, reports));
}

// Tells what was found, and has the plans answer it where the operator wants that.
void ManagedJob::LookAtWatch() {
  if (life_.phase.watch_json.empty() || IsOver(life_.phase)) return;
  for (const WatchEvent& event : watch_.TakeEvents()) Announce(DetectionNews(event));
  if (is_changing_) return;
  if (const auto longer = watch_.LongerBlocks()) {
    return RunInternal(LengthenStretches{life_.phase.watch.settings.comparison, *longer});
  }
  RunInternal(AnswerDetected{watch_.Wanted()});
}

// What ranks measured becomes durable, and may ask for other plans.
void ManagedJob::LookAtConditions() {
  const double now = context_->now().seconds;
  const Phase& phase = life_.phase;
  if (!phase.conditions || is_changing_ || IsOver(phase) || now < conditions_at_seconds_) return;
  if (!conditions_.TakeNews()) return;
  conditions_at_seconds_ = now + kConditionsSeconds;
  RunInternal(TakeConditions{conditions_.Combined()});
}

void ManagedJob::LookAtTimeNow() {
  if (is_changing_ || IsOver(life_.phase)) return;
  const bool is_renumbered = life_.phase.version.version < highest_version_;
  const bool has_stragglers = !life_.phase.stragglers.empty();
  const bool is_due =
      has_stragglers && (!looked_at_day_seconds_ ||
                         HasStragglerNews(life_.phase, *looked_at_day_seconds_, context_->now()));
  if (is_renumbered || is_due) RunInternal(LookAtTime{});
}

std::int64_t ManagedJob::ReportsOfAll() const {
  std::int64_t reports = 0;
  for (const store::IterationSummary& summary : sums_.All()) reports += summary.reports;
  return reports;
}

bool ManagedJob::has_ended_itself() const {
  const Strand::Turn turn(strand_);
  return life_.phase.state == store::JobState::kFinished && !life_.phase.reason.empty();
}

void ManagedJob::FinishIfSilent(double seconds) {
  const auto is_silent = [this, seconds] {
    const Strand::Turn turn(strand_);
    // Zeus' clients say nothing while they train.
    return record_.origin == store::JobOrigin::kApi && !life_.phase.is_gone &&
           life_.phase.state != store::JobState::kFinished && !life_.ranks.empty() &&
           context_->now().seconds - heard_at_seconds_ > seconds;
  };
  if (!is_silent()) return;
  RefreshAll([self = shared_from_this(), is_silent, seconds](const Result<void>& read) {
    if (!read) return;
    Caller caller{"--finish-silent", "", 0, {}};
    {
      const Strand::Turn turn(self->strand_);
      const std::int64_t reports = self->ReportsOfAll();
      if (std::exchange(self->heard_reports_, reports) != reports) self->HearRanks();
      caller.if_revision = self->life_.marks.revision;
    }
    if (!is_silent()) return;
    self->Do(FinishJob{fmt::format("no rank was heard of for {} (--finish-silent); a run with the "
                                   "same client key begins anew",
                                   SpanText(seconds))},
             caller, [](const auto&) {});
  });
}

bool ManagedJob::GiveUpBetterPlans(const PlanningStep& step) {
  const Strand::Turn turn(strand_);
  if (step.is_pending || life_.phase.built.curve == nullptr) return false;
  has_given_up_ = true;
  work_again_at_seconds_ = context_->now().seconds + kMuchLaterSeconds;
  return true;
}

}  // namespace perseus::server
