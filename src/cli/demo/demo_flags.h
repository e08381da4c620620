// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_DEMO_FLAGS_H_
#define PERSEUS_CLI_DEMO_FLAGS_H_

#include <optional>
#include <string>

namespace perseus::cli {

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

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_DEMO_FLAGS_H_
