// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/planning/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cli/commands.h"
#include "cli/framework/table.h"
#include "cli/framework/value_parsers.h"
#include "common/belief.h"
#include "common/nearest_name.h"
#include "common/numbers.h"
#include "job/job_fields.h"
#include "job/setting_text.h"
#include "model/noise.h"
#include "perseus/schedule.h"

namespace perseus::cli {
namespace {

// An error of the job in words of the command line: fields that do not come
// from the job file are named as flags.
tl::unexpected<Error> InFlags(Error error, const JobFile& settings) {
  for (const job::Field& field : job::Fields()) {
    const std::string flag = FlagOfField(field.key);
    if (flag.empty() || settings.places.contains(field.key)) continue;
    const std::string quoted = fmt::format("'{}'", field.key);
    for (std::size_t at = 0; (at = error.message.find(quoted, at)) != std::string::npos;) {
      error.message.replace(at, quoted.size(), flag);
    }
  }
  return tl::unexpected<Error>(std::move(error));
}

// Explains a required field to a new user.
std::string_view MeaningOf(std::string_view key) {
  if (key == "schedule") return " (1f1b, gpipe, ...: 'perseus plan --help' has all)";
  if (key == "microbatches") return " (of one iteration)";
  return key == "blocking_power" ? " (watts of a GPU that waits)" : "";
}

// Refuses a job with missing fields, in one sentence with an example.
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
  return settings.places.contains(key) ? fmt::format("'{}'", key) : FlagOfField(key);
}

std::string NameAndPlaceOf(const JobFile& settings, std::string_view key) {
  const auto place = settings.places.find(key);
  std::string name = NameOf(settings, key);
  if (place == settings.places.end()) return name;
  const JobPlace& at = place->second;
  return fmt::format("{}:{}:{}: {}", at.file, at.line, at.column, name);
}

std::string SettingOf(const JobFile& settings, std::string_view key, std::string_view value) {
  if (!settings.places.contains(key)) {
    const std::string flag = FlagOfField(key);
    return fmt::format("{}{}{}", flag, flag.starts_with("--set ") ? '=' : ' ', value);
  }
  return ParseFinite(value) ? fmt::format("{} = {}", key, value)
                            : fmt::format("{} = \"{}\"", key, value);
}

Result<void> CheckPairs(const JobFile& settings, bool replays, bool has_lengths) {
  // A job file may state them for trainers that say how long microbatches are.
  const auto is_flag = [&settings](const auto& value, std::string_view key) {
    return value && !settings.places.contains(key);
  };
  if (!settings.work && is_flag(settings.work_fit, "work_fit")) {
    return InvalidInput("--set work_fit is for a work table in tokens (--work); give both");
  }
  if (!settings.work && !has_lengths && is_flag(settings.work_tokens, "work_tokens")) {
    return InvalidInput("--set work_tokens is for a work table in tokens (--work); give both");
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
                                    : has_length                    ? "--set rare_noise_share"
                                                                    : "--set rare_noise"));
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
  options.keeps_walk = plans > 0;
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

namespace {

using Set = CommandParser::Set;

// A parser of the texts of one field, by its type.
class SetField {
 public:
  SetField(const job::Field& field, JobFile* settings) : field_(field), settings_(settings) {}

  Set operator()(std::optional<std::string> JobFile::*member) const {
    if (field_.unit == job::Unit::kScheduleName) return Store(member, ParseScheduleName);
    const bool is_path = field_.unit == job::Unit::kPath;
    return Store(member, [is_path](std::string_view text) -> Result<std::string> {
      if (text.empty()) {
        return InvalidInput(is_path ? "the name of the file is empty" : "the label is empty");
      }
      return std::string(text);
    });
  }

  Set operator()(std::optional<int> JobFile::*member) const {
    return Store(member, [range = field_.range](std::string_view text) {
      return ParseCount(text, static_cast<int>(range.least), static_cast<int>(range.most));
    });
  }

  Set operator()(std::optional<double> JobFile::*member) const {
    if (field_.unit == job::Unit::kSeconds) return Store(member, ParseDuration);
    if (field_.unit == job::Unit::kShare) {
      return Store(member, [range = field_.range](std::string_view text) {
        return job::ParseShare(text, range);
      });
    }
    // Of all numbers this one alone can be left to the planner.
    const bool may_be_auto = field_.unit == job::Unit::kWatts;
    const job::Quantity quantity = may_be_auto ? job::kInWattsOrAuto : job::QuantityOf(field_.unit);
    return Store(member, [=, range = field_.range](std::string_view text) -> Result<double> {
      if (may_be_auto && text == "auto") return -1.0;
      return ParseQuantity(text, range, quantity);
    });
  }

