// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLIENT_SERVER_MESSAGES_H_
#define PERSEUS_CLIENT_SERVER_MESSAGES_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/clock_caller.h"
#include "client/shared_state.h"
#include "device/device.h"
#include "perseus/client.h"
#include "perseus/result.h"

// Writes a client's requests to the server's /api/v1 (docs/explanation/server.md) and reads the
// answers. Pure functions, which are safe for any bytes from the server.
namespace perseus::client {

std::string FormatRank(const ClientSettings& settings, const std::optional<device::GpuInfo>& gpu);

struct JobAnswer {
  std::string id;
  std::string state;  // "registering", ...; "": the answer has none.
};
Result<JobAnswer> ParseJob(std::string_view json);

// The measurements of this rank that the server has.
struct ReportedRows {
  struct Row {
    std::string instruction;
    int stage = 0;
    int mhz = 0;
  };
  std::vector<Row> rows;
  bool done = false;
  // Clocks that have a row for every kind of computation of which there are rows.
  std::vector<int> CompleteClocks() const;
};
Result<ReportedRows> ParseReportedRows(std::string_view json);

std::string FormatMeasurements(int rank, const ProfileReport& report);

// `agent`: what the node's agent said; none: there is no agent, or it does not answer.
std::string FormatIterations(const ClientSettings& settings,
                             const std::vector<IterationReport>& reports,
                             const perseus_client_stats& stats, const std::string& error,
                             const std::optional<AgentWord>& agent);
// The server's complaint about this client, in the answer to that; "": none, or the server is an
// older one.
std::string ParseTrouble(std::string_view json, const std::string& client_id);

// The body of POST .../stragglers.
std::string FormatStraggler(const StragglerNotice& notice);
// The ids of a rank's stragglers in the answer to GET .../stragglers.
Result<std::vector<std::string>> ParseStragglerIds(std::string_view json, int rank);

// The message of {"error":{"message":...}}; the beginning of the body if it has no such form.
std::string ErrorSentence(int status, std::string_view body);

const char* StateName(int state);  // "following"

}  // namespace perseus::client

#endif  // PERSEUS_CLIENT_SERVER_MESSAGES_H_
