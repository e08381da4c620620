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

// One request. Its answer may come later, from any thread.
struct Call {
  JobService& service;
  const http::Request request;
  const std::vector<std::string> parameters;
  const http::Responder responder;
  const Caller caller;
};
inline void Send(const Call& call, http::Response response) {
  call.responder.Send(std::move(response));
}
using CallPointer = std::shared_ptr<const Call>;
using JobPointer = std::shared_ptr<ManagedJob>;

// Whether the token may see the job, and change it as far as its role goes.
bool Sees(const http::TokenBinding& binding, const std::string& id, const std::string& client_key);
inline bool Sees(const http::TokenBinding& binding, const ManagedJob& job) {
  return Sees(binding, job.id(), job.client_key());
}
// The refusal of a new job with this client key; none: the token may create it.
std::optional<http::Response> CheckMayCreate(const Call& call, const std::string& client_key);

// Makes routes of rows and handlers. The query fits the row before a handler is called.
class RouteMaker {
 public:
  RouteMaker(JobService& service, std::vector<http::Route>* routes)
      : service_(service), routes_(routes) {}

  // Answers when it likes.
  using Handler = std::function<void(const CallPointer& call)>;
  void On(const RouteRow& row, Handler handler);
  // Answers at once, on a thread that may wait for the store.
  using Answer = std::function<http::Response(const Call& call)>;
  void OnStore(const RouteRow& row, Answer answer);

  // The same about the job that the first parameter of the path names.
  using JobHandler = std::function<void(const JobPointer& job, const CallPointer& call)>;
  void OnJob(const RouteRow& row, JobHandler handler);
  // Whoever looks at a job sees what any server was told before, or is told that he does not.
  using JobAnswer = std::function<http::Response(ManagedJob& job, const Call& call)>;
  void OnLook(const RouteRow& row, JobAnswer answer);

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

// The job as it is now, with its revision as ETag.
http::Response ShowJob(const ManagedJob& job, int status = 200);

// Has the job do it, and answers with what `answer` makes of the outcome, or why it was not done.
// A change is not made where nobody waits for its answer any more, or where the job is past the
// revision that the request names.
void Change(const JobPointer& job, const CallPointer& call, Command command,
            std::function<http::Response(const Answer& answer)> answer);
// The same, answered with the job as it then is.
void ChangeAndShow(const JobPointer& job, const CallPointer& call, Command command);

// The rank's record to `next`, or the answer that there is none.
void WithRank(const JobPointer& job, const CallPointer& call, std::int64_t rank,
              std::function<void(const store::RankRecord&)> next);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_API_API_HANDLERS_H_
