// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <cstddef>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/demo/trainer.h"
#include "cli/framework/table.h"
#include "cli/framework/terminal.h"
#include "common/printable.h"

namespace {

using perseus::Error;
using perseus::ErrorCode;
using perseus::Result;
using perseus::cli::Printout;
using perseus::cli::Style;

constexpr int kExitInternal = 1;
constexpr int kExitRefused = 2;

// A sentence with its ends: what it quotes may be as long as a whole file.
std::string Shortened(const std::string& sentence) {
  constexpr std::size_t kStart = 1500;
  constexpr std::size_t kEnd = 500;
  if (sentence.size() <= kStart + kEnd) return sentence;
  const auto is_inside_character = [&](std::size_t at) {
    return (static_cast<unsigned char>(sentence[at]) & 0xC0) == 0x80;
  };
  std::size_t first = kStart;
  while (first > 0 && is_inside_character(first)) --first;
  std::size_t last = sentence.size() - kEnd;
  while (last < sentence.size() && is_inside_character(last)) ++last;
  return fmt::format("{} ... {}", sentence.substr(0, first), sentence.substr(last));
}

int Fail(const Error& error) {
  perseus::cli::WriteStandardError(
      fmt::format("perseus: {}\n", perseus::Printable(Shortened(error.message))));
  return error.code == ErrorCode::kInternal ? kExitInternal : kExitRefused;
}

int Main(const std::vector<std::string>& arguments) {
  // A rank of the modelled job, started by `perseus demo`.
  if (arguments.size() == 3 && arguments[0] == perseus::demo::kTrainerArgument) {
    const Result<void> trained =
        perseus::demo::RunTrainer(arguments[1], std::atoi(arguments[2].c_str()));
    return trained ? 0 : Fail(trained.error());
  }
  const Style style = perseus::cli::DetectStyle();
  const auto parsed = perseus::cli::ParseCommandLine(arguments, style.columns);
  if (!parsed) return Fail(parsed.error());
  const Result<Printout> printout = parsed->text
                                        ? Result<Printout>(*parsed->text)
                                        : perseus::cli::RunCommand(parsed->invocation, style);
  if (!printout) return Fail(printout.error());
  const Result<bool> printed =
      perseus::cli::WriteStandardOutput(perseus::cli::WithoutControls(printout->text));
  if (printed) return printout->is_refusal ? kExitRefused : 0;
  Error error = printed.error();
  if (!printout->written.empty()) {
    error.message += fmt::format("; all files in {} are written", printout->written);
  }
  return Fail(error);
}

}  // namespace

int main(int argc, char** argv) {
  perseus::cli::PrepareStandardStreams();
  try {
    return Main(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
  } catch (const std::bad_alloc&) {
    return Fail(
        {ErrorCode::kInvalidInput,
         "out of memory; try a smaller pipeline, or a coarse frontier (--set coarse_watts=2)"});
  } catch (const std::exception& exception) {
    return Fail({ErrorCode::kInternal,
                 fmt::format("internal error: {}; please report it with the command that led here",
                             exception.what())});
  }
}
