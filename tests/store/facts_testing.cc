// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "store/facts_testing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <stdexcept>
#include <utility>

#include "server/store/cells.h"

namespace perseus::store {

std::unique_ptr<Store> OpenOrThrow(const std::string& file_or_spec) {
  const bool is_file = file_or_spec.starts_with("/");
  Result<std::unique_ptr<Store>> store = Store::Open((is_file ? "sqlite:" : "") + file_or_spec);
  if (!store) throw std::runtime_error(store.error().message);
  return *std::move(store);
}

StoredJob JobOrThrow(Store& store, const std::string& id) {
  Result<std::optional<StoredJob>> job = store.LoadJob(id);
  if (!job) throw std::runtime_error(job.error().message);
  if (!*job) throw std::runtime_error("there is no job " + id);
  return **std::move(job);
}

JobRecord SampleJob(const std::string& id) {
  JobRecord job;
  job.id = id;
  job.client_key = "key of " + id;
  job.name = "GPT-3 'small' \"x\"";
  job.owner = "alice";
  job.labels = {{"example.com/cost-centre", "a.1"}, {"team", "vision"}};
  job.origin = JobOrigin::kZeus;
  job.pipeline_parallel = 4;
  job.data_parallel = 2;
  job.tensor_parallel = 1;
  job.settings_json = R"({"schedule":"1f1b"})";
  job.blocking_power_watts = {83.64, 0.1};
  job.target = "1.05x";
  job.library_json = R"({"model":"GPT-3"})";
  job.created_at_seconds = 1.7e9;
  return job;
}

RankRecord SampleRank(const std::string& job, int rank) {
  return {.job = job,
          .rank = rank,
          .dp_rank = rank / 4,
          .pp_rank = rank % 4,
          .tp_rank = 0,
          .gpu_uuid = fmt::format("GPU-{}", rank),
          .gpu_name = "NVIDIA A100",
          .node = "node1",
          .clocks_mhz = {210, 1410}};
}

HistoryRow SampleHistory(const std::string& job) {
  return {.job = job,
          .resolution = Resolution::kHour,
          .start = 1'699'999'200,
          .ranks = 8,
          .first_seconds = 1'699'999'300.25,
          .last_seconds = 1'699'999'400.5,
          .reports = 10,
          .total_seconds = 50,
          .energy_reports = 9,
          .joules = 1e6,
          .predicted_joules = 1.5e5,
          .compared_joules = 1.0 / 3,
          .measured_saved_joules = -0.1,
          .times = {.iterations = 2, .reports = 10, .seconds = 11.5},
          .measured_times = {.iterations = 1, .reports = 8, .seconds = 6},
          .measured_joules = 9e5};
}

std::vector<Fact> SampleFacts(const std::string& job) {
  return {
      SampleJob(job),
      SampleRank(job, 0),
      SampleRank(job, 5),
      StateChange{.job = job,
                  .state = JobState::kProfiling,
                  .profile_source = "measured",
                  .sweep_round = 2,
                  .next_profile_csv = "stage\n",
                  .next_blocking_power_watts = {71.5}},
      Measurements{.job = job,
                   .rank = 5,
                   .rows = {{.stage = 1,
                             .type = ComputationType::kBackwardInput,
                             .clock_mhz = 1410,
                             .time_seconds = 0.1,
                             .energy_joules = 1.0 / 3,
                             .samples = 12},
                            {.stage = 1,
                             .type = ComputationType::kForward,
                             .clock_mhz = 1305,
                             .time_seconds = 0.2,
                             .energy_joules = 7,
                             .samples = 40,
                             .time_std_seconds = 0.0004,
                             .energy_std_joules = 1.0 / 7,
                             .throttled = true,
                             .temperature_celsius = 55.5,
                             .work = 2048,
                             .seconds_per_work = 1.1e-5,
                             .joules_per_work = -4e-3,
                             .time_residual_std_seconds = 0.002,
                             .energy_residual_std_joules = 0.3}},
                   .blocking_power_watts = 70.5,
                   .done = true,
                   .sweep_round = 2,
                   .blocking_power_std_watts = 1.2,
                   .waiting = {{.clock_mhz = 1410, .watts = 70.5, .std_watts = 1.2},
                               {.clock_mhz = 705, .watts = 1.0 / 3}},
                   .counter_period_seconds = 0.02,
                   .sweep = SweepCost{.iterations = 120,
                                      .seconds = 64.1,
                                      .joules = 23000,
                                      .extra_seconds = 3.1,
                                      .extra_joules = -400},
                   .notes = {"clock 1305 did not take: 1290 seen", "MIG is on"}},
      ProfileRecord{.job = job,
                    .id = "p-" + job,
                    .model = "GPT-3",
                    .layout = "{}",
                    .metadata_json = "{\"a\":1}",
                    .profile_csv = "stage,x\n",
                    .blocking_power_watts = {70.5, 1.0 / 3},
                    .conditions_json = "{\"b\":2}",
                    .created_at_seconds = 1.7e9},
      ProfileConditions{.job = job, .profile = "p-" + job, .conditions_json = "{\"c\":3}"},
      StateChange{.job = job,
                  .state = JobState::kCharacterizing,
                  .reason = "why not",
                  .profile_csv = "stage,instruction\n",
                  .blocking_power_watts = std::vector<double>{70.5}},
      CurveRecord{.job = job,
                  .revision = 1,
                  .frontier_json = "{}",
                  .plans = {{.id = 1, .requested_time_seconds = 0.1 + 0.2, .knobs = {0, 4095, 64}},
                            {.id = 2, .requested_time_seconds = 2, .knobs = {1}}}},
      PlanVersion{.job = job,
                  .version = 3,
                  .reason = "straggler",
                  .at_seconds = 5.5,
                  .plan = 2,
                  .exceptions = {{1, 1}}},
      TargetChange{.job = job, .target = "min-energy"},
      StragglerRecord{.job = job, .id = 7, .pipeline = 1, .factor = 1.2, .starts_at_seconds = 9},
      StragglerRecord{.job = job,
                      .id = 8,
                      .node = "node2",
                      .delay_seconds = 0.4,
                      .starts_at_seconds = 9,
                      .expires_at_seconds = 10},
      StragglerGone{.job = job, .id = 8},
      IterationSummary{.job = job,
                       .plan_version = 3,
                       .reports = 10,
                       .total_seconds = 50,
                       .least_seconds = 4,
                       .most_seconds = 6,
                       .square_seconds2 = 252,
                       .energy_reports = 9,
                       .total_joules = 1e6,
                       .square_joules2 = 1.2e11},
      SampleHistory(job),
      DetectionChange{.job = job, .detection_json = "{}"},
      ConditionsChange{.job = job, .conditions_json = "{\"a\":2}"},
      LabelsChange{.job = job, .labels = {{"team", "language"}, {"project", "x"}}},
  };
}

std::string Described(const StoredJob& stored) {
  const JobRecord& job = stored.job;
  std::string text = fmt::format(
      "{} {} {} {} {} {}x{}x{} {} {} [{}] {} {} {} {}\n", job.id, job.client_key, job.name,
      job.owner, static_cast<int>(job.origin), job.pipeline_parallel, job.data_parallel,
      job.tensor_parallel, job.settings_json, job.profile_csv, CellOf(job.blocking_power_watts),
      job.target, JobStateName(job.state), job.reason, job.created_at_seconds);
  text += fmt::format("labels {}\n", CellOf(job.labels));
  for (const RankRecord& rank : stored.ranks) {
    text +=
        fmt::format("rank {} {} {} {} {} {} {} [{}]\n", rank.rank, rank.dp_rank, rank.pp_rank,
                    rank.tp_rank, rank.gpu_uuid, rank.gpu_name, rank.node, CellOf(rank.clocks_mhz));
  }
  for (const Measurements& measured : stored.measurements) {
    text += fmt::format("measured {} {} {} {} {} {} [{}] {} [{}] [{}]\n", measured.rank,
                        CellOf(measured.rows), measured.blocking_power_watts.value_or(-1),
                        measured.done, measured.sweep_round, measured.blocking_power_std_watts,
                        CellOf(measured.waiting), measured.counter_period_seconds,
                        CellOf(measured.sweep), CellOf(measured.notes));
  }
  if (stored.curve) {
    text += fmt::format("curve {} {}\n", stored.curve->revision, stored.curve->frontier_json);
    for (const PlanRecord& plan : stored.curve->plans) {
      text +=
          fmt::format("plan {} {} {}\n", plan.id, plan.requested_time_seconds, CellOf(plan.knobs));
    }
  }
  if (stored.version) {
    text += fmt::format("version {} {} {} {} [{}]\n", stored.version->version,
                        stored.version->reason, stored.version->at_seconds, stored.version->plan,
                        CellOf(stored.version->exceptions));
  }
  for (const StragglerRecord& straggler : stored.stragglers) {
    text += fmt::format("straggler {} {} {} {} {} {} {} {}\n", straggler.id,
                        straggler.pipeline.value_or(-1), straggler.rank.value_or(-1),
                        straggler.node, straggler.factor, straggler.delay_seconds,
                        straggler.starts_at_seconds, straggler.expires_at_seconds.value_or(-1));
  }
  text += fmt::format("last straggler {}\n", stored.last_straggler);
  for (const IterationSummary& summary : stored.iterations) {
    text += fmt::format("iterations {} {} {} {} {} {} {} {} {}\n", summary.plan_version,
                        summary.reports, summary.total_seconds, summary.least_seconds,
                        summary.most_seconds, summary.square_seconds2, summary.energy_reports,
                        summary.total_joules, summary.square_joules2);
  }
  text += fmt::format("detection {}\n", job.detection_json);
  text += fmt::format("library {} {} {} {} {} [{}]\n", job.library_json, job.profile_source,
                      job.sweep_round, job.settled_round, job.next_profile_csv,
                      CellOf(job.next_blocking_power_watts));
  return text;
}

std::string Described(Store& store) {
  const auto heads = store.ListHeads();
  if (!heads) throw std::runtime_error(heads.error().message);
  std::string text;
  for (const JobHead& head : *heads) text += Described(JobOrThrow(store, head.id));
  return text;
}

}  // namespace perseus::store
