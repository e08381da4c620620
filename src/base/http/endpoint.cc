// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "common/nearest_name.h"
#include "common/numbers.h"
#include "http/client_wire.h"

namespace perseus::http {
namespace {

bool IsPlainText(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7F; });
}

}  // namespace

Result<Endpoint> ParseEndpoint(std::string_view url) {
  const auto malformed = [&] {
    return InvalidInput(
        fmt::format("{} is no server's address: write http://HOST:PORT, https://HOST:PORT or "
                    "unix:/path.",
                    Shown(url)));
  };
  Endpoint endpoint;
  endpoint.url = url;
  if (url.starts_with("unix:")) {
    endpoint.unix_path = url.substr(5);
    endpoint.host_header = "localhost";
    if (endpoint.unix_path.empty()) return malformed();
    return endpoint;
  }
  endpoint.is_tls = url.starts_with("https://");
  if (!IsPlainText(url) || (!endpoint.is_tls && !url.starts_with("http://"))) return malformed();
  std::string_view rest = url.substr(endpoint.is_tls ? 8 : 7);
  const std::string_view authority = rest.substr(0, rest.find('/'));
  rest.remove_prefix(authority.size());
  if (authority.find_first_of("@?#") != std::string_view::npos ||
      rest.find_first_of("?#") != std::string_view::npos) {
    return malformed();
  }
  while (rest.ends_with('/')) rest.remove_suffix(1);
  endpoint.prefix = rest;
  endpoint.host_header = authority;

  std::string_view host = authority;
  std::string_view port;
  const std::size_t colon = authority.rfind(':');
  if (colon != std::string_view::npos && authority.find(']', colon) == std::string_view::npos) {
    host = authority.substr(0, colon);
    port = authority.substr(colon + 1);
  }
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  endpoint.host = host;
  endpoint.port = endpoint.is_tls ? 443 : 80;
  if (!port.empty()) endpoint.port = ParseInteger<int>(port).value_or(0);
  if (host.empty() || endpoint.port < 1 || endpoint.port > 65535) return malformed();
  return endpoint;
}

}  // namespace perseus::http
