// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "web/page_routes.h"

#include <fmt/format.h>
#include <openssl/sha.h>

#include <cstddef>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "web/page_files.h"

namespace perseus::web {
namespace {

// Only what this server sends is run or shown; no other site may frame the page or get its forms.
constexpr std::string_view kPolicy =
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "object-src 'none'";

// The same bytes have the same tag, on every server.
std::string EntityTagOf(std::string_view bytes) {
  constexpr std::size_t kTagBytes = 12;
  unsigned char digest[SHA256_DIGEST_LENGTH];
  ::SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest);
  std::string tag = "\"";
  for (std::size_t i = 0; i < kTagBytes; ++i)
    fmt::format_to(std::back_inserter(tag), "{:02x}", digest[i]);
  return tag + "\"";
}

// "*", or a list of tags, each perhaps marked as weak (RFC 9110, 13.1.2).
bool Names(std::string_view list, std::string_view tag) {
  return list == "*" || list.find(tag) != std::string_view::npos;
}

struct ServedFile {
  explicit ServedFile(const PageFile& file) : entity_tag(EntityTagOf(file.bytes)) {
    answer.content_type = file.content_type;
    answer.body = std::make_shared<const std::string>(file.bytes);
    answer.headers = {{"ETag", entity_tag},
                      {"Cache-Control", "no-cache"},
                      {"Content-Security-Policy", std::string(kPolicy)},
                      {"X-Frame-Options", "DENY"},
                      {"Referrer-Policy", "no-referrer"},
                      {"Cross-Origin-Opener-Policy", "same-origin"},
                      {"Cross-Origin-Resource-Policy", "same-origin"}};
  }

  http::Response AnswerTo(const http::Request& request) const {
    http::Response response = answer;
    const std::string* known = http::FindHeader(request.headers, "If-None-Match");
    if (known != nullptr && Names(*known, entity_tag)) {
      response.status = 304;
      response.body = nullptr;
    }
    return response;
  }

  std::string entity_tag;
  http::Response answer;
};

class ServedPage {
 public:
  ServedPage() {
    for (const PageFile& file : PageFiles()) {
      if (first_.empty()) first_ = file.name;
      files_.emplace(file.name, ServedFile(file));
    }
  }

  http::Response Answer(const http::Request& request, const std::string& name) const {
    const auto found = files_.find(name.empty() ? first_ : name);
    if (found != files_.end()) return found->second.AnswerTo(request);
    return http::ErrorResponse(
        404, http::ErrorCodeOf(404),
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
