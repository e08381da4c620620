// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <string>

#include "cli/cluster/serve_flags.h"
#include "cli/command_options.h"

namespace perseus::cli {

void AddServeCommand(CommandParser* parser, Invocation* invocation) {
  parser->AddCommand(
      Command::kServe, "serve",
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
       {"one of several on one database",
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

}  // namespace perseus::cli
