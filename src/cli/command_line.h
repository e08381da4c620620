// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_COMMAND_LINE_H_
#define PERSEUS_CLI_COMMAND_LINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/cluster/flags.h"
#include "cli/framework/command_parser.h"
#include "cli/framework/terminal.h"
#include "cli/framework/value_parsers.h"
#include "cli/node/node.h"
#include "model/noise.h"
#include "perseus/emulator.h"
#include "perseus/job_file.h"
#include "perseus/result.h"

namespace perseus::cli {

// The description of a job: the named file, and the flags over it.
struct JobFlags {
  std::string input;  // Profile or job file.
  JobFile overrides;  // Each field that is set wins over the file's.
  bool strict = false;
  bool accept_implausible = false;
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
  std::optional<int> microbatch_group_size;
  ScheduleFormat format = ScheduleFormat::kDraw;
  bool validate = false;
  std::string output_file;
};

struct ExplainFlags {
  std::string input;
  bool json = false;
};

struct DiffFlags {
  std::string before;
  std::string after;
  bool frontiers = false;
  std::vector<std::string> others;  // More plans whose frontiers are compared.
  std::string output_file;
  bool json = false;
};

// The flags of `emulate` beyond the job.
struct EmulateFlags {
  // Pipelines and target come from the job, what is an option of its own below.
  EmulationSpec spec;
  std::int64_t iterations = model::kIterationsOfEmulate;
  std::string plan_file;
  std::vector<std::string> compared_plans;
  std::optional<double> power_interval_seconds;
  bool json = false;
  std::string output_directory;
};

struct FleetFlags {
  std::string action;  // "plan", "curves"
  std::string input;   // The site file.
  std::optional<double> effort;
  ServerFlags server;  // An empty URL: the jobs are those of the site file alone.
  std::string output_directory;
  bool json = false;
};

struct DemoFlags {
  std::optional<int> iterations;
  bool detect = false;
  bool no_straggler = false;
  bool ahead = true;  // Clocks are called for ahead of time.
  double switch_latency_seconds = 0.015;
  std::optional<int> max_changes;
  std::string keep_directory;
  bool page = false;  // The server and its page stay until somebody ends the demo.
};

struct ManFlags {
  std::string page;  // Empty: that of the program.
  std::string output_directory;
};

// One invocation of the program.
struct Invocation {
  std::string command;          // Its name: "plan".
  JobFlags job;                 // plan, frontier, emulate
  std::string conditions_of;    // plan: a job of `server`, or a profile of its library.
  std::string conditions_file;  // plan
  ServerFlags server;
  bool json = false;  // plan, check
  FrontierFlags frontier;
  ScheduleFlags schedule;
  ExplainFlags explain;
  DiffFlags diff;
  EmulateFlags emulate;
  FleetFlags fleet;
  AgentFlags agent;
  DoctorFlags doctor;
  SupportBundleFlags support_bundle;
  DemoFlags demo;
  ServeFlags serve;
  StoreFlags store;
  JobClientFlags job_client;
  TopFlags top;
  ProfileFlags profile;
  ReportFlags report;
  std::string shell;  // completion
  ManFlags man;
};

// The request of the arguments: to run a command, or to print a text (help or version) and end.
struct ParsedCommandLine {
  std::optional<std::string> text;
  Invocation invocation;
};

// Parses the arguments after the program's name. Errors are one sentence that
// names the flag; unknown words get the nearest suggestion.
Result<ParsedCommandLine> ParseCommandLine(const std::vector<std::string>& arguments, int columns);

// Runs the command to its end, writes the files that were asked for, and returns what belongs on
// standard output.
Result<Printout> RunCommand(const Invocation& invocation, const Style& style);

// The whole command line as data.
CommandData DescribeCommandLine();

std::string_view Version();

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_COMMAND_LINE_H_