  Set operator()(std::optional<ValueRange> JobFile::*member) const {
    const auto parse = [seconds = field_.unit == job::Unit::kSeconds,
                        range = field_.range](std::string_view text) {
      return seconds ? ParseDuration(text) : job::ParseShare(text, range);
    };
    return Store(member,
                 [parse](std::string_view text) { return job::ParseValueRange(text, parse); });
  }

  Set operator()(std::vector<double> JobFile::*member) const {
    return field_.unit == job::Unit::kSeconds ? Store(member, ParseDurations)
                                              : Store(member, ParseWatts);
  }

  Set operator()(std::vector<ClockLatency> JobFile::*member) const {
    return Store(member, job::ParseClockLatencies);
  }

  Set operator()(std::optional<WorkSetting> JobFile::*member) const {
    return Store(member, [](std::string_view text) -> Result<WorkSetting> {
      if (text.empty()) return InvalidInput("the name of the file is empty");
      return WorkSetting{.file = std::string(text), .factors = {}};
    });
  }

  Set operator()(std::optional<PlanTarget> JobFile::*member) const {
    return Store(member, ParseTarget);
  }

  Set operator()(std::optional<TimeMargin> JobFile::*member) const {
    return Store(member, job::ParseTimeMargin);
  }

  Set operator()(std::optional<Granularity> JobFile::*member) const {
    return Store(member, [](std::string_view text) -> Result<Granularity> {
      if (const auto granularity = ParseGranularity(text)) return *granularity;
      return InvalidInput(
          fmt::format("expected computation, phase, stage-type or stage, got '{}'", text));
    });
  }

  Set operator()(std::optional<CallAhead> JobFile::*member) const {
    return Store(member, [](std::string_view text) -> Result<CallAhead> {
      if (const auto call_ahead = ParseCallAhead(text)) return *call_ahead;
      return InvalidInput(fmt::format("expected none, end or predicted, got '{}'", text));
    });
  }

  Set operator()(std::optional<bool> JobFile::*member) const {
    return Store(member, [](std::string_view text) -> Result<bool> {
      if (text == "true" || text == "false") return text == "true";
      return InvalidInput(fmt::format("expected true or false, got '{}'", text));
    });
  }

 private:
  template <typename Member, typename Parse>
  Set Store(Member member, Parse parse) const {
    return [settings = settings_, member, parse](const std::string& text) -> Result<void> {
      auto value = parse(text);
      if (!value) return tl::unexpected(value.error());
      settings->*member = *std::move(value);
      return {};
    };
  }

  static Result<std::string> ParseScheduleName(std::string_view text) {
    if (auto name = CanonicalScheduleName(text)) return *std::move(name);
    const std::string nearest = NearestName(text, ScheduleNames());
    return InvalidInput(fmt::format(
        "there is no schedule '{}'{}; the names are {} (a schedule in a file is read with "
        "--schedule-file)",
        text, nearest.empty() ? "" : fmt::format(", did you mean '{}'?", nearest),
        fmt::join(ScheduleNames(), ", ")));
  }

