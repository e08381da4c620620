// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The last iteration that the ranks of a pipeline timed, computation by computation.

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "perseus/computation.h"
#include "server/api/api_handlers.h"
#include "server/api/api_schemas.h"
#include "server/planning/measured_timeline.h"

namespace perseus::server {
namespace {

using Json = nlohmann::ordered_json;

// About 1 MiB. A rank alone has less.
constexpr std::int64_t kMostShown = 10'000;

constexpr Field kTimedComputationMembers[] = {
    Text("type"),
    Integer("stage"),
    Integer("microbatch"),
    Number("knob").Says("The clock that the plan asks for, MHz."),
    Number("start_s").Says("Since the first computation of the pipeline began."),
    Number("duration_s")};
constexpr Field kTimedRankMembers[] = {
    Integer("rank").Says("In the pipeline."),
    Number("offset_s")
        .Nullable()
        .Says("How much later its clock began than that of rank 0, already in start_s; null: not "
              "known, so that it may be shifted against the others."),
    Number("offset_error_s").Nullable().Says("offset_s is at most so far off."),
    Object("computations", "TimedComputation").List().Says("As it ran them.")};
constexpr Field kTimelineShownMembers[] = {
    Integer("pipeline").Says("0: no other one is measured."),
    Integer("iteration"),
    Integer("plan_version").Says("That it ran with."),
    Number("at").Says("When its last rank reported, seconds since 1970."),
    Number("iteration_time_s")
        .Says("From the first computation's begin to the last one's end: without what a trainer "
              "does before and after."),
    Number("error_s").Nullable().Says(
        "No rank's times are further off than this against rank 0; null: offset_s of a rank "
        "is not known."),
    Object("ranks", "TimedRank").List()};
constexpr AnyMessage kTimelineSchemas[] = {{"TimedComputation", kTimedComputationMembers},
                                           {"TimedRank", kTimedRankMembers},
                                           {"Timeline", kTimelineShownMembers}};

Json OrNothing(const std::optional<double>& number) { return number ? Json(*number) : Json(); }

Json TimedRankJson(int rank, const MeasuredRank& measured) {
  Json list = Json::array();
  for (const TimedComputation& each : measured.computations) {
    list.push_back({{"type", ComputationTypeName(each.id.type)},
                    {"stage", each.id.stage},
                    {"microbatch", each.id.microbatch},
                    {"knob", each.clock_mhz},
                    {"start_s", each.start_seconds},
                    {"duration_s", each.duration_seconds}});
  }
  const bool is_known = measured.offset.has_value();
  return {{"rank", rank},
          {"offset_s", is_known ? Json(measured.offset->seconds) : Json()},
          {"offset_error_s", is_known ? Json(measured.offset->error_seconds) : Json()},
          {"computations", std::move(list)}};
}

http::Response ShowTimeline(ManagedJob& job, const Call& call) {
  const std::shared_ptr<const MeasuredTimeline> timeline = job.Timeline();
  if (timeline == nullptr) {
    return FailureOf(
        job, {FailureCode::kNotFound,
              "this server has no measured iteration: the ranks of pipeline 0 must all report to "
              "it and follow the plan, and then send every 10th iteration; 'perseus job show' "
              "says how many follow"});
  }
  const std::optional<std::int64_t> rank = QueryInteger(call.request, "rank");
  const auto ranks = std::ssize(timeline->ranks);
  if (rank && *rank >= ranks) {
    return FailureOf(job,
                     {FailureCode::kNotFound,
                      fmt::format("the pipeline has {} ranks, counted from 0", ranks), "rank"});
  }
  if (!rank && timeline->size() > kMostShown) {
    return FailureOf(job, {FailureCode::kInvalid,
                           fmt::format("the iteration has {} computations, and an answer at most "
                                       "{}; ask for one rank after the other with 'rank'",
                                       timeline->size(), kMostShown),
                           "rank"});
  }
  Json list = Json::array();
  for (std::int64_t i = rank.value_or(0); i < (rank ? *rank + 1 : ranks); ++i) {
    list.push_back(
        TimedRankJson(static_cast<int>(i), timeline->ranks[static_cast<std::size_t>(i)]));
  }
  return JsonAnswer(200, {{"pipeline", 0},
                          {"iteration", timeline->iteration},
                          {"plan_version", timeline->plan_version},
                          {"at", timeline->heard_at_seconds},
                          {"iteration_time_s", timeline->seconds()},
                          {"error_s", OrNothing(timeline->error_seconds())},
                          {"ranks", std::move(list)}});
}

}  // namespace

Schemas TimelineSchemas() { return kTimelineSchemas; }

void AddTimelineRoute(RouteMaker* routes) { routes->OnLook(RowOf("showTimeline"), ShowTimeline); }

}  // namespace perseus::server
