// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLIENT_SERVER_MESSAGES_H_
#define PERSEUS_CLIENT_SERVER_MESSAGES_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/outbox.h"
#include "client/settings.h"
#include "device/device.h"
#include "perseus/client.h"
#include "perseus/result.h"

// What a client says to the server's /api/v1 (docs/explanation/server.md) and understands
// of its answers. Pure functions; any bytes of the server are safe.
namespace perseus::client {

std::string FormatRank(const ClientSettings& settings, const std::optional<device::GpuInfo>& gpu);

struct JobAnswer {
  std::string id;
  std::string state;  // "registering", ...; "" where the answer does not say.
};
Result<JobAnswer> ParseJob(std::string_view json);

// What the server has of this rank's measurements.
struct ReportedRows {
  struct Row {
    std::string instruction;
    int stage = 0;
    int mhz = 0;
  };
  std::vector<Row> rows;
  bool done = false;
  // Clocks with a row of every kind that has any.
  std::vector<int> CompleteClocks() const;
};
Result<ReportedRows> ParseReportedRows(std::string_view json);

std::string FormatMeasurements(int rank, const ProfileReport& report);

std::string FormatIterations(const ClientSettings& settings,
                             const std::vector<IterationReport>& reports,
                             const perseus_client_stats& stats, const std::string& error);

// Of POST .../stragglers.
std::string FormatStraggler(const StragglerNotice& notice);
// The ids of a rank's stragglers, of GET .../stragglers.
Result<std::vector<std::string>> ParseStragglerIds(std::string_view json, int rank);

// The sentence of {"error":{"message":...}}, or the start of what came instead.
std::string ErrorSentence(int status, std::string_view body);

const char* StateName(int state);  // "following"
const char* LevelName(int level);  // "computation"

}  // namespace perseus::client

#endif  // PERSEUS_CLIENT_SERVER_MESSAGES_H_
