// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/detect/job_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/numbers.h"
#include "perseus/computation.h"
#include "perseus/costed_pipeline.h"
#include "perseus/pipeline.h"

namespace perseus::server {

std::vector<SecondsByType> BusyTimes(const Curve& curve, const CurvePlan* plan) {
  const CostedPipeline& pipeline = curve.job().pipeline;
  const PipelineDag& dag = pipeline.dag;
  std::vector<SecondsByType> busy(static_cast<std::size_t>(dag.num_ranks));
  for (int i = 0; i < dag.size(); ++i) {
    const auto& table = pipeline.TableOf(i);
    double seconds = table.baseline.time_seconds;
    if (plan != nullptr) {
      const int knob = plan->knobs[static_cast<std::size_t>(i)];
      const auto option = std::find_if(table.all_options.begin(), table.all_options.end(),
                                       [&](const CostOption& each) { return each.knob == knob; });
      if (option != table.all_options.end()) seconds = option->time_seconds;
    }
    const Computation& computation = dag.computations[static_cast<std::size_t>(i)];
    busy[static_cast<std::size_t>(computation.rank)]
        [static_cast<std::size_t>(computation.id.type)] += seconds;
  }
  return busy;
}

void RecentIterations::Add(double seconds, std::optional<double> joules, double now_seconds) {
  if (last_.size() == kMost) last_.pop_front();
  last_.push_back({seconds, joules});
  at_seconds_ = now_seconds;
  ++totals_.iterations;
  if (!joules) return;
  ++totals_.with_energy;
  totals_.joules += *joules;
}

void RecentIterations::AddSaved(double predicted_joules,
                                std::optional<double> measured_saved_joules) {
  totals_.predicted_joules += std::max(predicted_joules, 0.0);
  totals_.measured_saved_joules += std::max(measured_saved_joules.value_or(0), 0.0);
  totals_.measured_lost_joules += std::max(-measured_saved_joules.value_or(0), 0.0);
}

std::optional<RecentFigures> RecentIterations::Figures() const {
  if (last_.empty()) return std::nullopt;
  std::vector<double> sorted;
  sorted.reserve(last_.size());
  double seconds = 0;
  double joules = 0;
  for (const Iteration& each : last_) {
    sorted.push_back(each.seconds);
    if (!each.joules) continue;
    seconds += each.seconds;
    joules += *each.joules;
  }
  RecentFigures figures{.iterations = last_.size(),
                        .iteration_seconds = UpperMedianOf(std::move(sorted)),
                        .watts = {},
                        .at_seconds = at_seconds_};
  if (seconds > 0) figures.watts = joules / seconds;
  return figures;
}
namespace {

constexpr double kExplains = 0.8;  // Of a slowdown, so that a cause is named.
// A rank reports to this server where it did within the longer of both.
constexpr double kRecentSeconds = 60;
constexpr double kRecentIterations = 10;

// Of the job: its slowest pipeline's.
double PlannedSeconds(const PublishedPlan& published) {
  double seconds = 0;
  if (const CurvePlan* const plan = published.curve->Find(published.version.plan)) {
    seconds = plan->iteration_time_seconds;
  }
  for (const auto& [pipeline, id] : published.version.exceptions) {
    const CurvePlan* const plan = published.curve->Find(id);
    seconds = std::max(seconds, plan == nullptr ? published.curve->baseline_time_seconds()
                                                : plan->iteration_time_seconds);
  }
  return seconds;
}

std::string_view KindName(Finding::Kind kind) {
  constexpr std::array<std::string_view, 7> kNames = {"straggler",  "factor", "recovered", "drift",
                                                      "drift_over", "slow",   "slow_over"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string TimesText(double factor) { return fmt::format("{:.3g} times as long", factor); }

}  // namespace

// A rank that another server hears of now is that one's to judge.
bool JobWatch::ReportsHere(int rank, double now_seconds) const {
  const auto found = places_.find(rank);
  if (found == places_.end()) return false;
  const Place& place = found->second;
  return now_seconds - place.heard_at_seconds <=
         std::max(kRecentSeconds, kRecentIterations * place.iteration_seconds);
}

// Settles stragglers that are new in the store, so that this server does not repeat them: several
// servers that find one straggler would replace each other's word for ever.
void JobWatch::Settle(const WatchState& before) {
  const std::map<int, SlowRank> slow = detector_.SlowRanks();
  std::erase_if(settled_, [&](const auto& entry) { return !slow.contains(entry.first); });
  for (const DetectedStraggler& each : state_.detected) {
    const auto found = slow.find(each.rank);
    if (found == slow.end()) continue;
    const bool is_old = std::any_of(
        before.detected.begin(), before.detected.end(), [&](const DetectedStraggler& old) {
          return old.rank == each.rank && old.straggler == each.straggler &&
                 old.factor == each.factor;
        });
    if (!is_old) settled_[each.rank] = found->second.factor;
  }
}

void JobWatch::SetState(const WatchState& state, const std::set<std::int64_t>& stragglers,
                        double now_seconds) {
  const WatchState before = std::exchange(state_, state);
  detector_.Set(state.settings.shift);
  savings_.Set(state.settings.comparison);
  const bool new_mode = before.settings.mode != state.settings.mode;
  if (new_mode) dismissed_.clear();
  if (state.settings.mode == DetectionMode::kOff) {
    if (new_mode) detector_.Reset();
    causes_.clear();
    settled_.clear();
    return;
  }
  const auto names = [](const WatchState& in, int rank) {
    return std::any_of(in.detected.begin(), in.detected.end(),
                       [&](const DetectedStraggler& each) { return each.rank == rank; });
  };
  const std::map<int, SlowRank> slow = detector_.SlowRanks();
  for (const DetectedStraggler& each : state.detected) {
    if (!slow.contains(each.rank) && !names(before, each.rank)) {
      detector_.Adopt(each.rank, each.factor, each.reference);
    }
    if (!stragglers.contains(each.straggler)) dismissed_.insert(each.rank);
  }
  if (new_mode) return Settle(before);
  // Stragglers that another server, or an operator through it, has ended.
  for (const DetectedStraggler& each : before.detected) {
    const auto found = slow.find(each.rank);
    if (names(state, each.rank) || found == slow.end()) continue;
    if (ReportsHere(each.rank, now_seconds)) {
      dismissed_.insert(each.rank);
    } else {
      detector_.Drop(each.rank);
    }
  }
  Settle(before);
}

void JobWatch::Remember(const std::shared_ptr<const PublishedPlan>& plan) {
  if (plan == nullptr || (!plans_.empty() && plans_.back() == plan)) return;
  plans_.push_back(plan);
  if (plans_.size() > kMostPlans) plans_.pop_front();
  std::set<const Curve*> curves;
  for (const auto& each : plans_) curves.insert(each->curve.get());
  std::erase_if(busy_, [&](const auto& entry) { return !curves.contains(entry.first.first); });
}

std::vector<IterationFigures> JobWatch::Take(const std::vector<WatchedIteration>& iterations,
                                             const std::shared_ptr<const PublishedPlan>& plan,
                                             std::size_t ranks, double now_seconds) {
  Remember(plan);
  collector_.Expect(ranks);
  for (const WatchedIteration& iteration : iterations) {
    places_[iteration.rank] = {iteration.dp_rank, iteration.pp_rank, iteration.node, now_seconds,
                               iteration.time_seconds};
    collector_.Add(iteration, now_seconds);
  }
  std::vector<IterationFigures> figures;
  IterationCollector<WatchedIteration>::Complete complete;
  while (collector_.Take(now_seconds, &complete)) {
    const IterationFigures& of = figures.emplace_back(FiguresOf(complete.second));
    const std::optional<double> joules = of.JoulesOf(ranks);
    recent_.Add(of.seconds, joules, now_seconds);
    if (joules) CountSaved(complete.second);
    Process(complete.first, complete.second);
  }
  return figures;
}

std::optional<Saved> JobWatch::SavedIn(const WatchedIteration& report) const {
  const PublishedPlan* const published = PlanOfVersion(report.plan_version);
  if (published == nullptr || published->curve == nullptr) return std::nullopt;
  if (report.clocks != ReportedClocks::kPlan || !report.energy_joules) return std::nullopt;
  // A share of the iteration's use without the plan, of which the rank used the rest.
  const auto of_share = [&](double share) { return *report.energy_joules * share / (1 - share); };
  Saved saved;
  // None: this pipeline runs at maximum clocks.
  const CurvePlan* const plan = published->PlanOf(report.dp_rank);
  if (plan != nullptr && plan->saving_percent < 100) {
    saved.predicted_joules = of_share(plan->saving_percent / 100);
  }
  const auto compared = compared_.find(report.plan_version);
  if (compared != compared_.end() && compared->second < 1) {
    saved.measured_saved_joules = of_share(compared->second);
  }
  return saved;
}

void JobWatch::CountSaved(const std::vector<WatchedIteration>& reports) {
  Saved all;
  for (const WatchedIteration& report : reports) {
    const std::optional<Saved> saved = SavedIn(report);
    if (!saved || report.plan_version != reports.front().plan_version) return;
    all.predicted_joules += saved->predicted_joules;
    if (!saved->measured_saved_joules) continue;
    all.measured_saved_joules =
        all.measured_saved_joules.value_or(0) + *saved->measured_saved_joules;
  }
  recent_.AddSaved(all.predicted_joules, all.measured_saved_joules);
}

const PublishedPlan* JobWatch::PlanOfVersion(std::int64_t version) const {
  const auto found = std::find_if(plans_.rbegin(), plans_.rend(), [&](const auto& plan) {
    return plan->version.version == version;
  });
  return found == plans_.rend() ? nullptr : found->get();
}

const std::vector<SecondsByType>& JobWatch::BusyOf(const std::shared_ptr<const Curve>& curve,
                                                   const CurvePlan* plan) {
  const auto [entry, is_new] = busy_.try_emplace({curve.get(), plan == nullptr ? 0 : plan->id},
                                                 std::vector<SecondsByType>());
  if (is_new) entry->second = BusyTimes(*curve, plan);
  return entry->second;
}

RankIteration JobWatch::Expected(const WatchedIteration& report) {
  RankIteration seen{.rank = report.rank,
                     .pp_rank = report.pp_rank,
                     .pipeline = report.dp_rank,
                     .time_seconds = report.time_seconds,
                     .busy_seconds = report.busy_seconds,
                     .busy_by_type = report.busy_by_type,
                     .tokens = report.tokens};
  const PublishedPlan* published = nullptr;
  const CurvePlan* plan = nullptr;
  if (report.clocks == ReportedClocks::kPlan) {
    published = PlanOfVersion(report.plan_version);
    if (published == nullptr || published->curve == nullptr) return seen;
    plan = published->PlanOf(report.dp_rank);
    if (plan == nullptr) return seen;
  } else if (report.clocks == ReportedClocks::kMaximum) {
    if (plans_.empty() || plans_.back()->curve == nullptr) return seen;
    published = plans_.back().get();
  } else {
    return seen;
  }
  const std::vector<SecondsByType>& busy = BusyOf(published->curve, plan);
  if (report.pp_rank < 0 || static_cast<std::size_t>(report.pp_rank) >= busy.size()) {
    return seen;
  }
  seen.expected_by_type = busy[static_cast<std::size_t>(report.pp_rank)];
  for (const double seconds : seen.expected_by_type) seen.expected_busy_seconds += seconds;
  seen.expected_time_seconds =
      plan == nullptr ? published->curve->baseline_time_seconds() : PlannedSeconds(*published);
  seen.regime = plan == nullptr ? 0 : plan->id;
  return seen;
}

void JobWatch::Process(std::int64_t iteration, const std::vector<WatchedIteration>& reports) {
  const ComparisonBlocks& blocks = state_.settings.comparison;
  const bool settles = blocks.is_on() && blocks.Settles(iteration);
  if (state_.settings.mode != DetectionMode::kOff && !settles) Detect(iteration, reports);
  if (blocks.is_on()) Compare(iteration, reports);
}

void JobWatch::Detect(std::int64_t iteration, const std::vector<WatchedIteration>& reports) {
  std::vector<RankIteration> ranks;
  ranks.reserve(reports.size());
  for (const WatchedIteration& report : reports) ranks.push_back(Expected(report));
  for (const Finding& finding : detector_.Add(iteration, ranks)) Tell(iteration, finding);
  if (slow_at_ && iteration >= slow_at_->first) {
    const Finding finding = slow_at_->second;
    slow_at_.reset();
    Announce("slow", finding, SlowCause());
  }
}

void JobWatch::Tell(std::int64_t iteration, const Finding& finding) {
  const std::string kind(KindName(finding.kind));
  switch (finding.kind) {
    case Finding::Kind::kStraggler: {
      causes_[finding.rank] = CauseText(finding);
      if (finding.is_of_told_cause) return;
      std::string sentence = causes_[finding.rank];
      if (finding.together > 0) {
        sentence += fmt::format("; {} ranks of its pipeline are slow together", finding.together);
      }
      return Announce(kind, finding, std::move(sentence));
    }
    case Finding::Kind::kFactor:
      return Announce(kind, finding,
                      fmt::format("{} now computes {} as before", PlaceText(finding.rank),
                                  TimesText(finding.factor)));
    case Finding::Kind::kRecovered:
      causes_.erase(finding.rank);
      dismissed_.erase(finding.rank);
      if (finding.is_of_told_cause) return;  // Other ranks of its pipeline are slow still.
      return Announce(kind, finding,
                      fmt::format("{} is as fast as before again", PlaceText(finding.rank)));
    case Finding::Kind::kDrift:
      return Announce(
          kind, finding,
          fmt::format("computations of nearly all ranks take {} as before: no straggler, "
                      "but drift (a power cap, a driver, heat); measure the profile "
                      "again if it lasts",
                      TimesText(finding.factor)));
    case Finding::Kind::kDriftOver:
      return Announce(kind, finding, "the drift has ended: ranks are as fast as before it");
    case Finding::Kind::kSlowIterations:
      // The slow rank is found at about the same time; the cause is named once that is over.
      waiting_share_ = finding.waiting_share;
      slow_plan_ = plans_.empty() ? nullptr : plans_.back();
      slow_at_ = {iteration + state_.settings.shift.window / 2, finding};
      return;
    case Finding::Kind::kIterationsWell:
      if (slow_at_) {
        slow_at_.reset();
        return;
      }
      return Announce(kind, finding, "iterations take as long as planned again");
  }
}

void JobWatch::Announce(std::string kind, const Finding& finding, std::string sentence) {
  ++counts_[kind];
  untold_.push_back({std::move(kind), std::move(sentence), finding});
  last_.push_back(untold_.back());
  if (last_.size() > kMostEvents) last_.pop_front();
  if (untold_.size() > kMostEvents) untold_.erase(untold_.begin());
}

std::string JobWatch::PlaceText(int rank) const {
  const auto found = places_.find(rank);
  if (found == places_.end()) return fmt::format("rank {}", rank);
  const Place& place = found->second;
  return fmt::format("rank {} (stage {} of pipeline {}{}{})", rank, place.pp_rank, place.dp_rank,
                     place.node.empty() ? "" : ", node ", place.node);
}

std::string JobWatch::CauseText(const Finding& finding) const {
  const std::string what =
      finding.all_types ? "all its computations alike"
      : finding.type    ? fmt::format("its {} computations", ComputationTypeName(*finding.type))
                        : "cause unknown: no kind of computation makes up 80 % of it";
  return fmt::format("{} computes {} as before: {}", PlaceText(finding.rank),
                     TimesText(finding.factor), what);
}

// The place that holds all slow ranks, and no rank that is well.
std::string JobWatch::Together(const std::map<int, SlowRank>& slow) const {
  if (slow.size() < 2) return "";
  const auto first = places_.find(slow.begin()->first);
  if (first == places_.end()) return "";
  const Place& place = first->second;
  bool is_node = !place.node.empty();
  bool is_pipeline = true;
  bool is_stage = true;
  for (const auto& [rank, at] : places_) {
    const bool is_slow = slow.contains(rank);
    is_node = is_node && (at.node == place.node) == is_slow;
    is_pipeline = is_pipeline && (at.dp_rank == place.dp_rank) == is_slow;
    is_stage = is_stage && (at.pp_rank == place.pp_rank) == is_slow;
  }
  if (is_node) return "all ranks of node " + place.node;
  if (is_pipeline) return fmt::format("all ranks of pipeline {}", place.dp_rank);
  if (is_stage) return fmt::format("all ranks of stage {}", place.pp_rank);
  return "";
}

// By how much the slow ranks alone made an iteration longer: replayed under the plans
// of then, as those of now may have answered them.
double JobWatch::PredictedGrowth(const std::map<int, SlowRank>& slow) const {
  if (slow_plan_ == nullptr || slow_plan_->curve == nullptr) return 0;
  const PublishedPlan& published = *slow_plan_;
  const Curve& curve = *published.curve;
  std::map<int, std::vector<double>> factors;  // By pipeline.
  const auto stages = static_cast<std::size_t>(curve.job().pipeline.dag.num_ranks);
  for (const auto& [rank, of] : slow) {
    const auto found = places_.find(rank);
    if (found == places_.end()) continue;
    std::vector<double>& pipeline = factors[found->second.dp_rank];
    pipeline.resize(stages, 1.0);
    const auto stage = static_cast<std::size_t>(found->second.pp_rank);
    if (stage < stages) pipeline[stage] = std::max(pipeline[stage], of.factor);
  }
  const double planned = PlannedSeconds(published);
  double slowed = planned;
  for (const auto& [pipeline, of_ranks] : factors) {
    slowed = std::max(slowed, curve.SlowedSeconds(published.PlanOf(pipeline), of_ranks));
  }
  return planned > 0 ? slowed / planned - 1 : 0;
}

std::string JobWatch::SlowCause() const {
  const double growth = detector_.slow_factor() - 1;
  if (!(growth > 0)) return "";
  const double by_stragglers = PredictedGrowth(detector_.SlowRanks()) / growth;
  const double by_drift = (detector_.drift_factor() - 1) / growth;
  const auto because = [&](std::string_view cause, double share) {
    return fmt::format("iterations take {} as planned; {} {:.0f} % of it", TimesText(1 + growth),
                       cause, 100 * std::min(share, 1.0));
  };
  if (by_stragglers >= kExplains) return because("the stragglers explain", by_stragglers);
  if (by_drift >= kExplains) return because("drift of all ranks explains", by_drift);
  if (waiting_share_ >= kExplains && by_stragglers < 1 - kExplains && by_drift < 1 - kExplains) {
    return because("waiting outside of computations (communication, data) explains",
                   waiting_share_);
  }
  return fmt::format("iterations take {} as planned; cause unknown: nothing explains 80 % of it",
                     TimesText(1 + growth));
}

// Results for others: the comparison at default clocks, events, stragglers that plans should
// answer, and the view.

void JobWatch::Compare(std::int64_t iteration, const std::vector<WatchedIteration>& reports) {
  ComparedIteration compared{.iteration = iteration, .is_known = !reports.empty()};
  const bool at_maximum = state_.settings.comparison.AtMaximum(iteration);
  if (!at_maximum && !reports.empty()) compared.plan_version = reports.front().plan_version;
  for (const WatchedIteration& report : reports) {
    const bool as_ordered = at_maximum ? report.clocks == ReportedClocks::kMaximum
                                       : report.clocks == ReportedClocks::kPlan &&
                                             report.plan_version == compared.plan_version;
    compared.is_known = compared.is_known && as_ordered;
  }
  const IterationFigures figures = FiguresOf(reports);
  compared.ranks = static_cast<int>(figures.ranks);
  compared.seconds = figures.seconds;
  compared.energy_ranks = static_cast<int>(figures.energy_ranks);
  if (compared.energy_ranks > 0) {
    compared.joules = figures.energy_ranks_joules / compared.energy_ranks;
  }
  const auto version = savings_.Add(compared);
  if (!version) return;
  const std::optional<MeasuredSaving> measured = savings_.Of(*version);
  if (!measured || !measured->slowdown) return;
  std::string sentence =
      fmt::format("plan {} against iterations at default clocks, {} pairs: time {:+.2f} %",
                  *version, measured->pairs, 100 * measured->slowdown->share);
  if (measured->saving) {
    compared_[*version] = measured->saving->share;
    if (compared_.size() > MeasuredSavings::kMostVersions) compared_.erase(compared_.begin());
    sentence +=
        fmt::format(", energy {:+.2f} % ({:+.2f} to {:+.2f})", -100 * measured->saving->share,
                    -100 * measured->saving->most, -100 * measured->saving->least);
  }
  Announce("compared", {.iteration = iteration}, std::move(sentence));
  if (const auto longer = savings_.Longer()) {
    Announce("lengthened", {.iteration = iteration},
             fmt::format("a change of clocks still acts at the end of a phase of {} iterations: "
                         "from now on {} of every {} run at default clocks",
                         savings_.blocks().iterations, longer->iterations, longer->every));
  }
}

std::vector<WatchEvent> JobWatch::TakeEvents() { return std::exchange(untold_, {}); }

std::vector<DetectedStraggler> JobWatch::Wanted() const {
  std::vector<DetectedStraggler> wanted;
  if (state_.settings.mode != DetectionMode::kAct) return wanted;
  for (const auto& [rank, slow] : detector_.SlowRanks()) {
    if (dismissed_.contains(rank)) continue;
    DetectedStraggler& each =
        wanted.emplace_back(DetectedStraggler{.rank = rank, .factor = slow.factor});
    each.reference = slow.reference;
    const auto settled = settled_.find(rank);
    if (settled == settled_.end() || settled->second != slow.factor) continue;
    for (const DetectedStraggler& stored : state_.detected) {
      if (stored.rank == rank) each = stored;
    }
  }
  return wanted;
}

WatchView JobWatch::View(double now_seconds) const {
  WatchView view;
  view.settings = state_.settings;
  view.watched_ranks = detector_.learned();
  for (const auto& [rank, place] : places_) {
    view.reporting_ranks += ReportsHere(rank, now_seconds) ? 1U : 0U;
  }
  const std::map<int, SlowRank> slow = detector_.SlowRanks();
  for (const auto& [rank, of] : slow) {
    ShownSlowRank shown{.rank = rank,
                        .node = "",
                        .factor = of.factor,
                        .since_iteration = of.since_iteration,
                        .dismissed = dismissed_.contains(rank)};
    if (const auto place = places_.find(rank); place != places_.end()) {
      shown.dp_rank = place->second.dp_rank;
      shown.pp_rank = place->second.pp_rank;
      shown.node = place->second.node;
    }
    if (const auto cause = causes_.find(rank); cause != causes_.end()) shown.cause = cause->second;
    for (const DetectedStraggler& each : state_.detected) {
      if (each.rank != rank) continue;
      shown.straggler = each.straggler;
      shown.factor = each.factor;
    }
    view.slow.push_back(std::move(shown));
  }
  view.together = Together(slow);
  view.drift_factor = detector_.drift_factor();
  view.slow_factor = detector_.slow_factor();
  view.knows_iterations = detector_.knows_iterations();
  view.slow_cause = SlowCause();
  view.events = last_;
  view.counts = counts_;
  view.measured_savings = savings_.All();
  view.recent = recent_.Figures();
  view.totals = recent_.totals();
  view.dropped_cycles = savings_.dropped_cycles();
  return view;
}

}  // namespace perseus::server
