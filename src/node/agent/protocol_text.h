// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_AGENT_PROTOCOL_TEXT_H_
#define PERSEUS_AGENT_PROTOCOL_TEXT_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "agent/protocol.h"
#include "common/tree_reader.h"

// What reading requests and reading answers share.
namespace perseus::agent {

std::optional<Operation> OperationNamed(std::string_view name);
std::optional<Refusal> RefusalNamed(std::string_view name);

// A whole number of at least `least` that a double holds exactly.
std::int64_t ReadWhole(const TreeCursor& at, std::int64_t least);

}  // namespace perseus::agent

#endif  // PERSEUS_AGENT_PROTOCOL_TEXT_H_
