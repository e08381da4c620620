// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "agent/gpu_claim.h"
#include "agent/journal.h"
#include "agent/protocol.h"
#include "cli/command_options.h"
#include "cli/framework/value_parsers.h"
#include "cli/node/agent_flags.h"
#include "cli/node/agent_relay.h"

namespace perseus::cli {
namespace {

// A name or path that is not empty.
CommandParser::Set NotEmpty(std::string* target) {
  return [target](const std::string& text) -> Result<void> {
    if (text.empty()) return InvalidInput("the value is empty");
    *target = text;
    return {};
  };
}

CommandParser::Set AppendedTo(std::vector<std::string>* target) {
  return [target](const std::string& text) -> Result<void> {
    if (text.empty()) return InvalidInput("the name is empty");
    target->push_back(text);
    return {};
  };
}

Result<double> ParseAgentTime(std::string_view text, double least, double most) {
  Result<double> seconds = ParseLongDuration(text);
  if (!seconds || (*seconds >= least && *seconds <= most)) return seconds;
  return InvalidInput(
      fmt::format("expected a time from {} s to {} s, found '{}'", least, most, text));
}

}  // namespace

void AddAgentCommand(CommandParser* parser, Invocation* invocation) {
  AgentFlags* flags = &invocation->agent;
  parser->AddCommand(
      Command::kAgent, "agent",
      "Run the one privileged process of a node, which sets clocks for trainers.\n\n"
      "run (the default) serves until SIGTERM. Trainers lease GPUs over its Unix socket. However a "
      "trainer ends, the agent gives its clocks back at once. If an agent is killed, the next one "
      "gives back the clocks that it left. Needs root or CAP_SYS_ADMIN, or --observe.\n\n"
      "relay passes requests from the ranks of the node to the server. Ranks reach it at its Unix "
      "socket (unix:PATH as their server) without a token. The node then has two connections to "
      "the server instead of two per rank. It needs no privilege.\n\n"
      "status shows which process has which GPU. release gives clocks back, whichever process set "
      "them: through the agent or, if none answers, by calling the driver.",
      {{"on a node, as root, for the members of a group", "perseus agent --allow-group trainers"},
       {"pass requests of ranks to the server, without any privilege",
        "perseus agent relay --server https://perseus:7787 --server-token-file token "
        "--allow-group trainers"},
       {"which process has which GPU", "perseus agent status"},
       {"give every clock of the node back", "perseus agent release --all"},
       {"on simulated GPUs",
        "perseus agent --driver simulated:/tmp/gpus --socket /tmp/agent.sock --journal "
        "/tmp/agent.journal"}});
  parser->AddInput(&flags->action, "run|relay|release|status", "What to do (default: run).",
                   {ValueKind::kChoice, {"run", "relay", "release", "status"}});
  parser->SetGroup("Where");
  parser->AddText("--driver", "SPEC",
                  "How to reach the GPUs: nvml (default), nvml:/path/lib.so, or simulated:FILE.",
                  NotEmpty(&flags->driver), {});
  parser->AddText("--socket", "PATH",
                  fmt::format("The agent's socket (default {}); for relay: its own (default {}).",
                              agent::kDefaultSocketPath, kDefaultRelaySocket),
                  NotEmpty(&flags->socket), {ValueKind::kFile, {}});
  parser->AddText("--journal", "FILE",
                  fmt::format("Where the agent records which clocks it has changed (default {}).",
                              agent::kDefaultJournalPath),
                  NotEmpty(&flags->journal), {ValueKind::kFile, {}});
  parser->AddText("--gpu-locks", "DIR",
                  fmt::format("Folder of lock files, so that no two agents of a machine use one "
                              "GPU (default {}; for simulated GPUs FILE.locks).",
                              agent::kDefaultGpuLocks),
                  NotEmpty(&flags->gpu_locks), {ValueKind::kDirectory, {}});
  parser->SetGroup("relay");
  parser->AddText("--server", "URL", "The server that gets the ranks' requests: https://HOST:PORT.",
                  NotEmpty(&flags->server), {});
  parser->AddText("--server-token-file", "FILE",
                  "A file with one token of the role train. Ranks never see it.",
                  NotEmpty(&flags->server_token_file), {ValueKind::kFile, {}});
  parser->AddText("--server-ca", "FILE", "Certificates to trust (PEM; default: the system's).",
                  NotEmpty(&flags->server_ca_file), {ValueKind::kFile, {}});
  parser->SetGroup("run and relay");
  parser->AddRepeated(
      "--allow-user", "NAME",
      "A user who may lease GPUs (relay: reach the server), in addition to root and "
      "the agent's own user; a name or a number. May be given several times.",
      AppendedTo(&flags->users));
  parser->AddRepeated("--allow-group", "NAME", "The same for the members of a group.",
                      AppendedTo(&flags->groups));
  parser->SetGroup("run");
  parser->AddFlag(&flags->observe, "--observe", "Set no clock; only show GPUs and conditions.");
  parser->AddRepeated("--operator", "NAME",
                      "A user who may also give back the clocks of others (release).",
                      AppendedTo(&flags->operators));
  parser->AddValue<double>(&flags->min_interval_seconds, "--min-interval", "TIME",
                           "Change the clock of a GPU at most once in this time (default 10ms).",
                           [](std::string_view text) { return ParseAgentTime(text, 0, 60); });
  parser->AddValue<double>(&flags->max_silence_seconds, "--max-silence", "TIME",
                           "If a trainer holds a locked clock and sends nothing for this time, for "
                           "example because it is stopped, give the clock back (default 5s).",
                           [](std::string_view text) { return ParseAgentTime(text, 0.1, 86400); });
  parser->AddValue<double>(&flags->poll_seconds, "--poll", "TIME",
                           "How often to look for reasons why a GPU does not reach its locked "
                           "clock: power caps, heat (default 10s).",
                           [](std::string_view text) { return ParseAgentTime(text, 1, 86400); });
  parser->SetGroup("release");
  parser->AddFlag(&flags->all, "--all", "Give back the clocks of all GPUs of the node.");
  parser->AddText("--gpu", "GPU", "Give back only this GPU's clock: UUID or index.",
                  NotEmpty(&flags->gpu), {});
  parser->AddFlag(
      &flags->journaled, "--journaled",
      "Give back only clocks that a dead agent's journal names. For the service manager.");
  parser->SetGroup("status");
  parser->AddFlag(&flags->json, "--json", "Print one JSON document.");
}

}  // namespace perseus::cli
