// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// perseus-sosp24: the paper's evaluation from its public data, on the command line.

#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/framework/option_data.h"
#include "cli/framework/table.h"
#include "cli/framework/terminal.h"
#include "common/file.h"
#include "common/printable.h"
#include "evaluation/json.h"
#include "evaluation/report.h"
#include "evaluation/sosp24.h"
#include "perseus/effort.h"

namespace {

using perseus::Error;
using perseus::ErrorCode;
using perseus::Result;
using perseus::cli::ShellWord;
using perseus::sosp24::Sosp24Evaluation;
using perseus::sosp24::Sosp24Options;

struct Flags {
  Sosp24Options options;
  bool no_times = false;
  bool json = false;
  std::string output_directory;
};

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
std::string CommandText(const Flags& flags) {
  const Sosp24Options& options = flags.options;
  std::string text = "perseus-sosp24 " + ShellWord(LastName(options.directory));
  const auto append = [&](const char* name, const std::string& folder) {
    if (!folder.empty()) text += fmt::format(" {} {}", name, ShellWord(LastName(folder)));
  };
  append("--derived", options.derived_directory);
  append("--measured", options.measured_directory);
  if (options.effort != Sosp24Options().effort) text += fmt::format(" --effort {}", options.effort);
  if (flags.no_times) text += " --no-times";
  append("-o", flags.output_directory);
  return text;
}

// Prints Markdown or JSON, and writes all three files where a folder is named.
Result<void> Evaluate(const Flags& flags) {
  const std::string& folder = flags.output_directory;
  if (!folder.empty()) {
    auto good =
        perseus::CheckWritable(folder, {"evaluation.md", "evaluation.html", "evaluation.json"});
    if (!good) return good;
  }
  perseus::cli::ProgressLine progress("read");
  Sosp24Options options = flags.options;
  if (!flags.no_times) options.cpu_seconds = CpuSeconds;
  options.progress = [&progress](const std::string& what) { progress.Announce(what); };
  const Result<Sosp24Evaluation> evaluation = EvaluateSosp24(options);
  if (!evaluation) return tl::unexpected(evaluation.error());
  for (const std::string& beside : evaluation->read_beside) {
    perseus::cli::WriteStandardError(
        perseus::Printable(fmt::format("perseus-sosp24: {}: summaries of measurements were read "
                                       "from this folder, too, where raw runs are absent; "
                                       "--measured DIR names another one",
                                       beside)) +
        "\n");
  }
  const std::string command = CommandText(flags);
  const std::string markdown = FormatEvaluationMarkdown(*evaluation, command);
  const std::string json = FormatEvaluationJson(*evaluation, command);
  if (!folder.empty()) {
    auto written = perseus::WriteFilesAtomically(
        folder, {{"evaluation.md", markdown},
                 {"evaluation.html", FormatEvaluationHtml(*evaluation, command)},
                 {"evaluation.json", json}});
    if (!written) return written;
  }
  const auto printed = perseus::cli::WriteStandardOutput(
      perseus::cli::WithoutControls(flags.json ? json : markdown));
  if (!printed) return tl::unexpected(printed.error());
  return {};
}

void AddOptions(CLI::App* app, Flags* flags) {
  // Every name of a folder that is given has a letter.
  const CLI::Validator named([](std::string& text) { return text.empty() ? "it is empty" : ""; },
                             "", "named");
  Sosp24Options* options = &flags->options;
  app->add_option("DATA", options->directory, "The folder with the data.")
      ->required()
      ->type_name("");
  app->add_option("--derived", options->derived_directory,
                  "A folder with profiles of the paper's real jobs, in the profile format: adds "
                  "our plans for them.")
      ->type_name("DIR")
      ->check(named);
  app->add_option("--measured", options->measured_directory,
                  "A folder with summaries of the real jobs' measurements, for those whose raw "
                  "runs are absent (default: a folder measured beside DATA or beside --derived).")
      ->type_name("DIR")
      ->check(named);
  app->add_option("--effort", options->effort,
                  fmt::format("How much work to search for each plan, from 0.001 to 1000 (default "
                              "{}); see 'perseus plan'.",
                              perseus::kTableEffort))
      ->type_name("FACTOR")
      ->check(CLI::Range(0.001, 1000.0).description(""));
  app->add_flag("--no-times", flags->no_times,
                "Leave out the planner's run time: then the same data gives the same bytes.");
  app->add_option("-o,--output", flags->output_directory,
                  "Write evaluation.md, evaluation.html and evaluation.json into this folder: all "
                  "of them or none.")
      ->type_name("DIR")
      ->check(named);
  app->add_flag("--json", flags->json, "Print one JSON document instead of Markdown.");
}

int Fail(const Error& error) {
  perseus::cli::WriteStandardError(
      fmt::format("perseus-sosp24: {}\n", perseus::Printable(error.message)));
  return error.code == ErrorCode::kInternal ? 1 : 2;
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Recomputes the tables of the Perseus paper (Chung et al., SOSP 2024) from its public data, "
      "with our plans beside them. The data is the folder sosp24_data of "
      "github.com/ml-energy/zeus, "
      "branch kronos; parts that are missing are named and left out. Prints Markdown. Without -o "
      "nothing is written.",
      "perseus-sosp24");
  app.set_version_flag("-V,--version", "perseus-sosp24 " PERSEUS_VERSION);
  Flags flags;
  AddOptions(&app, &flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    std::string what = error.what();
    std::replace(what.begin(), what.end(), '\n', ' ');
    return Fail(
        {ErrorCode::kInvalidInput, what + "; 'perseus-sosp24 --help' shows how options are given"});
  }
  const Result<void> done = Evaluate(flags);
  return done ? EXIT_SUCCESS : Fail(done.error());
}

}  // namespace

int main(int argc, char** argv) {
  perseus::cli::PrepareStandardStreams();
  try {
    return Main(argc, argv);
  } catch (const std::exception& exception) {
    return Fail({ErrorCode::kInternal, exception.what()});
  }
}
