// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/clock_caller.h"
#include "client/follower.h"
#include "client/shared_state.h"
#include "measure/sweep.h"

namespace perseus::client {
namespace {

constexpr std::int64_t kReopenNs = 5 * kSecondNs;
// No plan: only to time iterations. Short enough that nobody need end it.
constexpr std::int64_t kIdlePollNs = 20 * kMillisecondNs;
constexpr std::int64_t kSweepPollNs = 2 * kMillisecondNs;  // To see when the counter moves.
constexpr std::int64_t kShortestPollNs = kMillisecondNs / 2;
constexpr std::int64_t kLongestPollNs = 5 * kMillisecondNs;
constexpr int kGiveBackAttempts = 3;
constexpr std::int64_t kIterationsPerConditions = 50;
constexpr std::int64_t kIterationsToFirstConditions = 10;
constexpr unsigned long kTimerSlackNs = 10'000;  // Linux' 50 us would add to every lead.

// A sweep of the clocks on this rank's device. Feeds measure::Sweep with the trainer's events and
// with readings of the device. For one thread.
class Profiler {
 public:
  // `left`: clocks that need not be measured, for example because a restart already reported them.
  Profiler(const std::vector<int>& clocks_mhz, const measure::SweepSettings& settings,
           const std::vector<int>& left)
      : sweep_(clocks_mhz, settings) {
    if (!left.empty()) sweep_.Leave(left);
  }

  void Handle(const Event& event, std::int64_t at_ns) {
    switch (event.kind) {
      case EventKind::kStepBegin:
        computing_ = looked_ = false;
        sweep_.BeginIteration(event.value, at_ns);
        break;
      case EventKind::kStepEnd:
        computing_ = false;
        sweep_.EndIteration(at_ns);
        break;
      case EventKind::kStepAbandon:
        computing_ = false;
        sweep_.AbandonIteration();
        break;
      case EventKind::kWork:
        sweep_.SetWork(std::bit_cast<double>(event.value));
        break;
      case EventKind::kBegin:
        computing_ = true;
        sweep_.Begin({event.type, event.stage}, at_ns);
        break;
      case EventKind::kEnd:
        computing_ = false;
        sweep_.End(at_ns);
        break;
      case EventKind::kBusy:
        break;
    }
  }

  void HandleTimes(const StepTimes& times) {
    std::vector<std::pair<std::int64_t, std::int64_t>> spans;
    spans.reserve(times.computations.size());
    for (const DeviceSpan& span : times.computations)
      spans.emplace_back(span.begin_ns, span.end_ns);
    sweep_.SetTimes(times.iteration, spans);
  }

  // Reads the energy counter. Once per iteration, during a computation, also reads the clock and
  // the reasons for throttling.
  void Look(ClockCaller* caller) {
    const std::int64_t begin_ns = MonotonicNs();
    const std::optional<double> joules = caller->EnergyJoules();
    if (joules) sweep_.AddRead(*joules, begin_ns, MonotonicNs());
    if (!computing_ || looked_ || sweep_.ended()) return;
    looked_ = true;
    if (asks_clock_) {
      const std::optional<int> mhz = caller->ClockMhz();
      if (mhz) sweep_.AddClock(*mhz);
      asks_clock_ = mhz.has_value();
    }
    if (!asks_conditions_) return;
    const std::optional<device::GpuConditions> conditions = caller->Conditions();
    asks_conditions_ = conditions.has_value();
    if (!conditions) return;
    const std::vector<std::string> reasons = device::ThrottleNames(conditions->throttle_reasons);
    sweep_.AddConditions(conditions->temperature_celsius, !reasons.empty());
    for (const std::string& reason : reasons) {
      if (sweep_.measures_default_clocks()) break;  // So it runs without Perseus.
      sweep_.Note("the card was held back while it was measured: " + reason);
    }
    if (conditions->mig) sweep_.Note("MIG is on: the energy counter is that of the whole card");
    if (conditions->power_floor_watts) {
      sweep_.Note("power smoothing keeps the card above a floor: lower clocks save less");
    }
  }

  int clock_mhz() const { return sweep_.clock_mhz(); }  // The clock to lock now; 0: none.
  bool measures_default_clocks() const { return sweep_.measures_default_clocks(); }
  void ClockInEffect(std::int64_t at_ns) { sweep_.ClockInEffect(at_ns); }
  bool clock_in_effect() const { return sweep_.clock_in_effect(); }
  void ClockLost() { sweep_.ClockLost(); }
  void StayAtDriverClocks(const std::string& why) { sweep_.StayAtDriverClocks(why); }
  bool at_driver_clocks() const { return sweep_.at_driver_clocks(); }
  void GiveUp(const std::string& why) { sweep_.GiveUp(why); }
  // Whether all clocks are measured. Call Finish() then; it may take a second, so give the clock
  // back first.
  bool ended() const { return sweep_.ended(); }
  void Finish() { sweep_.Finish(); }
  bool done() const { return sweep_.done(); }

