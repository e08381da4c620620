// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/domain/published_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "server/base/failure.h"

namespace perseus::server {

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
