// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_CLUSTER_TOP_FLAGS_H_
#define PERSEUS_CLI_CLUSTER_TOP_FLAGS_H_

#include <optional>
#include <string>

#include "cli/framework/server_flags.h"
#include "common/labels.h"

namespace perseus::cli {

// What was given to `top`.
struct TopFlags {
  ServerFlags server;
  std::string sort = "watts";
  std::optional<double> every_seconds;
  JobLabels labels;  // Only jobs with these.
  bool all = false;
  bool once = false;
  bool json = false;
};

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_CLUSTER_TOP_FLAGS_H_