  // New results for the server, if any. After the end it returns all of them once more.
  std::optional<ProfileReport> TakeReport() {
    ProfileReport report;
    report.rows = sweep_.TakeRows();
    report.notes = sweep_.TakeNotes();
    report.done = sweep_.done();
    if (reported_ || (report.rows.empty() && !report.done)) {
      report.done = false;
      if (report.notes.empty() || reported_) return std::nullopt;
    }
    reported_ = report.done;
    report.blocking = sweep_.blocking();
    report.waiting = sweep_.waiting();
    report.cost = sweep_.cost();
    report.counter_period_seconds = sweep_.counter_period_seconds();
    return report;
  }

 private:
  measure::Sweep sweep_;
  bool computing_ = false;
  bool looked_ = false;  // In this iteration.
  bool asks_conditions_ = true;
  bool asks_clock_ = true;
  bool reported_ = false;
};

// The background thread that sets clocks. It reads the trainer's events, lets the Follower (or the
// Profiler) decide, makes the calls, and passes on reports. During an iteration it wakes by itself,
// so that the trainer never needs a system call to wake it: at the predicted time of the next call,
// and after every eighth of the shortest computation (0.5 to 5 ms) to read new events. Between
// iterations it sleeps until the next one begins.
class ClockThread {
 public:
  explicit ClockThread(SharedState* state)
      : state_(state),
        converter_(state->ticks()),
        caller_(state->settings().shadow),
        follower_(state->settings().follower) {}

  // Runs until the client ends, and then gives the clock back.
  void Run() {
    prctl(PR_SET_TIMERSLACK, kTimerSlackNs, 0, 0, 0);
    try {
      Loop();
    } catch (const std::exception& exception) {  // Out of memory, say.
      state_->Complain(std::string("clocks are given back: ") + exception.what());
    }
    GiveBack();
    Publish();
  }

 private:
  void Loop() {
    HotPage& page = state_->page();
    while (!state_->clock_stopping()) {
      // Read before the work: what comes later ends the sleep at once.
      const std::uint32_t seen = page.wake.load(std::memory_order_seq_cst);
      OpenDevice(MonotonicNs());
      DrainEvents();
      std::shared_ptr<const RankPlan> plan;
      TakeStepPlans();
      if (state_->TakePlan(&plan)) follower_.Offer(std::move(plan));
      if (caller_.TakeClockLost()) {
        follower_.ClockLost();
        holds_clock_ = false;  // The agent has given it back.
        if (sweep_) sweep_->ClockLost();
      }
      const std::int64_t wake_at_ns = Act(MonotonicNs());
      CollectIterations();
      const std::int64_t now_ns = MonotonicNs();
      caller_.KeepAlive(now_ns);
      Publish();
      // While a trainer trains that nobody gives clocks to, its steps end no sleep.
      const bool lightly =
          page.listens.load(std::memory_order_relaxed) == 0 && now_ns < follower_.rest_at_ns();
      page.Sleep(seen, std::min(wake_at_ns - now_ns, lightly ? kIdlePollNs : kSecondNs), lightly);
    }
    DrainEvents();
    CollectIterations();
  }

  void OpenDevice(std::int64_t now_ns) {
    const ClientSettings& settings = state_->settings();
    if (settings.device.empty() || caller_.open() || now_ns < next_open_ns_) return;
    const Result<void> opened =
        caller_.Open(settings.device, NameOfRank(settings), settings.gpu_uuid, settings.gpu_index);
    if (opened) {
      device_failed_ = false;
      state_->Recovered(SharedState::About::kDevice);
      state_->SetDevice(caller_.info());
      return;
    }
    next_open_ns_ = MonotonicNs() + kReopenNs;
    device_failed_ = true;
    const std::string sentence = fmt::format(
        "cannot set clocks: {}; docs/how-to/troubleshoot.md says what to do, or measure without "
        "setting clocks: device=\"nvml\", shadow=True",
        opened.error().message);
    state_->Complain(sentence, SharedState::About::kDevice);
    state_->SetDeviceFailed(sentence);
  }

