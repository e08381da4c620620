// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/framework/option_data.h"
#include "cli/framework/outputs.h"
#include "cli/framework/table.h"
#include "cli/planning/job.h"
#include "cli/planning/summary.h"
#include "cli/questions/emulate_questions.h"
#include "cli/questions/emulation_answers.h"
#include "cli/questions/emulation_summary.h"
#include "cli/questions/policy_runs.h"
#include "cli/questions/shape_text.h"
#include "common/file.h"
#include "emulate/straggler_text.h"
#include "job/job_fields.h"
#include "model/plan_figures.h"
#include "perseus/effort.h"
#include "perseus/emulation_report.h"
#include "perseus/emulator.h"
#include "perseus/policy.h"
#include "plan/named_times.h"

namespace perseus::cli {
namespace {

// The flag of the first constraint that is given; "": none.
std::string_view ConstraintIn(const JobFile& given) {
  for (const model::Constraint& constraint : model::Constraints()) {
    const job::Field& field = *job::FindField(constraint.field);
    if (job::IsSet(field, given)) return field.flag;
  }
  return "";
}

Result<void> CheckFlags(const Invocation& invocation) {
  const EmulateFlags& flags = invocation.emulate;
  if (!flags.plan_file.empty() && flags.policy) {
    return InvalidInput("--plan and --policy exclude each other; keep one of them");
  }
  const JobFile& given = invocation.job.overrides;
  // A job file's hold for the plan that it makes.
  const std::string_view robust = given.max_slowdown  ? "--max-slowdown"
                                  : given.confidence  ? "--set confidence"
                                  : given.max_changes ? "--max-changes"
                                                      : "";
  if (!flags.plan_file.empty()) {
    const std::string_view constraint = flags.compare ? "" : ConstraintIn(given);
    const std::string_view for_making = constraint.empty() ? robust : constraint;
    if (!for_making.empty()) {
      return InvalidInput(
          fmt::format("{} is for making plans, and --plan replays one that was made; leave it out",
                      for_making));
    }
  }
  if (!robust.empty() && flags.policy.value_or(std::string(kPerseus)) != kPerseus) {
    return InvalidInput(fmt::format("{} is for the policy perseus; {} takes no notice of it",
                                    robust, *flags.policy));
  }
  if (!flags.straggler_rate && (flags.straggler_kind || flags.straggler_duration_seconds)) {
    return InvalidInput(
        fmt::format("{} is for --straggler-rate; give both",
                    flags.straggler_kind ? "--straggler-kind" : "--straggler-duration"));
  }
  if (flags.no_reaction && flags.reaction_delay_seconds) {
    return InvalidInput("--reaction-delay and --no-reaction exclude each other; keep one of them");
  }
  if (flags.timeline_iteration && *flags.timeline_iteration >= flags.iterations) {
    return InvalidInput(
        fmt::format("--timeline-iteration is {}, but the iterations are 0 to {} (--iterations {})",
                    *flags.timeline_iteration, flags.iterations - 1, flags.iterations));
  }
  return CheckQuestions(flags);
}

// What the emulator would find as well, but after the frontier was computed.
Result<void> CheckStragglers(const EmulationSpec& spec, const CostedPipeline& pipeline) {
  const PipelineDag& dag = pipeline.dag;
  if (spec.random_stragglers.share_of_gpus_per_day > 0) {
    const RandomStragglers& random = spec.random_stragglers;
    if (auto good = emulate::CheckLimit(pipeline, random.kind, random.value); !good) {
      return good;
    }
  }
  for (const Straggler& each : spec.stragglers) {
    if (auto good = emulate::CheckLimit(pipeline, each.kind, each.value); !good) return good;
    const std::string what =
        fmt::format("--straggler {}={}", StragglerKindName(each.kind), each.value);
    if (each.pipeline >= spec.pipelines) {
      return InvalidInput(
          fmt::format("{}: there is no pipeline {}; the job has {} (--dp), counted "
                      "from 0",
                      what, each.pipeline, CountOf(spec.pipelines, "pipeline")));
    }
    if (each.rank.value_or(0) >= dag.num_ranks) {
      return InvalidInput(fmt::format("{}: there is no rank {}; a pipeline has {}, counted from 0",
                                      what, *each.rank, CountOf(dag.num_ranks, "rank")));
    }
    if (each.first_iteration >= spec.iterations) {
      return InvalidInput(fmt::format(
          "{}: it comes in iteration {}, but only {} emulated, counted from 0 (--iterations)", what,
          each.first_iteration,
          spec.iterations == 1 ? "1 is" : fmt::format("{} are", spec.iterations)));
    }
  }
  return {};
}

void SetConditions(const Conditions& conditions, EmulationSpec* spec) {
  spec->noise = conditions.noise;
  spec->switching = conditions.switching;
}

// A scenario is one job, and a range is of jobs that may be.
void NoteMiddle(const Conditions& conditions, std::vector<std::string>* remarks) {
  if (!conditions.ranges.any()) return;
  remarks->push_back(
      "of conditions that are ranges, the middle is emulated; give one value for another.");
}

// Without the target, for which a policy may be needed.
EmulationSpec MakeSpec(const EmulateFlags& flags, const Job& job) {
  EmulationSpec spec = flags.spec;
  SetConditions(ConditionsOf(job.settings), &spec);
  spec.pipelines = job.DataParallel();
  spec.iterations = flags.iterations;
  RandomStragglers& random = spec.random_stragglers;
  random.share_of_gpus_per_day = flags.straggler_rate.value_or(0);
  random.duration_seconds = flags.straggler_duration_seconds.value_or(random.duration_seconds);
  if (flags.straggler_kind) {
    random.kind = flags.straggler_kind->kind;
    random.value = flags.straggler_kind->value;
  }
  spec.control.reacts = !flags.no_reaction;
  spec.control.delay_seconds = flags.reaction_delay_seconds.value_or(0);
  spec.power_shape.band = flags.power_band.value_or(spec.power_shape.band);
  spec.power_shape.ramp_limit_watts_per_second = flags.power_limits.ramp_watts_per_second;
  spec.power_interval_seconds = flags.power_interval_seconds;
  spec.timeline_iteration = flags.timeline_iteration;
  return spec;
}

// What the command line asks for; a job file's constraints bind perseus alone.
PolicySpec MakePolicySpec(const Invocation& invocation, const Job& job, double effort,
                          std::vector<std::string>* remarks) {
  PolicySpec spec;
  spec.name = invocation.emulate.policy.value_or(std::string(kPerseus));
  spec.effort = effort;
  spec.constraints = job.Constraints();
  if (spec.name == kPerseus) return spec;
  const bool has_more = spec.constraints.any();
  spec.constraints = ConstraintsOf(invocation.job.overrides);
  if (has_more && !spec.constraints.any()) {
    remarks->push_back(
        fmt::format("the job file's constraints are for perseus; {} knows none.", spec.name));
  }
  return spec;
}

std::vector<std::string> OutputNames() {
  return {"emulation.json", "iterations.csv", "power.csv", std::string(kTraceFileName),
          "report.html"};
}

EmulationReportInput MakeReportInput(const EmulationSummary& summary) {
  EmulationReportInput input;
  input.profile = summary.profile;
  input.pipeline = summary.pipeline;
  input.spec = &summary.spec;
  input.emulation = summary.emulation;
  input.baseline = summary.baseline;
  input.baseline_plan = summary.baseline_plan;
  input.title = "Emulated job: " + std::filesystem::path(summary.profile->source).stem().string();
  input.policy = summary.policy;
  input.label = summary.label;
  input.policies = summary.policies;
  input.partitions = summary.partitions;
  input.assignments = summary.assignments;
  input.sweep = summary.sweep;
  input.power_budget = summary.power_budget;
  input.deadline = summary.deadline;
  input.power_limits = summary.power_limits;
  input.slower = summary.slower;
  input.run_spec = summary.run;
  input.run_at_baseline = summary.run_at_baseline;
  input.run = summary.run_cost;
  input.currency = summary.currency;
  input.scenario = ScenarioInWords(summary.spec);
  input.change_joules = summary.change_joules;
  input.notes = summary.notes;
  input.remarks = summary.remarks;
  input.files = summary.files;
  return input;
}

Result<void> WriteOutputs(EmulationSummary* summary) {
  summary->files = OutputNames();
  const EmulationReportInput report = MakeReportInput(*summary);
  EmulationReportInput page = report;
  if (summary->power_budget) page.remarks.push_back(PowerBudgetSentence(*summary));
  if (summary->deadline) page.remarks.push_back(DeadlineSentence(*summary));
  if (summary->change_joules > 0) page.remarks.push_back(PriceOfChangesSentence(*summary));
  std::vector<OutputFile> files;
  const auto add = [&files](std::string_view name, Result<std::string> bytes) -> Result<void> {
    if (!bytes) return tl::unexpected(bytes.error());
    files.push_back({std::string(name), *std::move(bytes)});
    return {};
  };
  if (auto good = add("emulation.json", FormatEmulationJson(report)); !good) return good;
  files.push_back({"iterations.csv", FormatIterationsCsv(*summary->emulation)});
  files.push_back({"power.csv", FormatPowerCsv(*summary->emulation)});
  if (auto good = add(kTraceFileName, FormatEmulationTimelineTrace(report)); !good) return good;
  if (auto good = add("report.html", FormatEmulationHtml(page)); !good) return good;
  return WriteFilesAtomically(summary->output_directory, files);
}

std::string PlanCommand(const std::vector<std::string>& arguments) {
  std::string command = "perseus plan";
  for (const std::string& argument : arguments) command += " " + ShellWord(argument);
  return command;
}

// Noise and late clocks as flags are a scenario for any plan; whose job is planned under
// conditions, or who says what may be given up for what, wants the plan that holds.
bool AsksForPlanThatHolds(const JobFile& settings) {
  const bool is_of_the_job =
      std::any_of(settings.places.begin(), settings.places.end(), [](const auto& place) {
        const job::Field* const field = job::FindField(place.first);
        return field != nullptr && field->condition();
      });
  return is_of_the_job || settings.max_slowdown || settings.max_changes || settings.confidence ||
         settings.change_price_joules;
}

// The policy that the user wants, under its names in `summary`.
Result<std::unique_ptr<Policy>> ChoosePolicy(const Invocation& invocation, const Job& job,
                                             const Planner& planner, double effort,
                                             ProgressLine* progress, EmulationSummary* summary) {
  const std::string& file = invocation.emulate.plan_file;
  const PolicySpec spec = MakePolicySpec(invocation, job, effort, &summary->remarks);
  if (file.empty() && spec.name == kPerseus && AsksForPlanThatHolds(job.settings)) {
    const Result<double> seconds = planner.TargetSeconds(job.Target());
    if (!seconds) return tl::unexpected(seconds.error());
    Result<RobustPlan> robust = SearchThatHolds(job, planner, *seconds, effort, false, progress);
    if (!robust) return tl::unexpected(robust.error());
    summary->policy = kPerseus;
    summary->label = "perseus (holds)";
    summary->policy_summary = "The plan that holds under the conditions.";
    return MakeSinglePlanPolicy(kPerseus, std::move(robust->plan));
  }
  std::optional<Conditions> conditions;
  Result<std::unique_ptr<Policy>> policy =
      file.empty() ? MakePolicy(spec, planner)
                   : ReadPolicy(file, planner, job.profile, &conditions, &summary->remarks);
  if (!policy) return policy;
  if (conditions) {
    // The plan's, unless a flag says otherwise.
    ApplyConditions(Overrides(invocation.job), &*conditions);
    const ClockSwitching& switching = conditions->switching;
    if (switching.latency_spread_seconds > switching.latency_seconds) {
      const bool is_given = invocation.job.overrides.switch_latency_spread_seconds.has_value();
      return InvalidInput(fmt::format(
          fmt::runtime(is_given
                           ? "--set switch_latency_spread is {1:g} s, more than the latency of "
                             "{0:g} s that it is the spread of, after the plan's conditions"
                           : "--switch-latency is {0:g} s, less than its spread in the plan's "
                             "conditions, {1:g} s; give --set switch_latency_spread, too"),
          switching.latency_seconds, switching.latency_spread_seconds));
    }
    SetConditions(*conditions, &summary->spec);
    NoteMiddle(*conditions, &summary->remarks);
    summary->change_joules = conditions->change_joules;
    if (!invocation.job.overrides.change_price_joules) {
      summary->change_price_name = "change_price_j of the plan";
    }
  }
  summary->policy = (*policy)->name();
  summary->label = file.empty() ? LabelOf(spec) : std::filesystem::path(file).filename().string();
  summary->policy_summary = file.empty() ? SummaryOf(spec) : "A plan that was made before.";
  return policy;
}

// A plan from a file is its own target, unless another one is given.
Result<void> SetTarget(const Job& job, const Planner& planner, bool is_replay, double effort,
                       const Policy& policy, EmulationSummary* summary) {
  if (is_replay && !job.settings.at) {
    const Result<Plan> plan = policy.PlanFor(planner.baseline().iteration_time_seconds);
    if (!plan) return tl::unexpected(plan.error());
    summary->spec.target_seconds = plan->iteration_time_seconds;
    summary->target = "the plan's own time";
    return {};
  }
  const PlanTarget target = job.Target();
  Result<double> seconds = planner.TargetSeconds(target);
  if (!seconds) return tl::unexpected(seconds.error());
  if (target.kind == PlanTarget::Kind::kEconomic && summary->policy == kPerseus) {
    // The frontier's least energy is there, but that of plans may be at another time.
    const Result<Plan> least =
        plan::PlanAmongNamed(planner, *seconds, job.Constraints(), effort, {}, true);
    if (!least) return tl::unexpected(least.error());
    seconds = least->requested_time_seconds;
  }
  summary->spec.target_seconds = *seconds;
  summary->target = "--at " + PlanTargetText(target);
  summary->notes = job.NotesAt(planner.frontier(), *seconds);
  return {};
}

std::vector<PolicyRow> RowsOfTwo(const EmulationSummary& summary) {
  std::vector<PolicyRow> rows;
  rows.push_back(MakeRow(std::string(kMaxClocks), PolicySummary(kMaxClocks), *summary.baseline,
                         *summary.baseline));
  if (summary.policy != kMaxClocks) {
    rows.push_back(
        MakeRow(summary.label, summary.policy_summary, *summary.emulation, *summary.baseline));
  }
  return rows;
}

}  // namespace

Result<Printout> RunEmulate(const Invocation& invocation, const Style& style) {
  const EmulateFlags& flags = invocation.emulate;
  if (auto good = CheckFlags(invocation); !good) return tl::unexpected(good.error());
  Result<JobFile> settings = MergeSettings(invocation.job);
  if (!settings) return tl::unexpected(settings.error());
  const bool is_replay = !flags.plan_file.empty();
  if (auto good = CheckShapeQuestions(flags, *settings); !good) {
    return tl::unexpected(good.error());
  }
  if (auto good = CheckAssignment(flags, *settings); !good) return tl::unexpected(good.error());
  if (auto good = CheckPairs(*settings, is_replay, !flags.assignment_file.empty()); !good) {
    return tl::unexpected(good.error());
  }
  if (!flags.output_directory.empty()) {
    std::vector<InputFile> inputs = InputsOf(invocation.job, *settings);
    if (!flags.plan_file.empty()) inputs.push_back({"the plan", flags.plan_file});
    if (!flags.assignment_file.empty()) {
      inputs.push_back({"the lengths of --assignment", flags.assignment_file});
    }
    const auto good = CheckOutputFiles(flags.output_directory, OutputNames(), inputs);
    if (!good) return tl::unexpected(good.error());
  }
  const Result<Job> job = LoadBelievableJob(invocation.job, *std::move(settings), "emulate");
  if (!job) return tl::unexpected(job.error());
  Result<std::vector<double>> lengths;
  if (!flags.assignment_file.empty()) lengths = ReadLengths(flags.assignment_file, *job);
  if (!lengths) return tl::unexpected(lengths.error());
  EmulationSummary summary;
  summary.spec = MakeSpec(flags, *job);
  summary.shows_shape = flags.power_band.has_value();
  summary.change_joules = ConditionsOf(job->settings).change_joules;
  summary.change_price_name = NameOf(job->settings, "change_price");
  if (auto good = CheckStragglers(summary.spec, job->pipeline); !good) {
    return tl::unexpected(good.error());
  }
  const double effort = job->Effort(kTableEffort);
  ProgressLine progress("frontier");
  const Result<Planner> planner = MakePlanner(*job, effort, &progress);
  if (!planner) return tl::unexpected(planner.error());

  summary.profile = &job->profile;
  summary.pipeline = &planner->pipeline();
  summary.baseline_plan = &planner->baseline();
  summary.virtual_stages = job->virtual_stages;
  summary.split_ratio = job->costs.split_ratio;
  summary.plan_command = PlanCommand(invocation.plan_arguments);
  summary.notes = job->notes;
  summary.remarks = PipelineRemarks(planner->pipeline(), job->virtual_stages);
  if (!is_replay) NoteMiddle(ConditionsOf(job->settings), &summary.remarks);
  const auto policy = ChoosePolicy(invocation, *job, *planner, effort, &progress, &summary);
  if (!policy) return tl::unexpected(policy.error());
  if (!is_replay && summary.policy == kPerseus && !job->settings.effort) {
    summary.usual_effort = kTableEffort;
  }
  if (auto set = SetTarget(*job, *planner, is_replay, effort, **policy, &summary); !set) {
    return tl::unexpected(set.error());
  }
  if (auto answered = AnswerBudgets(flags, *job, *planner, effort, &summary); !answered) {
    return tl::unexpected(answered.error());
  }

  const Scenario scenario(*planner, summary.spec, &progress);
  PolicySpec baseline_spec;
  baseline_spec.name = kMaxClocks;
  const Result<Emulation> baseline = scenario.Run(baseline_spec);
  if (!baseline) return tl::unexpected(baseline.error());
  const Result<Emulation> emulation =
      summary.policy == kMaxClocks ? baseline : scenario.Run(summary.label, **policy);
  if (!emulation) return tl::unexpected(emulation.error());
  summary.baseline = &*baseline;
  summary.emulation = &*emulation;
  summary.compared = flags.compare;
  Result<std::vector<PolicyRow>> rows =
      flags.compare ? Compare(scenario, job->Constraints(), effort, summary) : RowsOfTwo(summary);
  if (!rows) return tl::unexpected(rows.error());
  summary.policies = *std::move(rows);
  if (auto answered = AnswerLimits(flags, *planner, **policy, &progress, &summary); !answered) {
    return tl::unexpected(answered.error());
  }
  NoteUnresolved(summary, &summary.remarks);
  if (auto answered = AnswerQuestions(flags, *job, *lengths, effort, &progress, &summary);
      !answered) {
    return tl::unexpected(answered.error());
  }
  summary.output_directory = flags.output_directory;
  if (!flags.output_directory.empty()) {
    if (auto written = WriteOutputs(&summary); !written) {
      return tl::unexpected(written.error());
    }
  }
  if (!flags.json) {
    return Printout(FormatEmulationSummary(summary, style), flags.output_directory);
  }
  Result<std::string> json = FormatEmulationJson(MakeReportInput(summary));
  if (!json) return tl::unexpected(json.error());
  return Printout(*std::move(json), flags.output_directory);
}

}  // namespace perseus::cli
