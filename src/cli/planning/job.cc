// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/planning/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "cli/framework/table.h"
#include "cli/planning/job_flags.h"
#include "common/belief.h"
#include "common/numbers.h"
#include "job/job_fields.h"
#include "model/rare_noise.h"

namespace perseus::cli {
namespace {

// An error of the job in words of the command line: fields that do not come
// from the job file are named as flags.
tl::unexpected<Error> InFlags(Error error, const JobFile& settings) {
  for (const job::Field& field : job::Fields()) {
    const std::string_view flag = FlagOfField(field.key);
    if (flag.empty() || settings.places.contains(field.key)) continue;
    const std::string quoted = fmt::format("'{}'", field.key);
    for (std::size_t at = 0; (at = error.message.find(quoted, at)) != std::string::npos;) {
      error.message.replace(at, quoted.size(), flag);
    }
  }
  return tl::unexpected<Error>(std::move(error));
}

// What a field that must be given is, for whoever does not know it yet.
std::string_view MeaningOf(std::string_view key) {
  if (key == "schedule") return " (1f1b, gpipe, ...: 'perseus plan --help' has all)";
  if (key == "microbatches") return " (of one iteration)";
  return key == "blocking_power" ? " (watts of a GPU that waits)" : "";
}

// What must be known and is not, in one sentence with an example.
Result<void> CheckComplete(const JobFile& settings, const Profile& profile,
                           const std::string& input, std::string_view command) {
  std::vector<std::string> missing;
  for (const std::string_view key : MissingFields(settings, &profile)) {
    missing.push_back(fmt::format("{}{}", FlagOfField(key), MeaningOf(key)));
  }
  if (missing.empty()) return {};
  return InvalidInput(fmt::format(
      "{} {} missing, as in 'perseus {} {} --schedule 1f1b --microbatches 96 --blocking-power 75'",
      fmt::join(missing, ", "), missing.size() == 1 ? "is" : "are", command, input));
}

}  // namespace

Result<JobFile> MergeSettings(const JobFlags& flags) {
  return LoadSettings(flags.input, Overrides(flags));
}

JobFile Overrides(const JobFlags& flags) {
  JobFile overrides = flags.overrides;
  if (flags.strict) overrides.strict = true;
  if (flags.accept_implausible) overrides.accept_implausible = true;
  return overrides;
}

std::string NameOf(const JobFile& settings, std::string_view key) {
  return settings.places.contains(key) ? fmt::format("'{}'", key) : std::string(FlagOfField(key));
}

std::string NameAndPlaceOf(const JobFile& settings, std::string_view key) {
  const auto place = settings.places.find(key);
  std::string name = NameOf(settings, key);
  if (place == settings.places.end()) return name;
  const JobPlace& at = place->second;
  return fmt::format("{}:{}:{}: {}", at.file, at.line, at.column, name);
}

std::string SettingOf(const JobFile& settings, std::string_view key, std::string_view value) {
  if (!settings.places.contains(key)) return fmt::format("{} {}", FlagOfField(key), value);
  return ParseFinite(value) ? fmt::format("{} = {}", key, value)
                            : fmt::format("{} = \"{}\"", key, value);
}

Result<void> CheckPairs(const JobFile& settings, bool replays, bool has_lengths) {
  // A job file may state them for trainers that say how long microbatches are.
  const auto is_flag = [&settings](const auto& value, std::string_view key) {
    return value && !settings.places.contains(key);
  };
  if (!settings.work && is_flag(settings.work_fit, "work_fit")) {
    return InvalidInput("--work-fit is for a work table in tokens (--work); give both");
  }
  if (!settings.work && !has_lengths && is_flag(settings.work_tokens, "work_tokens")) {
    return InvalidInput("--work-tokens is for a work table in tokens (--work); give both");
  }
  if (replays) return {};
  const double latency = settings.switch_latency_seconds.value_or(0).middle();
  const double spread = settings.switch_latency_spread_seconds.value_or(0);
  if (spread > latency) {
    return InvalidInput(
        latency == 0
            ? fmt::format("{} is the spread of a latency; give {}, too",
                          NameAndPlaceOf(settings, "switch_latency_spread"),
                          settings.places.contains("switch_latency_spread") ? "'switch_latency'"
                                                                            : "--switch-latency")
            : fmt::format("{} is {:g} s, more than the latency of {:g} s that it is the spread of",
                          NameAndPlaceOf(settings, "switch_latency_spread"), spread, latency));
  }
  if (!settings.switch_latency_at.empty() && latency == 0) {
    return InvalidInput(fmt::format(
        "{} is for clocks that take another time than others; give {}, too",
        NameAndPlaceOf(settings, "switch_latency_at"),
        settings.places.contains("switch_latency_at") ? "'switch_latency'" : "--switch-latency"));
  }
  if (settings.noise_correlation.value_or(0) > 0 && settings.noise.value_or(0).most <= 0) {
    return InvalidInput(
        fmt::format("{} is for {}; give both", NameAndPlaceOf(settings, "noise_correlation"),
                    settings.places.contains("noise_correlation") ? "'noise'" : "--noise"));
  }
  const TimeNoise rare = {.rare_length = settings.rare_noise.value_or(0),
                          .rare_share = settings.rare_noise_share.value_or(0)};
  if (model::HasHalfOfRareNoise(rare)) {
    const bool has_length = rare.rare_length > 0;
    const std::string_view given = has_length ? "rare_noise" : "rare_noise_share";
    const std::string_view other = has_length ? "rare_noise_share" : "rare_noise";
    return InvalidInput(fmt::format("{} says {}; give {}, too", NameAndPlaceOf(settings, given),
                                    has_length
                                        ? "how much longer some computations take, but not how many"
                                        : "how many computations take longer, but not by how much",
                                    settings.places.contains(given) ? fmt::format("'{}'", other)
                                    : has_length                    ? "--rare-noise-share"
                                                                    : "--rare-noise"));
  }
  if (settings.max_early_loss && settings.call_ahead != CallAhead::kPredicted) {
    return InvalidInput(
        fmt::format("{} is for {} predicted; give both", NameAndPlaceOf(settings, "max_early_loss"),
                    settings.places.contains("max_early_loss") ? "'call_ahead'" : "--call-ahead"));
  }
  return {};
}

std::vector<InputFile> InputsOf(const JobFlags& flags, const JobFile& settings) {
  std::vector<InputFile> inputs;
  if (settings.profile) inputs.push_back({"the profile", *settings.profile});
  if (settings.schedule_file) inputs.push_back({"the schedule's file", *settings.schedule_file});
  if (settings.work && !settings.work->file.empty()) {
    inputs.push_back({"the work table", settings.work->file});
  }
  if (settings.work_fit) inputs.push_back({"the fit of the work table", *settings.work_fit});
  if (IsJobFileName(flags.input)) inputs.push_back({"the job file", flags.input});
  return inputs;
}

Result<Job> LoadBelievableJob(const JobFlags& flags, JobFile settings, std::string_view command) {
  Result<Job> job = LoadJob(flags, std::move(settings), command);
  if (!job) return job;
  if (auto good = RefuseUnbelievable(job->notes, AcceptingFlag()); !good) {
    return tl::unexpected(good.error());
  }
  return job;
}

Result<Job> LoadJob(const JobFlags& flags, JobFile settings, std::string_view command) {
  if (!settings.profile) {
    return InvalidInput(
        fmt::format("the profile is missing, as in 'perseus {} profile.csv --schedule 1f1b "
                    "--microbatches 96 --blocking-power 75'",
                    command));
  }
  // Before the flags: whoever mistyped a path wants to hear of that first.
  Result<Profile> profile = ReadProfile(*settings.profile, ProfileOptionsOf(settings));
  if (!profile) {
    return tl::unexpected<Error>(job::AboutFile(settings, "profile", profile.error()));
  }
  if (auto complete = CheckComplete(settings, *profile, flags.input, command); !complete) {
    return tl::unexpected(complete.error());
  }
  Result<Job> job = Job::Make(*std::move(profile), settings);
  if (!job) return InFlags(job.error(), settings);
  return job;
}

Result<Planner> MakePlanner(const Job& job, double plans, ProgressLine* progress) {
  constexpr double kPatienceSeconds = 10;
  // A plan of effort 1 takes a second up to so many computations.
  constexpr double kComputationsPerSecond = 1536;
  constexpr double kBytesPerComputation = 1300;
  PlannerOptions options = job.SolverOptions();
  const auto warn = [&](const FrontierEstimate& estimate) {
    const double computations = job.pipeline.dag.size();
    const double seconds =
        estimate.seconds + plans * std::max(1.0, computations / kComputationsPerSecond);
    if (seconds <= kPatienceSeconds) return;
    const double bytes = estimate.bytes + kBytesPerComputation * computations;
    WriteStandardError(fmt::format("perseus: {} {} takes about {:.0f} s and {:.0f} MB.\n",
                                   plans > 0 ? "a plan of" : "the frontier of",
                                   CountOf(job.pipeline.dag.size(), "computation"), seconds,
                                   std::max(1.0, bytes / 1e6)));
  };
  options.progress = [&warn, show = progress->Function()](const Progress& now) {
    if (now.estimate != nullptr) warn(*now.estimate);
    return show(now);
  };
  return Planner::Create(job.pipeline, options);
}

}  // namespace perseus::cli
