// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_options.h"
#include "cli/value_parsers.h"
#include "common/nearest_name.h"
#include "perseus/schedule.h"

namespace perseus::cli {

void AddPipelineOptions(CommandParser* parser, JobFlags* job, const std::string& dp_help) {
  JobFile* flags = &job->overrides;
  parser->AddInput(
      &job->input, "PROFILE.csv|JOB.toml|JOB.json",
      "What each computation costs at each clock: the CSV of Zeus and lowtime "
      "(stage,instruction,frequency,time,energy). Or a job file that names the profile and "
      "holds everything that the options can say; an option given here wins over it.");
  parser->SetGroup("Pipeline");
  parser->AddText(
      "--schedule", "NAME",
      fmt::format("The pipeline schedule: {}.", fmt::join(ScheduleNames(), ", ")),
      [flags](const std::string& text) -> Result<void> {
        flags->schedule = CanonicalScheduleName(text);
        if (flags->schedule) return {};
        const std::string nearest = NearestName(text, ScheduleNames());
        return InvalidInput(fmt::format(
            "there is no schedule '{}'{}; the names are {} (a schedule in a file is read with "
            "--schedule-file)",
            text, nearest.empty() ? "" : fmt::format(", did you mean '{}'?", nearest),
            fmt::join(ScheduleNames(), ", ")));
      },
      {ValueKind::kChoice, ScheduleNames()});
  parser->AddText(
      "--schedule-file", "FILE",
      "A schedule in PyTorch's CSV text instead of a name: a row per rank, a cell per action.",
      [flags](const std::string& text) -> Result<void> {
        flags->schedule_file = text;
        return {};
      },
      {ValueKind::kFile, {}});
  parser->AddCount(
      &flags->stages, "--stages",
      "Stages of the model = ranks x virtual stages; they must be those of the profile. "
      "Default: the profile's.",
      1, kMostStages);
  parser->AddCount(&flags->virtual_stages, "--virtual-stages",
                   "Stages that each rank holds (default 1; zbv-zero-bubble and dualpipev need 2).",
                   1, kMostStages);
  parser->AddCount(&flags->microbatches, "--microbatches", "Microbatches of one iteration.", 1,
                   kMostMicrobatches);
  parser->AddCount(
      &flags->microbatch_group_size, "--microbatch-group-size",
      "megatron-interleaved only: microbatches of a group (default: the number of ranks).", 1,
      kMostMicrobatches);
  parser->SetGroup("Costs");
  parser->AddValue<std::vector<double>>(
      &flags->blocking_power_watts, "--blocking-power", "WATTS[,WATTS...]",
      "Power that one GPU draws while it waits: one number, or one for each rank.", ParseWatts);
  parser->AddCount(
      &flags->tensor_parallel, "--tp",
      "GPUs of one rank; energies of a profile without tp_rank column are multiplied by it "
      "(default 1).",
      1, kMostGpus);
  parser->AddCount(&flags->data_parallel, "--dp", dp_help, 1, kMostGpus);
  parser->AddValue<double>(
      &flags->split_ratio, "--split-ratio", "SHARE",
      "Share of `backward` that is backward_input, where the schedule needs the two "
      "parts and the profile has only their sum (default 0.5).",
      [](std::string_view text) {
        return ParseNumber(text, {0, 1, /*excludes_ends=*/true}, "");
      });
  parser->AddValue<TimeMargin>(
      &flags->time_margin, "--time-margin", "P%|Nsigma",
      "Plan with times longer than measured: by a share (1%), by standard "
      "deviations of the profile's time_std (2sigma), or by the larger of both "
      "(2sigma,1%).",
      ParseTimeMargin);
  parser->AddValue<std::vector<double>>(
      &flags->comm_delay_seconds, "--comm-delay", "TIME[,TIME...]",
      "Transfer between neighbouring stages on different ranks: one for "
      "all boundaries, or one for each.",
      ParseDurations);
  parser->AddValue<double>(&flags->data_loading_seconds, "--data-loading", "TIME",
                           "Reading a microbatch, before each forward of stage 0.", ParseDuration);
  parser->AddValue<double>(&flags->iteration_overhead_seconds, "--iteration-overhead", "TIME",
                           "All-reduce and optimizer, after the last computation.", ParseDuration);
}

void AddPlanOptions(CommandParser* parser, JobFlags* job, const std::string& effort_help) {
  JobFile* flags = &job->overrides;
  parser->SetGroup("Plan");
  parser->AddValue<PlanTarget>(
      &flags->at, "--at", "POINT",
      "The point of the plan: 1.02x (times the all-maximum-clock time), seconds, economic (least "
      "energy), fastest, or tstar. Default 1.0x: no slowdown.",
      ParseTarget);
  parser->AddText(
      "--granularity", "KIND",
      "What shares one clock: computation (default: nothing), phase (stage, type and warm-up / "
      "steady / cool-down), stage-type, or stage.",
      [flags](const std::string& text) -> Result<void> {
        flags->granularity = ParseGranularity(text);
        if (flags->granularity) return {};
        return InvalidInput(
            fmt::format("expected computation, phase, stage-type or stage, got '{}'", text));
      },
      {ValueKind::kChoice, {"computation", "phase", "stage-type", "stage"}});
  parser->AddValue<double>(&flags->min_dwell_seconds, "--min-dwell", "TIME",
                           "A rank keeps a clock at least this long before the next change (20ms).",
                           ParseDuration);
  parser->AddCount(&flags->max_clocks, "--max-clocks", "Most distinct clocks in the plan.", 1,
                   1000);
  parser->AddValue<double>(&flags->effort, "--effort", "FACTOR", effort_help,
                           [](std::string_view text) {
                             return ParseNumber(text, {0.001, 1000}, "");
                           });
}

void AddSolverOptions(CommandParser* parser, JobFlags* job) {
  JobFile* flags = &job->overrides;
  parser->SetGroup("Solver");
  parser->AddValue<double>(
      &flags->coarse_watts, "--coarse", "WATTS|auto",
      "For very large pipelines: a frontier with slopes rounded to multiples of this, with a "
      "certified error. 0 is exact; auto is exact unless the pipeline is very large (default).",
      [](std::string_view text) -> Result<double> {
        if (text == "auto") return -1.0;
        return ParseNumber(text, {0, 1e6}, "watts, or 'auto',");
      });
  parser->AddText(
      "--cost-curve", "hull|exponential",
      "How costs are interpolated between clocks: the exact lower hull (default), or the paper's "
      "fit a exp(b t) + c, for comparison.",
      [flags](const std::string& text) -> Result<void> {
        if (text != "hull" && text != "exponential") {
          return InvalidInput(fmt::format("expected hull or exponential, got '{}'", text));
        }
        flags->exponential_fit = text == "exponential";
        return {};
      },
      {ValueKind::kChoice, {"hull", "exponential"}});
}

}  // namespace perseus::cli
