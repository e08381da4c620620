// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_DEMO_CHILD_PROCESS_H_
#define PERSEUS_CLI_DEMO_CHILD_PROCESS_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/file_descriptor.h"
#include "perseus/result.h"

namespace perseus::demo {

// A process that this one started. The kernel kills it when the thread that
// started it ends in any way; a terminal's Ctrl-C does not reach it. One thread.
class ChildProcess {
 public:
  // Runs `arguments` (the first is the program). What it writes goes into the
  // file `log`; with `pipe` its standard output goes to ReadLine() instead.
  static Result<ChildProcess> Start(std::string name, const std::vector<std::string>& arguments,
                                    const std::string& log, bool pipe);
  ChildProcess(ChildProcess&& other) noexcept
      : name_(std::move(other.name_)),
        log_(std::move(other.log_)),
        pid_(std::exchange(other.pid_, -1)),
        output_(std::move(other.output_)) {}
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess() { Stop(0); }

  const std::string& name() const { return name_; }
  // A line of its output; none: it ended, or the deadline passed.
  std::optional<std::string> ReadLine(double seconds);
  // How it ended, in words ("exited with 2"); none: it runs.
  std::optional<std::string> Ended();
  bool ended_well() const { return ended_well_; }
  // Asks it to end, and kills it when it has not after so long.
  void Stop(double seconds);
  // "the server exited with 2: ", and the last line of its log.
  Error Failure(const std::string& how) const;

 private:
  ChildProcess(std::string name, std::string log, pid_t pid, FileDescriptor output)
      : name_(std::move(name)), log_(std::move(log)), pid_(pid), output_(std::move(output)) {}

  std::string name_;
  std::string log_;
  pid_t pid_ = -1;
  FileDescriptor output_;
  std::string buffer_;
  std::optional<std::string> end_;
  bool ended_well_ = false;
};

}  // namespace perseus::demo

#endif  // PERSEUS_CLI_DEMO_CHILD_PROCESS_H_
