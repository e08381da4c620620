// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/domain/published_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "server/base/failure.h"

namespace perseus::server {

namespace {

// Maximum clocks cost a pipeline a tenth of its energy and more: they are worth it only where
// its fastest plan is later by more than this share.
constexpr double kLaterShare = 0.01;

// The slowdown of one pipeline: of several stragglers at one place the worst counts.
struct Slowdown {
  std::vector<double> factors;  // [pipeline rank]
  double delay_seconds = 0;
};

// By pipeline. Goes over stragglers and ranks once each: a job may have ten thousand of both.
std::map<int, Slowdown> SlowdownsOf(const Shape& shape,
                                    const std::vector<store::StragglerRecord>& stragglers,
                                    const std::map<int, store::RankRecord>& ranks) {
  std::map<int, Slowdown> slowdowns;
  // `pp_rank` -1: all of the pipeline.
  const auto add = [&](const store::StragglerRecord& straggler, int pipeline, int pp_rank) {
    Slowdown& slow = slowdowns[pipeline];
    slow.factors.resize(static_cast<std::size_t>(shape.pipeline_parallel), 1.0);
    slow.delay_seconds = std::max(slow.delay_seconds, straggler.delay_seconds);
    for (int rank = 0; rank < shape.pipeline_parallel; ++rank) {
      double& factor = slow.factors[static_cast<std::size_t>(rank)];
      if (pp_rank < 0 || pp_rank == rank) factor = std::max(factor, straggler.factor);
    }
  };
  std::map<std::string, store::StragglerRecord> nodes;  // The worst of each.
  for (const store::StragglerRecord& straggler : stragglers) {
    if (straggler.pipeline) {
      add(straggler, *straggler.pipeline, -1);
    } else if (straggler.rank) {
      const auto rank = ranks.find(*straggler.rank);
      if (rank != ranks.end()) add(straggler, rank->second.dp_rank, rank->second.pp_rank);
    } else {
      store::StragglerRecord& worst = nodes[straggler.node];
      worst.factor = std::max(worst.factor, straggler.factor);
      worst.delay_seconds = std::max(worst.delay_seconds, straggler.delay_seconds);
    }
  }
  if (nodes.empty()) return slowdowns;
  for (const auto& [number, rank] : ranks) {
    const auto node = nodes.find(rank.node);
    if (node != nodes.end()) add(node->second, rank.dp_rank, rank.pp_rank);
  }
  return slowdowns;
}

}  // namespace

bool IsExpired(const store::StragglerRecord& straggler, double now_seconds) {
  return straggler.expires_at_seconds && *straggler.expires_at_seconds <= now_seconds;
}

bool IsActive(const store::StragglerRecord& straggler, double now_seconds) {
  return straggler.starts_at_seconds <= now_seconds && !IsExpired(straggler, now_seconds);
}

std::int64_t SlowPipelines(const Shape& shape,
                           const std::vector<store::StragglerRecord>& stragglers,
                           const std::map<int, store::RankRecord>& ranks) {
  if (stragglers.empty()) return 0;
  return static_cast<std::int64_t>(SlowdownsOf(shape, stragglers, ranks).size());
}

Assignment Assign(const Curve& curve, double target_seconds, const Shape& shape,
                  const std::vector<store::StragglerRecord>& stragglers,
                  const std::map<int, store::RankRecord>& ranks) {
  Assignment assignment;
  const CurvePlan& fastest = curve.fastest();
  for (const auto& [pipeline, slow] : SlowdownsOf(shape, stragglers, ranks)) {
    const double by_plan = curve.SlowedSeconds(&fastest, slow.factors);
    const double by_clocks = curve.SlowedSeconds(nullptr, slow.factors);
    const bool is_later = by_plan > by_clocks * (1 + kLaterShare);
    assignment.straggler_time_seconds = std::max(
        assignment.straggler_time_seconds, (is_later ? by_clocks : by_plan) + slow.delay_seconds);
    assignment.straggler_baseline_seconds =
        std::max(assignment.straggler_baseline_seconds, by_clocks + slow.delay_seconds);
    assignment.exceptions[pipeline] = is_later ? kMaximumClocks : fastest.id;
  }
  const double relaxed = std::min(curve.frontier().tstar_seconds,
                                  curve.FrontierSeconds(assignment.straggler_time_seconds));
  assignment.for_straggler = relaxed > target_seconds;
  assignment.plan = assignment.for_straggler
                        ? curve.ForStraggler(assignment.straggler_time_seconds, target_seconds).id
                        : curve.At(target_seconds).id;
  return assignment;
}

const CurvePlan* PublishedPlan::PlanOf(int pipeline) const {
  if (curve == nullptr) return nullptr;
  const auto found = version.exceptions.find(pipeline);
  return curve->Find(found == version.exceptions.end() ? version.plan : found->second);
}

Assignment AssignmentAt(const JobLife& job, const Phase& phase, double day_seconds) {
  std::vector<store::StragglerRecord> active;
  std::copy_if(
      phase.stragglers.begin(), phase.stragglers.end(), std::back_inserter(active),
      [&](const store::StragglerRecord& straggler) { return IsActive(straggler, day_seconds); });
  const Curve& curve = *phase.built.curve;
  const Result<double> target = curve.TargetSeconds(phase.target);
  return Assign(curve, target.value_or(curve.fastest().requested_time_seconds), job.shape, active,
                job.ranks);
}

bool IsPublishable(const Phase& phase) {
  // A curve that could not be read back is computed again, and published then.
  return phase.version.version > 0 && (phase.version.plan == 0 || phase.built.curve != nullptr);
}

PublishedPlan PublicationOf(const JobLife& job) {
  const Phase& phase = job.phase;
  PublishedPlan plan;
  plan.version = phase.version;
  const std::string name = NameAndId(job.record.name, job.record.id);
  if (phase.is_gone) {
    plan.sentence = fmt::format("Job {} was deleted; run at maximum clocks.", name);
    plan.gone = true;
    return plan;
  }
  plan.comparison = phase.watch.settings.comparison;
  plan.profile_wanted = phase.state == store::JobState::kProfiling;
  if (phase.version.plan == 0) {
    plan.sentence =
        phase.state == store::JobState::kFinished
            ? fmt::format(
                  "Job {} has finished; run at maximum clocks. For another run give "
                  "another client key, or delete this job first.",
                  name)
            : fmt::format("There is no plan ({}); run at maximum clocks.", ReasonOf(phase));
    return plan;
  }
  plan.curve = phase.built.curve;
  const CurvePlan* const found = plan.curve->Find(phase.version.plan);
  plan.requested_time_seconds = found == nullptr ? 0 : found->requested_time_seconds;
  if (!phase.version.exceptions.empty()) {
    const Assignment assignment = AssignmentAt(job, phase, phase.version.at_seconds);
    plan.straggler_seconds = assignment.straggler_time_seconds;
    plan.straggler_baseline_seconds = assignment.straggler_baseline_seconds;
  }
  return plan;
}

}  // namespace perseus::server
