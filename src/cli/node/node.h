// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_NODE_NODE_H_
#define PERSEUS_CLI_NODE_NODE_H_

#include <optional>
#include <string>
#include <vector>

#include "cli/framework/value_parsers.h"
#include "perseus/result.h"

namespace perseus::agent {
struct AccessList;
struct StatusAnswer;
}  // namespace perseus::agent

// The commands of a node: agent.cc, relay.cc, doctor.cc.
namespace perseus::cli {

struct Printout;

// The flags of `agent`. Empty: the agent's own default.
struct AgentFlags {
  std::string action;  // run, status, release, relay

  std::string driver;
  std::string socket;
  std::string journal;
  std::string gpu_locks;

  // run
  bool observe = false;
  std::vector<std::string> users;
  std::vector<std::string> groups;
  std::vector<std::string> operators;
  std::optional<double> min_interval_seconds;
  std::optional<double> max_silence_seconds;
  std::optional<double> poll_seconds;

  // relay
  ServerFlags server;

  std::string metrics_file;  // run, relay

  // release
  bool all = false;
  bool journaled = false;
  std::string gpu;

  bool json = false;  // status
};

struct DoctorFlags {
  std::string driver = "nvml";  // As device::OpenDriver takes it.
  std::string agent_socket;     // Empty: the agent's own default.
  double seconds = 2;           // How long energy counters are read.
  ServerFlags server;           // With a URL, it is looked at in place of this node.
  bool json = false;
};

// Not in the agent's folder, which is root's.
inline constexpr const char* kDefaultRelaySocket = "/run/perseus-relay/server.sock";

// `perseus agent relay`.
Result<Printout> RunRelay(const AgentFlags& flags, const agent::AccessList& access);

// Asks the agent at `socket` for its status. `name`: the asker's name.
Result<agent::StatusAnswer> AskAgentStatus(const std::string& socket, const std::string& name);

// The same as JSON (perseus agent status --json).
std::string AgentStatusJson(const agent::StatusAnswer& status);

// The answer of `perseus doctor --json` on this node. Looks at it for about flags.seconds, and
// changes nothing on a GPU. A missing part is a finding, not an error. Errors: kCancelled (by a
// signal, which is delivered after the return).
Result<std::string> NodeJson(const DoctorFlags& flags);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_NODE_NODE_H_
