// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_CLUSTER_JOB_CLIENT_FLAGS_H_
#define PERSEUS_CLI_CLUSTER_JOB_CLIENT_FLAGS_H_

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "cli/framework/server_flags.h"
#include "common/labels.h"

namespace perseus::cli {

// What was given to `job`, the client of a server.
struct JobClientFlags {
  std::string action;  // "straggler set"
  std::string job;
  ServerFlags server;
  bool json = false;
  bool names = false;  // list: only what JOB may be, for completions.
  bool yes = false;    // delete: without a question.

  // list. Name and client key of `create`, too.
  std::string state;
  std::optional<int> limit;

  std::string at;  // point

  // list: those that a job must have; create: those of the job; label: those to set.
  JobLabels labels;
  std::set<std::string, std::less<>> gone_labels;  // label: those to take away.

  // create
  std::string file;
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
  std::string straggler;  // straggler clear: its number; empty: all.
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

#endif  // PERSEUS_CLI_CLUSTER_JOB_CLIENT_FLAGS_H_
