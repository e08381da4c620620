// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The last iteration that the ranks of a pipeline timed, computation by computation.

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "perseus/computation.h"
#include "server/api/api_handlers.h"
#include "server/api/messages.h"
#include "server/planning/measured_timeline.h"

namespace perseus::server {
namespace {

// About 1 MiB. A rank alone has less.
constexpr std::int64_t kMostShown = 10'000;

constexpr Field kTimedComputationFields[] = {
    Value("type", [](const TimedComputation& each) { return ComputationTypeName(each.id.type); }),
    Value<&TimedComputation::id, &ComputationId::stage>("stage"),
    Value<&TimedComputation::id, &ComputationId::microbatch>("microbatch"),
    Value<&TimedComputation::clock_mhz>("knob").Says("The clock that the plan asks for, MHz."),
    Value<&TimedComputation::start_seconds>("start_s").Says(
        "Since the first computation of the pipeline began."),
    Value<&TimedComputation::duration_seconds>("duration_s")};
constexpr Message<TimedComputation> kTimedComputation = {"TimedComputation",
                                                         kTimedComputationFields};
struct TimedRank {
  std::int64_t rank = 0;
  const MeasuredRank* measured = nullptr;
};
constexpr Field kTimedRankFields[] = {
    Value<&TimedRank::rank>("rank").Says("In the pipeline."),
    Value("offset_s",
          [](const TimedRank& of) {
            const auto& offset = of.measured->offset;
            return offset ? std::optional(offset->seconds) : std::nullopt;
          })
        .Nullable()
        .Says("How much later its clock began than that of rank 0, already in start_s; "
              "null: not known, so that it may be shifted against the others."),
    Value("offset_error_s",
          [](const TimedRank& of) {
            const auto& offset = of.measured->offset;
            return offset ? std::optional(offset->error_seconds) : std::nullopt;
          })
        .Nullable()
        .Says("offset_s is at most so far off."),
    Object(
        "computations", kTimedComputation,
        [](const TimedRank& of) -> const auto& { return of.measured->computations; })
        .Says("As it ran them.")};
constexpr Message<TimedRank> kTimedRank = {"TimedRank", kTimedRankFields};
struct TimelineShown {
  int pipeline = 0;
  const MeasuredTimeline* whole = nullptr;
  std::vector<TimedRank> ranks = {};
};
constexpr const MeasuredTimeline& WholeOf(const TimelineShown& shown) { return *shown.whole; }
constexpr Field kTimelineShownFields[] = {
    Value<&TimelineShown::pipeline>("pipeline").Says("0: no other one is measured."),
    Value<WholeOf, &MeasuredTimeline::iteration>("iteration"),
    Value<WholeOf, &MeasuredTimeline::plan_version>("plan_version").Says("That it ran with."),
    Value<WholeOf, &MeasuredTimeline::heard_at_seconds>("at").Says(
        "When its last rank reported, seconds since 1970."),
    Value<WholeOf, &MeasuredTimeline::seconds>("iteration_time_s")
        .Says("From the first computation's begin to the last one's end: without what a trainer "
              "does before and after."),
    Value<WholeOf, &MeasuredTimeline::error_seconds>("error_s").Nullable().Says(
        "No rank's times are further off than this against rank 0; null: offset_s of a rank is "
        "not known."),
    Object<&TimelineShown::ranks>("ranks", kTimedRank)};
constexpr Message<TimelineShown> kTimelineShown = {"Timeline", kTimelineShownFields};

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
  TimelineShown shown = {.whole = timeline.get()};
  for (std::int64_t i = rank.value_or(0); i < (rank ? *rank + 1 : ranks); ++i) {
    shown.ranks.push_back({i, &timeline->ranks[static_cast<std::size_t>(i)]});
  }
  return JsonAnswer(200, kTimelineShown, shown);
}

}  // namespace

Messages TimelineMessages() {
  static constexpr const AnyMessage* kAll[] = {&kTimelineShown};
  return kAll;
}

void AddTimelineRoute(RouteMaker* routes) { routes->OnLook(RowOf("showTimeline"), ShowTimeline); }

}  // namespace perseus::server
