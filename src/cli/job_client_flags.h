// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_JOB_CLIENT_FLAGS_H_
#define PERSEUS_CLI_JOB_CLIENT_FLAGS_H_

#include <optional>
#include <string>
#include <vector>

#include "cli/server_flags.h"

namespace perseus::cli {

// What was given to `job`, the client of a server.
struct JobClientFlags {
  // The action and what it is about: "straggler", "set", "j-1f...".
  std::vector<std::string> words = std::vector<std::string>(4);
  ServerFlags server;
  bool json = false;
  bool yes = false;  // delete: without a question.

  // create
  std::string name;
  std::string client_key;
  std::string model;
  bool no_reuse = false;
  // straggler set
  std::optional<int> pipeline;
  std::optional<int> rank;
  std::string node;
  std::optional<double> factor;
  std::optional<double> delay_seconds;
  std::optional<double> expires_seconds;
  std::optional<double> starts_seconds;
  // detection
  std::string mode;
  std::optional<double> threshold;
  std::optional<int> window;
  // compare
  std::optional<int> every;
  std::optional<int> iterations;
  bool off = false;
  // export
  bool frontier = false;
  std::string output_file;
};

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_JOB_CLIENT_FLAGS_H_