  void DrainEvents() {
    converter_.Refresh();
    Event event;
    while (state_->page().ring.Pop(&reader_, &event)) {
      const std::int64_t at_ns = converter_.ToNs(event.ticks);
      if (event.kind == EventKind::kStepBegin) {
        TakeStepPlans();  // What was offered before the step began is there by now.
        // Of a trainer whose steps follow each other at once there is no time in between.
        if (caller_.open()) BeginSweep();
      }
      follower_.Handle(event, at_ns);
      if (follower_.Follows()) {  // The plan says what there is to run.
        tally_.Skip();
      } else {
        tally_.Handle(event, reader_.lost);
      }
      if (sweep_) sweep_->Handle(event, at_ns);
    }
    for (const StepTimes& times : state_->TakeStepTimes()) {
      follower_.HandleTimes(times);
      if (sweep_) sweep_->HandleTimes(times);
    }
  }

  void TakeStepPlans() {
    for (std::shared_ptr<const RankPlan>& plan : state_->TakeStepPlans()) {
      follower_.OfferStep(std::move(plan));
    }
  }

  // Makes a clock call if it is time to. Returns when to decide again.
  std::int64_t Act(std::int64_t now_ns) {
    if (!caller_.open()) {
      follower_.Pause();
      return now_ns + (follower_.in_iteration() ? kIdlePollNs : kSecondNs);
    }
    if (!follower_.in_iteration()) BeginSweep();
    if (sweep_ && !sweep_reported_) return Sweep(now_ns);
    return Follow(now_ns);
  }

  std::int64_t Follow(std::int64_t now_ns) {
    if (caller_.resting(now_ns) || !state_->plan_fresh(now_ns)) {
      follower_.Pause();
    } else {
      follower_.Resume();
    }
    const Follower::Decision decision = follower_.Decide(now_ns, caller_.latency());
    std::int64_t wake_at_ns = decision.wake_at_ns;
    // A clock that would not come back is asked for once a second.
    if (decision.call_mhz && (*decision.call_mhz != 0 || now_ns >= next_release_ns_)) {
      Call(*decision.call_mhz);
      wake_at_ns = 0;  // Look at once: it may have taken long.
    }
    if (!follower_.in_iteration()) return wake_at_ns;
    if (!follower_.Follows()) return std::min(wake_at_ns, now_ns + kIdlePollNs);
    // Each wake-up takes the processor from the trainer where no other is idle. Half of the time to
    // the next call: a trainer that is twice as fast as expected is still noticed in time.
    const std::int64_t poll_ns =
        std::max(follower_.shortest_row_ns() / 8, (wake_at_ns - now_ns) / 2);
    return std::min(wake_at_ns, now_ns + std::clamp(poll_ns, kShortestPollNs, kLongestPollNs));
  }

  // Sets the clock that the sweep wants, or none while the trainer sends no events. Returns when to
  // decide again.
  std::int64_t Sweep(std::int64_t now_ns) {
    const bool quiet = now_ns >= follower_.rest_at_ns();
    SetSweepClock(now_ns, quiet);
    if (!quiet && !sweep_->ended()) sweep_->Look(&caller_);
    if (caller_.energy_exhausted() && !sweep_->ended()) {
      state_->Complain("the energy counter cannot be read, so no profile is measured");
      sweep_->GiveUp("the energy counter cannot be read");
    }
    if (sweep_->ended()) {
      if (follower_.clock_mhz() != 0 && now_ns >= next_release_ns_) Call(0);
      sweep_->Finish();
    }
    sweep_reported_ = sweep_->done();
    if (std::optional<ProfileReport> report = sweep_->TakeReport()) {
      // Clocks that cannot be set are so no more once one is set.
      const auto about =
          sweep_->at_driver_clocks() ? SharedState::About::kDevice : SharedState::About::kOther;
      if (!report->notes.empty()) {
        const std::string why = sweep_->at_driver_clocks() ? " (" + refusal_ + ")" : "";
        state_->Complain("profile: " + report->notes.back() + why, about);
      }
      state_->outbox().Add(std::move(*report));
    }
    if (quiet) return now_ns + (follower_.in_iteration() ? kIdlePollNs : kSecondNs);
    return std::min(now_ns + kSweepPollNs, follower_.rest_at_ns());
  }

  // Begins a sweep if the server has asked for a profile since the last one began.
  void BeginSweep() {
    const SharedState::ProfileWish wish = state_->profile_wish();
    if (!wish.is_wanted) {
      if (!sweep_reported_) sweep_.reset();
      return;
    }
    if (wish.number == profile_asked_ || (sweep_ && !sweep_reported_)) return;
    profile_asked_ = wish.number;
    sweep_reported_ = false;
    measure::SweepSettings settings = state_->settings().sweep;
    settings.default_clocks = true;
    sweep_.emplace(caller_.info().clocks_mhz, settings, wish.left_mhz);
    // The sweep's clocks are not its plan's, nor late ones. Follow() resumes it.
    follower_.Pause();
    if (state_->settings().shadow) {
      state_->Complain("shadow mode sets no clock, so it measures no profile");
      sweep_->GiveUp("");
    }
  }

