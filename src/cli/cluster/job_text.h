// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_CLUSTER_JOB_TEXT_H_
#define PERSEUS_CLI_CLUSTER_JOB_TEXT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/framework/terminal.h"
#include "common/labels.h"

namespace perseus::cli {

// What a server says of jobs, for people. Members that are missing are shown as
// nothing.
std::string JobTable(const nlohmann::ordered_json& jobs, const Style& style);
// `now_seconds`: time of day.
std::string JobText(const nlohmann::ordered_json& job, const Style& style, double now_seconds);

// What is odd about the delay of a straggler of this job that lasts many of its iterations; empty
// where nothing is.
std::string LongDelayText(double delay_seconds, const nlohmann::ordered_json& job);

// Above a job that the client key of a new one was found to be of.
// `labels`: those that were given for the new one.
std::string KnownJobText(const nlohmann::ordered_json& job, const JobLabels& labels = {});

// What a job measured of noise, latency and transfers, and what its plans are made for; empty where
// that is nothing.
std::string ConditionsText(const nlohmann::ordered_json& conditions);

// What jobs measured of noise and latency with a profile; empty where none did.
std::string KeptConditionsText(const nlohmann::ordered_json& kept);

// What happened, in a line, and how the job now is (`job` may be empty).
std::string EventLine(const std::string& name, const nlohmann::ordered_json& data,
                      const nlohmann::ordered_json& job);

// What happens next to a job, as a line of what is watched.
std::string AwaitedLine(const nlohmann::ordered_json& job);

// Answers and events as they came, safe to show on a terminal: what is no ASCII is
// escaped as JSON does, and what is no JSON as Printable() does.
std::string JsonText(const std::string& text);
std::string EventText(const std::string& name, const std::string& data);

// What a server found by what ranks report: of GET .../detection and .../savings.
std::string DetectionText(const nlohmann::ordered_json& detection);
std::string SavingsText(const nlohmann::ordered_json& savings);

// What GPUs that wait draw, by what a job's or a profile's sweep found, and whether it is taken as
// constant over the clocks. Empty: no rank measured it.
std::string WaitingText(const nlohmann::ordered_json& profiling);

// What a job's or a profile's sweep cost, against the highest clock; empty where nobody says.
std::string SweepText(const nlohmann::ordered_json& sweep);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_CLUSTER_JOB_TEXT_H_
