// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLIENT_SETTINGS_H_
#define PERSEUS_CLIENT_SETTINGS_H_

#include <string>

#include "client/follower.h"
#include "measure/sweep.h"

namespace perseus::client {

// The checked values of perseus_client_options, with defaults filled in.
struct ClientSettings {
  std::string server;  // "": none.
  std::string token;
  std::string ca_file;
  std::string job_id;
  std::string job_json;
  int rank = 0;
  int dp_rank = 0;
  int pp_rank = 0;
  int tp_rank = 0;
  std::string node;
  std::string client_id;  // Of this client alone: two with one rank are told apart by it.
  std::string process;    // Which process that is, for people.
  std::string device;     // "": none.
  std::string gpu_uuid;
  int gpu_index = 0;
  bool shadow = false;
  bool profile = false;
  FollowerSettings follower;
  measure::SweepSettings sweep;
  double report_interval_seconds = 5;
  double close_timeout_seconds = 2;
};

// As an agent and its operator know the client.
inline std::string NameOfRank(const ClientSettings& settings) {
  return "perseus rank " + std::to_string(settings.rank);
}

}  // namespace perseus::client

#endif  // PERSEUS_CLIENT_SETTINGS_H_
