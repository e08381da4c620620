// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/api/api.h"

#include <memory>
#include <string>
#include <vector>

#include "http/message.h"

namespace perseus::server {

std::vector<http::Route> ApiRoutes(JobService& service) {
  std::vector<http::Route> routes;
  AddJobRoutes(service, &routes);
  AddRankRoutes(service, &routes);
  AddMeasurementRoutes(service, &routes);
  AddProfileRoutes(service, &routes);
  AddPlanRoutes(service, &routes);
  AddStragglerRoutes(service, &routes);
  AddWatchRoutes(service, &routes);
  AddEventRoutes(service, &routes);
  AddZeusRoutes(service, &routes);
  const auto document = std::make_shared<const std::string>(OpenapiJson());
  routes.push_back(
      {"GET",
       "/openapi.json",
       http::Role::kNone,
       {},
       false,
       [document](const http::Request&, const auto&, const http::Responder& responder) {
         http::Response response;
         response.body = document;
         responder.Send(std::move(response));
       }});
  return routes;
}

}  // namespace perseus::server
