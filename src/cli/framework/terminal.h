// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_FRAMEWORK_TERMINAL_H_
#define PERSEUS_CLI_FRAMEWORK_TERMINAL_H_

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "perseus/progress.h"
#include "perseus/result.h"

namespace perseus::cli {

// How to write for whoever reads standard output. Taken from the environment
// once, then passed along.
struct Style {
  bool color = false;  // A terminal, and neither NO_COLOR nor TERM=dumb.
  bool utf8 = false;   // The locale's character set is UTF-8.
  int columns = 80;
  int rows = 24;

  std::string_view rule() const { return utf8 ? "\u2500" : "-"; }
  std::string Bold(std::string_view text) const;
  std::string Dim(std::string_view text) const;
};

Style DetectStyle();

// Gives descriptors 0-2 that the caller closed to /dev/null in the wrong
// direction, so that no file we open becomes "standard output" and writing to
// a closed one still fails. Also ignores SIGPIPE: a reader that went away is
// an error of write(), not the end of the process.
void PrepareStandardStreams();

// Writes all of `text` to standard output. False: the reader went away (EPIPE) and has
// what it wanted. Anything else is an error (kIo).
Result<bool> WriteStandardOutput(std::string_view text);

// Whether somebody may still read standard output: not where that is a pipe that was closed.
bool HasReader();

// Writes `text` to standard error; a failure has nobody to be told to.
void WriteStandardError(std::string_view text);

// Asks whoever sits at the terminal; without one nobody is asked, and it is true.
bool Confirm(std::string_view question);

// One line on standard error, only if that is a terminal and the work takes
// longer than a second. The line is erased at destruction. Not thread-safe.
class ProgressLine {
 public:
  explicit ProgressLine(std::string_view what);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void SetWhat(std::string_view what);
  void Report(double share);
  // Work whose share is not known.
  void Announce(std::string_view what);
  // To be kept no longer than this object.
  ProgressFunction Function();

 private:
  using Clock = std::chrono::steady_clock;
  void Show(std::string_view text);
  std::string what_;
  bool is_terminal_ = false;
  bool shown_ = false;
  Clock::time_point start_;
  Clock::time_point last_;
};

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

#endif  // PERSEUS_CLI_FRAMEWORK_TERMINAL_H_
