// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "http/admission.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "common/nearest_name.h"
#include "http/message.h"
#include "http/target.h"
#include "http/transport.h"

namespace perseus::http {
namespace {

constexpr std::size_t kMaxTokenFileBytes = 1 << 20;
constexpr std::size_t kMinTokenBytes = 16;
constexpr std::size_t kMaxTokenBytes = 256;
constexpr std::size_t kMaxTokens = 1000;
constexpr std::size_t kMaxBindingBytes = 256;

bool IsAlphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool OnlyWith(std::string_view text, std::string_view others) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return IsAlphanumeric(c) || others.find(c) != std::string_view::npos;
  });
}

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  for (;;) {
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    const std::size_t size = std::min(line.find_first_of(" \t\r"), line.size());
    words.push_back(line.substr(0, size));
    line.remove_prefix(size);
  }
}

std::optional<Role> RoleOf(std::string_view name) {
  for (const Role role : {Role::kRead, Role::kTrain, Role::kOperate}) {
    if (name == RoleName(role)) return role;
  }
  return std::nullopt;
}

// Reads one of the words after the name. False: it is none.
bool ReadBinding(std::string_view word, TokenBinding* binding) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view value = word.substr(equals + 1);
  if (value.empty() || value.size() > kMaxBindingBytes) return false;
  const std::string_view kind = word.substr(0, equals);
  if (kind == "key") binding->key_prefixes.emplace_back(value);
  if (kind == "job") binding->jobs.emplace_back(value);
  return kind == "key" || kind == "job";
}

}  // namespace

TokenSet::Digest TokenSet::DigestOf(std::string_view token) {
  Digest digest{};
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), digest.data());
  return digest;
}

Result<TokenSet> TokenSet::Parse(std::string_view text, const std::string& source) {
  TokenSet tokens;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t size = std::min(text.find('\n'), text.size());
    const std::vector<std::string_view> words = Words(text.substr(0, size));
    text.remove_prefix(std::min(size + 1, text.size()));
    if (words.empty() || words[0].front() == '#') continue;
    const auto problem = [&](const std::string& what) {
      return InvalidInput(fmt::format("{}:{}: {}", source, number, what));
    };
    if (words.size() < 3) {
      return problem(fmt::format("a line has to be \"ROLE TOKEN NAME\", but this has {} words.",
                                 words.size()));
    }
    const std::optional<Role> role = RoleOf(words[0]);
    if (!role) {
      return problem(
          fmt::format("the role has to be read, train or operate, not {}.", Shown(words[0])));
    }
    const std::string_view token = words[1];
    if (token.size() < kMinTokenBytes || token.size() > kMaxTokenBytes ||
        !OnlyWith(token, "-._~+/=")) {
      return problem(fmt::format(
          "a token has to have {} to {} characters of A-Z a-z 0-9 - . _ ~ + / =, but this has {} "
          "or others; make one with: openssl rand -hex 24.",
          kMinTokenBytes, kMaxTokenBytes, token.size()));
    }
    if (words[2].size() > 64 || !OnlyWith(words[2], "-._@")) {
      return problem(
          "a name has to have up to 64 letters, digits and - . _ @ (it is written to the log).");
    }
    TokenBinding binding;
    for (std::size_t i = 3; i < words.size(); ++i) {
      if (ReadBinding(words[i], &binding)) continue;
      return problem(fmt::format(
          "behind the name may be key=PREFIX and job=ID, which bind the token to jobs; word {} is "
          "neither.",
          i + 1));
    }
    const Digest digest = DigestOf(token);
    for (const Entry& other : tokens.entries_) {
      if (other.digest == digest) {
        return problem(fmt::format("this token is {}'s already; each needs its own.",
                                   Shown(other.holder.name)));
      }
    }
    if (tokens.entries_.size() == kMaxTokens) {
      return problem(fmt::format("there are more than {} tokens.", kMaxTokens));
    }
    tokens.entries_.push_back(
        Entry{digest, Holder{*role, std::string(words[2]), std::move(binding)}});
  }
  if (tokens.entries_.empty()) {
    return InvalidInput(
        fmt::format("{} holds no token; write one line \"operate TOKEN NAME\", with a token from: "
                    "openssl rand -hex 24.",
                    source));
  }
  return tokens;
}

Result<TokenSet> TokenSet::Load(const std::string& path) {
  const Result<std::string> text = ReadSecretFile(path, "The token file", kMaxTokenFileBytes);
  if (!text) return tl::unexpected(text.error());
  return Parse(*text, path);
}

std::optional<TokenSet::Holder> TokenSet::Find(std::string_view token) const {
  const Digest digest = DigestOf(token);
  const Entry* found = nullptr;
  for (const Entry& entry : entries_) {
    if (CRYPTO_memcmp(entry.digest.data(), digest.data(), digest.size()) == 0) found = &entry;
  }
  if (found == nullptr) return std::nullopt;
  return found->holder;
}

