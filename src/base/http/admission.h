// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_HTTP_ADMISSION_H_
#define PERSEUS_HTTP_ADMISSION_H_

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "http/message.h"
#include "http/message_parser.h"
#include "http/server.h"
#include "perseus/result.h"

namespace perseus::http {

// The tokens of a server and what they allow. Keeps only the SHA-256 of tokens. Immutable, so
// thread-safe.
class TokenSet {
 public:
  struct Holder {
    Role role = Role::kNone;
    std::string name;
    TokenBinding binding;
  };

  // One token a line: "ROLE TOKEN NAME [key=PREFIX]... [job=ID]...", separated by spaces or tabs;
  // empty lines and those that begin with '#' are skipped. With key= or job= the token is bound
  // to jobs whose client key begins with PREFIX, and to those of these ids. ROLE is read, train or
  // operate; TOKEN 16 to 256 characters of A-Z a-z 0-9 - . _ ~ + / and '=' (RFC 6750); NAME
  // letters, digits and - . _ @. `source` begins errors ("tokens.txt:3: ..."), which never show a
  // token.
  static Result<TokenSet> Parse(std::string_view text, const std::string& source);
  static Result<TokenSet> Load(const std::string& path);

  // Takes the same time for every token, so that timing does not reveal parts of valid ones.
  std::optional<Holder> Find(std::string_view token) const;

 private:
  using Digest = std::array<unsigned char, 32>;
  struct Entry {
    Digest digest{};
    Holder holder;
  };
  static Digest DigestOf(std::string_view token);
  std::vector<Entry> entries_;
};

// The result of a look-up of method and path.
struct RouteMatch {
  const Route* route = nullptr;  // Null: see `allow`.
  std::vector<std::string> parameters;
  // If the path exists but not with this method, the allowed methods: "GET, HEAD, POST". Else "".
  std::string allow;
};

// Finds the route of a path: exact bytes, segment by segment. Immutable, so
// thread-safe.
class Router {
 public:
  // kInvalidInput: a pattern is malformed, or two routes match the same requests.
  static Result<Router> Make(std::vector<Route> routes);

  RouteMatch Match(std::string_view method, const std::vector<std::string>& segments) const;

 private:
  struct Segment {
    bool is_parameter = false;  // Matches any segment that is not empty.
    bool is_rest = false;       // Likewise, but all segments that are left, one at least.
    std::string text;           // Of a fixed segment.
    bool operator==(const Segment&) const = default;
  };
  struct Entry {
    Route route;
    std::vector<Segment> segments;
  };
  static std::optional<std::vector<Segment>> ParsePattern(std::string_view pattern);
  static bool Fits(const std::vector<Segment>& pattern, const std::vector<std::string>& segments);

  std::vector<Entry> entries_;  // Routes whose fixed segments are further left come first.
};

// The rules by which a request is admitted or refused before its body is read.
struct AdmissionRules {
  const Router* router = nullptr;
  const TokenSet* tokens = nullptr;  // Null: every client may do everything.
  // For servers without tokens: refuse other host names (DNS rebinding) and other origins, so that
  // a web page in a browser on this machine cannot send requests in its user's name.
  bool only_local_hosts = false;
  std::size_t max_body_bytes = 0;  // For routes without a limit of their own.
  const std::function<Response()>* starting =
      nullptr;  // As ServerOptions::starting; null: not now.
};

struct Admission {
  std::optional<Response> refusal;  // If not set, the request is admitted: see the rest.
  const Route* route = nullptr;
  std::vector<std::string> parameters;
  Request request;  // Without body and peer.
  std::size_t max_body_bytes = 0;
  bool expects_continue = false;
  bool is_head = false;  // A HEAD request: the answer is sent without its body.
};

// Moves from `head`.
Admission Admit(MessageHead head, const AdmissionRules& rules);

}  // namespace perseus::http

#endif  // PERSEUS_HTTP_ADMISSION_H_
