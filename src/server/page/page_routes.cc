// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/page/page_routes.h"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "server/page/page_files.h"
#include "server/page/served_file.h"

namespace perseus::web {
namespace {

class ServedPage {
 public:
  ServedPage() {
    for (const PageFile& file : PageFiles()) {
      if (first_.empty()) first_ = file.name;
      files_.emplace(file.name, ServedFile(file, kPolicy));
    }
  }

  http::Response Answer(const http::Request& request, const std::string& name) const {
    const auto found = files_.find(name.empty() ? first_ : name);
    if (found != files_.end()) return found->second.AnswerTo(request);
    return http::ErrorFor(
        request.headers, 404,
        files_.empty() ? "This server was built without its page (PERSEUS_WEB=OFF); /openapi.json "
                         "lists what it answers."
                       : "The page has no such file.");
  }

 private:
  std::string first_;
  std::map<std::string, ServedFile, std::less<>> files_;
};

}  // namespace

std::vector<http::Route> PageRoutes() {
  const auto page = std::make_shared<const ServedPage>();
  std::vector<http::Route> routes(2);
  for (http::Route& route : routes) {
    route.method = "GET";
    route.at_least = http::Role::kNone;
    route.is_instant = true;
    route.handle = [page](const http::Request& request, const std::vector<std::string>& parameters,
                          const http::Responder& responder) {
      responder.Send(page->Answer(request, parameters.empty() ? "" : parameters.front()));
    };
  }
  routes[0].pattern = "/";
  routes[1].pattern = "/page/{file}";
  return routes;
}

}  // namespace perseus::web
