// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The wire of Zeus' pipeline frequency optimizer, so that an unmodified client
// trains against this server. Read from zeus 0.16.0,
// zeus/optimizer/pipeline_frequency/{optimizer,common}.py. Where that server hangs
// (a rank asks or registers twice, or never comes), this one answers: its client
// waits without a limit.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/json_text.h"
#include "perseus/schedule.h"
#include "server/api/api_handlers.h"
#include "server/api/messages.h"
#include "server/planning/given_plan.h"

namespace perseus::server {
namespace {

using http::Response;
using Json = nlohmann::ordered_json;

// How long a rank is let wait for the plan of a job that is being computed.
constexpr double kPlanSeconds = 60;
constexpr int kMostDegree = 131'072;
// job_metadata="perseus:KEY": the job that was created with this client key.
constexpr std::string_view kJobOfKey = "perseus:";

struct ZeusJob {
  std::string given_id = {};  // Checked, and not used: the server gives its own.
  Shape shape = {};
  std::int64_t world_size = 0;
  std::string metadata = {};
};
constexpr NumberRange kDegrees = {.least = 1, .most = kMostDegree};
constexpr Field kZeusJobFields[] = {
    Value<&ZeusJob::given_id>("job_id").Optional(),
    Value<&ZeusJob::shape, &Shape::pipeline_parallel>("pp_degree").In(kDegrees),
    Value<&ZeusJob::shape, &Shape::data_parallel>("dp_degree").In(kDegrees),
    Value<&ZeusJob::shape, &Shape::tensor_parallel>("tp_degree").In(kDegrees),
    Value<&ZeusJob::world_size>("world_size").In(kDegrees),
    Value<&ZeusJob::metadata>("job_metadata").Most(256).Optional()};
constexpr Message<ZeusJob> kZeusJob = {"ZeusJob", kZeusJobFields};
constexpr NumberRange kPlaces = {.least = -1'000'000, .most = 1'000'000};
using store::RankRecord;
constexpr Field kZeusRankFields[] = {Value<&RankRecord::rank>("rank").In(kPlaces),
                                     Value<&RankRecord::dp_rank>("dp_rank").In(kPlaces),
                                     Value<&RankRecord::pp_rank>("pp_rank").In(kPlaces),
                                     Value<&RankRecord::tp_rank>("tp_rank").In(kPlaces),
                                     Value<&RankRecord::clocks_mhz>("available_frequencies")
                                         .In({.least = 0, .most = kMaxCount})
                                         .List(4096, "clocks")};
constexpr Message<RankRecord> kZeusRank = {"ZeusRank", kZeusRankFields};
struct ZeusResult {
  int rank = 0;
  std::vector<double> times = {};
  std::vector<double> joules = {};
};
constexpr Field kZeusResultFields[] = {
    Value<&ZeusResult::rank>("rank").In({.least = 0, .most = kMaxCount}),
    Value<&ZeusResult::times>("iter_time"),
    Value<&ZeusResult::joules>("iter_energy").In(kNotNegative),
    Object("time_breakdown").Sometimes(), Object("energy_breakdown").Sometimes()};
constexpr Message<ZeusResult> kZeusResult = {"ZeusResult", kZeusResultFields};
struct ZeusClocks {
  int rank = 0;
  std::vector<RawJson> steps = {};
};
constexpr Field kZeusScheduleFields[] = {Value<&ZeusClocks::rank>("rank"),
                                         Value<&ZeusClocks::steps>("frequencies")
                                             .As(wire::Kind::kArray)
                                             .Says("The name of an instruction and MHz.")};
constexpr Message<ZeusClocks> kZeusSchedule = {"ZeusSchedule", kZeusScheduleFields};

Outcome<ZeusJob> ReadZeusJob(const std::string& body) {
  Outcome<ZeusJob> job = ReadBody(kZeusJob, body);
  if (!job) return job;
  if (job->shape.world_size() != job->world_size) {
    return Fail(FailureCode::kInvalid,
                fmt::format("pp_degree {} x dp_degree {} x tp_degree {} is {}, not world_size {}",
                            job->shape.pipeline_parallel, job->shape.data_parallel,
                            job->shape.tensor_parallel, job->shape.world_size(), job->world_size),
                "world_size");
  }
  return job;
}

bool SameShape(const Shape& a, const Shape& b) {
  return a.pipeline_parallel == b.pipeline_parallel && a.data_parallel == b.data_parallel &&
         a.tensor_parallel == b.tensor_parallel;
}

// The job that was created with the client key, if it has the shape.
Response KnownZeusJob(const Call& call, const Shape& shape, const Outcome<JobPointer>& known) {
  if (known && !Sees(call.request.binding, **known)) {
    return FailureResponse({FailureCode::kNotFound,
                            "there is no job with this client key; create it first, as with "
                            "'perseus job create FILE --client-key KEY'",
                            "job_metadata"});
  }
  if (!known) {
    Failure failure = known.error();
    if (failure.code == FailureCode::kNotFound) failure.field = "job_metadata";
    return FailureResponse(failure);
  }
  if (!SameShape((*known)->shape(), shape)) {
    return FailureResponse({FailureCode::kConflict,
                            fmt::format("job {} has another shape than this one", (*known)->id()),
                            "job_metadata"});
  }
  return http::JsonResponse(200, FormatCompact((*known)->id()));
}

void RegisterZeusJob(const CallPointer& call) {
  const Outcome<ZeusJob> job = ReadZeusJob(call->request.body);
  if (!job) return Send(*call, FailureResponse(job.error()));
  if (job->metadata.starts_with(kJobOfKey)) {
    return call->service.GetByKey(job->metadata.substr(kJobOfKey.size()),
                                  [call, shape = job->shape](const auto& known) {
                                    call->responder.Send(KnownZeusJob(*call, shape, known));
                                  });
  }
  // A token that is bound to client keys may not: these jobs have none.
  if (auto refusal = CheckMayCreate(*call, "")) return Send(*call, *std::move(refusal));
  JobSpec spec;
  spec.name = job->metadata;
  spec.shape = job->shape;
  spec.settings_json = Json{{"job_metadata", job->metadata}}.dump(
      -1, ' ', false, nlohmann::json::error_handler_t::replace);
  call->service.Create(spec, store::JobOrigin::kZeus, call->caller, [call](const auto& created) {
    call->responder.Send(created ? http::JsonResponse(200, FormatCompact(created->job->id()))
                                 : FailureResponse(created.error()));
  });
}

void RegisterZeusRank(const JobPointer& job, const CallPointer& call) {
  Outcome<RankRecord> rank = ReadBody(kZeusRank, call->request.body);
  if (!rank) return Send(*call, FailureResponse(rank.error()));
  Change(job, call, RegisterRank{*std::move(rank)},
         [](const Answer&) { return http::JsonResponse(200, "null"); });
}

Response ScheduleResponse(int rank, const std::vector<ZeusStep>& steps) {
  ZeusClocks clocks = {.rank = rank};
  for (const ZeusStep& step : steps) {
    clocks.steps.push_back({fmt::format("[\"{}\",{}]", step.name, step.clock_mhz)});
  }
  return JsonAnswer(200, kZeusSchedule, clocks);
}

// The number behind "name=" in a job's metadata.
std::optional<int> MetadataNumber(const std::string& metadata, const std::string& name) {
  const std::size_t at = metadata.find(name + "=");
  if (at == std::string::npos) return std::nullopt;
  int value = 0;
  for (std::size_t i = at + name.size() + 1; i < metadata.size(); ++i) {
    if (metadata[i] < '0' || metadata[i] > '9') break;
    value = value * 10 + (metadata[i] - '0');
    if (value > kMostDegree) return std::nullopt;
  }
  return value > 0 ? std::optional<int>(value) : std::nullopt;
}

// The schedule of a job: over Zeus' wire from its metadata, else from its settings.
Result<Schedule> ScheduleOf(const ManagedJob& job) {
  if (job.origin() != store::JobOrigin::kZeus) return ScheduleOfSettings(job.settings_json());
  const Json settings = Json::parse(job.settings_json(), nullptr, false);
  const std::string metadata =
      settings.is_object() ? settings.value("job_metadata", std::string()) : std::string();
  ScheduleSpec spec;
  spec.name = "1f1b";
  spec.num_stages = job.shape().pipeline_parallel;
  spec.num_microbatches = MetadataNumber(metadata, "microbatches").value_or(0);
  return BuildSchedule(spec);
}

Response NoPlanOfThatJob() {
  return FailureResponse(
      {FailureCode::kConflict,
       "there is no plan for this job: start the server with --zeus-plan FILE, of as many ranks "
       "as the job has in a pipeline, or create the job with its profile and register with "
       "job_metadata=\"perseus:CLIENT_KEY\"; to run at maximum clocks meanwhile, say "
       "\"microbatches=N\" in job_metadata"});
}

Response PartsResponse() {
  return FailureResponse({FailureCode::kConflict,
                          "Zeus' wire knows forward and backward alone, and this job's schedule "
                          "has more; use Perseus' client"});
}

// In Zeus' words; nullopt: Zeus has none for the type.
std::optional<std::string> StepName(ComputationType type) {
  if (type != ComputationType::kForward && type != ComputationType::kBackward) return std::nullopt;
  return std::string(ComputationTypeName(type));
}

// Maximum clocks in the order of the schedule, where the job said how many
// microbatches it has. Zeus' client stops training when it is told any other
// number of steps, and when it is refused.
Response MaximumClocks(const ManagedJob& job, const store::RankRecord& rank) {
  const Result<Schedule> schedule = ScheduleOf(job);
  if (!schedule || rank.clocks_mhz.empty() ||
      rank.pp_rank >= static_cast<int>(schedule->ranks.size())) {
    return NoPlanOfThatJob();
  }
  const int clock = *std::max_element(rank.clocks_mhz.begin(), rank.clocks_mhz.end());
  std::vector<ZeusStep> steps;
  for (const ScheduleStep& step : schedule->ranks[static_cast<std::size_t>(rank.pp_rank)]) {
    const std::optional<std::string> name = StepName(step.id.type);
    if (step.fused || !name) return PartsResponse();
    steps.push_back({*name, clock});
  }
  return ScheduleResponse(rank.rank, steps);
}

// The clocks of the rank's computations in order, of a plan of ours or, where its
// pipeline has none, the job's highest.
Response PublishedSchedule(const PublishedPlan& plan, const store::RankRecord& rank) {
  const CurvePlan* const found = plan.PlanOf(rank.dp_rank);
  const CostedPipeline& pipeline = plan.curve->job().pipeline;
  std::vector<ZeusStep> steps;
  for (const int i : pipeline.dag.rank_order[static_cast<std::size_t>(rank.pp_rank)]) {
    const Computation& computation = pipeline.dag.computations[static_cast<std::size_t>(i)];
    const std::optional<std::string> name = StepName(computation.id.type);
    if (computation.fused || !name) return PartsResponse();
    const int knob = found == nullptr ? pipeline.TableOf(i).baseline.knob
                                      : found->knobs[static_cast<std::size_t>(i)];
    steps.push_back(
        {*name, static_cast<int>(pipeline.knobs[static_cast<std::size_t>(knob)].number)});
  }
  return ScheduleResponse(rank.rank, steps);
}

void SendSchedule(const JobPointer& job, const CallPointer& call, const store::RankRecord& rank) {
  const http::Responder& responder = call->responder;
  if (job->origin() == store::JobOrigin::kZeus) {
    const auto& given = call->service.given_plan();
    return Send(*call, given && given->Fits(job->shape())
                           ? ScheduleResponse(rank.rank,
                                              given->StepsOf(job->shape(), rank.rank, rank.pp_rank))
                           : MaximumClocks(*job, rank));
  }
  const Response without_plan = MaximumClocks(*job, rank);
  responder.AnswerAfter(kPlanSeconds, without_plan);
  AnswerWhenNew(job, -1, kPlanSeconds + 1, responder,
                [without_plan, rank](const std::shared_ptr<const PublishedPlan>& plan) {
                  return plan->curve == nullptr ? without_plan : PublishedSchedule(*plan, rank);
                });
}

void GetSchedule(const JobPointer& job, const CallPointer& call) {
  const std::int64_t number = *QueryInteger(call->request, "rank");
  if (number < 0 || number >= job->shape().world_size()) {
    return Send(*call,
                FailureResponse({FailureCode::kInvalid,
                                 fmt::format("rank is {}, but the job has {} ranks, counted from 0",
                                             number, job->shape().world_size()),
                                 "rank"}));
  }
  const auto place = PlaceOf(*job, *call, number);
  if (!place) return;
  if (const auto rank = job->KnownRank(place->rank)) SendSchedule(job, call, *rank);
}

void TakeResult(const JobPointer& job, const CallPointer& call) {
  const Outcome<ZeusResult> result = ReadBody(kZeusResult, call->request.body);
  if (!result) return Send(*call, FailureResponse(result.error()));
  std::vector<IterationReport> reports;
  for (std::size_t i = 0; i < result->times.size(); ++i) {
    IterationReport& report = reports.emplace_back();
    report.rank = result->rank;
    report.time_seconds = result->times[i];
    if (i < result->joules.size()) report.energy_joules = result->joules[i];
  }
  if (const auto plan = job->board().Current()) {
    for (IterationReport& report : reports) report.plan_version = plan->version.version;
  }
  job->Report(reports, {}, [call](const Outcome<void>& reported) {
    call->responder.Send(reported ? http::JsonResponse(200, "null")
                                  : FailureResponse(reported.error()));
  });
}

}  // namespace

Messages ZeusMessages() {
  static constexpr const AnyMessage* kAll[] = {&kZeusJob, &kZeusRank, &kZeusResult, &kZeusSchedule};
  return kAll;
}

void AddZeusRoutes(RouteMaker* routes) {
  routes->On(RowOf("zeusRegisterJob"), RegisterZeusJob);
  routes->OnJob(RowOf("zeusRegisterRank"), RegisterZeusRank);
  routes->OnJob(RowOf("zeusSchedule"), GetSchedule);
  routes->OnJob(RowOf("zeusResult"), TakeResult);
}

}  // namespace perseus::server