// None: malformed.
std::optional<std::vector<Router::Segment>> Router::ParsePattern(std::string_view pattern) {
  if (!pattern.starts_with('/')) return std::nullopt;
  std::vector<Segment> segments;
  while (!pattern.empty()) {
    pattern.remove_prefix(1);
    const std::string_view text = pattern.substr(0, pattern.find('/'));
    pattern.remove_prefix(text.size());
    const bool is_parameter = text.size() > 2 && text.front() == '{' && text.back() == '}';
    if (text.empty() && (!segments.empty() || !pattern.empty())) return std::nullopt;
    if (!is_parameter && text.find_first_of("{}%?") != std::string_view::npos) return std::nullopt;
    const bool is_rest = is_parameter && text[text.size() - 2] == '*';
    if (is_rest && !pattern.empty()) return std::nullopt;
    segments.push_back({is_parameter, is_rest, is_parameter ? "" : std::string(text)});
  }
  return segments;
}

bool Router::Fits(const std::vector<Segment>& pattern, const std::vector<std::string>& segments) {
  const bool has_rest = !pattern.empty() && pattern.back().is_rest;
  if (has_rest ? segments.size() < pattern.size() : segments.size() != pattern.size()) return false;
  return std::equal(pattern.begin(), pattern.end(), segments.begin(),
                    [](const Segment& wanted, const std::string& segment) {
                      if (wanted.is_rest) return true;
                      return wanted.is_parameter ? !segment.empty() : wanted.text == segment;
                    });
}

Result<Router> Router::Make(std::vector<Route> routes) {
  Router router;
  for (Route& route : routes) {
    std::optional<std::vector<Segment>> segments = ParsePattern(route.pattern);
    if (!segments) {
      return InvalidInput(fmt::format(
          "The route {} is malformed: write \"/fixed/{{name}}\" or \"/fixed/{{name*}}\".",
          Shown(route.pattern)));
    }
    for (const Entry& other : router.entries_) {
      if (other.route.method == route.method && other.segments == *segments) {
        return InvalidInput(
            fmt::format("The route {} {} is there twice.", route.method, Shown(route.pattern)));
      }
    }
    router.entries_.push_back(Entry{std::move(route), *std::move(segments)});
  }
  std::stable_sort(
      router.entries_.begin(), router.entries_.end(), [](const Entry& a, const Entry& b) {
        return std::lexicographical_compare(
            a.segments.begin(), a.segments.end(), b.segments.begin(), b.segments.end(),
            [](const Segment& x, const Segment& y) {
              return std::pair(x.is_parameter, x.is_rest) < std::pair(y.is_parameter, y.is_rest);
            });
      });
  return router;
}

RouteMatch Router::Match(std::string_view method, const std::vector<std::string>& segments) const {
  RouteMatch match;
  const std::vector<Segment>* pattern = nullptr;
  for (const Entry& entry : entries_) {
    if (!Fits(entry.segments, segments)) continue;
    // "/jobs/{id}" does not answer for "/jobs/all" with a method that this one lacks.
    if (pattern != nullptr && *pattern != entry.segments) break;
    pattern = &entry.segments;
    if (entry.route.method == method || (method == "HEAD" && entry.route.method == "GET")) {
      match.route = &entry.route;
      for (std::size_t i = 0; i < entry.segments.size(); ++i) {
        if (!entry.segments[i].is_parameter) continue;
        match.parameters.push_back(
            entry.segments[i].is_rest
                ? fmt::format("{}", fmt::join(segments.begin() + static_cast<std::ptrdiff_t>(i),
                                              segments.end(), "/"))
                : segments[i]);
      }
      match.allow.clear();
      return match;
    }
    match.allow += match.allow.empty() ? "" : ", ";
    match.allow += entry.route.method == "GET" ? "GET, HEAD" : entry.route.method;
  }
  return match;
}

