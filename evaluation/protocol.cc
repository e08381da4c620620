// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "evaluation/protocol.h"

#include <fmt/format.h>

#include "evaluation/csv_table.h"
#include "evaluation/planning.h"

namespace perseus::sosp24 {
namespace {

// Profiles and frontiers are of a tenth of a stage and one of its GPUs.
constexpr double kTimeScale = 10;
constexpr double kEnergyScale = 10;

void FillEnvPipe(const Sosp24Emulation& cell, const Situation& situation, Sosp24Straggler* row) {
  const double joules = cell.envpipe_published_joules;
  const double own_waiting =
      situation.waiting_watts * (situation.until() - cell.envpipe_published_seconds);
  row->envpipe_job_percent = situation.JobPercent(joules + own_waiting, joules);
  // The artifact takes EnvPipe to end at T, and counts the waiting of two
  // pipelines too many.
  const double waiting = situation.waiting_watts * (situation.until() - situation.seconds);
  row->envpipe_artifact_pipeline_percent =
      SavingPercent(situation.BaselineUntil(), joules + waiting);
  row->envpipe_artifact_job_percent = SavingPercent(
      situation.BaselineJob(), (situation.pipelines - 1 + situation.slowdown) * joules +
                                   (situation.pipelines + 1) * waiting);
}

}  // namespace

Result<Profile> ReadStageProfile(const std::filesystem::path& file) {
  Result<Profile> profile = ReadProfile(file.string());
  if (!profile) return profile;
  for (OptionTable& table : profile->tables) {
    for (Option& option : table.options) {
      option.time_seconds *= kTimeScale;
      option.energy_joules *= kEnergyScale;
      option.time_std_seconds *= kTimeScale;
      option.energy_std_joules *= kEnergyScale;
    }
  }
  return profile;
}

Result<std::vector<Sosp24Point>> ReadFrontier(const std::filesystem::path& file) {
  const auto table = CsvTable::Read(file.string(), {"time", "energy"});
  if (!table) return tl::unexpected(table.error());
  if (table->rows() == 0) {
    return InvalidInput(fmt::format("{}: has no rows; expected a frontier", file.string()));
  }
  std::vector<Sosp24Point> points;
  points.reserve(table->rows());
  for (int row = 0; row < table->rows(); ++row) {
    const Result<double> time = table->Quantity(row, 0, Minimum::kAboveZero);
    if (!time) return tl::unexpected(time.error());
    const Result<double> energy = table->Quantity(row, 1, Minimum::kZero);
    if (!energy) return tl::unexpected(energy.error());
    points.push_back({*time * kTimeScale, *energy * (kEnergyScale * kTensorParallel)});
  }
  return points;
}

Result<EnvPipeResults> ReadEnvPipeResults(const std::filesystem::path& root) {
  EnvPipeResults results;
  const std::filesystem::path file = root / "emulation" / "envpipe_result.csv";
  if (!IsFile(file)) return results;
  const auto table = CsvTable::Read(
      file.string(), {"model", "device", "num_microbatches", "iteration_time", "energy"});
  if (!table) return tl::unexpected(table.error());
  for (int row = 0; row < table->rows(); ++row) {
    const Result<int> microbatches = table->Count(row, 2);
    if (!microbatches) return tl::unexpected(microbatches.error());
    const Result<double> time = table->Quantity(row, 3, Minimum::kAboveZero);
    if (!time) return tl::unexpected(time.error());
    const Result<double> energy = table->Quantity(row, 4, Minimum::kAboveZero);
    if (!energy) return tl::unexpected(energy.error());
    results[{table->Text(row, 0), table->Text(row, 1), *microbatches}] = {*time, *energy};
  }
  return results;
}

double BaselineJoules(const CostedPipeline& pipeline, double seconds) {
  double joules = pipeline.total_blocking_power_watts * seconds;
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    joules += EffectiveEnergy(pipeline.TableOf(i), pipeline.TableOf(i).baseline);
  }
  return joules;
}

double Situation::JobPercent(double healthy_joules, double straggler_joules) const {
  return SavingPercent(BaselineJob(),
                       (pipelines - 1) * healthy_joules + slowdown * straggler_joules);
}

Sosp24Emulation PublishedCell(const EmulationCase& one, const CostedPipeline& pipeline,
                              const PublishedFrontier& frontier, const EnvPipeResults& envpipe) {
  Sosp24Emulation cell;
  cell.model = one.model;
  cell.device = one.device;
  cell.microbatches = one.microbatches;
  cell.pipelines = kGlobalBatch / one.microbatches;
  cell.gpus = cell.pipelines * pipeline.dag.num_ranks * kTensorParallel;
  cell.published_seconds = frontier.fastest_seconds();
  cell.published_baseline_joules = BaselineJoules(pipeline, cell.published_seconds);
  cell.published_joules = frontier.LeastTotal(cell.published_seconds).energy_joules;
  cell.published_saving_percent =
      SavingPercent(cell.published_baseline_joules, cell.published_joules);
  const auto found = envpipe.find({one.model, one.device, one.microbatches});
  if (found != envpipe.end()) {
    cell.envpipe_published_seconds = found->second.iteration_time_seconds;
    cell.envpipe_published_joules = found->second.energy_joules;
  }
  return cell;
}

Situation PublishedSituation(const Sosp24Emulation& cell, double waiting_watts, double slowdown) {
  return {.seconds = cell.published_seconds,
          .baseline_joules = cell.published_baseline_joules,
          .slowdown = slowdown,
          .pipelines = cell.pipelines,
          .waiting_watts = waiting_watts};
}

Sosp24Straggler PublishedRow(const Sosp24Emulation& cell, const PublishedFrontier& frontier,
                             const Situation& situation) {
  const auto waited = [&](const Sosp24Point& point) {
    return point.energy_joules +
           situation.waiting_watts * (situation.until() - point.iteration_time_seconds);
  };
  Sosp24Straggler row;
  row.model = cell.model;
  row.device = cell.device;
  row.microbatches = cell.microbatches;
  row.slowdown = situation.slowdown;

  const Sosp24Point& total = frontier.LeastTotal(situation.until());
  row.published_pipeline_percent = SavingPercent(situation.BaselineUntil(), waited(total));
  row.published_job_percent = situation.JobPercent(waited(total), cell.published_joules);
  row.published_time_over_t = total.iteration_time_seconds / situation.seconds;
  const Sosp24Point& effective = frontier.LeastEffective(situation.until());
  row.effective_job_percent = situation.JobPercent(waited(effective), cell.published_joules);
  row.effective_time_over_t = effective.iteration_time_seconds / situation.seconds;
  row.rules_are_brute_force_best = frontier.RulesAreBest(situation.until());
  if (cell.envpipe_published_joules > 0) FillEnvPipe(cell, situation, &row);
  return row;
}

}  // namespace perseus::sosp24
