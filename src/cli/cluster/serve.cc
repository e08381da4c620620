// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/ops/serve.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/cluster/flags.h"
#include "cli/commands.h"
#include "cli/framework/terminal.h"
#include "cli/framework/value_parsers.h"
#include "common/file.h"
#include "common/numbers.h"
#include "common/tree.h"
#include "server/api/api.h"

namespace perseus::cli {

void AddServeCommand(CommandParser* parser, Invocation* invocation) {
  parser->AddCommand(
      "serve",
      "Run the server: jobs, ranks, plans, stragglers.\n\nRanks join a job and get its plan, and "
      "every new version of the plan. If the job has no profile, the ranks measure one first. If "
      "one pipeline becomes slow, the others get slower plans, which save energy. If the server is "
      "killed, its jobs go on after a restart. Clients of Zeus' pipeline frequency optimizer can "
      "use the same port. The server prints one line when it is ready, and ends on SIGTERM or "
      "SIGINT.\n\nEvery option can also be given in the environment, as PERSEUS_SERVE_LISTEN for "
      "--listen, or in a TOML file (--config, PERSEUS_SERVE_CONFIG), as listen = \"...\"; '-' "
      "becomes '_'. Options win over the environment, the environment over the file.",
      {{"for this machine only", "perseus serve --store sqlite:/var/lib/perseus/jobs.db"},
       {"for a cluster",
        "perseus serve --listen 0.0.0.0:7787 --token-file tokens --tls-cert cert.pem --tls-key "
        "key.pem"},
       {"on a database, where a second server may stand by",
        "perseus serve --store postgresql://perseus@db.example/perseus"},
       {"for clients of Zeus", "perseus serve --zeus-plan plan/plan.json"}});
  ServeFlags* flags = &invocation->serve;
  for (const ServeSetting& setting : ServeSettings()) {
    const std::string name(setting.name);
    const ValueKind kind = setting.value == "FILE"  ? ValueKind::kFile
                           : setting.value == "DIR" ? ValueKind::kDirectory
                                                    : ValueKind::kText;
    parser->AddText("--" + name, std::string(setting.value), std::string(setting.help),
                    [flags, name](const std::string& text) -> Result<void> {
                      flags->values[name] = text;
                      return {};
                    },
                    {kind, {}});
  }
  parser->AddFlag(&flags->openapi, "--openapi",
                  "Print the OpenAPI document of the server's API and end.");
  parser->AddText("--config", "FILE", "A TOML file of these options.",
                  CommandParser::NotEmpty(&flags->config_file, "the name of the file is empty"),
                  {ValueKind::kFile, {}});
}

namespace {

using server::ServeOptions;

constexpr std::size_t kMostConfigBytes = std::size_t{1} << 20;
constexpr int kMostConnections = 1'000'000;
constexpr int kMostJobs = 1'000'000;
constexpr int kMostWorkers = 256;

Result<void> SetCount(const std::string& text, int most, int* target) {
  const Result<int> count = ParseCount(text, 1, most);
  if (!count) return tl::unexpected(count.error());
  *target = *count;
  return {};
}

template <std::string ServeOptions::*member>
Result<void> SetText(const std::string& text, ServeOptions* options) {
  if (text.empty()) return InvalidInput("the value is empty");
  options->*member = text;
  return {};
}

// "30d", "12h" or "90s", above 0.
std::optional<double> ParseKeep(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const double unit = text.back() == 'd'   ? 86'400
                      : text.back() == 'h' ? 3'600
                      : text.back() == 's' ? 1
                                           : 0;
  const auto number = ParseFinite(text.substr(0, text.size() - 1));
  if (unit == 0 || !number || *number <= 0) return std::nullopt;
  return *number * unit;
}

const std::array<ServeSetting, 15> kSettings = {{
    {"listen", "ADDRESS",
     "Where to listen: HOST:PORT (default 127.0.0.1:7787), port 0 for a free one, or unix:PATH. An "
     "address that others can reach needs --token-file and TLS.",
     SetText<&ServeOptions::listen>},
    {"store", "SPEC",
     "Where jobs are kept: sqlite:FILE (default sqlite:perseus.db), or "
     "postgresql://USER@HOST/DATABASE. While another server has the store, this one stands by. The "
     "password is read from ~/.pgpass, or from the file that PGPASSFILE names.",
     SetText<&ServeOptions::store>},
    {"token-file", "FILE",
     "Who may do what: one 'ROLE TOKEN NAME' a line; roles are read, train and operate. Read again "
     "on SIGHUP.",
     SetText<&ServeOptions::token_file>},
    {"tls-cert", "FILE", "Certificate chain, PEM. Read again on SIGHUP.",
     SetText<&ServeOptions::tls_certificate_file>},
    {"tls-key", "FILE", "Its private key, PEM.", SetText<&ServeOptions::tls_key_file>},
    {"zeus-plan", "FILE",
     "The plan for jobs of Zeus' client that have its shape: plan.json, or a list as Zeus' "
     "PointSolution reads it.",
     SetText<&ServeOptions::zeus_plan_file>},
    {"docs", "DIR",
     "The documentation's site, shown at /docs (default: share/doc/perseus/site of the "
     "installation, if it is there).",
     SetText<&ServeOptions::docs_folder>},
    {"log-format", "text|json", "Format of the log on standard error (default text).",
     [](const std::string& text, ServeOptions* options) -> Result<void> {
       if (text != "text" && text != "json") {
         return InvalidInput(fmt::format("expected text or json, got '{}'", text));
       }
       options->log_format = text == "json" ? LogFormat::kJson : LogFormat::kText;
       return {};
     }},
    {"log-level", "LEVEL", "debug (every request), info (default), warning or error.",
     [](const std::string& text, ServeOptions* options) -> Result<void> {
       constexpr std::array<std::string_view, 4> kLevels = {"debug", "info", "warning", "error"};
       const auto* const found = std::find(kLevels.begin(), kLevels.end(), text);
       if (found == kLevels.end()) {
         return InvalidInput(fmt::format("expected debug, info, warning or error, got '{}'", text));
       }
       options->log_level = static_cast<LogLevel>(found - kLevels.begin());
       return {};
     }},
    {"max-connections", "N", "Most connections at once (default 12000).",
     [](const std::string& text, ServeOptions* options) {
       return SetCount(text, kMostConnections, &options->max_connections);
     }},
    {"max-jobs", "N", "Most unfinished jobs at once (default 10000).",
     [](const std::string& text, ServeOptions* options) {
       return SetCount(text, kMostJobs, &options->max_jobs);
     }},
    {"finish-silent", "TIME|never",
     "Finish a job when none of its ranks has been heard of for this long (default 7d).",
     [](const std::string& text, ServeOptions* options) -> Result<void> {
       const auto silent = ParseKeep(text);
       if (!silent && text != "never") {
         return InvalidInput(
             fmt::format("expected a time such as 7d or 12h, or never, got '{}'", text));
       }
       options->finish_silent_seconds = silent;
       return {};
     }},
    {"keep-finished", "TIME",
     "Delete a job this long after it has finished: 30d, 12h. Without this option, finished jobs "
     "are kept.",
     [](const std::string& text, ServeOptions* options) -> Result<void> {
       const auto keep = ParseKeep(text);
       if (!keep) {
         return InvalidInput(fmt::format("expected a time such as 30d or 12h, got '{}'", text));
       }
       options->keep_finished_seconds = *keep;
       return {};
     }},
    {"workers", "N", "Threads that answer requests (default 4).",
     [](const std::string& text, ServeOptions* options) {
       return SetCount(text, kMostWorkers, &options->workers);
     }},
    {"grace", "SECONDS",
     "How long requests and commits may take to end when the server stops (default 0.8).",
     [](const std::string& text, ServeOptions* options) -> Result<void> {
       const Result<double> seconds = ParseDuration(text);
       if (!seconds) return tl::unexpected(seconds.error());
       options->grace_seconds = *seconds;
       return {};
     }},
}};

std::string Underscored(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

std::string EnvironmentName(std::string_view name) {
  std::string text = "PERSEUS_SERVE_" + Underscored(name);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

// `origin` says where the text was found.
Result<void> ApplySetting(const ServeSetting& setting, const std::string& text,
                          const std::string& origin, ServeOptions* options) {
  const Result<void> set = setting.set(text, options);
  if (set) return {};
  return InvalidInput(fmt::format("{}: {}", origin, set.error().message));
}

Result<void> ApplyFile(const std::string& path, ServeOptions* options) {
  const Result<std::string> text = ReadWholeFile(path, kMostConfigBytes);
  if (!text) return tl::unexpected(text.error());
  const Result<TreeNode> tree = ParseTomlTree(*text, path);
  if (!tree) return tl::unexpected(tree.error());
  std::vector<std::string> names;
  names.reserve(std::size(kSettings));
  for (const ServeSetting& setting : kSettings) names.push_back(Underscored(setting.name));
  const std::vector<std::string_view> keys(names.begin(), names.end());
  TreeReader reader(*tree, path);
  const TreeCursor root = reader.Root();
  root.AllowOnly(keys);
  for (std::size_t i = 0; i < kSettings.size(); ++i) {
    const auto found = root.Find(keys[i]);
    if (!found) continue;
    const std::string value =
        found->IsNumber() ? fmt::format("{}", found->Number()) : found->String();
    if (reader.failed()) break;
    if (const auto set = kSettings[i].set(value, options); !set) found->Fail(set.error().message);
  }
  if (reader.failed()) return tl::unexpected(*reader.error());
  return {};
}

}  // namespace

std::span<const ServeSetting> ServeSettings() { return kSettings; }

Result<ServeOptions> ResolveServeOptions(const ServeFlags& flags,
                                         const EnvironmentLookup& environment) {
  ServeOptions options;
  std::string config = flags.config_file;
  if (config.empty()) config = environment("PERSEUS_SERVE_CONFIG").value_or("");
  if (!config.empty()) {
    if (auto applied = ApplyFile(config, &options); !applied) {
      return tl::unexpected(applied.error());
    }
  }
  for (const ServeSetting& setting : kSettings) {
    const std::string name = EnvironmentName(setting.name);
    if (const auto text = environment(name)) {
      if (auto set = ApplySetting(setting, *text, name, &options); !set)
        return tl::unexpected(set.error());
    }
    if (const auto given = flags.values.find(setting.name); given != flags.values.end()) {
      const std::string flag = fmt::format("--{}", setting.name);
      if (auto set = ApplySetting(setting, given->second, flag, &options); !set) {
        return tl::unexpected(set.error());
      }
    }
  }
  return options;
}

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
    // Report readiness; a failed write (a reader that has gone) is no error.
    static_cast<void>(WriteStandardOutput(fmt::format("perseus serve: ready at {}\n", url)));
  });
  if (!served) return tl::unexpected(served.error());
  return Printout{};
}

}  // namespace perseus::cli