  void SweepDefaultClocks(std::int64_t now_ns) {
    if (sweep_->clock_in_effect()) return;
    if (follower_.clock_mhz() == 0 && !holds_clock_) {
      sweep_->ClockInEffect(MonotonicNs());
    } else if (now_ns >= next_release_ns_) {
      if (Call(0)) {
        sweep_->ClockInEffect(MonotonicNs() + caller_.latency().SettlingNs(0));
      } else {
        sweep_->GiveUp("the clock was not given back, so nothing was measured at default clocks");
      }
    }
  }

  void SetSweepClock(std::int64_t now_ns, bool quiet) {
    if (quiet) {
      sweep_->ClockLost();
      if (follower_.clock_mhz() != 0 && now_ns >= next_release_ns_) Call(0);
      return;
    }
    const int mhz = sweep_->clock_mhz();
    if (sweep_->measures_default_clocks()) return SweepDefaultClocks(now_ns);
    if (mhz == 0) return;
    if (sweep_->at_driver_clocks()) {
      if (!sweep_->clock_in_effect()) sweep_->ClockInEffect(MonotonicNs());
      return;
    }
    if (mhz == follower_.clock_mhz()) {
      // The plan that was followed until now had set it.
      if (!sweep_->clock_in_effect()) sweep_->ClockInEffect(MonotonicNs());
    } else if (!caller_.resting(now_ns)) {
      if (Call(mhz)) {
        sweep_->ClockInEffect(MonotonicNs() + caller_.latency().SettlingNs(mhz));
      } else if (caller_.resting(MonotonicNs()) && !holds_clock_) {
        sweep_->StayAtDriverClocks(
            "its clock cannot be set, so it was measured at the clocks that its driver chooses and "
            "runs at them; allow it to set clocks, and it is measured again");
      }
    } else if (holds_clock_ && now_ns >= next_release_ns_) {
      Call(0);  // Until then the clock is the last plan's, and not the driver's.
    }
  }

  bool Call(int mhz) {
    const ClockCaller::Outcome outcome = caller_.Call(mhz, &state_->call_begin_ns());
    if (outcome.ok) {
      follower_.Called(mhz, outcome.begin_ns, outcome.effective_ns);
      holds_clock_ = mhz != 0;
      if (holds_clock_) state_->Recovered(SharedState::About::kDevice);
      return true;
    }
    follower_.CallFailed(outcome.begin_ns, outcome.effective_ns);
    refusal_ = outcome.error;
    if (mhz == 0) next_release_ns_ = outcome.effective_ns + kSecondNs;
    // Without a set clock, keep the older complaint: why none can be set.
    if (mhz == 0 && !holds_clock_) return false;
    state_->Complain(
        (mhz == 0 ? "the clock was not given back: " : "the clock was not set: ") + outcome.error,
        SharedState::About::kDevice);
    return false;
  }

  void GiveBack() {
    for (int attempt = 0; attempt < kGiveBackAttempts; ++attempt) {
      if (!caller_.open() || follower_.clock_mhz() == 0 || Call(0)) return;
    }
  }

  void CollectIterations() {
    for (const IterationRecord& record : follower_.TakeIterations()) {
      IterationReport report;
      report.record = record;
      const bool as_planned = record.plan_version >= 0 && follower_.level() == Level::kComputation;
      if (as_planned) state_->Recovered(SharedState::About::kOrder);
      last_iteration_seconds_ = record.seconds;
      // From the end of one iteration to the end of the next.
      const std::optional<double> joules = caller_.EnergyJoules();
      if (joules && last_joules_ && *joules > *last_joules_)
        report.joules = *joules - *last_joules_;
      last_joules_ = joules;
      joules_ += report.joules.value_or(0);
      if (state_->settings().server.empty()) continue;
      if (!follower_.Follows() && tally_.counts()) report.ran = tally_.counts();
      const std::int64_t now_ns = MonotonicNs();
      const auto interval_ns =
          static_cast<std::int64_t>(state_->settings().report_interval_seconds * 1e9);
      if (now_ns >= next_kinds_ns_) {
        report.kinds = follower_.TakeKinds();
        if (!report.kinds.empty()) next_kinds_ns_ = now_ns + interval_ns;
      }
      // One pipeline is enough: what passes between stages is much the same in all.
      if (state_->settings().dp_rank == 0 && state_->settings().tp_rank == 0) {
        report.timeline = follower_.TakeTimeline(record.iteration);
      }
      report.conditions = ConditionsNow();
      state_->outbox().Add(report);
    }
    if (const auto complaint = follower_.TakeComplaint()) {
      state_->Complain(*complaint, SharedState::About::kOrder);
    }
  }

