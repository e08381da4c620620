// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_API_API_HANDLERS_H_
#define PERSEUS_SERVER_API_API_HANDLERS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "http/server.h"
#include "server/api/api_text.h"
#include "server/api/routes.h"
#include "server/domain/caller.h"
#include "server/runtime/job_service.h"

// What stands between a route and its handler: the query, the token's jobs, the condition.
namespace perseus::server {

inline Failure NoSuchJob(const std::string& id) {
  return {FailureCode::kNotFound, "there is no job " + id};
}

// Of answers that say what was known before the store went away.
inline constexpr const char* kStaleHeader = "Perseus-Stale";
inline constexpr const char* kStaleSentence =
    "the store does not answer; this is what was known before";

// One request, as its handler sees it: as long as the handler runs.
struct Call {
  JobService& service;
  const http::Request& request;
  const std::vector<std::string>& parameters;
  const http::Responder& responder;
  Caller caller;
};

// Whether the token may see the job, and change it as far as its role goes.
bool Sees(const http::TokenBinding& binding, const ManagedJob& job);
// The refusal of a new job with this client key; none: the token may create it, or sees the one
// that there is.
std::optional<http::Response> CheckMayCreate(const Call& call, const std::string& client_key);

// Makes routes of rows and handlers. The query fits the row before a handler is called.
class RouteMaker {
 public:
  RouteMaker(JobService& service, std::vector<http::Route>* routes)
      : service_(service), routes_(routes) {}

  // Answers at once, or later.
  using Answer = std::function<http::Response(const Call& call)>;
  using Handler = std::function<void(const Call& call)>;
  void On(const RouteRow& row, Answer answer);
  void OnLater(const RouteRow& row, Handler handler);

  // The same about the job that the first parameter of the path names. Whoever looks at a job
  // sees what any server was told before, or is told that he does not. A change is not made
  // where nobody waits for its answer any more, or where the job is past its revision.
  using JobAnswer = std::function<http::Response(ManagedJob& job, const Call& call)>;
  using JobHandler = std::function<void(const std::shared_ptr<ManagedJob>& job, const Call& call)>;
  void OnJob(const RouteRow& row, JobAnswer answer);
  // Ranks, which wait for what comes and do not look.
  void OnJobLater(const RouteRow& row, JobHandler handler);

 private:
  JobService& service_;
  std::vector<http::Route>* const routes_;
};

void AddJobRoutes(RouteMaker* routes);
void AddJobListRoute(RouteMaker* routes);
void AddRankRoutes(RouteMaker* routes);
void AddMeasurementRoutes(RouteMaker* routes);
void AddProfileRoutes(RouteMaker* routes);
void AddPlanRoutes(RouteMaker* routes);
void AddStragglerRoutes(RouteMaker* routes);
void AddWatchRoutes(RouteMaker* routes);
void AddEventRoutes(RouteMaker* routes);
// The wire of Zeus' pipeline frequency optimizer, as its 0.16 client speaks it.
void AddZeusRoutes(RouteMaker* routes);

// Sends what `answer` makes of the first version after `after`; to nobody,
// once the client is gone.
void AnswerWhenNew(
    const std::shared_ptr<ManagedJob>& job, std::int64_t after, double seconds,
    const http::Responder& responder,
    std::function<http::Response(const std::shared_ptr<const PublishedPlan>&)> answer);

// The job as it is now, with its revision as ETag; or why it was not done.
http::Response ShowJob(const ManagedJob& job, int status = 200);
http::Response ShowJob(const ManagedJob& job, const Outcome<void>& done);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_API_API_HANDLERS_H_
