// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_API_API_HANDLERS_H_
#define PERSEUS_SERVER_API_API_HANDLERS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "http/server.h"
#include "server/api/api_text.h"
#include "server/runtime/job_service.h"
#include "server/runtime/waiting.h"

// Handlers about one job, which the first parameter of the route names.
namespace perseus::server {

inline Failure NoSuchJob(const std::string& id) {
  return {FailureCode::kNotFound, "there is no job " + id};
}

// Of answers that say what was known before the store went away.
inline constexpr const char* kStaleHeader = "Perseus-Stale";
inline constexpr const char* kStaleSentence =
    "the store does not answer; this is what was known before";

// That answer at once.
using JobAnswer = std::function<http::Response(ManagedJob& job, const http::Request& request)>;

// Whoever looks at a job sees what any server was told before, or is told that he does not.
inline http::Handler OnJob(JobService& service, JobAnswer answer) {
  return [&service, answer = std::move(answer)](const http::Request& request,
                                                const std::vector<std::string>& parameters,
                                                const http::Responder& responder) {
    const auto send = [request, responder, answer](const auto& job, bool is_stale) {
      http::Response response = job ? answer(**job, request) : FailureResponse(job.error());
      if (job && is_stale) response.headers.emplace_back(kStaleHeader, kStaleSentence);
      responder.Send(std::move(response));
    };
    if (request.method == "GET") return service.GetFresh(parameters[0], send);
    service.Get(parameters[0], [send](const auto& job) { send(job, false); });
  };
}

// That answer later; ranks, which wait for what comes and do not look.
using JobHandler =
    std::function<void(const std::shared_ptr<ManagedJob>& job, const http::Request& request,
                       const http::Responder& responder)>;

inline http::Handler OnJobLater(JobService& service, JobHandler handle) {
  return [&service, handle = std::move(handle)](const http::Request& request,
                                                const std::vector<std::string>& parameters,
                                                const http::Responder& responder) {
    service.Get(parameters[0], [request, responder, handle](const auto& job) {
      if (job) return handle(*job, request, responder);
      responder.Send(FailureResponse(job.error()));
    });
  };
}

// Sends what `answer` makes of the first version after `after`; to nobody,
// once the client is gone.
inline void AnswerWhenNew(
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

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_API_API_HANDLERS_H_
