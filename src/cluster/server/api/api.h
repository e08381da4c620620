// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_API_API_H_
#define PERSEUS_SERVER_API_API_H_

#include <string>
#include <vector>

#include "http/server.h"
#include "server/runtime/job_service.h"

// The routes of the server, on http/server.h: those of routes.h, but /metrics, /healthz and
// /readyz, which are the process'.
namespace perseus::server {

// `service` outlives the server that has them.
std::vector<http::Route> ApiRoutes(JobService& service);

// The OpenAPI 3.1 document.
std::string OpenapiJson();

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_API_API_H_
