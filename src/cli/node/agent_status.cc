// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/node/agent_status.h"

#include <chrono>
#include <optional>
#include <variant>

#include "agent/control.h"

namespace perseus::cli {
namespace {

constexpr auto kPatience = std::chrono::milliseconds(6000);

}  // namespace

Result<agent::StatusAnswer> AskAgentStatus(const std::string& socket, const std::string& name) {
  Result<agent::Control> control = agent::Control::Connect(socket, name, kPatience);
  if (!control) return tl::unexpected(control.error());
  agent::Request request;
  request.operation = agent::Operation::kStatus;
  const Result<agent::Answer> answer = control->Ask(request);
  if (!answer) return tl::unexpected(answer.error());
  const auto* status = std::get_if<agent::StatusAnswer>(&answer->body);
  if (status == nullptr) return MakeError(ErrorCode::kIo, "the agent does not say how it is");
  return *status;
}

std::string AgentStatusJson(const agent::StatusAnswer& status) {
  return agent::FormatAnswer({std::nullopt, agent::Operation::kStatus, status});
}

}  // namespace perseus::cli
