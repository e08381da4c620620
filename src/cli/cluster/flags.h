// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_CLUSTER_FLAGS_H_
#define PERSEUS_CLI_CLUSTER_FLAGS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "cli/framework/value_parsers.h"
#include "common/labels.h"
#include "perseus/result.h"
#include "server/ops/serve.h"

namespace perseus::cli {

// The flags of `job`, the client of a server.
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

// The flags of `profile`, the client of a server's profile library.
struct ProfileFlags {
  std::string action;  // "compare"
  std::string profile;
  std::string other;  // compare
  ServerFlags server;
  bool json = false;
  bool names = false;  // list: the ids alone, for completions.
  std::string output_file;
};

// A point in time: a day of UTC, or so long before now.
struct When {
  std::optional<std::int64_t> day_seconds;  // Since 1970.
  double ago_seconds = 0;
};
// "2026-11-01" or "30d".
Result<When> ParseWhen(std::string_view text);

// The name in "label:NAME" or "label:NAME,day"; empty: there is none.
std::string LabelOfBy(std::string_view by);

struct ReportFlags {
  std::string action;  // "energy"
  When since = {.day_seconds = {}, .ago_seconds = 30 * 86'400.0};
  std::optional<When> until;  // None: today is in it.
  std::string by = "job";
  JobLabels labels;  // Only jobs with these.
  std::optional<double> price_per_kwh;
  std::string currency;
  std::optional<double> carbon_g_per_kwh;
  std::string csv_file;  // Empty: a table on standard output.
  bool json = false;
  ServerFlags server;
};

// The flags of `serve`: values by the name of the setting.
struct ServeFlags {
  bool openapi = false;  // Print the description of the API, and serve nothing.
  std::string config_file;
  std::map<std::string, std::string, std::less<>> values;
};

// One setting of the server: --NAME, PERSEUS_SERVE_NAME in the environment, NAME
// in the configuration file ('-' is '_' in the latter two).
struct ServeSetting {
  std::string_view name;
  std::string_view value;  // "HOST:PORT", for the help.
  std::string_view help;
  Result<void> (*set)(const std::string& text, server::ServeOptions* options);
};
std::span<const ServeSetting> ServeSettings();

// Flags win over the environment, which wins over the configuration file, which
// wins over the defaults. `environment` is std::getenv, or a test's.
using EnvironmentLookup = std::function<std::optional<std::string>(const std::string& name)>;
Result<server::ServeOptions> ResolveServeOptions(const ServeFlags& flags,
                                                 const EnvironmentLookup& environment);

// The flags of `store`. Stores are named as `serve --store` names them.
struct StoreFlags {
  std::string action;  // "copy"
  std::string from;
  std::string to;
};

struct TopFlags {
  ServerFlags server;
  std::string sort = "watts";
  std::optional<double> every_seconds;
  JobLabels labels;  // Only jobs with these.
  bool all = false;
  bool once = false;
  bool json = false;
};

struct SupportBundleFlags {
  std::string output_file;
  ServerFlags server;
  std::string job;              // Empty: one that has trouble, else the newest.
  std::string driver = "nvml";  // As device::OpenDriver takes it.
  std::string agent_socket;     // Empty: the agent's own default.
};

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_CLUSTER_FLAGS_H_
