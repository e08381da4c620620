// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/api/api.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "http/message.h"
#include "server/api/api_handlers.h"
#include "server/api/api_text.h"

namespace perseus::server {

std::vector<http::Route> ApiRoutes(JobService& service) {
  std::vector<http::Route> routes;
  RouteMaker maker(service, &routes);
  AddJobRoutes(&maker);
  AddJobListRoute(&maker);
  AddLabelRoutes(&maker);
  AddRankRoutes(&maker);
  AddRankGridRoutes(&maker);
  AddNodeRoute(&maker);
  AddTimelineRoute(&maker);
  AddMeasurementRoutes(&maker);
  AddProfileRoutes(&maker);
  AddPlanRoutes(&maker);
  AddStragglerRoutes(&maker);
  AddWatchRoutes(&maker);
  AddHistoryRoutes(&maker);
  AddEventRoutes(&maker);
  AddZeusRoutes(&maker);
  maker.On(RowOf("showToken"), [](const CallPointer& call) {
    const http::Request& request = call->request;
    Send(*call, JsonAnswer(200, {{"role", http::RoleName(request.role)},
                                 {"name", request.token_name},
                                 {"is_bound", !request.binding.is_free()}}));
  });
  maker.On(RowOf("openapi"), [document = std::make_shared<const std::string>(OpenapiJson())](
                                 const CallPointer& call) {
    http::Response response;
    response.body = document;
    Send(*call, std::move(response));
  });
  return routes;
}

}  // namespace perseus::server
