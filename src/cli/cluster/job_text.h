// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_CLUSTER_JOB_TEXT_H_
#define PERSEUS_CLI_CLUSTER_JOB_TEXT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/framework/terminal.h"
#include "common/labels.h"

namespace perseus::cli {

// Texts of a server's jobs, for people. Missing members are shown as nothing.
std::string JobTable(const nlohmann::ordered_json& jobs, const Style& style);
// `now_seconds`: time of day.
std::string JobText(const nlohmann::ordered_json& job, const Style& style, double now_seconds);

// A warning if the delay of a straggler lasts many iterations of this job; else empty.
std::string LongDelayText(double delay_seconds, const nlohmann::ordered_json& job);

// Above a job that the client key of a new one was found to be of.
// `labels`: those that were given for the new one.
std::string KnownJobText(const nlohmann::ordered_json& job, const JobLabels& labels = {});

// The noise, latency and transfers that a job measured, and the conditions of its plans; empty:
// none.
std::string ConditionsText(const nlohmann::ordered_json& conditions);

// The noise and latency that jobs measured with a profile; empty: none did.
std::string KeptConditionsText(const nlohmann::ordered_json& kept);

// The event in a line, and the job's present state (`job` may be empty).
std::string EventLine(const std::string& name, const nlohmann::ordered_json& data,
                      const nlohmann::ordered_json& job);

// The next step of a job, as a line of `watch`.
std::string AwaitedLine(const nlohmann::ordered_json& job);

// Answers and events as they came, safe to show on a terminal: what is no ASCII is
// escaped as JSON does, and what is no JSON as Printable() does.
std::string JsonText(const std::string& text);
std::string EventText(const std::string& name, const std::string& data);

// The server's findings from ranks' reports: of GET .../detection and .../savings.
std::string DetectionText(const nlohmann::ordered_json& detection);
std::string SavingsText(const nlohmann::ordered_json& savings);

// The power of waiting GPUs, by a job's or a profile's sweep, and whether it is taken as constant
// over the clocks. Empty: no rank measured it.
std::string WaitingText(const nlohmann::ordered_json& profiling);

// The cost of a job's or a profile's sweep against the highest clock; empty: unknown.
std::string SweepText(const nlohmann::ordered_json& sweep);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_CLUSTER_JOB_TEXT_H_
