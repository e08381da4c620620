// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/runtime/managed_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/json_text.h"
#include "server/base/without_throwing.h"
#include "server/domain/job_life.h"

namespace perseus::server {

// Takes a change of the phase back, unless it is kept: an exception leaves no half of it.
class TentativeChange {
 public:
  explicit TentativeChange(JobLife* life)
      : life_(*life), before_(life->phase), revision_(life->revision) {}
  ~TentativeChange() {
    if (is_kept_) return;
    life_.phase = std::move(before_);
    life_.revision = revision_;
  }
  TentativeChange(const TentativeChange&) = delete;
  TentativeChange& operator=(const TentativeChange&) = delete;

  const Phase& before() const { return before_; }
  void Keep() { is_kept_ = true; }

 private:
  JobLife& life_;
  Phase before_;
  const std::int64_t revision_;
  bool is_kept_ = false;
};

namespace {

using store::Fact;

// A job that seems to be younger than a loss may be older: clocks differ, and are set.
constexpr double kMostClockStep = 86'400;
// Of the first version after a loss: seconds since 1970 are above them.
constexpr int kHistoryBits = 20;
// A job whose rules throw so often, one time after the other, is set aside.
constexpr int kMostThrows = 5;
constexpr std::string_view kDecide = "decide a command";
constexpr std::string_view kApply = "apply a change";

template <typename T>
bool Holds(const std::vector<Fact>& facts) {
  return std::any_of(facts.begin(), facts.end(),
                     [](const Fact& fact) { return std::holds_alternative<T>(fact); });
}

std::set<std::int64_t> IdsOf(const std::vector<store::StragglerRecord>& stragglers) {
  std::set<std::int64_t> ids;
  for (const store::StragglerRecord& straggler : stragglers) ids.insert(straggler.id);
  return ids;
}

}  // namespace

ManagedJob::ManagedJob(JobContext* context, JobLife life, const StoredSums& sums)
    : context_(context),
      record_(life.record),
      shape_(life.shape),
      places_(shape_.world_size()),
      strand_(context->on_problem),
      life_(std::move(life)),
      sums_(record_.id, sums),
      history_(record_.id, sums.history) {
  const Moment now = context_->now();
  last_measured_seconds_ = now.seconds;
  highest_version_ = life_.phase.version.version;
  // Ranks may have versions that the store lost since: the next one is above all of them.
  const double history = static_cast<double>(context_->history_seconds);
  if (history > 0 && record_.created_at_seconds < history + kMostClockStep) {
    highest_version_ = std::max(highest_version_, context_->history_seconds << kHistoryBits);
  }
  asked_at_seconds_ = now.seconds;
  for (const auto& [number, rank] : life_.ranks) places_.Set(rank);
  SeePhase();
  HearRanks();
}

void ManagedJob::Resume(bool ask_for_work) {
  const Strand::Turn turn(strand_);
  watch_.SetState(life_.phase.watch, IdsOf(life_.phase.stragglers), context_->now().day_seconds);
  Publish();
  AdvanceJob();
  if (ask_for_work) RunInternal(AskForPlans{});
}

void ManagedJob::Do(Command command, Caller caller, Reply reply) {
  if (const auto* const joins = std::get_if<RegisterRank>(&command)) {
    HearRanks();
    const Strand::Turn turn(strand_);
    rank_watch_.Register(joins->rank.rank);
    const auto last = clients_.find(joins->rank.rank);
    if (last != clients_.end() && last->second.state == kClosedState) clients_.erase(last);
  }
  const auto operation = std::make_shared<Operation>();
  operation->command = std::move(command);
  operation->caller = std::move(caller);
  operation->reply = std::move(reply);
  Begin(operation);
}

// Skips a command whose client no longer waits.
void ManagedJob::Begin(const OperationPointer& operation) {
  const Caller& caller = operation->caller;
  const bool is_wanted = !caller.is_wanted || caller.is_wanted();
  const Strand::Turn turn(strand_);
  if (is_wanted) return Run(operation);
  Settle(operation, Fail(FailureCode::kUnavailable,
                         "the client no longer waits for the answer; nothing was changed"));
  RunNext();
}

void ManagedJob::RunLater(const OperationPointer& operation) {
  strand_.Then([self = shared_from_this(), operation] { self->Begin(operation); });
}

void ManagedJob::RunInternal(Command command, Reply reply) {
  const auto operation = std::make_shared<Operation>();
  operation->command = std::move(command);
  operation->reply = std::move(reply);
  if (!is_aside_) return Run(operation);
  Settle(operation, Fail(FailureCode::kInternal, "the job is set aside"));
}

Outcome<Decision> ManagedJob::DecideNow(Operation* operation, Moment* now) const {
  *now = context_->now();
  const auto& expected = operation->caller.if_revision;
  if (expected && *expected != life_.revision && !life_.phase.is_gone) {
    return Fail(FailureCode::kPast, "the job has changed since revision " +
                                        std::to_string(*expected) + "; it is at revision " +
                                        std::to_string(life_.revision));
  }
  // It may have waited for another change, so its inputs are looked up only now.
  if (auto* const advance = std::get_if<Advance>(&operation->command)) *advance = AdvanceNow();
  return Decide(life_, underway_, highest_version_, operation->command, *now);
}

void ManagedJob::Run(const OperationPointer& operation) {
  if (is_changing_ && operation->is_change()) {
    waiting_.push_back(operation);
    return;
  }
  Moment now;
  Outcome<Decision> decision = WithoutThrowing(kDecide, [&] {
    strand_.IsHeld();
    return DecideNow(operation.get(), &now);
  });
  const Attempt attempt(kDecide, operation->command.index());
  if (decision || decision.error().code != FailureCode::kInternal) throws_.erase(attempt);
  if (decision) return Carry(operation, *std::move(decision), now);
  if (decision.error().code == FailureCode::kInternal) {
    NoteThrow(attempt, decision.error().message, *operation);
  }
  Settle(operation, tl::unexpected(decision.error()));
  RunNext();
}

void ManagedJob::Settle(const OperationPointer& operation, Outcome<Answer> outcome) {
  if (!operation->reply) return;
  strand_.Then([operation, outcome = std::move(outcome)] { operation->reply(outcome); });
}

Answer ManagedJob::AnswerWith(std::int64_t straggler) const {
  return {.straggler = straggler,
          .plan_version = life_.phase.version.version,
          .state = life_.phase.state,
          .settings = life_.phase.watch.settings};
}

// Makes a decision durable.
void ManagedJob::Carry(const OperationPointer& operation, Decision decision, const Moment& now) {
  if (!decision.ask_layout.empty() && !is_asking_library_) AskLibrary(decision.ask_layout);
  const double looked_at = PlanningDaySeconds(life_.phase, now);
  if (decision.facts.empty()) {
    if (std::holds_alternative<LookAtTime>(operation->command)) looked_at_day_seconds_ = looked_at;
    const bool is_running = life_.phase.state == store::JobState::kRunning;
    if (std::holds_alternative<Advance>(operation->command) && is_running) {
      stays_running_at_ = life_.revision;
    }
    Want(decision.work);
    Settle(operation, AnswerWith(decision.straggler));
    return RunNext();
  }
  if (operation->is_change()) {
    is_changing_ = true;
  } else {
    underway_.Begin(decision.facts);
  }
  // Its days stay in the history when it goes.
  if (std::holds_alternative<DeleteJob>(operation->command)) FlushIterations();
  const auto shared = std::make_shared<const Decision>(std::move(decision));
  strand_.Then([self = shared_from_this(), operation, shared, looked_at] {
    const auto add = [&] {
      self->context_->store.Add(
          shared->facts, operation->caller.is_wanted,
          [self, operation, shared, looked_at](const store::Revision& written) {
            const Strand::Turn turn(self->strand_);
            self->OnWritten(operation, *shared, looked_at, written);
          });
    };
    AskStore("write a change", add, [&](const Error& why) {
      const Strand::Turn turn(self->strand_);
      self->Tell(why.message);
      self->OnWritten(operation, *shared, looked_at, tl::unexpected(why));
    });
  });
}

void ManagedJob::OnWritten(const OperationPointer& operation, const Decision& decision,
                           double looked_at, const store::Revision& written) {
  if (operation->is_change()) {
    is_changing_ = false;
  } else {
    underway_.End(decision.facts);
  }
  if (!written) {
    OnRefused(operation, written.error());
    return RunNext();
  }
  const Result<void> applied = WithoutThrowing(kApply, [&]() -> Result<void> {
    strand_.IsHeld();
    if (!operation->is_change()) {
      ApplyRows(decision);
    } else {
      ApplyWritten(decision, *written);
      looked_at_day_seconds_ = looked_at;
    }
    return {};
  });
  if (!applied) {
    Settle(operation, tl::unexpected<Failure>({FailureCode::kInternal, applied.error().message}));
    Tell(applied.error().message);
    strand_.Then(
        [context = context_, why = applied.error().message] { context->store.GiveUp(why); });
    return RunNext();
  }
  for (const Announcement& announcement : decision.announcements) Announce(announcement);
  Audit(*operation, decision);
  Want(decision.work);
  if (std::holds_alternative<Advance>(operation->command) || !operation->reply) {
    Settle(operation, AnswerWith(decision.straggler));
    AdvanceJob();
  } else {
    // The caller that brought the last missing part is told the result.
    const auto advanced = [self = shared_from_this(), operation,
                           straggler = decision.straggler](const Outcome<Answer>&) {
      const auto answer = [&] {
        const Strand::Turn turn(self->strand_);
        return self->AnswerWith(straggler);
      }();
      operation->reply(answer);
    };
    RunInternal(Advance{}, advanced);
  }
  RunNext();
}

void ManagedJob::OnRefused(const OperationPointer& operation, const Error& error) {
  // Ranks and measurements that came while the job was being deleted.
  if (life_.phase.is_gone) return Settle(operation, JobWasDeleted());
  Settle(operation, Unavailable(error));
}

void ManagedJob::Want(Work work) const {
  if (work == Work::kNone) return;
  strand_.Then([context = context_, id = id(), work] { context->want_work(id, work); });
}

// A change of the phase is durable.
void ManagedJob::ApplyWritten(const Decision& decision, std::int64_t revision) {
  if (Holds<store::JobGone>(decision.facts)) return ApplyEnd(decision);
  TentativeChange change(&life_);
  for (const Fact& fact : decision.facts) Apply(fact, decision.built, &life_);
  life_.revision = revision;
  OnPhase(change.before());
  change.Keep();
}

void ManagedJob::ApplyEnd(const Decision& decision) {
  TentativeChange change(&life_);
  Apply(decision.facts.front(), {}, &life_);
  OnPhase(change.before());
  change.Keep();
}

void ManagedJob::ApplyRows(const Decision& decision) {
  if (Holds<store::JobGone>(decision.facts)) return ApplyEnd(decision);
  for (const Fact& fact : decision.facts) {
    Apply(fact, {}, &life_);
    if (const auto* const rank = std::get_if<store::RankRecord>(&fact)) places_.Set(*rank);
  }
  // A straggling node may have one more.
  if (Holds<store::RankRecord>(decision.facts)) looked_at_day_seconds_.reset();
  if (Holds<store::Measurements>(decision.facts)) last_measured_seconds_ = context_->now().seconds;
  HearRanks();
}

// The next of those that waited for a change to end.
void ManagedJob::RunNext() {
  if (is_changing_ || waiting_.empty()) return;
  const OperationPointer next = std::move(waiting_.front());
  waiting_.pop_front();
  RunLater(next);
}

void ManagedJob::SeePhase() {
  revision_ = life_.revision;
  is_gone_ = life_.phase.is_gone;
  if (is_gone_) CountUnwritten();
  is_finished_ = life_.phase.state == store::JobState::kFinished;
  is_profiling_ = life_.phase.state == store::JobState::kProfiling;
}

// The phase was `before`, and is now another.
void ManagedJob::OnPhase(const Phase& before) {
  const Phase& phase = life_.phase;
  const Moment now = context_->now();
  SeePhase();
  HearRanks();
  const bool has_news =
      phase.version.version != before.version.version || phase.is_gone != before.is_gone;
  if (has_news) Publish();
  for (const Announcement& announcement : NewsOf(before, phase)) Announce(announcement);
  const std::set<std::int64_t> ids = IdsOf(phase.stragglers);
  if (phase.watch_json != before.watch_json || ids != IdsOf(before.stragglers)) {
    watch_.SetState(phase.watch, ids, now.day_seconds);
  }
  if (phase.settled_round != before.settled_round || phase.sweep_round != before.sweep_round) {
    drift_.Reset();
    conditions_.ForgetTimes();
  }
  const bool profiles = phase.state == store::JobState::kProfiling;
  if (profiles && before.state != phase.state) last_measured_seconds_ = now.seconds;
  if (phase.target != before.target || phase.built.curve != before.built.curve) {
    has_given_up_ = false;
  }
}

void ManagedJob::Publish() {
  highest_version_ = std::max(highest_version_, life_.phase.version.version);
  if (!IsPublishable(life_.phase) && !life_.phase.is_gone) return;
  strand_.Then(board_.Publish(std::make_shared<const PublishedPlan>(PublicationOf(life_))));
}

void ManagedJob::Tell(const std::string& problem) const {
  if (!context_->on_problem) return;
  strand_.Then([context = context_, sentence = fmt::format("job {}: {}", id(), problem)] {
    context->on_problem(sentence);
  });
}

// Sets a job aside whose own commands keep throwing: ticks or planners would try for ever.
void ManagedJob::NoteThrow(const Attempt& attempt, std::string problem,
                           const Operation& operation) {
  const bool is_of_client = operation.caller.is_wanted != nullptr;
  if (!is_of_client && ++throws_[attempt] >= kMostThrows && !is_aside_.exchange(true)) {
    problem += fmt::format(
        "; after {} times the job is set aside until the server starts again, or it is deleted",
        kMostThrows);
  }
  Tell(problem);
}

void ManagedJob::Announce(const Announcement& announcement) {
  std::string data = "{\"job\":\"" + id() + "\"";
  const std::string& members = announcement.members_json;
  data += members.size() > 2 ? "," + members.substr(1) : "}";
  const bool has_revision = TypeOf(announcement.kind).shows_state;
  const std::int64_t revision = has_revision ? life_.revision : 0;
  strand_.Then(
      [context = context_,
       event = Event{
           .kind = announcement.kind, .job = id(), .data = std::move(data), .revision = revision}] {
        context->events.Emit(event);
      });
}

void ManagedJob::Audit(const Operation& operation, const Decision& decision) {
  if (decision.what.empty() || !operation.reply || !context_->on_change) return;
  strand_.Then([context = context_,
                record = AuditRecord{id(), decision.what, decision.before, decision.after,
                                     operation.caller.token_name, operation.caller.peer}] {
    context->on_change(record);
  });
}

std::optional<store::RankRecord> ManagedJob::KnownRank(int rank) const {
  const Strand::Turn turn(strand_);
  const auto record = life_.ranks.find(rank);
  if (record == life_.ranks.end()) return std::nullopt;
  return record->second;
}

// Effects of time: the next state, stragglers that begin or expire, writes that are repeated.

namespace {

// Between two writes of the sums.
constexpr double kFlushSeconds = 1;
constexpr double kMuchLaterSeconds = 3600;
// Between two looks at the conditions that ranks measure.
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
  // One at a time: a later one, whose rows of the history hold the reports of both, must not be
  // written where the sums of the earlier one were refused.
  if (now >= flush_at_seconds_ && !is_flushing_) FlushIterations();
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
          .may_reuse = !has_asked_library_,
          .seconds_since_measured = context_->now().seconds - last_measured_seconds_};
}