  const job::Field& field_;
  JobFile* settings_;
};

CommandParser::Details DetailsOf(const job::Field& field) {
  const auto is = [&]<typename Member>(Member) {
    return std::holds_alternative<Member>(field.member);
  };
  if (field.unit == job::Unit::kScheduleName) return {ValueKind::kChoice, ScheduleNames()};
  if (is(&JobFile::granularity)) {
    return {ValueKind::kChoice, {"computation", "phase", "stage-type", "stage"}};
  }
  if (is(&JobFile::call_ahead)) return {ValueKind::kChoice, {"none", "end", "predicted"}};
  if (field.unit == job::Unit::kPath) return {ValueKind::kFile, {}};
  return {};
}

// The flags of a group. The field `own_key` has its help from the command.
void AddGroup(CommandParser* parser, JobFlags* job, job::Group group, std::string_view own_key = "",
              const std::string& own_help = "") {
  for (const job::Field& field : job::Fields()) {
    if (field.group != group || field.flag.empty()) continue;
    std::string help = field.key == own_key ? own_help : std::string(field.help);
    if (field.unit == job::Unit::kScheduleName) {
      help += fmt::format("{}.", fmt::join(ScheduleNames(), ", "));
    }
    parser->AddText(std::string(field.flag), std::string(field.placeholder), help,
                    std::visit(SetField(field, &job->overrides), field.member), DetailsOf(field));
  }
}

// Whether --set sets a field: it has no flag of its own.
bool IsSetByKey(const job::Field& field) {
  return field.group != job::Group::kNone && field.flag.empty();
}

std::vector<std::string> KeysToSet() {
  std::vector<std::string> keys;
  for (const job::Field& field : job::Fields()) {
    if (IsSetByKey(field)) keys.emplace_back(field.key);
  }
  return keys;
}

// Sets a field from KEY=VALUE.
Result<void> SetByKey(std::string_view text, JobFile* settings) {
  const std::size_t equals = text.find('=');
  const std::string_view key = text.substr(0, equals);
  const job::Field* const field = job::FindField(key);
  if (field == nullptr || !IsSetByKey(*field)) {
    if (field != nullptr && !field->flag.empty()) {
      return InvalidInput(fmt::format("'{}' has an option of its own: {}", key, field->flag));
    }
    const std::string nearest = NearestName(key, KeysToSet());
    return InvalidInput(
        fmt::format("there is no setting '{}'{}; expected KEY=VALUE, where KEY is one of {}", key,
                    nearest.empty() ? "" : fmt::format(", did you mean '{}'?", nearest),
                    fmt::join(KeysToSet(), ", ")));
  }
  if (equals == std::string_view::npos) {
    return InvalidInput(fmt::format("'{0}' has no value; expected {0}=VALUE", key));
  }
  if (job::IsSet(*field, *settings)) {
    return InvalidInput(fmt::format("'{}' is set twice; keep one of them", key));
  }
  auto set =
      std::visit(SetField(*field, settings), field->member)(std::string(text.substr(equals + 1)));
  if (!set) set.error().message = fmt::format("{}: {}", key, set.error().message);
  return set;
}

}  // namespace

std::string FlagOfField(std::string_view key) {
  const job::Field* const field = job::FindField(key);
  if (field == nullptr) return "";
  return IsSetByKey(*field) ? fmt::format("--set {}", key) : std::string(field->flag);
}

std::string AcceptingFlag() { return fmt::format("give {}", FlagOfField("accept_implausible")); }

void AddPipelineOptions(CommandParser* parser, JobFlags* job, const std::string& dp_help) {
  parser->AddInput(
      &job->input, "PROFILE.csv|JOB.toml|JOB.json",
      "A profile: a CSV with the time and energy of each computation at each clock (columns "
      "stage,instruction,frequency,time,energy). Or a job file, which names a profile and can set "
      "every option. An option on the command line wins over the job file.");
  const auto add_flag = [parser](bool* value, std::string_view key) {
    const job::Field& field = *job::FindField(key);
    parser->AddFlag(value, std::string(field.flag), std::string(field.help));
  };
  add_flag(&job->strict, "strict");
  add_flag(&job->accept_implausible, "accept_implausible");
  AddGroup(parser, job, job::Group::kGeneral);
  parser->SetGroup("Pipeline");
  AddGroup(parser, job, job::Group::kPipeline);
  parser->SetGroup("Costs");
  AddGroup(parser, job, job::Group::kCosts, "dp", dp_help);
  parser->AddRepeated(
      "--set", "KEY=VALUE",
      fmt::format(
          "Set a key of a job file that has no option here ({}). May be given several times. "
          "docs/reference/files.md says what each means.",
          fmt::join(KeysToSet(), ", ")),
      [settings = &job->overrides](const std::string& text) { return SetByKey(text, settings); });
}

void AddPlanOptions(CommandParser* parser, JobFlags* job, const std::string& effort_help) {
  parser->SetGroup("Plan");
  AddGroup(parser, job, job::Group::kPlan, "effort", effort_help);
}

void AddConditionOptions(CommandParser* parser, JobFlags* job) {
  AddGroup(parser, job, job::Group::kConditions);
}

void AddRobustOptions(CommandParser* parser, JobFlags* job) {
  AddGroup(parser, job, job::Group::kHolding);
}

void AddSolverOptions(CommandParser* parser, JobFlags* job) {
  parser->SetGroup("Solver");
  AddGroup(parser, job, job::Group::kSolver);
}

}  // namespace perseus::cli
