// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_OPS_HEALTH_H_
#define PERSEUS_SERVER_OPS_HEALTH_H_

#include <vector>

#include "http/server.h"
#include "server/ops/opening.h"
#include "server/runtime/job_service.h"

// /healthz and /readyz. They need no token, and are answered even if no worker thread is free.
namespace perseus::server {

// The routes while the server starts.
std::vector<http::Route> StartingRoutes(const Opening& opening);

void AddHealthRoutes(const JobService& service, std::vector<http::Route>* routes);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_OPS_HEALTH_H_
