// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_CLUSTER_EVENT_TEXT_H_
#define PERSEUS_CLI_CLUSTER_EVENT_TEXT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace perseus::cli {

// What happened, in a line, and how the job now is (`job` may be empty).
std::string EventLine(const std::string& name, const nlohmann::ordered_json& data,
                      const nlohmann::ordered_json& job);

// What happens next to a job, as a line of what is watched.
std::string AwaitedLine(const nlohmann::ordered_json& job);

// Answers and events as they came, safe to show on a terminal: what is no ASCII is
// escaped as JSON does, and what is no JSON as Printable() does.
std::string JsonText(const std::string& text);
std::string EventText(const std::string& name, const std::string& data);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_CLUSTER_EVENT_TEXT_H_
