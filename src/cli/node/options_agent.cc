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

Result<double> ParseAgentTime(std::string_view text, double least, double most) {
  Result<double> seconds = ParseLongDuration(text);
  if (!seconds || (*seconds >= least && *seconds <= most)) return seconds;
  return InvalidInput(
      fmt::format("expected a time from {} s to {} s, found '{}'", least, most, text));
}

void AddDriverOption(CommandParser* parser, AgentFlags* flags) {
  parser->AddText("--driver", "SPEC",
                  "How to reach the GPUs: nvml (default), nvml:/path/lib.so, or simulated:FILE.",
                  CommandParser::NotEmpty(&flags->driver), {});
}

void AddSocketOption(CommandParser* parser, AgentFlags* flags, const std::string& whose,
                     const char* usual) {
  parser->AddText("--socket", "PATH", fmt::format("{} socket (default {}).", whose, usual),
                  CommandParser::NotEmpty(&flags->socket), {ValueKind::kFile, {}});
}

// What one agent is told apart from another by.
void AddPlaceOptions(CommandParser* parser, AgentFlags* flags) {
  AddDriverOption(parser, flags);
  AddSocketOption(parser, flags, "The agent's", agent::kDefaultSocketPath);
  parser->AddText("--journal", "FILE",
                  fmt::format("Where the agent records which clocks it has changed (default {}).",
                              agent::kDefaultJournalPath),
                  CommandParser::NotEmpty(&flags->journal), {ValueKind::kFile, {}});
  parser->AddText("--gpu-locks", "DIR",
                  fmt::format("Folder of lock files. They prevent two agents of a machine from "
                              "using the same GPU (default {}; for simulated GPUs FILE.locks).",
                              agent::kDefaultGpuLocks),
                  CommandParser::NotEmpty(&flags->gpu_locks), {ValueKind::kDirectory, {}});
}

void AddMetricsOption(CommandParser* parser, AgentFlags* flags) {
  parser->AddText("--metrics-file", "FILE",
                  "Keep figures for Prometheus in this file, whose name ends in .prom: for the "
                  "textfile collector of node_exporter (default: no file).",
                  CommandParser::NotEmpty(&flags->metrics_file), {ValueKind::kFile, {}});
}

void AddAccessOptions(CommandParser* parser, AgentFlags* flags, const std::string& what) {
  parser->AddRepeated(
      "--allow-user", "NAME",
      fmt::format("A user who may {}, besides root and the user that runs this; a name or a "
                  "number. May be given several times.",
                  what),
      CommandParser::AppendedTo(&flags->users, "the name is empty"));
  parser->AddRepeated("--allow-group", "NAME", "The same for the members of a group.",
                      CommandParser::AppendedTo(&flags->groups, "the name is empty"));
}

void AddRunOptions(CommandParser* parser, AgentFlags* flags) {
  parser->AddRepeated("--operator", "NAME",
                      "A user who may also give back the clocks of others (release).",
                      CommandParser::AppendedTo(&flags->operators, "the name is empty"));
  parser->AddFlag(&flags->observe, "--observe", "Set no clock; only show GPUs and conditions.");
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
  AddMetricsOption(parser, flags);
}

void AddRunAction(CommandParser* parser, AgentFlags* flags) {
  parser->AddAction(
      &flags->action, "run",
      "Serve trainers until SIGTERM: they lease GPUs, and the agent sets clocks.\n\n"
      "Trainers lease GPUs over the agent's Unix socket. However a trainer ends, the agent gives "
      "its clocks back at once. If an agent is killed, the next one gives back the clocks that it "
      "left. Needs root or CAP_SYS_ADMIN, or --observe.",
      {{"as root, for the members of a group", "perseus agent run --allow-group trainers"},
       {"on simulated GPUs",
        "perseus agent run --driver simulated:/tmp/gpus --socket /tmp/agent.sock --journal "
        "/tmp/agent.journal"}});
  parser->SetGroup("Where");
  AddPlaceOptions(parser, flags);
  parser->SetGroup("Who may do what");
  AddAccessOptions(parser, flags, "lease GPUs");
  AddRunOptions(parser, flags);
}

void AddReleaseAction(CommandParser* parser, AgentFlags* flags) {
  parser->AddAction(&flags->action, "release",
                    "Give clocks back, whichever process set them.\n\nThe agent does it. If no "
                    "agent answers, this command calls the driver itself.",
                    {{"every clock of the node", "perseus agent release --all"}});
  parser->SetGroup("Which clocks");
  parser->AddFlag(&flags->all, "--all", "The clocks of all GPUs of the node.");
  parser->AddText("--gpu", "GPU", "Only the clock of this GPU: its UUID or index.",
                  CommandParser::NotEmpty(&flags->gpu), {});
  parser->AddFlag(
      &flags->journaled, "--journaled",
      "Only the clocks that the journal of a dead agent names. The service manager uses this.");
  parser->SetGroup("Where");
  AddPlaceOptions(parser, flags);
  // The service manager gives it all options of run.
  parser->SetGroup("");
  AddAccessOptions(parser, flags, "lease GPUs");
  AddRunOptions(parser, flags);
}

void AddRelayAction(CommandParser* parser, AgentFlags* flags) {
  parser->AddAction(
      &flags->action, "relay",
      "Pass requests from the ranks of this node to the server. Needs no privilege.\n\n"
      "Ranks give unix:PATH, the relay's socket, as their server, and need no token. The node then "
      "has two connections to the server instead of two per rank. The relay's own token has the "
      "role train; ranks never see it.",
      {{"as a user of its own",
        "perseus agent relay --server https://perseus:7787 --token-file token --allow-group "
        "trainers"}});
  AddSocketOption(parser, flags, "The relay's", kDefaultRelaySocket);
  AddAccessOptions(parser, flags, "reach the server through it");
  AddMetricsOption(parser, flags);
  AddServerOptions(parser, &flags->server);
  parser->AddOldName("--server-token-file", "--token-file");
  parser->AddOldName("--server-ca", "--ca-file");
}

}  // namespace

void AddAgentCommand(CommandParser* parser, Invocation* invocation) {
  AgentFlags* flags = &invocation->agent;
  parser->AddCommand(Command::kAgent, "agent",
                     "Set the clocks of a node's GPUs for its trainers.\n\nThe agent runs as root, "
                     "so that trainers need no privilege. The relay passes requests of ranks to "
                     "the server and needs no privilege, either.",
                     {{"on a node, as root, for the members of a group",
                       "perseus agent run --allow-group trainers"},
                      {"which process has which GPU", "perseus agent status"},
                      {"give every clock of the node back", "perseus agent release --all"}});
  parser->SetOldAction("run");
  AddRunAction(parser, flags);
  parser->AddAction(&flags->action, "status", "Show which process has which GPU.");
  AddSocketOption(parser, flags, "The agent's", agent::kDefaultSocketPath);
  parser->AddFlag(&flags->json, "--json", "Print one JSON document instead of text.");
  AddReleaseAction(parser, flags);
  AddRelayAction(parser, flags);
}

}  // namespace perseus::cli
