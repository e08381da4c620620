// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <sys/resource.h>

#include <filesystem>
#include <string>

#include "cli/commands.h"
#include "cli/option_data.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "common/file.h"
#include "common/printable.h"
#include "sosp24/evaluation_json.h"
#include "sosp24/evaluation_report.h"
#include "sosp24/sosp24.h"

namespace perseus::cli {
namespace {

using sosp24::EvaluateSosp24;
using sosp24::FormatEvaluationJson;
using sosp24::Sosp24Evaluation;
using sosp24::Sosp24Options;

constexpr const char* kSosp24 = "sosp24";

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// The last name of a path: no output tells where it was made.
std::string LastName(const std::string& path) {
  std::filesystem::path name = std::filesystem::path(path).lexically_normal();
  if (!name.has_filename()) name = name.parent_path();
  return name.filename().string();
}

// The command line, with folders by their last name, to be copied into a shell.
std::string CommandText(const EvaluateFlags& flags) {
  std::string text =
      fmt::format("perseus evaluate {} {}", flags.name, ShellWord(LastName(flags.directory)));
  if (!flags.derived_directory.empty()) {
    text += fmt::format(" --derived {}", ShellWord(LastName(flags.derived_directory)));
  }
  if (!flags.measured_directory.empty()) {
    text += fmt::format(" --measured {}", ShellWord(LastName(flags.measured_directory)));
  }
  if (flags.effort) text += fmt::format(" --effort {}", *flags.effort);
  if (flags.no_times) text += " --no-times";
  if (!flags.output_directory.empty()) {
    text += fmt::format(" -o {}", ShellWord(LastName(flags.output_directory)));
  }
  return text;
}

}  // namespace

Result<Printout> RunEvaluate(const EvaluateFlags& flags) {
  if (flags.name != kSosp24) {
    const std::string example = "'perseus evaluate sosp24 sosp24_data'";
    if (flags.name.empty()) {
      return InvalidInput(fmt::format("the evaluation is missing, as in {}", example));
    }
    return InvalidInput(fmt::format("there is no evaluation '{}'; the only one is {}, as in {}",
                                    flags.name, kSosp24, example));
  }
  if (flags.directory.empty()) {
    return InvalidInput(
        "the folder with the data is missing, as in 'perseus evaluate sosp24 sosp24_data'");
  }
  if (!flags.output_directory.empty()) {
    const auto good = CheckOutputFiles(flags.output_directory,
                                       {"evaluation.md", "evaluation.html", "evaluation.json"}, {});
    if (!good) return tl::unexpected(good.error());
  }
  ProgressLine progress("read");
  Sosp24Options options;
  options.directory = flags.directory;
  options.derived_directory = flags.derived_directory;
  options.measured_directory = flags.measured_directory;
  options.effort = flags.effort.value_or(options.effort);
  if (!flags.no_times) options.cpu_seconds = CpuSeconds;
  options.progress = [&progress](const std::string& what) { progress.Announce(what); };
  const Result<Sosp24Evaluation> evaluation = EvaluateSosp24(options);
  if (!evaluation) return tl::unexpected(evaluation.error());
  for (const std::string& folder : evaluation->read_beside) {
    WriteStandardError(Printable(fmt::format("perseus: {}: summaries of measurements were read "
                                             "from this folder, too, where raw runs "
                                             "are absent; --measured DIR names another one",
                                             folder)) +
                       "\n");
  }
  const std::string command = CommandText(flags);
  const std::string markdown = FormatEvaluationMarkdown(*evaluation, command);
  const std::string json = FormatEvaluationJson(*evaluation, command);
  if (!flags.output_directory.empty()) {
    const Result<void> written = WriteFilesAtomically(
        flags.output_directory, {{"evaluation.md", markdown},
                                 {"evaluation.html", FormatEvaluationHtml(*evaluation, command)},
                                 {"evaluation.json", json}});
    if (!written) return tl::unexpected(written.error());
  }
  return Printout(flags.json ? json : markdown, flags.output_directory);
}

}  // namespace perseus::cli
