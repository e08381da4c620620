// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <array>
#include <cassert>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_options.h"
#include "cli/framework/value_parsers.h"
#include "cli/planning/job_flags.h"
#include "common/nearest_name.h"
#include "job/job_fields.h"
#include "job/share_text.h"
#include "job/time_margin_text.h"
#include "perseus/schedule.h"

namespace perseus::cli {
namespace {

using Set = CommandParser::Set;

// A field as a flag. Its type and its limits are those of job::Fields().
struct FlagText {
  std::string_view key;  // In a job file.
  std::string_view flag;
  std::string_view value;
  std::string_view help;
};

constexpr std::array<FlagText, 38> kFlags = {{
    {"baseline", "--baseline", "LABEL",
     "The knob that savings are measured against, where the profile's knobs are labels (default: "
     "the fastest)."},
    {"schedule", "--schedule", "NAME", "The pipeline schedule: "},  // And their names.
    {"schedule_file", "--schedule-file", "FILE",
     "A schedule in PyTorch's CSV text instead of a name: a row per rank, a cell per action."},
    {"stages", "--stages", "N",
     "Stages of the model = ranks x virtual stages; they must be those of the profile. Default: "
     "the profile's."},
    {"virtual_stages", "--virtual-stages", "N",
     "Stages that each rank holds (default 1; zbv-zero-bubble and dualpipev need 2)."},
    {"microbatches", "--microbatches", "N", "Microbatches of one iteration."},
    {"microbatch_group_size", "--microbatch-group-size", "N",
     "megatron-interleaved only: microbatches of a group (default: the number of ranks)."},
    {"blocking_power", "--blocking-power", "WATTS[,WATTS...]",
     "Power that one GPU draws while it waits (83.64 or 83.64W): one number, or one for each "
     "rank."},
    {"tp", "--tp", "N",
     "GPUs of one rank; energies of a profile without tp_rank column are multiplied by it "
     "(default 1)."},
    {"dp", "--dp", "N", ""},  // Each command says its own.
    {"split_ratio", "--split-ratio", "SHARE",
     "Share of `backward` that is backward_input, where the schedule needs the two parts and the "
     "profile has only their sum (default 0.5)."},
    {"work", "--work", "FILE.csv",
     "Where microbatches differ: a work table, microbatch,factor or microbatch,stage,type,factor "
     "(times the profile's work), or microbatch,tokens."},
    {"work_fit", "--work-fit", "FILE.csv",
     "For a work table in tokens: the time per token at the highest clock, as a table "
     "stage,type,time,time_per_token. Default: time in proportion to tokens."},
    {"work_tokens", "--work-tokens", "N",
     "For a work table in tokens without a fit: tokens of a microbatch when the profile was "
     "measured (default: the table's mean)."},
    {"time_margin", "--time-margin", "P%|Nsigma",
     "Plan with times longer than measured: by a share (1%), by standard deviations of the "
     "profile's time_std (2sigma), or by the larger of both (2sigma,1%)."},
    {"comm_delay", "--comm-delay", "TIME[,TIME...]",
     "Transfer between neighbouring stages on different ranks: one for all boundaries, or one for "
     "each."},
    {"data_loading", "--data-loading", "TIME",
     "Reading a microbatch, before each forward of stage 0."},
    {"iteration_overhead", "--iteration-overhead", "TIME",
     "All-reduce and optimizer, after the last computation."},
    {"at", "--at", "POINT",
     "The point of the plan: 1.02x (times the all-maximum-clock time), a time (5.3s), economic "
     "(least "
     "energy), fastest, or tstar. Default 1.0x: no slowdown."},
    {"granularity", "--granularity", "KIND",
     "What shares one clock: computation (default: nothing), phase (stage, type and warm-up / "
     "steady / cool-down), stage-type, or stage."},
    {"min_dwell", "--min-dwell", "TIME",
     "A rank keeps a clock at least this long before the next change (20ms)."},
    {"max_clocks", "--max-clocks", "N", "Most distinct clocks in the plan."},
    {"effort", "--effort", "FACTOR", ""},  // Each command says its own.
    {"coarse_watts", "--coarse", "WATTS|auto",
     "For very large pipelines: a frontier with slopes rounded to multiples of this, with a "
     "certified error. 0 is exact; auto is exact unless the pipeline is very large (default)."},
    {"exponential_fit", "--cost-curve", "hull|exponential",
     "How costs are interpolated between clocks: the exact lower hull (default), or the paper's "
     "fit a exp(b t) + c, for comparison."},
    {"noise", "--noise", "P%",
     "Standard deviation of the time of every computation, drawn anew each time: 1% or 0.01."},
    {"stage_noise", "--stage-noise", "P%",
     "The same, drawn once for each stage of a job: how far the profile is off."},
    {"gpu_noise", "--gpu-noise", "P%",
     "The same, drawn once for each GPU of a job. A rank is as slow as its slowest GPU."},
    {"switch_latency", "--switch-latency", "TIME",
     "From asking for a clock until it is in effect, for example 15ms; work goes on at the old "
     "one."},
    {"switch_latency_spread", "--switch-latency-spread", "TIME",
     "Standard deviation of the latency, drawn anew for each change; at most the latency."},
    {"switch_stall", "--switch-stall", "TIME",
     "How long a rank pauses at each change of clock, for example 2ms."},
    {"call_ahead", "--call-ahead", "WHEN",
     "When a clock is asked for: none (default; as its computation starts), end (when the one "
     "before has ended), or predicted (early enough that it is in effect when the computation "
     "starts; the "
     "client does so)."},
    {"max_early_loss", "--max-early-loss", "P%",
     "With --call-ahead predicted: what a computation may lose of its time to a lower clock that "
     "comes before its end (default 5%)."},
    {"min_call_interval", "--min-call-interval", "TIME",
     "A rank changes its clock at most once in this time, for example 10ms."},
    {"change_price", "--change-price", "JOULES",
     "What one change of clock costs beside its latency and stall, in joules of the rank whose "
     "clock changes. The search counts this cost. It is printed on its own line, and is not in the "
     "energy figures."},
    {"max_slowdown", "--max-slowdown", "P%",
     "How much longer than all clocks at maximum, under the same conditions, an iteration may be "
     "on average, beyond --at (default 0.1%)."},
    {"confidence", "--confidence", "P%",
     "Probability with which --max-slowdown must hold (default 95%)."},
    {"max_changes", "--max-changes", "N",
     "Most changes of clock in one iteration of one pipeline, all ranks together. If a rank's last "
     "computation and its first one of the next iteration have different clocks, that is a change, "
     "too."},
}};

const FlagText& TextOf(std::string_view key) {
  for (const FlagText& flag : kFlags) {
    if (flag.key == key) return flag;
  }
  assert(false);
  return kFlags.front();
}

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

