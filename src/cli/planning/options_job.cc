// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cli/command_options.h"
#include "cli/framework/value_parsers.h"
#include "cli/planning/job_flags.h"
#include "common/nearest_name.h"
#include "job/clock_latency_text.h"
#include "job/job_fields.h"
#include "job/range_text.h"
#include "job/share_text.h"
#include "job/time_margin_text.h"
#include "perseus/schedule.h"

namespace perseus::cli {
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
    if (member == &JobFile::profile_errors) {
      return Store(member, [](std::string_view text) -> Result<bool> {
        if (text == "true" || text == "false") return text == "true";
        return InvalidInput(fmt::format("expected true or false, got '{}'", text));
      });
    }
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

CommandParser::Details DetailsOf(const job::Field& field) {
  const auto is = [&]<typename Member>(Member) {
    return std::holds_alternative<Member>(field.member);
  };
  if (field.unit == job::Unit::kScheduleName) return {ValueKind::kChoice, ScheduleNames()};
  if (is(&JobFile::granularity)) {
    return {ValueKind::kChoice, {"computation", "phase", "stage-type", "stage"}};
  }
  if (is(&JobFile::call_ahead)) return {ValueKind::kChoice, {"none", "end", "predicted"}};
  if (field.key == "profile_errors") return {ValueKind::kChoice, {"true", "false"}};
  if (is(&JobFile::exponential_fit)) return {ValueKind::kChoice, {"hull", "exponential"}};
  if (field.unit == job::Unit::kPath) return {ValueKind::kFile, {}};
  return {};
}

// The flags of a group. The field `own_key` has its help from the command.
void AddGroup(CommandParser* parser, JobFlags* job, job::Group group, std::string_view own_key = "",
              const std::string& own_help = "") {
  for (const job::Field& field : job::Fields()) {
    if (field.group != group) continue;
    std::string help = field.key == own_key ? own_help : std::string(field.help);
    if (field.unit == job::Unit::kScheduleName) {
      help += fmt::format("{}.", fmt::join(ScheduleNames(), ", "));
    }
    parser->AddText(std::string(field.flag), std::string(field.placeholder), help,
                    std::visit(SetField(field, &job->overrides), field.member), DetailsOf(field));
  }
}

}  // namespace

std::string_view FlagOfField(std::string_view key) {
  const job::Field* const field = job::FindField(key);
  return field == nullptr ? "" : field->flag;
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