namespace {

Response Refusal(int status, std::string_view message) {
  return ErrorResponse(status, ErrorCodeOf(status), message);
}

// "host" of "host:port" and "[::1]:port".
std::string_view HostName(std::string_view host) {
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

bool IsLocalName(std::string_view name) {
  if (SameIgnoringCase(name, "localhost") || name == "[::1]") return true;
  return name.starts_with("127.") &&
         name.find_first_not_of("0123456789.") == std::string_view::npos;
}

// Of a web page elsewhere.
bool IsForeign(const Headers& headers) {
  const std::string* host = FindHeader(headers, "Host");
  const std::string* origin = FindHeader(headers, "Origin");
  if (origin == nullptr || host == nullptr) return false;
  const std::size_t slashes = origin->find("://");
  return slashes == std::string::npos ||
         !SameIgnoringCase(std::string_view(*origin).substr(slashes + 3), *host);
}

std::optional<Response> CheckHost(const Headers& headers) {
  const std::string* host = FindHeader(headers, "Host");
  if (host != nullptr && !IsLocalName(HostName(*host))) {
    return Refusal(403, fmt::format("This server has no tokens, so it answers to localhost and "
                                    "127.0.0.1 alone, not to {}; give it a token file.",
                                    Shown(*host)));
  }
  if (IsForeign(headers)) {
    return Refusal(403,
                   "This server has no tokens, so it answers no pages of other web sites; give it "
                   "a token file.");
  }
  return std::nullopt;
}

// The token of "Bearer TOKEN"; none: nothing that could be one.
std::optional<std::string_view> BearerToken(const Headers& headers) {
  constexpr std::string_view kScheme = "Bearer ";
  const std::string* value = FindHeader(headers, "Authorization");
  if (value == nullptr || value->size() <= kScheme.size()) return std::nullopt;
  const std::string_view text = *value;
  if (!SameIgnoringCase(text.substr(0, kScheme.size()), kScheme)) return std::nullopt;
  return text.substr(std::min(text.find_first_not_of(' ', kScheme.size()), text.size()));
}

std::optional<Response> CheckRole(const TokenSet* tokens, const Route& route, Request* request) {
  const Role at_least = route.at_least;
  if (tokens == nullptr) {
    request->role = Role::kOperate;
    return std::nullopt;
  }
  const std::optional<std::string_view> token = BearerToken(request->headers);
  const std::optional<TokenSet::Holder> holder = token ? tokens->Find(*token) : std::nullopt;
  if (holder) {
    request->role = holder->role;
    request->token_name = holder->name;
    request->binding = holder->binding;
  }
  const bool is_bound_elsewhere = !request->binding.is_free() && !route.takes_bound_tokens;
  if (is_bound_elsewhere && at_least > Role::kNone) {
    return Refusal(403, fmt::format("This is about all jobs, but the token of {} is bound to some.",
                                    Shown(holder->name)));
  }
  if (request->role >= at_least) return std::nullopt;
  if (!holder) {
    Response response = Refusal(
        401,
        fmt::format("{}: send \"Authorization: Bearer TOKEN\" with one for the role {}.",
                    token ? "Nobody has this token" : "This needs a token", RoleName(at_least)));
    response.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"perseus\"");
    return response;
  }
  return Refusal(403, fmt::format("This needs the role {}, but the token of {} has the role {}.",
                                  RoleName(at_least), Shown(holder->name), RoleName(holder->role)));
}

std::optional<Response> CheckExpectation(const MessageHead& head, bool* expects_continue) {
  const std::string* value = FindHeader(head.headers, "Expect");
  if (value == nullptr || !head.is_http_1_1) return std::nullopt;
  if (!SameIgnoringCase(*value, "100-continue")) {
    return Refusal(417, fmt::format("The expectation {} is not known here.", Shown(*value)));
  }
  *expects_continue = true;
  return std::nullopt;
}

std::optional<Response> FindRoute(const MessageHead& head, const AdmissionRules& rules,
                                  Admission* admission) {
  const Result<Target> target = ParseTarget(head.target);
  if (!target) {
    return Refusal(head.target.size() > kMaxTargetBytes ? 414 : 400, target.error().message);
  }
  admission->request.path = PathOf(*target);
  admission->request.query = target->query;
  RouteMatch match = rules.router->Match(head.method, target->segments);
  if (match.route != nullptr) {
    admission->route = match.route;
    admission->parameters = std::move(match.parameters);
    return std::nullopt;
  }
  if (match.allow.empty() && rules.starting != nullptr) return (*rules.starting)();
  if (match.allow.empty()) {
    return ErrorFor(head.headers, 404,
                    fmt::format("There is nothing at {}.", Shown(admission->request.path)));
  }
  Response response =
      Refusal(405, fmt::format("{} does not take {}; it takes {}.", Shown(admission->request.path),
                               Shown(head.method), match.allow));
  response.headers.emplace_back("Allow", match.allow);
  return response;
}

std::optional<Response> Check(MessageHead* head, const AdmissionRules& rules,
                              Admission* admission) {
  if (rules.only_local_hosts) {
    if (auto refusal = CheckHost(head->headers)) return refusal;
  }
  if (auto refusal = FindRoute(*head, rules, admission)) return refusal;
  if (auto refusal = CheckExpectation(*head, &admission->expects_continue)) return refusal;
  admission->request.headers = std::move(head->headers);
  if (auto refusal = CheckRole(rules.tokens, *admission->route, &admission->request)) {
    return refusal;
  }
  admission->max_body_bytes = admission->route->max_body_bytes.value_or(rules.max_body_bytes);
  if (head->content_length.value_or(0) > admission->max_body_bytes) {
    return Refusal(413, fmt::format("The body has {} bytes; at most {} are taken here.",
                                    *head->content_length, admission->max_body_bytes));
  }
  return std::nullopt;
}

}  // namespace

Admission Admit(MessageHead head, const AdmissionRules& rules) {
  Admission admission;
  admission.is_head = head.method == "HEAD";
  admission.request.method = admission.is_head ? "GET" : head.method;
  admission.refusal = Check(&head, rules, &admission);
  return admission;
}

}  // namespace perseus::http
