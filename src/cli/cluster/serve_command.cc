// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#include "cli/cluster/serve_flags.h"
#include "cli/commands.h"
#include "cli/framework/terminal.h"
#include "server/api/api.h"
#include "server/ops/serve.h"

namespace perseus::cli {

namespace {

// The site that the package has put beside the program: bin/perseus and share/doc/perseus/site. "":
// it has none.
std::string InstalledDocs() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return "";
  const fs::path folder = program.parent_path().parent_path() / "share/doc/perseus/site";
  return fs::is_regular_file(folder / "index.html", error) ? folder.string() : "";
}

}  // namespace

Result<Printout> RunServe(const ServeFlags& flags) {
  if (flags.openapi) return Printout(server::OpenapiJson());
  const auto environment = [](const std::string& name) -> std::optional<std::string> {
    const char* const value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe)
    if (value == nullptr) return std::nullopt;
    return value;
  };
  Result<server::ServeOptions> options = ResolveServeOptions(flags, environment);
  if (!options) return tl::unexpected(options.error());
  if (options->docs_folder.empty()) options->docs_folder = InstalledDocs();
  const Result<void> served = server::Serve(*options, [](const std::string& url) {
    // Whoever started us waits for this line; one that went away needs none.
    static_cast<void>(WriteStandardOutput(fmt::format("perseus serve: ready at {}\n", url)));
  });
  if (!served) return tl::unexpected(served.error());
  return Printout{};
}

}  // namespace perseus::cli