  Set operator()(std::vector<double> JobFile::*member) const {
    return field_.unit == job::Unit::kSeconds ? Store(member, ParseDurations)
                                              : Store(member, ParseWatts);
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
      if (text == "hull" || text == "exponential") return text == "exponential";
      return InvalidInput(fmt::format("expected hull or exponential, got '{}'", text));
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

CommandParser::Details DetailsOf(std::string_view key) {
  if (key == "schedule") return {ValueKind::kChoice, ScheduleNames()};
  if (key == "granularity") {
    return {ValueKind::kChoice, {"computation", "phase", "stage-type", "stage"}};
  }
  if (key == "call_ahead") return {ValueKind::kChoice, {"none", "end", "predicted"}};
  if (key == "exponential_fit") return {ValueKind::kChoice, {"hull", "exponential"}};
  if (key == "schedule_file" || key == "work" || key == "work_fit") return {ValueKind::kFile, {}};
  return {};
}

void AddField(CommandParser* parser, JobFile* settings, std::string_view key,
              const std::string& own_help = "") {
  const FlagText& text = TextOf(key);
  const job::Field* field = job::FindField(key);
  std::string help = own_help.empty() ? std::string(text.help) : own_help;
  if (key == "schedule") help += fmt::format("{}.", fmt::join(ScheduleNames(), ", "));
  parser->AddText(std::string(text.flag), std::string(text.value), help,
                  std::visit(SetField(*field, settings), field->member), DetailsOf(key));
}

}  // namespace

std::string_view FlagOfField(std::string_view key) {
  for (const FlagText& flag : kFlags) {
    if (flag.key == key) return flag.flag;
  }
  if (key == "strict") return "--strict";
  return key == "output" ? "--output" : "";
}

void AddPipelineOptions(CommandParser* parser, JobFlags* job, const std::string& dp_help) {
  JobFile* settings = &job->overrides;
  parser->AddInput(
      &job->input, "PROFILE.csv|JOB.toml|JOB.json",
      "What each computation costs at each clock: the CSV of Zeus and lowtime "
      "(stage,instruction,frequency,time,energy). Or a job file that names the profile and "
      "holds everything that the options can say; an option given here wins over it.");
  parser->AddFlag(
      &job->strict, "--strict",
      "Refuse a profile or a job with anything that is odd or implausible, instead of noting "
      "it.");
  AddField(parser, settings, "baseline");
  parser->SetGroup("Pipeline");
  for (const std::string_view key : {"schedule", "schedule_file", "stages", "virtual_stages",
                                     "microbatches", "microbatch_group_size"}) {
    AddField(parser, settings, key);
  }
  parser->SetGroup("Costs");
  AddField(parser, settings, "blocking_power");
  AddField(parser, settings, "tp");
  AddField(parser, settings, "dp", dp_help);
  for (const std::string_view key :
       {"split_ratio", "work", "work_fit", "work_tokens", "time_margin", "comm_delay",
        "data_loading", "iteration_overhead"}) {
    AddField(parser, settings, key);
  }
}

void AddPlanOptions(CommandParser* parser, JobFlags* job, const std::string& effort_help) {
  JobFile* settings = &job->overrides;
  parser->SetGroup("Plan");
  for (const std::string_view key : {"at", "granularity", "min_dwell", "max_clocks"}) {
    AddField(parser, settings, key);
  }
  AddField(parser, settings, "effort", effort_help);
}

void AddConditionOptions(CommandParser* parser, JobFlags* job) {
  for (const std::string_view key : {"noise", "stage_noise", "gpu_noise", "switch_latency",
                                     "switch_latency_spread", "switch_stall", "call_ahead"}) {
    AddField(parser, &job->overrides, key);
  }
  parser->AddOldName("--switch-ahead", "--call-ahead=end");
  for (const std::string_view key : {"max_early_loss", "min_call_interval"}) {
    AddField(parser, &job->overrides, key);
  }
}

void AddRobustOptions(CommandParser* parser, JobFlags* job) {
  for (const std::string_view key : {"change_price", "max_slowdown", "confidence", "max_changes"}) {
    AddField(parser, &job->overrides, key);
  }
}

void AddSolverOptions(CommandParser* parser, JobFlags* job) {
  parser->SetGroup("Solver");
  AddField(parser, &job->overrides, "coarse_watts");
  AddField(parser, &job->overrides, "exponential_fit");
}

}  // namespace perseus::cli
