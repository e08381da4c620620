// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <string>
#include <vector>

#include "agent/protocol.h"
#include "cli/command_options.h"
#include "cli/support/support_bundle_flags.h"

namespace perseus::cli {

void AddSupportBundleCommand(CommandParser* parser, Invocation* invocation) {
  SupportBundleFlags* flags = &invocation->support_bundle;
  parser->AddCommand(
      Command::kSupportBundle, "support-bundle",
      "Write a file with what a maintainer needs to help you.\n\nIt holds versions, facts of this "
      "machine, what 'perseus doctor' finds of it and of the server, the server's metrics, jobs "
      "and last events, one job in full, and configuration. Passwords, tokens and keys are "
      "removed. Names of jobs, nodes and users are not: look at the file before you send it. What "
      "could not be had is named in its README.txt. Changes nothing, and sends nothing.",
      {{"on the server's machine", "perseus support-bundle -o support.tar.gz"},
       {"of another server, and with the log of this node's agent",
        "perseus support-bundle --server https://perseus.example:7787 --token-file token --log "
        "agent.log -o support.tar.gz"}});
  const auto add_name = [&](std::string* target, const std::string& name, const std::string& value,
                            const std::string& help, ValueKind kind) {
    parser->AddText(name, value, help,
                    [target](const std::string& text) -> Result<void> {
                      if (text.empty()) return InvalidInput("expected a name, got nothing");
                      *target = text;
                      return {};
                    },
                    {kind, {}});
  };
  const auto add_files = [&](std::vector<std::string>* target, const std::string& name,
                             const std::string& help) {
    parser->AddRepeated(name, "FILE", help, [target](const std::string& text) -> Result<void> {
      if (text.empty()) return InvalidInput("the name of the file is empty");
      target->push_back(text);
      return {};
    });
  };
  parser->SetGroup("What to add");
  add_name(
      &flags->job, "--job", "JOB",
      "The job to show in full (default: one with trouble, else the newest that has not ended).",
      ValueKind::kJob);
  add_files(&flags->configs, "--config",
            "A configuration file, besides those in /etc/default and /etc/systemd/system.");
  add_files(&flags->logs, "--log", "A log, of which the last MiB is taken.");
  parser->SetGroup("This node");
  add_name(&flags->driver, "--driver", "DRIVER",
           "How to reach the GPUs: nvml (default), nvml:LIBRARY, zeusd:SOCKET, or simulated:FILE.",
           ValueKind::kText);
  add_name(&flags->agent_socket, "--socket", "PATH",
           fmt::format("The agent's socket (default {}).", agent::kDefaultSocketPath),
           ValueKind::kFile);
  AddServerOptions(parser, &flags->server);
  parser->SetGroup("Output");
  parser->AddOutput(&flags->output_file, ValueKind::kFile, "The file to write, a .tar.gz.");
}

}  // namespace perseus::cli
