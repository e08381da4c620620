// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/framework/server_flags.h"

#include <cstdlib>

namespace perseus::cli {
namespace {

void FillFromEnvironment(std::string* text, const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread.
  if (text->empty() && value != nullptr) *text = value;
}

}  // namespace

ServerFlags WithEnvironment(ServerFlags flags) {
  FillFromEnvironment(&flags.server, "PERSEUS_SERVER");
  FillFromEnvironment(&flags.token_file, "PERSEUS_TOKEN_FILE");
  FillFromEnvironment(&flags.ca_file, "PERSEUS_CA_FILE");
  return flags;
}

}  // namespace perseus::cli
