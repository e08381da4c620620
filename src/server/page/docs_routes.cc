// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/page/docs_routes.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "common/file.h"
#include "server/page/served_file.h"

namespace perseus::web {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostBytes = std::size_t{64} << 20;

constexpr std::string_view kIndex = "index.html";

// As that of the page, and icons that are written in the style sheet. Pictures run nothing.
constexpr std::string_view kImages = "; img-src 'self' data:";

constexpr std::string_view kNoSite =
    "This server carries no documentation. It is in the folder docs of Perseus' source, as text. "
    "To read it here: run 'scripts/site build/site' in that source, then start the server with "
    "'perseus serve --docs build/site'.";

std::string_view ContentTypeOf(const fs::path& name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kTypes = {{
      {".css", "text/css; charset=utf-8"},
      {".html", "text/html; charset=utf-8"},
      {".js", "text/javascript; charset=utf-8"},
      {".json", "application/json"},
      {".png", "image/png"},
      {".svg", "image/svg+xml"},
  }};
  for (const auto& [extension, type] : kTypes) {
    if (name.extension() == extension) return type;
  }
  return "text/plain; charset=utf-8";
}

using Site = std::map<std::string, ServedFile, std::less<>>;

Result<Site> ReadSite(const std::string& folder) {
  const auto fault = [&folder](std::string_view what) {
    return InvalidInput(fmt::format(
        "{}: {}; the documentation's site is a folder that scripts/site makes", folder, what));
  };
  std::error_code error;
  if (!fs::is_regular_file(fs::path(folder) / kIndex, error)) return fault("has no index.html");
  Site site;
  std::size_t size = 0;
  fs::recursive_directory_iterator entries(folder, error);
  for (; !error && entries != fs::recursive_directory_iterator(); entries.increment(error)) {
    if (entries->symlink_status(error).type() != fs::file_type::regular) continue;
    const Result<std::string> bytes = ReadWholeFile(entries->path().string(), kMostBytes - size);
    if (!bytes && bytes.error().code == ErrorCode::kInvalidInput) return fault("is over 64 MiB");
    if (!bytes) return tl::unexpected(bytes.error());
    size += bytes->size();
    site.emplace(
        entries->path().lexically_relative(folder).generic_string(),
        ServedFile({.name = "", .content_type = ContentTypeOf(entries->path()), .bytes = *bytes},
                   std::string(kPolicy) + std::string(kImages)));
  }
  if (error) return fault(error.message());
  return site;
}

http::Response Answer(const Site& site, const http::Request& request, std::string name) {
  if (site.empty()) return http::ErrorFor(request.headers, 404, kNoSite);
  if (request.path == "/docs") {  // Links in the first page are relative to the folder.
    http::Response response;
    response.status = 302;
    response.content_type = "";
    response.headers = {{"Location", "docs/"}};
    return response;
  }
  if (name.empty() || name.ends_with('/')) name += kIndex;
  const auto found = site.find(name);
  if (found != site.end()) return found->second.AnswerTo(request);
  return http::ErrorFor(request.headers, 404,
                        "The documentation has no such page; it begins at /docs/.");
}

}  // namespace

Result<std::vector<http::Route>> DocsRoutes(const std::string& folder) {
  auto site = std::make_shared<Site>();
  if (!folder.empty()) {
    Result<Site> read = ReadSite(folder);
    if (!read) return tl::unexpected(read.error());
    *site = *std::move(read);
  }
  std::vector<http::Route> routes(2);
  for (http::Route& route : routes) {
    route.method = "GET";
    route.at_least = http::Role::kNone;
    route.is_instant = true;
    route.handle = [site](const http::Request& request, const std::vector<std::string>& parameters,
                          const http::Responder& responder) {
      responder.Send(Answer(*site, request, parameters.empty() ? "" : parameters.front()));
    };
  }
  routes[0].pattern = "/docs";
  routes[1].pattern = "/docs/{file*}";
  return routes;
}

}  // namespace perseus::web
