// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <vector>

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
  const auto add_files = [&](std::vector<std::string>* target, const std::string& name,
                             const std::string& help) {
    parser->AddRepeated(name, "FILE", help,
                        CommandParser::AppendedTo(target, "the name of the file is empty"));
  };
  parser->SetGroup("What to add");
  parser->AddText(
      "--job", "JOB",
      "The job to show in full (default: one with trouble, else the newest that has not ended).",
      CommandParser::NotEmpty(&flags->job, "expected a name, got nothing"), {ValueKind::kJob, {}});
  add_files(&flags->configs, "--config",
            "A configuration file, besides those in /etc/default and /etc/systemd/system.");
  add_files(&flags->logs, "--log", "A log, of which the last MiB is taken.");
  parser->SetGroup("This node");
  AddNodeOptions(parser, &flags->driver, &flags->agent_socket);
  AddServerOptions(parser, &flags->server);
  parser->SetGroup("Output");
  parser->AddOutput(&flags->output_file, ValueKind::kFile, "The file to write, a .tar.gz.");
}

}  // namespace perseus::cli
