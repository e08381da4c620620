// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_FRAMEWORK_OUTPUTS_H_
#define PERSEUS_CLI_FRAMEWORK_OUTPUTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "perseus/result.h"

namespace perseus::cli {

// A command's printed text, and the place of its written files, if any.
struct Printout {
  std::string text;
  std::string written;      // A file or folder; empty: none.
  bool is_refusal = false;  // The text says why the answer is no: exit code 2.

  Printout() = default;
  Printout(std::string printed, std::string place = "")  // NOLINT(google-explicit-constructor)
      : text(std::move(printed)), written(std::move(place)) {}
};

// A file that a command reads.
struct InputFile {
  std::string what;  // "the profile"
  std::string path;
};

// Before any work: whether -o can be written, and would not replace what is
// read, under whatever name (hard and symbolic links, too).
Result<void> CheckOutputFile(const std::string& path, const std::vector<InputFile>& inputs);
Result<void> CheckOutputFiles(const std::string& directory, const std::vector<std::string>& names,
                              const std::vector<InputFile>& inputs);

inline constexpr std::string_view kTraceFileName = "timeline.pftrace";

// Notes that a file of this name, which this run does not write, is there.
void NoteStale(const std::string& directory, std::string_view name,
               std::vector<std::string>* notes);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_FRAMEWORK_OUTPUTS_H_
