// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/simulation/simulated_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <variant>

#include "server/planning/characterize.h"
#include "server/planning/job_spec.h"
#include "server/service_testing.h"

namespace perseus::server {
namespace {

using store::Fact;

bool CountsAsRevision(const Fact& fact) {
  return !std::holds_alternative<store::RankRecord>(fact) &&
         !std::holds_alternative<store::Measurements>(fact) &&
         !std::holds_alternative<store::IterationSummary>(fact) &&
         !std::holds_alternative<store::HistoryRow>(fact);
}

// What the real tables do with a fact, said once more and apart from Apply().
class RowWriter {
 public:
  explicit RowWriter(SimulatedRows* rows) : rows_(*rows), stored_(rows->job) {}

  bool operator()(const store::JobRecord& job) const {
    stored_.job = job;
    return true;
  }
  bool operator()(const store::StateChange& change) const {
    store::JobRecord& job = stored_.job;
    job.state = change.state;
    job.reason = change.reason;
    if (change.profile_csv) job.profile_csv = *change.profile_csv;
    if (change.blocking_power_watts) job.blocking_power_watts = *change.blocking_power_watts;
    if (change.profile_source) job.profile_source = *change.profile_source;
    if (change.sweep_round) job.sweep_round = *change.sweep_round;
    if (change.next_profile_csv) job.next_profile_csv = *change.next_profile_csv;
    if (change.next == store::StateChange::Next::kAdopt) job.profile_csv = job.next_profile_csv;
    if (change.next != store::StateChange::Next::kKeep) {
      job.next_profile_csv.clear();
      job.settled_round = job.sweep_round;
    }
    return true;
  }
  bool operator()(const store::RankRecord& rank) const {
    for (const store::RankRecord& other : stored_.ranks) {
      const bool same_place = other.dp_rank == rank.dp_rank && other.pp_rank == rank.pp_rank &&
                              other.tp_rank == rank.tp_rank;
      if (same_place != (other.rank == rank.rank)) return false;
    }
    std::erase_if(stored_.ranks, [&](const auto& each) { return each.rank == rank.rank; });
    stored_.ranks.push_back(rank);
    std::sort(stored_.ranks.begin(), stored_.ranks.end(),
              [](const auto& a, const auto& b) { return a.rank < b.rank; });
    return true;
  }
  bool operator()(const store::Measurements& measured) const {
    if (measured.sweep_round != stored_.job.sweep_round) return false;
    stored_.measurements.push_back(measured);
    return true;
  }
  bool operator()(const store::CurveRecord& curve) const {
    rows_.curve = std::make_shared<const store::CurveRecord>(curve);
    return true;
  }
  bool operator()(const store::PlanVersion& version) const {
    // The real table has a primary key.
    if (stored_.version && stored_.version->version >= version.version) return false;
    stored_.version = version;
    return true;
  }
  bool operator()(const store::TargetChange& change) const {
    stored_.job.target = change.target;
    return true;
  }
  bool operator()(const store::StragglerRecord& straggler) const {
    stored_.last_straggler = std::max(stored_.last_straggler, straggler.id);
    for (store::StragglerRecord& known : stored_.stragglers) {
      if (known.id != straggler.id) continue;
      known.factor = straggler.factor;
      return true;
    }
    stored_.stragglers.push_back(straggler);
    return true;
  }
  bool operator()(const store::StragglerGone& gone) const {
    std::erase_if(stored_.stragglers, [&](const auto& each) { return each.id == gone.id; });
    return true;
  }
  bool operator()(const store::DetectionChange& change) const {
    stored_.job.detection_json = change.detection_json;
    return true;
  }
  bool operator()(const store::ConditionsChange& change) const {
    stored_.job.conditions_json = change.conditions_json;
    return true;
  }
  bool operator()(const store::LabelsChange& change) const {
    stored_.job.labels = change.labels;
    return true;
  }
  bool operator()(const store::IterationSummary& sum) const {
    rows_.iterations[sum.plan_version] = sum;
    return true;
  }
  bool operator()(const store::HistoryRow& row) const {
    rows_.history[{row.resolution, row.start}] = row;
    return true;
  }
  bool operator()(const store::JobGone& /*gone*/) const {
    rows_.is_there = false;
    return true;
  }
  template <typename T>
  bool operator()(const T& /*fact*/) const {
    return true;
  }

