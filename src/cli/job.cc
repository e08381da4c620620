// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/job.h"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "cli/table.h"
#include "perseus/schedule.h"

namespace perseus::cli {
namespace {

template <typename T>
void Override(const std::optional<T>& flag, std::optional<T>* setting) {
  if (flag) *setting = flag;
}

void Override(const std::vector<double>& flag, std::vector<double>* setting) {
  if (!flag.empty()) *setting = flag;
}

void OverrideAll(const JobFile& flags, JobFile* settings) {
  // A schedule by name and one from a file replace each other.
  if (flags.schedule) settings->schedule_file.reset();
  if (flags.schedule_file) settings->schedule.reset();
  Override(flags.schedule, &settings->schedule);
  Override(flags.schedule_file, &settings->schedule_file);
  Override(flags.stages, &settings->stages);
  Override(flags.microbatches, &settings->microbatches);
  Override(flags.virtual_stages, &settings->virtual_stages);
  Override(flags.microbatch_group_size, &settings->microbatch_group_size);
  Override(flags.blocking_power_watts, &settings->blocking_power_watts);
  Override(flags.tensor_parallel, &settings->tensor_parallel);
  Override(flags.data_parallel, &settings->data_parallel);
  Override(flags.split_ratio, &settings->split_ratio);
  Override(flags.comm_delay_seconds, &settings->comm_delay_seconds);
  Override(flags.data_loading_seconds, &settings->data_loading_seconds);
  Override(flags.iteration_overhead_seconds, &settings->iteration_overhead_seconds);
  Override(flags.at, &settings->at);
  Override(flags.granularity, &settings->granularity);
  Override(flags.min_dwell_seconds, &settings->min_dwell_seconds);
  Override(flags.max_clocks, &settings->max_clocks);
  Override(flags.time_margin, &settings->time_margin);
  Override(flags.coarse_watts, &settings->coarse_watts);
  Override(flags.exponential_fit, &settings->exponential_fit);
  Override(flags.effort, &settings->effort);
  Override(flags.output, &settings->output);
}

Result<Profile> LoadProfile(const JobFile& settings, const std::string& input,
                            std::string_view command) {
  if (settings.profile) return ReadProfile(*settings.profile);
  if (IsJobFileName(input)) {
    return InvalidInput(fmt::format(
        "{}: the job file names no profile; add a line such as profile = \"profile.csv\"", input));
  }
  return InvalidInput(
      fmt::format("the profile is missing, as in 'perseus {} profile.csv --schedule 1f1b "
                  "--microbatches 96 --blocking-power 75'",
                  command));
}

// What must be known and is not, in one sentence with an example.
Result<void> CheckComplete(const JobFile& settings, const std::string& input,
                           std::string_view command) {
  std::vector<std::string> missing;
  if (!settings.schedule && !settings.schedule_file) missing.emplace_back("--schedule");
  if (!settings.microbatches && !settings.schedule_file) missing.emplace_back("--microbatches");
  if (settings.blocking_power_watts.empty()) missing.emplace_back("--blocking-power");
  if (missing.empty()) return {};
  return InvalidInput(fmt::format(
      "{} {} missing, as in 'perseus {} {} --schedule 1f1b --microbatches 96 --blocking-power 75' "
      "(watts that a GPU draws while it waits)",
      fmt::join(missing, ", "), missing.size() == 1 ? "is" : "are", command, input));
}

Result<void> CheckStages(const JobFile& settings, const Profile& profile, int scheduled) {
  if (settings.stages && *settings.stages != profile.num_stages) {
    return InvalidInput(fmt::format(
        "--stages is {}, but {} has {}; --stages counts the model's stages (ranks x virtual "
        "stages) and may be left out",
        *settings.stages, profile.source, CountOf(profile.num_stages, "stage")));
  }
  if (scheduled != profile.num_stages) {
    return InvalidInput(fmt::format("the schedule has {}, but {} has {}; they must be the same",
                                    CountOf(scheduled, "stage"), profile.source,
                                    CountOf(profile.num_stages, "stage")));
  }
  return {};
}

// `spec` is filled in where the schedule has a name.
Result<Schedule> MakeSchedule(const JobFile& settings, const Profile& profile, ScheduleSpec* spec) {
  if (settings.schedule_file) {
    if (settings.schedule) {
      return InvalidInput("--schedule and --schedule-file exclude each other; keep one of them");
    }
    Result<Schedule> schedule = ReadSchedule(*settings.schedule_file);
    if (!schedule) return schedule;
    if (settings.microbatches && *settings.microbatches != schedule->num_microbatches) {
      return InvalidInput(fmt::format(
          "--microbatches is {}, but {} has {}; with a schedule file it may be left out",
          *settings.microbatches, *settings.schedule_file,
          CountOf(schedule->num_microbatches, "microbatch")));
    }
    if (settings.virtual_stages && *settings.virtual_stages != schedule->virtual_stages()) {
      return InvalidInput(fmt::format(
          "--virtual-stages is {}, but {} has {} on each rank; with a schedule file it may be left "
          "out",
          *settings.virtual_stages, *settings.schedule_file,
          CountOf(schedule->virtual_stages(), "stage")));
    }
    return schedule;
  }
  spec->name = *settings.schedule;
  spec->num_stages = settings.stages.value_or(profile.num_stages);
  spec->virtual_stages = settings.virtual_stages.value_or(1);
  spec->num_microbatches = *settings.microbatches;
  spec->microbatch_group_size = settings.microbatch_group_size.value_or(0);
  return BuildSchedule(*spec);
}

// A bare number is seconds. Whether it was probably meant as a factor: it is no
// sensible time, and the factor would be.
bool MeantAsFactor(const PlanTarget& target, const Planner& planner) {
  constexpr double kLeastFactor = 0.5;
  constexpr double kMostFactor = 3;
  constexpr double kFarBelow = 0.8;
  const Frontier& frontier = planner.frontier();
  const double as_factor = target.value * planner.baseline().iteration_time_seconds;
  return target.kind == PlanTarget::Kind::kSeconds && target.value >= kLeastFactor &&
         target.value <= kMostFactor && as_factor >= frontier.fastest_seconds &&
         as_factor <= frontier.tstar_seconds &&
         (target.value < kFarBelow * frontier.fastest_seconds ||
          target.value > frontier.tstar_seconds);
}

}  // namespace

Result<JobFile> MergeSettings(const JobFlags& flags) {
  JobFile settings;
  if (IsJobFileName(flags.input)) {
    Result<JobFile> file = ReadJobFile(flags.input);
    if (!file) return file;
    settings = *std::move(file);
  } else if (!flags.input.empty()) {
    settings.profile = flags.input;
  }
  OverrideAll(flags.overrides, &settings);
  return settings;
}

Result<Job> LoadJob(const JobFlags& flags, std::string_view command) {
  Job job;
  Result<JobFile> settings = MergeSettings(flags);
  if (!settings) return tl::unexpected(settings.error());
  job.settings = *std::move(settings);
  // Before the flags: whoever mistyped a path wants to hear of that first.
  Result<Profile> profile = LoadProfile(job.settings, flags.input, command);
  if (!profile) return tl::unexpected(profile.error());
  job.profile = *std::move(profile);
  if (auto complete = CheckComplete(job.settings, flags.input, command); !complete) {
    return tl::unexpected(complete.error());
  }
  // Before the schedule is built, so that the sentence is about --stages.
  if (auto stages = CheckStages(job.settings, job.profile, job.profile.num_stages); !stages) {
    return tl::unexpected(stages.error());
  }
  const Result<Schedule> schedule = MakeSchedule(job.settings, job.profile, &job.schedule);
  if (!schedule) return tl::unexpected(schedule.error());
  if (auto stages = CheckStages(job.settings, job.profile, schedule->num_stages); !stages) {
    return tl::unexpected(stages.error());
  }
  job.virtual_stages = schedule->virtual_stages();
  job.fixed.comm_delay_seconds = job.settings.comm_delay_seconds;
  job.fixed.data_loading_seconds = job.settings.data_loading_seconds.value_or(0);
  job.fixed.iteration_overhead_seconds = job.settings.iteration_overhead_seconds.value_or(0);
  Result<PipelineDag> dag = BuildDag(*schedule, job.fixed);
  if (!dag) return tl::unexpected(dag.error());
  job.costs.blocking_power_watts = job.settings.blocking_power_watts;
  job.costs.tensor_parallel = job.settings.tensor_parallel.value_or(0);
  job.costs.split_ratio = job.settings.split_ratio.value_or(job.costs.split_ratio);
  Result<CostedPipeline> pipeline = CostPipeline(job.profile, *std::move(dag), job.costs);
  if (!pipeline) return tl::unexpected(pipeline.error());
  job.pipeline = *std::move(pipeline);
  return job;
}

PlanConstraints Constraints(const JobFile& settings) {
  PlanConstraints constraints;
  constraints.granularity = settings.granularity.value_or(constraints.granularity);
  constraints.min_dwell_seconds = settings.min_dwell_seconds.value_or(0);
  constraints.max_knobs = settings.max_clocks.value_or(0);
  const TimeMargin margin = settings.time_margin.value_or(TimeMargin{});
  constraints.time_margin_sigmas = margin.sigmas;
  constraints.time_margin_fraction = margin.fraction;
  return constraints;
}

PlannerOptions SolverOptions(const JobFile& settings) {
  constexpr double kAutomatic = -1;
  PlannerOptions options;
  options.slope_quantum_watts = settings.coarse_watts.value_or(kAutomatic);
  options.exponential_fit = settings.exponential_fit.value_or(false);
  return options;
}

Result<double> TargetSeconds(const Planner& planner, const PlanTarget& target) {
  Result<double> seconds = planner.TargetSeconds(target);
  if (!seconds && MeantAsFactor(target, planner)) {
    seconds.error().message += fmt::format("; did you mean --at {}x?", target.value);
  }
  return seconds;
}

void NoteTarget(const Planner& planner, const PlanTarget& target, std::vector<std::string>* notes) {
  if (!MeantAsFactor(target, planner)) return;
  notes->push_back(
      fmt::format("--at {0} is a time of {0} s, beyond T*; did you mean --at {0}x?", target.value));
}

std::string TargetText(const PlanTarget& target) {
  switch (target.kind) {
    case PlanTarget::Kind::kBaselineFactor:
      return target.value == 1 ? "1.0x" : fmt::format("{}x", target.value);
    case PlanTarget::Kind::kSeconds:
      return fmt::format("{}", target.value);
    case PlanTarget::Kind::kEconomic:
      return "economic";
    case PlanTarget::Kind::kFastest:
      return "fastest";
    case PlanTarget::Kind::kTStar:
      break;
  }
  return "tstar";
}

}  // namespace perseus::cli
