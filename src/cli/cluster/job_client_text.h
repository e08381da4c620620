// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_CLUSTER_JOB_CLIENT_TEXT_H_
#define PERSEUS_CLI_CLUSTER_JOB_CLIENT_TEXT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/framework/terminal.h"
#include "perseus/job_file.h"

namespace perseus::cli {

// What a server says of jobs, for people. Members that are missing are shown as
// nothing: the server may be an older one.
std::string JobTable(const nlohmann::ordered_json& jobs, const Style& style);
// `now_seconds`: time of day.
std::string JobText(const nlohmann::ordered_json& job, const Style& style, double now_seconds);

// What is odd about the delay of a straggler of this job that lasts many of its iterations; empty
// where nothing is.
std::string LongDelayText(double delay_seconds, const nlohmann::ordered_json& job);

// Above a job that the client key of a new one was found to be of.
std::string KnownJobText(const nlohmann::ordered_json& job);

// What happened, in a line, and how the job now is (`job` may be empty).
std::string EventLine(const std::string& name, const nlohmann::ordered_json& data,
                      const nlohmann::ordered_json& job);

// Of a job's or a profile's sweep.
std::string SweepText(const nlohmann::ordered_json& sweep);

// What jobs measured of noise and latency with a profile; empty where none did.
std::string KeptConditionsText(const nlohmann::ordered_json& kept);

// Of GET .../detection and .../savings.
std::string DetectionText(const nlohmann::ordered_json& detection);
std::string SavingsText(const nlohmann::ordered_json& savings);

// Answers and events as they came, safe to show on a terminal: what is no ASCII is
// escaped as JSON does, and what is no JSON as Printable() does.
std::string JsonText(const std::string& text);
std::string EventText(const std::string& name, const std::string& data);

// The settings as the server takes them: without those that name files.
nlohmann::ordered_json SettingsJson(const JobFile& settings);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_CLUSTER_JOB_CLIENT_TEXT_H_