 private:
  SimulatedRows& rows_;
  store::StoredJob& stored_;
};

}  // namespace

bool SimulatedRows::Commit(const std::vector<Fact>& facts) {
  const bool begins = std::holds_alternative<store::JobRecord>(facts.front());
  if (is_there == begins) return false;
  SimulatedRows next = *this;
  next.is_there = true;
  for (const Fact& fact : facts) {
    if (!std::visit(RowWriter(&next), fact)) return false;
  }
  next.job.revision += std::any_of(facts.begin(), facts.end(), CountsAsRevision) ? 1 : 0;
  *this = std::move(next);
  return true;
}

StoredSums SimulatedRows::Sums() const {
  StoredSums stored;
  for (const auto& [version, sum] : iterations) stored.iterations.push_back(sum);
  std::map<store::Resolution, store::HistoryRow> last;
  for (const auto& [key, row] : history) last[row.resolution] = row;
  for (const auto& [resolution, row] : last) stored.history.push_back(row);
  return stored;
}

PlanMaker::PlanMaker() {
  const Outcome<JobSpec> spec = MakeJobSpec(kSmallSettings, kSmallProfile);
  if (!spec) throw std::runtime_error(spec.error().message);
  record_ = {.id = "j-0000000000000001",
             .client_key = "key",
             .pipeline_parallel = spec->shape.pipeline_parallel,
             .data_parallel = spec->shape.data_parallel,
             .tensor_parallel = spec->shape.tensor_parallel,
             .settings_json = spec->settings_json,
             .profile_csv = spec->profile_csv,
             .library_json = spec->library_json,
             .profile_source = "given"};
  const std::shared_ptr<const Job> job = *BuildJob(record_);
  jobs_[record_.profile_csv] = job;
  for (const int revision : {1, 2}) {
    Characterizer characterizer(record_.id, job, [](double) { return true; });
    ladders_[revision - 1] = *characterizer.Ladder(PlanTarget{}, revision, 1);
  }
}

const std::shared_ptr<const Job>& PlanMaker::JobOf(const std::string& profile_csv) {
  std::shared_ptr<const Job>& job = jobs_[profile_csv];
  if (job == nullptr) job = std::make_shared<const Job>(*jobs_[record_.profile_csv]);
  return job;
}

AdoptPlans PlanMaker::Make(const PlanningStep& step, const store::JobRecord& stored) {
  AdoptPlans made;
  made.step = step;
  std::shared_ptr<const Job>& job = made.step.built.job;
  if (job == nullptr) job = JobOf(step.is_pending ? stored.next_profile_csv : stored.profile_csv);
  const Curve* const curve = step.built.curve.get();
  const int revision = curve == nullptr ? 0 : curve->revision();
  if (revision >= 2) {
    made.record = curve->Record(record_.id, PlanTargetText(step.target), nullptr);
  } else {
    made.record = ladders_[revision];
    // Ids of plans are never used again.
    for (store::PlanRecord& plan : made.record.plans) plan.id += step.first_id - 1;
  }
  made.built = {.job = job, .curve = CurveOf(job, made.record)};
  return made;
}

std::shared_ptr<const Curve> PlanMaker::CurveOf(const std::shared_ptr<const Job>& job,
                                                const store::CurveRecord& record) {
  std::shared_ptr<const Curve>& curve =
      curves_[{job.get(), record.revision, record.plans.front().id, record.frontier_json}];
  if (curve == nullptr) curve = *Curve::Make(job, record);
  return curve;
}

JobLife PlanMaker::LifeOf(const SimulatedRows& rows) {
  Built built;
  store::StoredJob stored = rows.job;
  if (rows.curve != nullptr) {
    const std::shared_ptr<const Job>& job = JobOf(rows.job.job.profile_csv);
    built = {job, CurveOf(job, *rows.curve)};
    stored.curve = *rows.curve;
  }
  return Replay(stored, built);
}

}  // namespace perseus::server
