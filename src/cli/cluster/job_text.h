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
// nothing: the server may be an older one.
std::string JobTable(const nlohmann::ordered_json& jobs, const Style& style);
// `now_seconds`: time of day.
std::string JobText(const nlohmann::ordered_json& job, const Style& style, double now_seconds);

// What is odd about the delay of a straggler of this job that lasts many of its iterations; empty
// where nothing is.
std::string LongDelayText(double delay_seconds, const nlohmann::ordered_json& job);

// Above a job that the client key of a new one was found to be of.
// `labels`: those that were given for the new one.
std::string KnownJobText(const nlohmann::ordered_json& job, const JobLabels& labels = {});

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_CLUSTER_JOB_TEXT_H_
