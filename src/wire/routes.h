// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_WIRE_ROUTES_H_
#define PERSEUS_WIRE_ROUTES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "common/tree.h"
#include "http/message.h"

// The one list of the server's routes. The router, the OpenAPI document, docs/reference/api.md and
// the relay's rules are made from it.
namespace perseus::wire {

enum class QueryKind : std::uint8_t { kInteger, kNumber, kText };

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): in the order in which one reads them.
struct QueryParameter {
  std::string_view name;
  QueryKind kind = QueryKind::kText;
  std::string_view about = {};
  bool is_required = false;
  NumberRange range = {};
  std::string_view schema_words = {};  // Allowed words of a text, separated by spaces. Empty: any.
};

struct RouteAnswer {
  int status = 0;  // 0: none.
  std::string_view about = {};
  std::string_view schema = {};  // Empty: there is no body, or it is not JSON.
  std::string_view content_type = "application/json";
};

// A relay puts its version into this header of the reports that it sends for its ranks.
inline constexpr const char* kRelayHeader = "Perseus-Relay";

enum class Relaying : std::uint8_t {
  kNo,
  kForwarded,  // The relay forwards the request unchanged.
  kAnswered,   // The relay answers from what it knows, or combines the requests of many ranks.
};

// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): in the order in which one reads them.
struct RouteRow {
  std::string_view id;
  std::string_view method;
  std::string_view path;
  http::Role role = http::Role::kOperate;
  std::string_view tag;
  std::string_view summary;
  std::array<RouteAnswer, 2> answers;
  std::span<const QueryParameter> query = {};
  std::string_view body = {};      // Schema of the request body. Empty: there is none.
  std::size_t max_body_bytes = 0;  // 0: the server's limit.
  bool waits = false;              // The route is a long poll or a stream.
  Relaying relaying = Relaying::kNo;
  bool takes_condition = false;  // The route accepts the header If-Match.
  int refusals = 0;              // Bits of kNotFound ... kNotReady.
};

// Bits for refusals that do not follow from the rest of a route's row.
inline constexpr int kNotFound = 1;
inline constexpr int kConflict = 2;
inline constexpr int kUnavailable = 4;
inline constexpr int kNotReady = 8;  // 503, but with the body of readyz.

