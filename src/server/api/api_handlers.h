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

#include "common/labels.h"
#include "common/tree.h"
#include "http/message.h"
#include "http/server.h"
#include "server/base/failure.h"
#include "server/domain/caller.h"
#include "server/domain/schema.h"
#include "server/runtime/job_service.h"
#include "wire/routes.h"

// The steps between a route and its handler: checks of the query, of the token, and of If-Match;
// the reading of bodies and the making of answers.
namespace perseus::server {

using wire::RouteRow;
using wire::RowOf;

http::Response FailureResponse(const Failure& failure);
template <typename T>
http::Response JsonAnswer(int status, const Message<T>& message, const T& object) {
  return http::JsonResponse(status, wire::Write(message, object));
}
http::Response NoContent();

// More values than the largest body of measurements has. As a tree they take about 60 MiB.
inline constexpr int kMostBodyValues = 700'000;

// Parses a body, which must be a JSON object with at most `most_values` values. `read` takes its
// fields from the root. A failure names the field.
Outcome<void> ReadBody(const std::string& body, const std::function<void(const TreeCursor&)>& read,
                       int most_values = kMostBodyValues);

template <typename T>
Outcome<T> ReadBody(const Message<T>& message, const std::string& body,
                    int most_values = kMostBodyValues) {
  T object = {};
  const Outcome<void> read = ReadBody(
      body, [&](const TreeCursor& root) { wire::Read(message, root, &object); }, most_values);
  if (!read) return tl::unexpected(read.error());
  return object;
}

// A whole number in the query, which CheckQuery() has checked; nullopt if it is missing.
std::optional<std::int64_t> QueryInteger(const http::Request& request, const std::string& name);
// A text in the query; empty if it is missing.
std::string QueryText(const http::Request& request, const std::string& name);
// The parameter "wait" in seconds: 0 if it is missing, at most 60.
double QueryWait(const http::Request& request);

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

// The labels that a job must have, from the parameter `label`: "team:vision,project:x". Empty: any.
Outcome<JobLabels> WantedLabels(const http::Request& request);
// Whether `labels` has all of `wanted`.
bool HasLabels(const JobLabels& labels, const JobLabels& wanted);

// Whether the token is allowed to see the job. Its role decides whether it may also change it.
bool Sees(const http::TokenBinding& binding, const std::string& id, const std::string& client_key);
inline bool Sees(const http::TokenBinding& binding, const ManagedJob& job) {
  return Sees(binding, job.id(), job.client_key());
}
// Checks whether the token may create a job with this client key. Returns a refusal, or nothing if
// it may.
std::optional<http::Response> CheckMayCreate(const Call& call, const std::string& client_key);

// Makes routes from rows of routes.h and handlers. A handler is called only if the query fits its
// row.
class RouteMaker {
 public:
  RouteMaker(JobService& service, std::vector<http::Route>* routes)
      : service_(service), routes_(routes) {}

  // Adds a route whose handler may answer later.
  using Handler = std::function<void(const CallPointer& call)>;
  void On(const RouteRow& row, Handler handler);
  // Adds a route that is answered by a function on a thread that may wait for the store.
  using Answer = std::function<http::Response(const Call& call)>;
  void OnStore(const RouteRow& row, Answer answer);

  // As On(), for a route whose path names a job first.
  using JobHandler = std::function<void(const JobPointer& job, const CallPointer& call)>;
  void OnJob(const RouteRow& row, JobHandler handler);
  // Adds a route that shows a job.
  using JobAnswer = std::function<http::Response(ManagedJob& job, const Call& call)>;
  void OnLook(const RouteRow& row, JobAnswer answer);

 private:
  JobService& service_;
  std::vector<http::Route>* const routes_;
};

void AddJobRoutes(RouteMaker* routes);
void AddRankRoutes(RouteMaker* routes);
void AddNodeRoute(RouteMaker* routes);
void AddTimelineRoute(RouteMaker* routes);
void AddPlanRoutes(RouteMaker* routes);
void AddHistoryRoutes(RouteMaker* routes);
void AddEventRoutes(RouteMaker* routes);
// The wire of Zeus' pipeline frequency optimizer, as its 0.16 client speaks it.
void AddZeusRoutes(RouteMaker* routes);

// Waits for the first plan version after `after` and sends the response that `answer` makes. Stops
// waiting if the client disconnects.
void AnswerWhenNew(
    const std::shared_ptr<ManagedJob>& job, std::int64_t after, double seconds,
    const http::Responder& responder,
    std::function<http::Response(const std::shared_ptr<const PublishedPlan>&)> answer);

// Answers with the job as it is now. Its revision is the ETag.
http::Response ShowJob(const ManagedJob& job, int status = 200);

// The answer for a failure of this job. Says which job it is, where it is about its state.
http::Response FailureOf(const ManagedJob& job, Failure failure);

// Runs a command on the job. Sends the response that `answer` makes, or the failure. The change is
// not made if the client has disconnected, or if the job is not at the revision that If-Match
// names.
void Change(const JobPointer& job, const CallPointer& call, Command command,
            std::function<http::Response(const Answer& answer)> answer);
// The same, but answers with the changed job.
void ChangeAndShow(const JobPointer& job, const CallPointer& call, Command command);

// Clock calls that were refused, since the client began. Null: no client was heard.
std::int64_t RefusedCalls(const ClientReport* client);

// The rank's place. Nullopt: there is no such rank, and that is answered.
std::optional<RankPlace> PlaceOf(const ManagedJob& job, const Call& call, std::int64_t rank);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_API_API_HANDLERS_H_
