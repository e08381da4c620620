// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "http/admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "common/nearest_name.h"
#include "http/target.h"
#include "http/text.h"

namespace perseus::http {
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
  if (match.allow.empty() && !rules.starting.empty()) return TryAgainResponse(rules.starting);
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
