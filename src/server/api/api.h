// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_API_API_H_
#define PERSEUS_SERVER_API_API_H_

#include <string_view>
#include <vector>

#include "http/server.h"
#include "server/runtime/job_service.h"

// The routes of the server, on http/server.h. `service` outlives the server that
// has them.
namespace perseus::server {

// /api/v1/...; docs/server.md.
void AddJobRoutes(JobService& service, std::vector<http::Route>* routes);
void AddRankRoutes(JobService& service, std::vector<http::Route>* routes);
void AddMeasurementRoutes(JobService& service, std::vector<http::Route>* routes);
void AddProfileRoutes(JobService& service, std::vector<http::Route>* routes);
void AddPlanRoutes(JobService& service, std::vector<http::Route>* routes);
void AddStragglerRoutes(JobService& service, std::vector<http::Route>* routes);
void AddWatchRoutes(JobService& service, std::vector<http::Route>* routes);
void AddEventRoutes(JobService& service, std::vector<http::Route>* routes);

// The wire of Zeus' pipeline frequency optimizer, as its 0.16 client speaks it.
void AddZeusRoutes(JobService& service, std::vector<http::Route>* routes);

// All of them, and /openapi.json.
std::vector<http::Route> ApiRoutes(JobService& service);

// The OpenAPI 3.1 document, embedded at build time.
std::string_view OpenapiJson();

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_API_API_H_
