// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_HTTP_MESSAGE_H_
#define PERSEUS_HTTP_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Helpers for header texts. They treat only ASCII letters as letters.
namespace perseus::http {

bool SameIgnoringCase(std::string_view a, std::string_view b);

// '0' to '9', 'a' to 'f', 'A' to 'F': 0 to 15; -1 for others.
int HexDigit(char c);

}  // namespace perseus::http

// Requests and responses of HTTP (RFC 9110). Plain values.
namespace perseus::http {

// The rights of a token. Each role includes the roles before it.
enum class Role : std::uint8_t { kNone, kRead, kTrain, kOperate };

// "none", "read", "train", "operate".
std::string_view RoleName(Role role);

// Names as they were received; use FindHeader() to look one up.
using Headers = std::vector<std::pair<std::string, std::string>>;

// The first value of the header `name`, ignoring case; null: there is none.
const std::string* FindHeader(const Headers& headers, std::string_view name);

// The jobs to which a token is bound.
struct TokenBinding {
  std::vector<std::string> key_prefixes;  // Of client keys.
  std::vector<std::string> jobs;          // Ids.

  bool is_free() const { return key_prefixes.empty() && jobs.empty(); }  // Not bound: all jobs.
  bool HasPrefixOf(std::string_view client_key) const;
};

struct Request {
  std::string method;  // "GET"; a HEAD request comes as "GET".
  std::string path;    // Percent-decoded, without the query: "/api/v1/jobs/j-1".
  // Percent-decoded, with '+' as a space. Requests with the same name twice are refused.
  std::map<std::string, std::string> query;
  Headers headers;
  std::string body;
  Role role = Role::kNone;                // kOperate if the server has no tokens.
  std::string token_name;                 // The token's name in the token file; "": no token.
  TokenBinding binding;                   // The jobs to which the token is bound.
  std::string peer;                       // "127.0.0.1:40112", "[::1]:40112" or "unix".
  std::optional<std::uint32_t> peer_uid;  // The user of the client's process; Unix sockets only.
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";  // "": the header is left out.
  // Null: no body.
  std::shared_ptr<const std::string> body;
  // If set, it is sent after the body, which must then be set, too. Many answers can share it, so
  // that thousands of them need one copy. The client does not set it.
  std::shared_ptr<const std::string> tail;
  // Headers except Content-Type, Content-Length, Date and Connection, which the server adds.
  // Control characters in them become spaces.
  Headers headers;
};

Response JsonResponse(int status, std::string body,
                      std::shared_ptr<const std::string> tail = nullptr);

// Size of body and tail together.
std::size_t BodySize(const Response& response);

// The one form of an error: {"error":{"code":"not_found","message":"...",
// "field":"ranks[3].gpu"}}; `field` is left out where it is empty. `code` is for
// programs, `message` one sentence for people.
Response ErrorResponse(int status, std::string_view code, std::string_view message,
                       std::string_view field = {});

// The same for who asks with these headers: a small page, where a browser shows it to people.
Response ErrorFor(const Headers& headers, int status, std::string_view message);

// 503 with Retry-After: 1 (second).
Response TryAgainResponse(std::string_view message);

// "not_found" for 404, and so on: the `code` that fits a status of 400 or above.
std::string_view ErrorCodeOf(int status);

// "Not Found" for 404; "" for unknown statuses.
std::string_view ReasonPhrase(int status);

// How the end of a body is marked.
enum class BodyFraming : std::uint8_t { kLength, kChunked, kUntilClose };

struct ResponseFraming {
  BodyFraming body = BodyFraming::kLength;
  bool keep_alive = true;
  bool is_http_1_1 = true;  // Version of the request.
};

// Whether a response of this status may have a body.
bool MayHaveBody(int status);

// Status line and headers, with the empty line. `date` is HttpDate()'s.
std::string FormatHead(const Response& response, const ResponseFraming& framing,
                       const std::string& date);

// "Sun, 06 Nov 1994 08:49:37 GMT".
std::string HttpDate(std::time_t time);

}  // namespace perseus::http

#endif  // PERSEUS_HTTP_MESSAGE_H_