void ManagedJob::AdvanceJob() {
  if (life_.phase.is_gone || IsOver(life_.phase) || is_changing_ || is_asking_library_) return;
  // A running job goes by its phase alone: each tick would look through its profile again.
  if (life_.revision == stays_running_at_) return;
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
  is_flushing_ = true;
  strand_.Then([self = shared_from_this(), facts = TakeSums()] {
    const auto add = [&] {
      self->context_->store.Add(facts, {}, [self, facts](const auto& written) {
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
  is_flushing_ = false;
  if (are_written) {
    sums_.Written(facts);
    history_.Written(facts);
  } else {
    sums_.Unwritten(facts);  // Kept for the next time.
    history_.Unwritten(facts);
  }
  CountUnwritten();
}

// Counts no reports of a job that was deleted.
void ManagedJob::CountUnwritten() {
  if (!context_->on_unwritten) return;
  const std::int64_t reports = is_gone_ ? 0 : sums_.unwritten_reports();
  context_->on_unwritten(reports - std::exchange(counted_unwritten_, reports));
}

// Announces findings, and has the plans answer them where the operator wants that.
void ManagedJob::LookAtWatch() {
  if (life_.phase.watch_json.empty() || IsOver(life_.phase)) return;
  for (const WatchEvent& event : watch_.TakeEvents()) Announce(DetectionNews(event));
  if (is_changing_) return;
  if (const auto longer = watch_.LongerBlocks()) {
    return RunInternal(LengthenPhases{life_.phase.watch.settings.comparison, *longer});
  }
  RunInternal(AnswerDetected{watch_.Wanted()});
}

// Makes measured conditions durable, which may lead to other plans.
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

bool ManagedJob::has_ended_itself() const {
  const Strand::Turn turn(strand_);
  return life_.phase.state == store::JobState::kFinished && !life_.phase.reason.empty();
}

void ManagedJob::FinishIfSilent(double seconds) {
  {
    const Strand::Turn turn(strand_);
    // Zeus' clients say nothing while they train.
    const bool is_silent = record_.origin == store::JobOrigin::kApi && !life_.phase.is_gone &&
                           life_.phase.state != store::JobState::kFinished &&
                           !life_.ranks.empty() &&
                           context_->now().seconds - heard_at_seconds_ > seconds;
    if (!is_silent) return;
  }
  Do(FinishJob{fmt::format("no rank was heard of for {} (--finish-silent); a run with the same "
                           "client key begins anew",
                           SpanText(seconds))},
     {"--finish-silent", "", revision(), {}}, [](const auto&) {});
}

bool ManagedJob::GiveUpBetterPlans(const PlanningStep& step) {
  const Strand::Turn turn(strand_);
  if (step.is_pending || life_.phase.built.curve == nullptr) return false;
  has_given_up_ = true;
  work_again_at_seconds_ = context_->now().seconds + kMuchLaterSeconds;
  return true;
}

}  // namespace perseus::server
