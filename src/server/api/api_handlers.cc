// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/api/api_handlers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/numbers.h"
#include "server/api/job_json.h"
#include "server/api/query_check.h"

namespace perseus::server {
namespace {

std::string EntityTag(std::int64_t revision) { return fmt::format("\"{}\"", revision); }

// Of the header If-Match; none: there is none, or it takes any.
Outcome<std::optional<std::int64_t>> ConditionOf(const RouteRow& row,
                                                 const http::Request& request) {
  const std::string* const text = http::FindHeader(request.headers, "If-Match");
  if (text == nullptr || request.method == "GET") return std::nullopt;
  if (!row.takes_condition) {
    return Fail(FailureCode::kInvalid, "this takes no If-Match; send it without", "If-Match");
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

http::Response HasChanged(const ManagedJob& job, std::int64_t wanted, std::int64_t now) {
  http::Response response = http::ErrorResponse(
      412, "changed",
      fmt::format("job {} is at revision {}, not at {}; look at it again and decide anew", job.id(),
                  now, wanted),
      "If-Match");
  response.headers.emplace_back("ETag", EntityTag(now));
  return response;
}

// The job of the call, or the answer that there is instead.
using FoundJob = tl::expected<std::shared_ptr<ManagedJob>, http::Response>;

FoundJob FindJob(const Call& call, bool is_fresh, bool* is_stale) {
  const std::string& id = call.parameters[0];
  const bool has_condition = call.caller.if_revision.has_value();
  auto job = is_fresh || has_condition ? call.service.GetFresh(id, is_stale) : call.service.Get(id);
  if (!job) return tl::unexpected(FailureResponse(job.error()));
  if (!Sees(call.request.binding, **job)) {
    return tl::unexpected(FailureResponse(NoSuchJob(id)));
  }
  const std::int64_t now = (*job)->revision();
  if (has_condition && *call.caller.if_revision != now) {
    return tl::unexpected(HasChanged(**job, *call.caller.if_revision, now));
  }
  return *std::move(job);
}

}  // namespace

bool Sees(const http::TokenBinding& binding, const ManagedJob& job) {
  if (binding.is_free()) return true;
  return std::find(binding.jobs.begin(), binding.jobs.end(), job.id()) != binding.jobs.end() ||
         binding.HasPrefixOf(job.client_key());
}

std::optional<http::Response> CheckMayCreate(const Call& call, const std::string& client_key) {
  const http::TokenBinding& binding = call.request.binding;
  if (binding.is_free() || binding.HasPrefixOf(client_key)) return std::nullopt;
  if (!client_key.empty()) {
    const auto known = call.service.GetByKey(client_key);
    if (known && Sees(binding, **known)) return std::nullopt;
    if (!known && known.error().code == FailureCode::kUnavailable) {
      return FailureResponse(known.error());
    }
  }
  const std::string allowed = binding.key_prefixes.empty()
                                  ? "none"
                                  : fmt::format("only jobs whose client_key begins with {}",
                                                fmt::join(binding.key_prefixes, " or "));
  return FailureResponse({FailureCode::kInvalid,
                          "this token is bound to jobs, and may create " + allowed, "client_key"});
}

void RouteMaker::OnLater(const RouteRow& row, Handler handler) {
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
    if (auto refusal = CheckQuery(row, request)) {
      responder.Send(*std::move(refusal));
      return;
    }
    const auto condition = ConditionOf(row, request);
    if (!condition) {
      responder.Send(FailureResponse(condition.error()));
      return;
    }
    handler({service,
             request,
             parameters,
             responder,
             {request.token_name, request.peer, *condition,
              [responder] { return responder.alive(); }}});
  };
  routes_->push_back(std::move(route));
}

void RouteMaker::On(const RouteRow& row, Answer answer) {
  OnLater(row,
          [answer = std::move(answer)](const Call& call) { call.responder.Send(answer(call)); });
}

void RouteMaker::OnJob(const RouteRow& row, JobAnswer answer) {
  OnLater(row, [answer = std::move(answer)](const Call& call) {
    const bool is_look = call.request.method == "GET";
    bool is_stale = false;
    const FoundJob job = FindJob(call, is_look, &is_stale);
    // Looking the job up may have taken long.
    if (!is_look && !call.caller.is_wanted()) return;
    http::Response response = job ? answer(**job, call) : job.error();
    if (job && is_look && is_stale) response.headers.emplace_back(kStaleHeader, kStaleSentence);
    call.responder.Send(std::move(response));
  });
}

void RouteMaker::OnJobLater(const RouteRow& row, JobHandler handler) {
  OnLater(row, [handler = std::move(handler)](const Call& call) {
    bool is_stale = false;
    const FoundJob job = FindJob(call, /*is_fresh=*/false, &is_stale);
    if (!call.caller.is_wanted()) return;
    if (job) {
      handler(*job, call);
    } else {
      call.responder.Send(job.error());
    }
  });
}

void AnswerWhenNew(
    const std::shared_ptr<ManagedJob>& job, std::int64_t after, double seconds,
    const http::Responder& responder,
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
  http::Response response = JsonAnswer(status, JobJson(view));
  response.headers.emplace_back("ETag", EntityTag(view.revision));
  return response;
}

http::Response ShowJob(const ManagedJob& job, const Outcome<void>& done) {
  return done ? ShowJob(job) : FailureResponse(done.error());
}

}  // namespace perseus::server
