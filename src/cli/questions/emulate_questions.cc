// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/questions/emulate_questions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/framework/table.h"
#include "cli/planning/summary.h"
#include "perseus/analysis.h"
#include "perseus/assignment.h"
#include "perseus/stream.h"
#include "perseus/work.h"

namespace perseus::cli {
namespace {

// An analysis' error, with the option that asked for it.
tl::unexpected<Error> AboutOption(std::string_view option, Error error) {
  error.message = fmt::format("{}: {}", option, error.message);
  return tl::unexpected<Error>(std::move(error));
}

PlanAnswer MakeAnswer(const Planner& planner, Plan plan) {
  PlanAnswer answer;
  const double own_seconds = planner.Evaluate(plan.options)->iteration_time_seconds;
  if (!SameTime(own_seconds, plan.iteration_time_seconds)) {
    answer.wait_seconds = plan.iteration_time_seconds - own_seconds;
  }
  answer.plan = std::move(plan);
  return answer;
}

// Costs of the run in the scenario, from the mean iteration of one pipeline.
Result<void> AnswerRun(const EmulateFlags& flags, EmulationSummary* summary) {
  const double iterations = static_cast<double>(summary->spec.iterations);
  const int gpus = summary->pipeline->dag.num_ranks * summary->pipeline->tensor_parallel;
  const auto cost = [&](const Emulation& emulation) {
    return CostOfRun(flags.run, {.baseline_seconds = summary->baseline->time_seconds / iterations,
                                 .seconds = emulation.time_seconds / iterations,
                                 .joules = emulation.energy.total_joules() / iterations /
                                           summary->spec.pipelines,
                                 .gpus = gpus});
  };
  summary->run = flags.run;
  summary->currency = flags.currency;
  summary->run_at_baseline = cost(*summary->baseline);
  summary->run_cost = cost(*summary->emulation);
  for (const auto& each : {summary->run_at_baseline, summary->run_cost}) {
    if (std::isfinite(each->mwh) && std::isfinite(each->price) && std::isfinite(each->carbon_kg) &&
        std::isfinite(each->gpu_hours)) {
      continue;
    }
    return InvalidInput(fmt::format(
        "--gpu-hours: the run's figures are too large to state ({:.3g} GPU hours, an iteration of "
        "{:.3g} s and {:.3g} J); check the units of the profile (seconds, joules)",
        flags.run.gpu_hours.value_or(0), summary->baseline->time_seconds / iterations,
        summary->baseline->energy.total_joules() / iterations));
  }
  return {};
}

Result<void> AnswerAssignment(const Job& job, const std::vector<double>& lengths,
                              ProgressLine* progress, EmulationSummary* summary) {
  const auto stream = StreamPlanner::Create(job.profile, job.pipeline.dag, job.costs,
                                            StreamOptionsOf(job.settings));
  if (!stream) return tl::unexpected(stream.error());
  AssignmentSpec spec;
  spec.pipelines = static_cast<int>(lengths.size()) / job.pipeline.dag.num_microbatches;
  progress->SetWhat("assignment");
  auto results = AnalyseAssignment(*stream, lengths, spec, progress->Function());
  if (!results) return AboutOption("--assignment", results.error());
  summary->assignments = *std::move(results);
  summary->assigned_pipelines = spec.pipelines;
  return {};
}

}  // namespace

// The lengths of all pipelines' microbatches, relative to the profile's.
Result<std::vector<double>> ReadLengths(const std::string& path, const Job& job) {
  const Result<WorkTable> table = ReadWork(path);
  if (!table) return AboutOption("--assignment", table.error());
  const std::size_t slots = static_cast<std::size_t>(job.pipeline.dag.num_microbatches);
  std::vector<double> lengths(table->rows.size(), 0.0);
  double mean = 1;
  if (table->in_tokens) {
    mean = job.settings.work_tokens.value_or(0);
    if (mean == 0) {
      for (const WorkRow& row : table->rows) mean += row.value;
      mean /= static_cast<double>(lengths.size());
    }
  }
  for (const WorkRow& row : table->rows) {
    const bool known = static_cast<std::size_t>(row.microbatch) < lengths.size();
    if (known && !row.type) lengths[row.microbatch] = row.value / mean;
  }
  const std::optional<int> pipelines = job.settings.data_parallel;
  const bool complete = std::find(lengths.begin(), lengths.end(), 0.0) == lengths.end();
  if (complete && lengths.size() % slots == 0) {
    const std::size_t tabled = lengths.size() / slots;
    if (!pipelines || static_cast<std::size_t>(*pipelines) == tabled) return lengths;
    return InvalidInput(fmt::format(
        "--assignment: {} has the microbatches of {}, but the job has {}; give --dp {}, or a table "
        "of as many",
        path, CountOf(static_cast<std::int64_t>(tabled), "pipeline"), *pipelines, tabled));
  }
  return InvalidInput(
      fmt::format("--assignment: {}: expected a factor or tokens for each microbatch, counted from "
                  "0, of one pipeline or "
                  "more, {} each",
                  path, CountOf(static_cast<std::int64_t>(slots), "microbatch")));
}

Result<void> CheckShapeQuestions(const EmulateFlags& flags, const JobFile& settings) {
  if (!flags.imbalance && !flags.has_sweep) return {};
  const std::string_view flag = flags.imbalance ? "--imbalance" : "--sweep";
  if (settings.work) {
    return InvalidInput(fmt::format(
        "{} is for microbatches that are alike; leave out the work table (--work)", flag));
  }
  if ((settings.schedule_file || settings.schedule_csv) && !settings.schedule) {
    return InvalidInput(fmt::format(
        "{} needs a schedule by name (--schedule): one from a file has no other shape", flag));
  }
  return {};
}

Result<void> CheckAssignment(const EmulateFlags& flags, const JobFile& settings) {
  if (flags.assignment_file.empty()) return {};
  if (settings.work_fit) {
    return InvalidInput(
        "--assignment scales every time of a microbatch with its length; leave out the fit of the "
        "work table (work_fit)");
  }
  const PlanTarget target = settings.at.value_or(PlanTarget{});
  if (target == PlanTarget{}) return {};
  return InvalidInput(fmt::format(
      "--assignment is planned for the job's time at maximum clocks, not for {}; leave out the "
      "target (--at)",
      PlanTargetText(target)));
}

Result<void> CheckQuestions(const EmulateFlags& flags) {
  if (!flags.run.gpu_hours && (flags.run.price_per_kwh || flags.run.carbon_g_per_kwh)) {
    return InvalidInput(fmt::format("{} needs --gpu-hours, the GPU hours of the run",
                                    flags.run.price_per_kwh ? "--price" : "--carbon"));
  }
  if (flags.deadline_seconds.has_value() != flags.run_iterations.has_value()) {
    return InvalidInput(
        flags.deadline_seconds
            ? "--deadline needs the iterations of the whole run, too: --run-iterations, as in "
              "'--deadline 30d --run-iterations 500000' (--iterations is how many are emulated)"
            : "--run-iterations is for --deadline, the time that the whole run may take; give "
              "both, as in '--deadline 30d --run-iterations 500000'");
  }
  if (!flags.layers.empty() && !flags.imbalance) {
    return InvalidInput("--layers is for --imbalance; give both");
  }
  return {};
}

Result<void> AnswerBudgets(const EmulateFlags& flags, const Job& job, const Planner& planner,
                           double effort, EmulationSummary* summary) {
  const PlanConstraints constraints = job.Constraints();
  if (flags.power_budget_watts) {
    Result<Plan> plan =
        FastestWithinPower(planner, *flags.power_budget_watts / summary->spec.pipelines,
                           {.constraints = constraints, .effort = effort});
    if (!plan) return AboutOption("--power-budget", plan.error());
    summary->power_budget = {*flags.power_budget_watts, MakeAnswer(planner, *std::move(plan))};
  }
  if (flags.deadline_seconds) {
    const double seconds = *flags.deadline_seconds / static_cast<double>(*flags.run_iterations);
    Result<Plan> plan =
        CheapestWithin(planner, seconds, {.constraints = constraints, .effort = effort});
    if (!plan) return AboutOption("--deadline", plan.error());
    summary->deadline = {*flags.deadline_seconds, *flags.run_iterations,
                         MakeAnswer(planner, *std::move(plan))};
  }
  return {};
}

Result<void> AnswerLimits(const EmulateFlags& flags, const Planner& planner, const Policy& policy,
                          ProgressLine* progress, EmulationSummary* summary) {
  if (!flags.power_limits.any()) return {};
  progress->SetWhat("power limits");
  Result<std::vector<SlowerRun>> runs =
      SlowDownToLimits(planner, policy, summary->spec, flags.power_limits, progress->Function());
  if (!runs) return tl::unexpected(runs.error());
  summary->power_limits = flags.power_limits;
  summary->slower = *std::move(runs);
  return {};
}

Result<void> AnswerQuestions(const EmulateFlags& flags, const Job& job,
                             const std::vector<double>& lengths, double effort,
                             ProgressLine* progress, EmulationSummary* summary) {
  if (flags.run.gpu_hours) {
    if (auto answered = AnswerRun(flags, summary); !answered) return answered;
  }
  if (!flags.assignment_file.empty()) {
    if (auto answered = AnswerAssignment(job, lengths, progress, summary); !answered)
      return answered;
  }
  if (!flags.imbalance && !flags.has_sweep) return {};
  const JobShape shape = {&job.profile, job.schedule, job.fixed, job.costs};
  if (flags.imbalance) {
    progress->SetWhat("imbalance");
    Result<std::vector<PartitionResult>> partitions =
        AnalysePartitions(shape, flags.layers, effort);
    if (!partitions) return AboutOption("--imbalance", partitions.error());
    summary->partitions = *std::move(partitions);
  }
  if (flags.has_sweep) {
    progress->SetWhat("sweep");
    SweepSpec sweep = flags.sweep;
    sweep.effort = effort;
    Result<std::vector<SweepRow>> rows = SweepShapes(shape, sweep, progress->Function());
    if (!rows) return AboutOption("--sweep", rows.error());
    summary->sweep = *std::move(rows);
  }
  return {};
}

}  // namespace perseus::cli
