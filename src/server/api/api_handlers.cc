// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/api/api_handlers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <variant>

#include "common/numbers.h"
#include "http/client.h"
#include "server/api/messages.h"

namespace perseus::server {
namespace {

constexpr std::string_view kBodyName = "request";
constexpr double kMostWaitSeconds = 60;
// Of a server that has slept, or that is about to end its time as the active one.
constexpr const char* kNotActive =
    "this server is not active any more: another one may have the store; try again";

int StatusOf(FailureCode code) {
  switch (code) {
    case FailureCode::kInvalid:
      return 422;
    case FailureCode::kNotFound:
      return 404;
    case FailureCode::kConflict:
      return 409;
    case FailureCode::kTooLarge:
      return 413;
    case FailureCode::kPast:
      return 412;
    case FailureCode::kUnavailable:
      return 503;
    case FailureCode::kInternal:
      return 500;
  }
  return 500;
}

std::string_view CodeName(FailureCode code) {
  switch (code) {
    case FailureCode::kInvalid:
      return "invalid";
    case FailureCode::kNotFound:
      return "not_found";
    case FailureCode::kConflict:
      return "conflict";
    case FailureCode::kTooLarge:
      return "too_large";
    case FailureCode::kPast:
      return "past";
    case FailureCode::kUnavailable:
      return "unavailable";
    case FailureCode::kInternal:
      return "internal";
  }
  return "internal";
}

// "request:1:12: rows[0].time: expected ..." in its parts.
Failure BodyFailure(const Error& error) {
  Failure failure{.code = FailureCode::kInvalid, .message = error.message};
  if (error.code == ErrorCode::kInternal) failure.code = FailureCode::kInternal;
  std::string_view text = error.message;
  if (!text.starts_with(kBodyName)) return failure;
  const std::size_t place = text.find(": ");
  if (place == std::string_view::npos) return failure;
  text.remove_prefix(place + 2);
  const std::size_t path = text.find(": ");
  if (path == std::string_view::npos) return failure;
  const std::string_view field = text.substr(0, path);
  const bool is_path = std::all_of(field.begin(), field.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '[' ||
           c == ']';
  });
  if (!is_path) return failure;
  failure.field = field;
  failure.message = fmt::format("'{}': {}", field, text.substr(path + 2));
  return failure;
}

std::string EntityTag(std::int64_t revision) { return fmt::format("\"{}\"", revision); }

// Of the header If-Match; none: there is none, or it takes any.
Outcome<std::optional<std::int64_t>> ConditionOf(const RouteRow& row,
                                                 const http::Request& request) {
  const std::string* const text = http::FindHeader(request.headers, "If-Match");
  if (text == nullptr || request.method == "GET") return std::nullopt;
  if (!row.takes_condition) {
    return Fail(FailureCode::kInvalid,
                "this route accepts no If-Match; send the request without it", "If-Match");
  }
  if (*text == "*") return std::nullopt;
  const bool is_quoted = text->size() > 2 && text->front() == '"' && text->back() == '"';
  const auto revision =
      is_quoted ? ParseInteger<std::int64_t>(std::string_view(*text).substr(1, text->size() - 2))
                : std::nullopt;
  if (revision) return revision;
  return Fail(FailureCode::kInvalid,
              "If-Match must be the ETag of the job, such as \"17\", quotes included", "If-Match");
}

http::Response HasChanged(const ManagedJob& job, const Failure& failure) {
  http::Response response = http::ErrorResponse(
      412, "changed", failure.message + "; read the job again before you change it", "If-Match");
  response.headers.emplace_back("ETag", EntityTag(job.revision()));
  return response;
}

// Whether the token sees the job; else its answer is sent.
bool MaySee(const Call& call, const Outcome<JobPointer>& job) {
  if (job && Sees(call.request.binding, **job)) return true;
  call.responder.Send(FailureResponse(job ? NoSuchJob(call.parameters[0]) : job.error()));
  return false;
}

}  // namespace

http::Response FailureResponse(const Failure& failure) {
  http::Response response = http::ErrorResponse(StatusOf(failure.code), CodeName(failure.code),
                                                failure.message, failure.field);
  if (failure.code == FailureCode::kUnavailable) response.headers.emplace_back("Retry-After", "1");
  return response;
}

std::int64_t RefusedCalls(const ClientReport* client) {
  if (client == nullptr) return 0;
  const auto found = client->counts.find("refused");
  return found == client->counts.end() ? 0 : static_cast<std::int64_t>(found->second);
}

http::Response NoContent() {
  http::Response response;
  response.status = 204;
  response.content_type.clear();
  return response;
}

Outcome<void> ReadBody(const std::string& body, const std::function<void(const TreeCursor&)>& read,
                       int most_values) {
  const std::string name(kBodyName);
  const Result<TreeNode> tree = ParseJsonTree(body, name, nullptr, most_values);
  if (!tree) return tl::unexpected(BodyFailure(tree.error()));
  TreeReader reader(*tree, name);
  const TreeCursor root = reader.Root();
  if (!std::holds_alternative<TreeNode::Table>(tree->value)) {
    root.FailExpected("a JSON object");
  } else {
    read(root);
  }
  if (reader.failed()) return tl::unexpected(BodyFailure(*reader.error()));
  return {};
}

std::string QueryText(const http::Request& request, const std::string& name) {
  const auto found = request.query.find(name);
  return found == request.query.end() ? "" : found->second;
}

std::optional<std::int64_t> QueryInteger(const http::Request& request, const std::string& name) {
  return ParseInteger<std::int64_t>(QueryText(request, name));
}

