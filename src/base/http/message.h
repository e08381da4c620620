// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_HTTP_MESSAGE_H_
#define PERSEUS_HTTP_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// What one request asks and one response says (RFC 9110). Plain values.
namespace perseus::http {

// What the holder of a token may do; each may do what those before it may.
enum class Role : std::uint8_t { kNone, kRead, kTrain, kOperate };

// "none", "read", "train", "operate".
std::string_view RoleName(Role role);

// Names as they came; compare with FindHeader.
using Headers = std::vector<std::pair<std::string, std::string>>;

// The first value of that name in any case of letters; null: there is none.
const std::string* FindHeader(const Headers& headers, std::string_view name);

// The jobs that the holder of a token is bound to.
struct TokenBinding {
  std::vector<std::string> key_prefixes;  // Of client keys.
  std::vector<std::string> jobs;          // Ids.

  bool is_free() const { return key_prefixes.empty() && jobs.empty(); }  // Of all jobs.
  bool HasPrefixOf(std::string_view client_key) const;
};

struct Request {
  std::string method;  // "GET"; a HEAD request comes as "GET".
  std::string path;    // Percent-decoded, without the query: "/api/v1/jobs/j-1".
  // Percent-decoded, '+' read as a space. Each name once: a name that is given
  // twice never reaches a handler.
  std::map<std::string, std::string> query;
  Headers headers;
  std::string body;
  Role role = Role::kNone;  // kOperate for everyone where the server has no tokens.
  std::string token_name;   // Who: the name beside the token in the token file; "" without one.
  TokenBinding binding;     // Of that token.
  std::string peer;         // "127.0.0.1:40112", "[::1]:40112" or "unix".
  std::optional<std::uint32_t> peer_uid;  // Whose process connected; of Unix sockets.
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";  // "": none is said.
  // Null: no body.
  std::shared_ptr<const std::string> body;
  // Behind the body where it is set (with a body alone): what many answers share, so that
  // thousands of them cost one copy. Not set by the client.
  std::shared_ptr<const std::string> tail;
  // Besides Content-Type, Content-Length, Date and Connection, which the engine
  // writes. Control characters in them become spaces.
  Headers headers;
};

Response JsonResponse(int status, std::string body,
                      std::shared_ptr<const std::string> tail = nullptr);

// Of body and tail together.
std::size_t BodySize(const Response& response);

// The one form of an error: {"error":{"code":"not_found","message":"...",
// "field":"ranks[3].gpu"}}; `field` is left out where it is empty. `code` is for
// programs, `message` one sentence for people.
Response ErrorResponse(int status, std::string_view code, std::string_view message,
                       std::string_view field = {});

// 503 with Retry-After: a second from now it may be better.
Response TryAgainResponse(std::string_view message);

// "not_found" for 404, and so on: the `code` that fits a status of 400 or above.
std::string_view ErrorCodeOf(int status);

// "Not Found"; "" for one that nobody knows.
std::string_view ReasonPhrase(int status);

}  // namespace perseus::http

#endif  // PERSEUS_HTTP_MESSAGE_H_
