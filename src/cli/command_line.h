// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_COMMAND_LINE_H_
#define PERSEUS_CLI_COMMAND_LINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/option_data.h"
#include "perseus/job_file.h"
#include "perseus/result.h"
#include "perseus/synth.h"

namespace perseus::cli {

enum class Command : std::uint8_t {
  kPlan,
  kFrontier,
  kSchedule,
  kExplain,
  kSynth,
  kCompletion,
  kMan,
};

// What describes a job: the file that was named, and what the flags say.
struct JobFlags {
  std::string input;  // Profile or job file.
  JobFile overrides;  // Each field that is set wins over the file's.
};

struct FrontierFlags {
  std::string output_file;
  bool csv = false;
  bool json = false;
};

enum class ScheduleFormat : std::uint8_t { kDraw, kCsv, kJson };

struct ScheduleFlags {
  std::string input;  // A name, or a file.
  std::optional<int> stages;
  int virtual_stages = 1;
  std::optional<int> microbatches;
  int microbatch_group_size = 0;
  ScheduleFormat format = ScheduleFormat::kDraw;
  bool validate = false;
  std::string output_file;
};

struct ExplainFlags {
  std::string input;
  bool json = false;
};

struct SynthFlags {
  SynthSpec spec;
  std::string output_directory;  // Empty: the profile goes to standard output.
};

// One invocation of the program.
struct Invocation {
  Command command = Command::kPlan;
  JobFlags job;       // plan, frontier
  bool json = false;  // plan
  FrontierFlags frontier;
  ScheduleFlags schedule;
  ExplainFlags explain;
  SynthFlags synth;
  std::string shell;  // completion
};

// What the arguments ask for: to run a command, or to print a text (help or
// version) and end.
struct ParsedCommandLine {
  std::optional<std::string> text;
  Invocation invocation;
};

// Parses the arguments after the program's name. Errors are one sentence that
// names the flag; unknown words get the nearest suggestion.
Result<ParsedCommandLine> ParseCommandLine(const std::vector<std::string>& arguments, int columns);

// The whole command line as data.
CommandData DescribeCommandLine();

std::string_view Version();

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_COMMAND_LINE_H_
