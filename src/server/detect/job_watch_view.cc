// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What a job's watch tells others: the comparison with no clock set, events, stragglers
// that plans should answer, and what is shown.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "server/detect/job_watch.h"

namespace perseus::server {

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
  const std::optional<Realised> realised = savings_.Of(*version);
  if (!realised || !realised->slowdown) return;
  std::string sentence =
      fmt::format("plan {} against iterations with no clock set, {} pairs: time {:+.2f} %",
                  *version, realised->pairs, 100 * realised->slowdown->share);
  if (realised->saving) {
    compared_[*version] = realised->saving->share;
    if (compared_.size() > RealisedSavings::kMostVersions) compared_.erase(compared_.begin());
    sentence +=
        fmt::format(", energy {:+.2f} % ({:+.2f} to {:+.2f})", -100 * realised->saving->share,
                    -100 * realised->saving->most, -100 * realised->saving->least);
  }
  Announce("compared", {.iteration = iteration}, std::move(sentence));
  if (const auto longer = savings_.Longer()) {
    Announce("lengthened", {.iteration = iteration},
             fmt::format("a change of clocks still acts at the end of a stretch of {} iterations: "
                         "from now on {} of every {} run with no clock set",
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
  view.realised = savings_.All();
  view.recent = recent_.Figures();
  view.totals = recent_.totals();
  view.dropped_cycles = savings_.dropped_cycles();
  return view;
}

}  // namespace perseus::server
