// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "cli/cluster/serve_flags.h"
#include "cli/commands.h"
#include "cli/framework/terminal.h"
#include "server/api/api.h"
#include "server/ops/serve.h"

namespace perseus::cli {

Result<Printout> RunServe(const ServeFlags& flags) {
  if (flags.openapi) return Printout(server::OpenapiJson());
  const auto environment = [](const std::string& name) -> std::optional<std::string> {
    const char* const value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe)
    if (value == nullptr) return std::nullopt;
    return value;
  };
  const Result<server::ServeOptions> options = ResolveServeOptions(flags, environment);
  if (!options) return tl::unexpected(options.error());
  const Result<void> served = server::Serve(*options, [](const std::string& url) {
    // Whoever started us waits for this line; one that went away needs none.
    static_cast<void>(WriteStandardOutput(fmt::format("perseus serve: ready at {}\n", url)));
  });
  if (!served) return tl::unexpected(served.error());
  return Printout{};
}

}  // namespace perseus::cli
