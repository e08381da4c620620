// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/store/postgresql_address.h"

#include <fmt/format.h>
#include <libpq-fe.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace perseus::store {
namespace {

struct FreeOptions {
  void operator()(PQconninfoOption* options) const { PQconninfoFree(options); }
};

// A server that died without a word is noticed within seconds, whether it is
// asked, answers, or nothing happens.
constexpr std::array<std::pair<const char*, const char*>, 7> kDefaults = {{
    {"connect_timeout", "2"},
    {"keepalives_idle", "2"},
    {"keepalives_interval", "1"},
    {"keepalives_count", "3"},
    {"tcp_user_timeout", "5000"},
    {"fallback_application_name", "perseus"},
    {"client_encoding", "UTF8"},
}};

// All but letters and digits, so that nobody who reads it on the way is misled:
// SOCI splits what it is given at blanks and at the first "=".
std::string Encoded(std::string_view text) {
  std::string encoded;
  for (const char byte : text) {
    const bool is_plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                          (byte >= '0' && byte <= '9') || byte == '-' || byte == '_';
    encoded +=
        is_plain ? std::string(1, byte) : fmt::format("%{:02X}", static_cast<unsigned char>(byte));
  }
  return encoded;
}

// Whether it may be one whose password has a / as it stands: what libpq takes for the
// port and the database then are pieces of it.
bool IsMisread(std::string_view uri, std::string_view ports) {
  const bool are_numbers = std::all_of(ports.begin(), ports.end(),
                                       [](char c) { return (c >= '0' && c <= '9') || c == ','; });
  uri.remove_prefix(std::min(uri.size(), uri.find("://") + 3));
  uri = uri.substr(0, uri.find('?'));
  const std::size_t path = uri.find('/');
  return !are_numbers || (path != uri.npos && uri.find('@', path) != uri.npos);
}

constexpr std::string_view kUnreadable =
    "the store's address cannot be read; write "
    "postgresql://USER:PASSWORD@HOST:PORT/DATABASE?OPTION=VALUE, with %40 for a @, %2F for a / "
    "and %25 for a % in the password";

}  // namespace

Result<PostgresqlAddress> ParsePostgresqlAddress(const std::string& uri) {
  const std::unique_ptr<PQconninfoOption, FreeOptions> options(
      PQconninfoParse(uri.c_str(), nullptr));
  // libpq's own words may hold a piece of the password.
  if (options == nullptr) return InvalidInput(std::string(kUnreadable));
  std::map<std::string, std::string> values(kDefaults.begin(), kDefaults.end());
  for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option) {
    if (option->val != nullptr && *option->val != '\0') values[option->keyword] = option->val;
  }
  const auto value = [&](const char* key) {
    const auto found = values.find(key);
    return found == values.end() ? std::string() : found->second;
  };
  if (IsMisread(uri, value("port"))) return InvalidInput(std::string(kUnreadable));
  // Of several, the one that takes writes; also the one to which they fail over.
  if (value("host").find(',') != std::string::npos) {
    values.try_emplace("target_session_attrs", "read-write");
  }
  PostgresqlAddress address;
  address.password = value("password");
  address.name = fmt::format("postgresql://{}{}{}/{}", value("host"),
                             value("port").empty() ? "" : ":", value("port"), value("dbname"));
  for (const auto& [key, text] : values) {
    address.uri +=
        fmt::format("{}{}={}", address.uri.empty() ? "postgresql:///?" : "&", key, Encoded(text));
  }
  return address;
}

}  // namespace perseus::store
