// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_CLUSTER_SERVE_FLAGS_H_
#define PERSEUS_CLI_CLUSTER_SERVE_FLAGS_H_

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "perseus/result.h"
#include "server/ops/serve.h"

namespace perseus::cli {

// What was given to `serve` as flags: values by the name of the setting.
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

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_CLUSTER_SERVE_FLAGS_H_
