// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Makes plans anew for measured conditions: seldom, as each change of the plan costs a search, and
// only if the present plans would miss their predictions.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/json_text.h"
#include "server/domain/draft.h"

namespace perseus::server {
namespace {

// Between two plans for other values of a figure that was measured before. Plans for a figure that
// becomes sure come at once: each does so once.
constexpr double kSecondsBetweenPlans = 600;
// Ranks see noise after so many iterations. After the second number, plans are made for the sure
// figures: without any change of clock, for example, no latency ever is sure.
constexpr std::int64_t kLeastIterations = 40;
constexpr std::int64_t kIterationsForAll = 200;
// A figure has moved if it differs from the planned one by more than kErrorsApart, by more than
// this share of it, and by more than a plan feels.
constexpr double kShare = 1.0 / 3;
constexpr std::array kFelt = {0.001, 0.001,    0.2,  kFeltLatencySeconds,
                              0.002, 0.000020, 0.02, 0.002};  // [Condition]
static_assert(kFelt.size() == kConditions);
// A figure that is surer than this is planned for: else it says too little.
constexpr std::array kSure = {0.002, 0.002,    0.15, kSureLatencySeconds,
                              0.003, 0.000020, 0.01, 0.002};  // [Condition]
static_assert(kSure.size() == kConditions);

// Whether the settings say how long transfers take.
bool TransfersAreGiven(const Phase& phase, const ConditionsState& state) {
  const Job* const job = phase.built.AnyJob();
  return state.plan.transfers.empty() && job != nullptr &&
         !job->settings.comm_delay_seconds.empty();
}

// Whether training takes other times, or other transfers, than the plans are made for.
bool TimesAskForPlans(const Phase& phase, const ConditionsState& state,
                      const MeasuredConditions& measured, double seconds_since_planned) {
  const bool is_time = seconds_since_planned < 0 || seconds_since_planned >= kSecondsBetweenPlans;
  if (phase.built.job == nullptr || phase.built.curve == nullptr) return false;
  if ((is_time || state.plan.times.empty()) &&
      TimesHaveMoved(phase.built.job->pipeline, measured.times)) {
    return true;
  }
  return (is_time || state.plan.transfers.empty()) && !TransfersAreGiven(phase, state) &&
         TransfersHaveMoved(state.plan.transfers, measured.transfers,
                            phase.built.curve->baseline_time_seconds());
}

constexpr std::array kAllConditions = {
    Condition::kNoise,     Condition::kRankNoise,     Condition::kNoiseCorrelation,
    Condition::kLatency,   Condition::kLatencySpread, Condition::kStall,
    Condition::kRareNoise, Condition::kRareNoiseShare};
static_assert(kAllConditions.size() == kConditions);

double At(const auto& list, Condition which) { return list[static_cast<std::size_t>(which)]; }

bool IsSure(const MeasuredConditions& measured, Condition which) {
  const MeasuredCondition& figure = measured.Of(which);
  const double most = std::max(At(kSure, which), kSureShare * figure.value);
  return figure.ranks > 0 && figure.error <= most;
}

bool HasMoved(const PlannedConditions& plan, const MeasuredConditions& measured, Condition which) {
  if (!IsSure(measured, which)) return false;
  const double planned = plan.Of(which);
  const double apart = std::abs(ValueOf(measured, which) - planned);
  // How noise follows from one computation to the next means nothing where there is hardly any.
  if (which == Condition::kNoiseCorrelation &&
      measured.Of(Condition::kNoise).value < At(kFelt, Condition::kNoise)) {
    return false;
  }
  // Nor does either figure of rare computations without the other, unless there surely are none.
  if (which == Condition::kRareNoise || which == Condition::kRareNoiseShare) {
    const bool is_none = IsSure(measured, Condition::kRareNoiseShare) &&
                         ValueOf(measured, Condition::kRareNoiseShare) == 0;
    if (is_none) return which == Condition::kRareNoiseShare && planned > At(kFelt, which);
    if (!IsSure(measured, Condition::kRareNoise) || !IsSure(measured, Condition::kRareNoiseShare)) {
      return false;
    }
  }
  // The median of calls for clocks that differ says little: the clocks do, where any is sure.
  if (which == Condition::kLatency &&
      std::any_of(measured.latency_at.begin(), measured.latency_at.end(),
                  [](const auto& each) { return IsSureLatency(each.seconds); })) {
    return false;
  }
  return apart > kErrorsApart * measured.Of(which).error && apart > kShare * planned &&
         apart > At(kFelt, which);
}

// Whether calls for any clock take another time than the plans are made for. `is_time`: also of
// those that were measured when these were made.
bool LatenciesHaveMoved(const PlannedConditions& plan, const MeasuredConditions& measured,
                        bool is_time) {
  return std::any_of(
      measured.latency_at.begin(), measured.latency_at.end(),
      [&](const MeasuredClockLatency& each) {
        const auto own =
            std::find_if(plan.latency_at.begin(), plan.latency_at.end(),
                         [&](const auto& known) { return known.clock_mhz == each.clock_mhz; });
        const bool is_known = own != plan.latency_at.end();
        if (!is_time && (is_known || plan.IsMeasured(Condition::kLatency))) return false;
        const double planned = is_known ? own->seconds.value : plan.Of(Condition::kLatency);
        const double apart = std::abs(each.seconds.value - planned);
        return IsSureLatency(each.seconds) && apart > kErrorsApart * each.seconds.error &&
               apart > kShare * planned && apart > At(kFelt, Condition::kLatency);
      });
}

// Whether the measurements are enough to make plans for.
bool IsEnough(const MeasuredConditions& measured, std::size_t ranks) {
  if (2 * measured.ranks() < static_cast<std::int64_t>(ranks)) return false;
  // These take longer, and plans for them come by themselves.
  const auto may_come_later = [](Condition which) {
    return which == Condition::kStall || which == Condition::kRareNoise ||
           which == Condition::kRareNoiseShare;
  };
  const bool all_are_sure = std::all_of(
      kAllConditions.begin(), kAllConditions.end(),
      [&](Condition which) { return may_come_later(which) || IsSure(measured, which); });
  return measured.iterations >= (all_are_sure ? kLeastIterations : kIterationsForAll);
}

// Whether the store would hear anything new.
bool IsNews(const MeasuredConditions& known, const MeasuredConditions& now) {
  constexpr double kMuchMore = 1.5;
  const auto has_moved = [&](Condition which) {
    const MeasuredCondition& before = known.Of(which);
    const MeasuredCondition& after = now.Of(which);
    return before.ranks != after.ranks || std::abs(before.value - after.value) > after.error;
  };
  const auto is_about_the_same = [](const MeasuredClockLatency& before,
                                    const MeasuredClockLatency& after) {
    return before.clock_mhz == after.clock_mhz && before.seconds.ranks == after.seconds.ranks &&
           std::abs(before.seconds.value - after.seconds.value) <= after.seconds.error;
  };
  return std::any_of(kAllConditions.begin(), kAllConditions.end(), has_moved) ||
         !std::equal(known.latency_at.begin(), known.latency_at.end(), now.latency_at.begin(),
                     now.latency_at.end(), is_about_the_same) ||
         static_cast<double>(now.iterations) > kMuchMore * static_cast<double>(known.iterations);
}

}  // namespace

bool HaveMoved(const PlannedConditions& plan, const MeasuredConditions& measured,
               double seconds_since_planned) {
  // Or time was set back.
  const bool is_time = seconds_since_planned < 0 || seconds_since_planned >= kSecondsBetweenPlans;
  const auto may_move = [&](Condition which) { return is_time || !plan.IsMeasured(which); };
  return std::any_of(
             kAllConditions.begin(), kAllConditions.end(),
             [&](Condition which) { return may_move(which) && HasMoved(plan, measured, which); }) ||
         LatenciesHaveMoved(plan, measured, is_time);
}

PlannedConditions PlannedFor(const PlannedConditions& plan, const MeasuredConditions& measured) {
  PlannedConditions next = plan;
  for (const Condition which : kAllConditions) {
    if (!IsSure(measured, which)) continue;
    const auto at = static_cast<std::size_t>(which);
    next.values[at] = ValueOf(measured, which);
    next.measured[at] = true;
  }
  next.latency_at =
      OwnLatencies(WithKnown(measured.latency_at, plan.latency_at), next.Of(Condition::kLatency));
  if (!measured.times.empty()) next.times = measured.times;
  for (const MeasuredTransfer& transfer : measured.transfers) {
    const auto known = std::find_if(
        next.transfers.begin(), next.transfers.end(),
        [&](const MeasuredTransfer& each) { return each.boundary == transfer.boundary; });
    if (known != next.transfers.end()) {
      *known = transfer;
    } else {
      next.transfers.push_back(transfer);
    }
  }
  return next;
}

ConditionsState StartedFrom(const store::ProfileRecord& profile, ConditionsState state) {
  state.profile = profile.id;
  state.start = ParseKeptConditions(profile.conditions_json);
  if (!state.start) return state;
  state.start_profile = profile.id;
  for (const Condition which : kAllConditions) {
    if (!state.IsFromStart(which)) continue;
    state.plan.values[static_cast<std::size_t>(which)] = ValueOf(state.start->measured, which);
  }
  if (state.IsFromStart(Condition::kLatency)) {
    state.plan.latency_at =
        OwnLatencies(state.start->measured.latency_at, state.plan.Of(Condition::kLatency));
  }
  return state;
}

std::string KeptConditionsOf(const Situation& on, const ConditionsState& state) {
  if (!IsEnough(state.measured, on.job.ranks.size())) return "";
  KeptConditions kept = {
      .job = on.id(), .at_seconds = on.now.day_seconds, .measured = state.measured};
  kept.measured.latency_at =
      WithKnown(kept.measured.latency_at, state.start ? state.start->measured.latency_at
                                                      : std::vector<MeasuredClockLatency>());
  for (const Condition which : kAllConditions) {
    if (IsSure(state.measured, which)) continue;
    if (state.start && state.start->measured.Of(which).ranks > 0) return "";
    kept.measured.figures[static_cast<std::size_t>(which)] = {};
  }
  return kept.measured.ranks() > 0 ? FormatKeptConditions(kept) : "";
}

Outcome<Decision> DecideOn(const Situation& on, const TakeConditions& command) {
  const Phase& phase = on.phase();
  Decision draft;
  if (!phase.conditions || IsOver(phase)) return draft;
  ConditionsState state = *phase.conditions;
  const MeasuredConditions& measured = command.measured;
  // After a start of the server, most ranks have not reported again yet.
  if (2 * measured.ranks() < state.measured.ranks()) return draft;
  const bool was_kept = !KeptConditionsOf(on, state).empty();
  const bool is_news = IsNews(state.measured, measured);
  state.measured = measured;
  state.measured.times.clear();
  state.measured.transfers.clear();
  const std::string kept = KeptConditionsOf(on, state);
  const bool keeps = !kept.empty() && !state.profile.empty() && (is_news || !was_kept);
  const bool has_no_plans = phase.state == store::JobState::kProfiling &&
                            phase.built.curve == nullptr && phase.built.job == nullptr;
  const double seconds_since = on.now.day_seconds - state.planned_at_seconds;
  bool plans = false;
  if (has_no_plans) {
    // Clock calls of the sweep: the first plans are made for their latency.
    plans = HaveMoved(state.plan, measured, seconds_since);
    if (plans) {
      const PlannedConditions planned = PlannedFor(state.plan, measured);
      state.plan.values = planned.values;
      state.plan.latency_at = planned.latency_at;
    }
  } else if (phase.built.curve != nullptr && !state.next && !IsPending(phase)) {
    plans = IsEnough(measured, on.job.ranks.size()) &&
            (HaveMoved(state.plan, measured, seconds_since) ||
             TimesAskForPlans(phase, state, measured, seconds_since));
    if (plans) {
      state.next = PlannedFor(state.plan, measured);
      if (TransfersAreGiven(phase, state)) state.next->transfers.clear();
    }
  }
  if (!is_news && !plans && !keeps) return draft;
  draft.wants_plans = plans;
  draft.facts.emplace_back(
      store::ConditionsChange{.job = on.id(), .conditions_json = FormatConditionsState(state)});
  if (keeps) {
    draft.facts.emplace_back(store::ProfileConditions{
        .job = on.id(), .profile = state.profile, .conditions_json = kept});
  }
  return draft;
}

}  // namespace perseus::server