namespace rows {

using http::Role;

// Enough for a profile of 250,000 rows. Reading one takes twenty times the memory of its text.
inline constexpr std::size_t kMostJobBytes = std::size_t{8} << 20;
inline constexpr std::size_t kMostMeasurementBytes = std::size_t{8} << 20;
inline constexpr NumberRange kFromZero = {.least = 0};
inline constexpr int kMostListed = 1000;

inline constexpr QueryParameter kLabelQuery = {
    "label", QueryKind::kText,
    "Only jobs with these labels: team:vision, or team:vision,project:x."};
inline constexpr QueryParameter kListQuery[] = {
    {"state",
     QueryKind::kText,
     "Only jobs in this state.",
     false,
     {},
     "registering profiling characterizing running failed finished"},
    {"name", QueryKind::kText, "Only jobs of this name."},
    kLabelQuery,
    {"client_key", QueryKind::kText, "Only the job of this client key."},
    {"limit",
     QueryKind::kInteger,
     "At most so many; `next` then says where to go on.",
     false,
     {.least = 1, .most = kMostListed}},
    {"after", QueryKind::kText, "`next` of the answer before."}};
inline constexpr QueryParameter kHistoryQuery[] = {
    {"resolution",
     QueryKind::kText,
     "How long each span is (default: minute). Minutes are kept for a day, hours for 31 days, days "
     "for ever.",
     false,
     {},
     "minute hour day"},
    {"since", QueryKind::kInteger,
     "Seconds since 1970; the span that this is in is the first. Missing: all.", false, kFromZero}};
inline constexpr QueryParameter kEnergyQuery[] = {
    {"since", QueryKind::kInteger,
     "Seconds since 1970; the day (UTC) that this is in is the first. Missing: all.", false,
     kFromZero},
    {"until", QueryKind::kInteger,
     "Seconds since 1970; only days (UTC) that begin before this. Missing: all.", false, kFromZero},
    {"by", QueryKind::kText,
     "What has a row of its own: job (default), name, user, day, or label:NAME, the values of that "
     "label. With ',day' behind any of these, each day has one, too."},
    kLabelQuery};
inline constexpr QueryParameter kEventsQuery[] = {
    {"after", QueryKind::kText,
     "As the header Last-Event-ID, for those who cannot send one: the id of the last event that "
     "was seen."}};
inline constexpr QueryParameter kPlaceQuery[] = {
    {"pipeline", QueryKind::kInteger, "Only ranks of this pipeline (dp_rank).", false, kFromZero},
    {"stage", QueryKind::kInteger, "Only ranks of this place in it (pp_rank).", false, kFromZero}};
inline constexpr QueryParameter kNodesQuery[] = {
    {"search", QueryKind::kText, "Only nodes whose name holds this."},
    {"troubled",
     QueryKind::kInteger,
     "1: only nodes with refused clocks, a rank that reports an error, or something that acts "
     "against a clock.",
     false,
     {.least = 0, .most = 1}},
    {"limit",
     QueryKind::kInteger,
     "At most so many (default 100), and so many that all have at most 1,024 GPUs; `next` then "
     "says where to go on.",
     false,
     {.least = 1, .most = kMostListed}},
    {"after", QueryKind::kText, "`next` of the answer before."}};
inline constexpr QueryParameter kFrontierQuery[] = {
    {"points",
     QueryKind::kInteger,
     "At most about so many points, along the time; the ends stay.",
     false,
     {.least = 2, .most = 1e6}}};
inline constexpr QueryParameter kPipelineQuery[] = {
    {"pipeline", QueryKind::kInteger, "0 where it is missing."}};
inline constexpr QueryParameter kRankQuery[] = {
    {"rank", QueryKind::kInteger, "Which.", true, {.least = 0, .most = 2e9}}};
inline constexpr QueryParameter kTimelineQuery[] = {
    {"rank", QueryKind::kInteger,
     "Only this rank of the pipeline. Missing: all, which must have at most 10,000 computations.",
     false, kFromZero}};
inline constexpr QueryParameter kAfterVersion = {
    "after", QueryKind::kInteger,
    "Answer when the version is another than this one. -1: at once, also that there is no plan "
    "yet. Missing: the first version."};
inline constexpr QueryParameter kWait = {
    "wait", QueryKind::kNumber, "Seconds to wait for news, then 204. More than 60 count as 60.",
    false, kFromZero};
inline constexpr QueryParameter kPlanQuery[] = {kRankQuery[0], kAfterVersion, kWait};
inline constexpr QueryParameter kPlansQuery[] = {
    {"ranks", QueryKind::kText, "A list such as 0-7,12.", true}, kAfterVersion, kWait};

// One route after the other, as densely as it fits.
// clang-format off
inline constexpr RouteRow kAll[] = {
    {"createJob", "POST", "/api/v1/jobs", Role::kTrain, "jobs",
     "Create a job. The same client_key means the same job, however often it is sent; with another "
     "description it is refused (409)", {{{201,
     "Created", "Job"}, {200, "The job of this client key", "Job"}}}, {}, "NewJob", kMostJobBytes,
     false, Relaying::kForwarded, false, kConflict | kUnavailable},
    {"listJobs", "GET", "/api/v1/jobs", Role::kRead, "jobs", "List jobs", {{{200,
     "Jobs by the time of their creation", "JobList"}}}, kListQuery},
    {"getJob", "GET", "/api/v1/jobs/{id}", Role::kRead, "jobs", "Show a job", {{{200, "The job",
     "Job"}}}, {}, {}, 0, false, Relaying::kForwarded},
    {"deleteJob", "DELETE", "/api/v1/jobs/{id}", Role::kOperate, "jobs",
     "Delete a job. What it used by day stays, for accounts", {{{204, "Deleted"}}}, {}, {}, 0, false,
     Relaying::kNo, true},
    {"finishJob", "POST", "/api/v1/jobs/{id}/finish", Role::kTrain, "jobs",
     "Say that training has ended", {{{200, "The job", "Job"}}}, {}, {}, 0, false, Relaying::kNo,
     true},
    {"setPoint", "PUT", "/api/v1/jobs/{id}/point", Role::kOperate, "jobs",
     "Choose the point on the frontier", {{{200, "The job", "Job"}}}, {}, "Point", 0, false,
     Relaying::kNo, true},
    {"setLabels", "PUT", "/api/v1/jobs/{id}/labels", Role::kOperate, "jobs",
     "Set or remove labels, also of a job that has finished; what is not named stays", {{{200,
     "The job", "Job"}}}, {}, "LabelChanges", 0, false, Relaying::kNo, true},
    {"getFrontier", "GET", "/api/v1/jobs/{id}/frontier", Role::kRead, "jobs",
     "The frontier as CSV", {{{200, "iteration_time_s,energy_j,slope_w", {}, "text/csv"}}},
     kFrontierQuery, {}, 0, false, Relaying::kNo, false, kConflict},
    {"getPlanFile", "GET", "/api/v1/jobs/{id}/plan.json", Role::kRead, "jobs",
     "The plan of a pipeline as plan.json", {{{200, "docs/reference/files.md", "PlanFile"}}}, kPipelineQuery,
     {}, 0, false, Relaying::kNo, false, kConflict},
    {"reprofile", "POST", "/api/v1/jobs/{id}/reprofile", Role::kOperate, "jobs",
     "Have the ranks measure anew; plans stay in force until there are new ones", {{{200,
     "Under way, also where it was before", "Job"}}}, {}, {}, 0, false, Relaying::kNo, true},
    {"cancelReprofile", "DELETE", "/api/v1/jobs/{id}/reprofile", Role::kOperate, "jobs",
     "End the new sweep and keep the old profile", {{{200, "The old profile stays", "Job"}}}, {},
     {}, 0, false, Relaying::kNo, true},
    {"setComparison", "PUT", "/api/v1/jobs/{id}/comparison", Role::kOperate, "jobs",
     "Run some iterations at default clocks, to learn what the plan saves", {{{200,
     "What holds now", "ComparisonNow"}}}, {}, "NewComparison", 0, false, Relaying::kNo, true},
    {"endComparison", "DELETE", "/api/v1/jobs/{id}/comparison", Role::kOperate, "jobs",
     "Run all iterations with the plan", {{{200, "What holds now", "ComparisonNow"}}}, {}, {}, 0,
     false, Relaying::kNo, true},
    {"showSavings", "GET", "/api/v1/jobs/{id}/savings", Role::kRead, "jobs",
     "What the plan predicts, and what was measured of it", {{{200, "In percent of maximum clocks",
     "Savings"}}}},
    {"showHistory", "GET", "/api/v1/jobs/{id}/history", Role::kRead, "jobs",
     "Iterations, power and savings of a job by minute, hour or day", {{{200, "Spans in which ranks "
     "reported iterations, by time", "History"}}}, kHistoryQuery},
    {"showEnergy", "GET", "/api/v1/energy", Role::kRead, "jobs",
     "Energy of all jobs, also of deleted ones, by job, name, user, label or day", {{{200,
     "Rows by day, name and job", "Energy"}}}, kEnergyQuery, {}, 0, false, Relaying::kNo, false,
     kUnavailable},
    {"follow", "GET", "/api/v1/events", Role::kRead, "events", "What happens to all jobs", {{{200,
     "Server-sent events", {}, "text/event-stream"}}}, kEventsQuery, {}, 0, true},
    {"followJob", "GET", "/api/v1/jobs/{id}/events", Role::kRead, "events",
     "What happens to a job", {{{200, "Server-sent events", {}, "text/event-stream"}}},
     kEventsQuery, {}, 0, true},
    {"registerRank", "POST", "/api/v1/jobs/{id}/ranks", Role::kTrain, "ranks",
     "Join a job as a rank. Once more with the same position: the rank has restarted", {{{200,
     "Joined", "Joined"}}}, {}, "Rank", 0, false, Relaying::kForwarded},
    {"listRanks", "GET", "/api/v1/jobs/{id}/ranks", Role::kRead, "ranks", "The ranks that joined",
     {{{200, "Ranks", "RankList"}}}, kPlaceQuery},
    {"showRankGrid", "GET", "/api/v1/jobs/{id}/grid", Role::kRead, "ranks",
     "The ranks by pipeline and stage, at most 4,096 cells", {{{200, "Cells", "RankGrid"}}}},
    {"showTimeline", "GET", "/api/v1/jobs/{id}/timeline", Role::kRead, "ranks",
     "The last iteration of pipeline 0 as its ranks timed it. Of what this server heard since it began",
     {{{200, "When each computation ran", "Timeline"}}}, kTimelineQuery},
    {"listNodes", "GET", "/api/v1/nodes", Role::kRead, "ranks",
     "The nodes of unfinished jobs that this server has at hand, by name: agents, relays, and who has which GPU. "
     "What this server heard since it began", {{{200, "Nodes", "NodeList"}}}, kNodesQuery},
    {"measure", "POST", "/api/v1/jobs/{id}/measurements", Role::kTrain, "ranks",
     "Report what a rank measured", {{{200, "Durable", "Measured"}}}, {}, "Measurements",
     kMostMeasurementBytes, false, Relaying::kForwarded},
    {"showMeasurements", "GET", "/api/v1/jobs/{id}/measurements", Role::kRead, "ranks",
     "What a rank has reported of the present sweep, for one that goes on after a restart", {{{200,
     "What need not be measured again", "Reported"}}}, kRankQuery},
    {"reportIterations", "POST", "/api/v1/jobs/{id}/iterations", Role::kTrain, "ranks",
     "Report how long iterations took", {{{202, "Taken; sums are durable within seconds",
     "ReportsTaken"}}}, {}, "Reports", 0, false, Relaying::kAnswered},
    {"getPlan", "GET", "/api/v1/jobs/{id}/plan", Role::kRead, "plans", "The plan of a rank",
     {{{200, "The plan", "RankPlan"}, {204, "Nothing new"}}}, kPlanQuery, {}, 0, true,
     Relaying::kAnswered, false, kUnavailable},
    {"getPlans", "GET", "/api/v1/jobs/{id}/plans", Role::kRead, "plans",
     "The plans of several ranks", {{{200, "One plan for all ranks that run the same",
     "NodePlans"}, {204, "Nothing new"}}}, kPlansQuery, {}, 0, true, Relaying::kNo, false,
     kUnavailable},
    {"setStraggler", "POST", "/api/v1/jobs/{id}/stragglers", Role::kTrain, "stragglers",
     "Report a straggler", {{{201, "In effect, or will be", "StragglerSet"}}}, {},
     "NewStraggler", 0, false, Relaying::kForwarded, true},
    {"listStragglers", "GET", "/api/v1/jobs/{id}/stragglers", Role::kRead, "stragglers",
     "List stragglers", {{{200, "Stragglers", "StragglerList"}}}, {}, {}, 0, false,
     Relaying::kForwarded},
    {"clearStragglers", "DELETE", "/api/v1/jobs/{id}/stragglers", Role::kTrain, "stragglers",
     "Clear all stragglers", {{{204, "Cleared"}}}, {}, {}, 0, false, Relaying::kForwarded,
     true},
    {"clearStraggler", "DELETE", "/api/v1/jobs/{id}/stragglers/{straggler_id}", Role::kTrain,
     "stragglers", "Clear a straggler", {{{204, "Cleared"}}}, {}, {}, 0, false,
     Relaying::kForwarded, true},
    {"showDetection", "GET", "/api/v1/jobs/{id}/detection", Role::kRead, "stragglers",
     "Stragglers that the server finds by itself", {{{200, "What is found, and how",
     "Detection"}}}},
    {"setDetection", "PUT", "/api/v1/jobs/{id}/detection", Role::kOperate, "stragglers",
     "Choose how stragglers are found; what is not named stays", {{{200, "What holds now",
     "DetectionSettings"}}}, {}, "NewDetection", 0, false, Relaying::kNo, true},
    {"listProfiles", "GET", "/api/v1/profiles", Role::kRead, "profiles",
     "The library of profiles, the newest first", {{{200, "Without their CSV", "ProfileList"}}},
     {}, {}, 0, false, Relaying::kNo, false, kUnavailable},
    {"showProfile", "GET", "/api/v1/profiles/{id}", Role::kRead, "profiles",
     "One profile with its CSV", {{{200, "The profile", "Profile"}}}, {}, {}, 0, false,
     Relaying::kNo, false, kUnavailable},
    {"deleteProfile", "DELETE", "/api/v1/profiles/{id}", Role::kOperate, "profiles",
     "Forget a profile", {{{204, "Forgotten"}}}},
    {"zeusRegisterJob", "POST", "/register_job", Role::kTrain, "zeus", "Register a job", {{{200,
     "Its id", "ZeusJobId"}}}, {}, "ZeusJob", 0, false, Relaying::kNo, false,
     kNotFound | kConflict | kUnavailable},
    {"zeusRegisterRank", "POST", "/register_rank/{id}", Role::kTrain, "zeus", "Register a rank",
     {{{200, "Nothing", "Nothing"}}}, {}, "ZeusRank"},
    {"zeusSchedule", "GET", "/schedule/{id}", Role::kTrain, "zeus", "The clocks of a rank", {{{200,
     "Clocks in the order of its instructions", "ZeusSchedule"}}}, kRankQuery, {}, 0, true,
     Relaying::kNo, false, kConflict | kUnavailable},
    {"zeusResult", "POST", "/result/{id}", Role::kTrain, "zeus", "Report iterations", {{{200,
     "Nothing", "Nothing"}}}, {}, "ZeusResult"},
    {"page", "GET", "/", Role::kNone, "server", "The page for people", {{{200, "HTML", {},
     "text/html"}, {304, "The browser has it already"}}}},
    {"pageFile", "GET", "/page/{file}", Role::kNone, "server",
     "Script, style and icon of the page", {{{200, "As its Content-Type says", {}, "*/*"}, {304,
     "The browser has it already"}}}, {}, {}, 0, false, Relaying::kNo, false, kNotFound},
    {"docs", "GET", "/docs", Role::kNone, "server", "The documentation, if there is a site of it",
     {{{302, "Its first page is /docs/"}}}, {}, {}, 0, false, Relaying::kNo, false, kNotFound},
    {"docsFile", "GET", "/docs/{file}", Role::kNone, "server",
     "A file of the documentation, also in folders", {{{200, "As its Content-Type says", {}, "*/*"},
     {304, "The browser has it already"}}}, {}, {}, 0, false, Relaying::kNo, false, kNotFound},
    {"showToken", "GET", "/api/v1/token", Role::kRead, "server",
     "What the caller's token allows", {{{200, "Its role and name", "TokenRole"}}}},
    {"openapi", "GET", "/openapi.json", Role::kNone, "server", "This document", {{{200,
     "OpenAPI 3.1", "Document"}}}},
    {"metrics", "GET", "/metrics", Role::kRead, "server", "Metrics for Prometheus", {{{200,
     "Text format 0.0.4", {}, "text/plain"}}}},
    {"healthz", "GET", "/healthz", Role::kNone, "server", "Whether the process answers", {{{200,
     "It does", "Health"}}}, {}, {}, 0, false, Relaying::kAnswered},
    {"readyz", "GET", "/readyz", Role::kNone, "server", "Whether facts can be taken", {{{200,
     "They can", "Health"}}}, {}, {}, 0, false, Relaying::kAnswered, false, kNotReady},
};
// clang-format on

}  // namespace rows

inline constexpr std::span<const RouteRow> kRoutes = rows::kAll;

// The row of this id. A wrong id does not compile.
consteval const RouteRow& RowOf(std::string_view id) {
  for (const RouteRow& row : rows::kAll) {
    if (row.id == id) return row;
  }
  throw "there is no such route";
}

// The answer to a query that does not fit the row; none if it fits.
std::optional<http::Response> CheckQuery(const RouteRow& row, const http::Request& request);

}  // namespace perseus::wire

#endif  // PERSEUS_WIRE_ROUTES_H_