double QueryWait(const http::Request& request) {
  return std::min(ParseFinite(QueryText(request, "wait")).value_or(0), kMostWaitSeconds);
}

bool Sees(const http::TokenBinding& binding, const std::string& id, const std::string& client_key) {
  if (binding.is_free()) return true;
  return std::find(binding.jobs.begin(), binding.jobs.end(), id) != binding.jobs.end() ||
         binding.HasPrefixOf(client_key);
}

std::optional<http::Response> CheckMayCreate(const Call& call, const std::string& client_key) {
  const http::TokenBinding& binding = call.request.binding;
  if (binding.is_free() || binding.HasPrefixOf(client_key)) return std::nullopt;
  const std::string allowed = binding.key_prefixes.empty()
                                  ? "none"
                                  : fmt::format("only jobs whose client_key begins with {}",
                                                fmt::join(binding.key_prefixes, " or "));
  return FailureResponse({FailureCode::kInvalid,
                          "this token is bound to jobs, and may create " + allowed, "client_key"});
}

void RouteMaker::On(const RouteRow& row, Handler handler) {
  http::Route route;
  route.method = row.method;
  route.pattern = row.path;
  route.at_least = row.role;
  if (row.max_body_bytes > 0) route.max_body_bytes = row.max_body_bytes;
  route.long_poll = row.waits;
  route.takes_bound_tokens = true;
  route.handle = [&row, &service = service_, handler = std::move(handler)](
                     const http::Request& request, const std::vector<std::string>& parameters,
                     const http::Responder& responder) {
    if (auto refusal = wire::CheckQuery(row, request)) {
      responder.Send(*std::move(refusal));
      return;
    }
    const auto condition = ConditionOf(row, request);
    if (!condition) {
      responder.Send(FailureResponse(condition.error()));
      return;
    }
    if (!service.is_active()) {
      // With the header, clients ask the next address: nothing was done here.
      http::Response refused = FailureResponse({FailureCode::kUnavailable, kNotActive});
      refused.headers.emplace_back(http::kActiveHeader, "");
      responder.Send(std::move(refused));
      return;
    }
    Caller caller{request.token_name, request.peer, *condition,
                  [responder] { return responder.wanted(); }};
    handler(std::make_shared<const Call>(
        Call{service, request, parameters, responder, std::move(caller)}));
  };
  routes_->push_back(std::move(route));
}

void RouteMaker::OnStore(const RouteRow& row, Answer answer) {
  On(row, [answer = std::move(answer)](const CallPointer& call) {
    call->service.OnReader([answer, call] {
      if (call->caller.is_wanted()) call->responder.Send(answer(*call));
    });
  });
}

void RouteMaker::OnJob(const RouteRow& row, JobHandler handler) {
  On(row, [handler = std::move(handler)](const CallPointer& call) {
    call->service.Get(call->parameters[0], [handler, call](const Outcome<JobPointer>& job) {
      if (MaySee(*call, job)) handler(*job, call);
    });
  });
}

void RouteMaker::OnLook(const RouteRow& row, JobAnswer answer) {
  OnJob(row, [answer = std::move(answer)](const JobPointer& job, const CallPointer& call) {
    call->responder.Send(answer(*job, *call));
  });
}

void AnswerWhenNew(
    const JobPointer& job, std::int64_t after, double seconds, const http::Responder& responder,
    std::function<http::Response(const std::shared_ptr<const PublishedPlan>&)> answer) {
  const std::int64_t ticket = job->AwaitPlan(
      after, seconds,
      [responder, answer = std::move(answer)](const std::shared_ptr<const PublishedPlan>& plan) {
        if (responder.alive()) responder.Send(answer(plan));
      });
  responder.OnGone([weak = std::weak_ptr(job), ticket] {
    if (const auto waited = weak.lock()) waited->board().Forget(ticket);
  });
}

http::Response ShowJob(const ManagedJob& job, int status) {
  const JobView view = job.View();
  http::Response response = JsonAnswer(status, kJob, view);
  response.headers.emplace_back("ETag", EntityTag(view.revision));
  return response;
}

http::Response FailureOf(const ManagedJob& job, Failure failure) {
  if (failure.code == FailureCode::kNotFound || failure.code == FailureCode::kConflict) {
    failure.message = fmt::format("job {}: {}", NameAndId(job.name(), job.id()), failure.message);
  }
  return FailureResponse(failure);
}

void Change(const JobPointer& job, const CallPointer& call, Command command,
            std::function<http::Response(const Answer& answer)> answer) {
  job->Do(std::move(command), call->caller,
          [job, call, answer = std::move(answer)](const Outcome<Answer>& outcome) {
            if (outcome) {
              call->responder.Send(answer(*outcome));
            } else if (outcome.error().code == FailureCode::kPast) {
              call->responder.Send(HasChanged(*job, outcome.error()));
            } else {
              call->responder.Send(FailureOf(*job, outcome.error()));
            }
          });
}

void ChangeAndShow(const JobPointer& job, const CallPointer& call, Command command) {
  Change(job, call, std::move(command), [job](const Answer&) { return ShowJob(*job); });
}

std::optional<RankPlace> PlaceOf(const ManagedJob& job, const Call& call, std::int64_t rank) {
  // One that cannot be is no rank of the job, either.
  const int number = rank >= 0 && rank < job.shape().world_size() ? static_cast<int>(rank) : -1;
  const std::optional<RankPlace> place = job.PlaceOf(number);
  if (!place) {
    Send(call, FailureOf(job, {FailureCode::kNotFound,
                               fmt::format("rank {} is not registered; register it first", rank),
                               "rank"}));
  }
  return place;
}

}  // namespace perseus::server