  std::optional<RankConditions> ConditionsNow() {
    if (--iterations_to_conditions_ > 0) return std::nullopt;
    RankConditions now = {follower_.Noise(), caller_.latency().Figures()};
    // Looked at more often as long as there is nothing to tell.
    iterations_to_conditions_ = now.noise ? kIterationsPerConditions : kIterationsToFirstConditions;
    if (!now.noise && !now.latency) return std::nullopt;
    return now;
  }

  void Publish() {
    const FollowerCounters& counters = follower_.counters();
    perseus_client_stats stats = {};
    stats.state = State(MonotonicNs());
    stats.level = static_cast<std::int32_t>(follower_.level());
    stats.clock_mhz = follower_.clock_mhz();
    stats.plan_version = follower_.plan_version();
    stats.iterations = counters.iterations;
    stats.instructions = counters.instructions;
    stats.lost_events = reader_.lost;
    stats.calls = caller_.calls();
    stats.coalesced = counters.coalesced;
    stats.refused = caller_.refused();
    stats.early = counters.early;
    stats.on_time = counters.on_time;
    stats.late = counters.late;
    stats.missed = counters.missed;
    stats.order_mismatches = counters.order_mismatches;
    stats.step_plans = counters.step_plans;
    stats.step_plans_late = counters.step_plans_late;
    stats.call_seconds = caller_.call_seconds();
    stats.latency_seconds = static_cast<double>(caller_.latency().MedianNs()) * 1e-9;
    stats.overhead_share = follower_.overhead_share();
    stats.last_iteration_seconds = last_iteration_seconds_;
    stats.joules = joules_;
    const RankPlan* const plan = follower_.plan();
    stats.saving_percent = stats.saving_least_percent = stats.saving_most_percent = kUnknown;
    if (plan != nullptr && follower_.Follows()) {
      stats.saving_percent = plan->saving_percent.value_or(kUnknown);
      if (const auto& interval = plan->saving_interval) {
        stats.saving_least_percent = interval->least_percent;
        stats.saving_most_percent = interval->most_percent;
      }
    }
    const auto& buckets = caller_.latency().buckets();
    std::copy(buckets.begin(), buckets.end(), stats.latency);
    state_->SetStats(stats);
    const bool waits =
        stats.state != PERSEUS_STATE_PROFILING && stats.plan_version <= 0 && !state_->plans_steps();
    state_->page().listens.store(waits ? 0 : 1, std::memory_order_relaxed);
  }

  perseus_state State(std::int64_t now_ns) const {
    if (state_->clock_stopping()) return PERSEUS_STATE_CLOSED;
    if (sweep_ && !sweep_reported_) return PERSEUS_STATE_PROFILING;
    if (device_failed_ || follower_.GaveUp() || caller_.resting(now_ns) ||
        !state_->plan_fresh(now_ns)) {
      return PERSEUS_STATE_RELEASED;
    }
    if (follower_.Follows() && caller_.open()) return PERSEUS_STATE_FOLLOWING;
    return PERSEUS_STATE_CONNECTING;  // Or waiting: the shared state knows.
  }

  SharedState* state_;
  TickConverter converter_;
  EventRing::Reader reader_;
  ClockCaller caller_;
  Follower follower_;
  Tally tally_;
  std::optional<Profiler> sweep_;
  bool sweep_reported_ = false;
  std::uint64_t profile_asked_ = 0;  // Number of the server's request that sweep_ fulfils.
  bool device_failed_ = false;
  std::int64_t next_open_ns_ = 0;
  bool holds_clock_ = false;  // One was set, and not given back since.
  std::string refusal_;       // Why the last call that failed did.
  std::int64_t next_release_ns_ = 0;
  std::optional<double> last_joules_;
  double last_iteration_seconds_ = 0;
  double joules_ = 0;  // Of all iterations so far.
  std::int64_t next_kinds_ns_ = 0;
  std::int64_t iterations_to_conditions_ = 0;  // Iterations until they are told again.
};

}  // namespace

void RunClockThread(SharedState* state) { ClockThread(state).Run(); }

}  // namespace perseus::client
