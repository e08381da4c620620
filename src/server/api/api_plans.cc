// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Plans of ranks, now or when there is a new version.

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "server/api/api_handlers.h"
#include "server/api/messages.h"
#include "wire/rank_plan.h"

namespace perseus::server {
namespace {

using http::Response;
using PlanPointer = std::shared_ptr<const PublishedPlan>;

// Of one request for a node: more GPUs than any node has.
constexpr std::size_t kMostRanksAtOnce = 4096;
// The waiter outlives the parked request by this, which is answered to a quarter
// of a second.
constexpr double kWaiterGraceSeconds = 1;
// The `after` of a client that knows no version.
constexpr std::int64_t kNow = -1;

// The JSON text of a rank's plan in two parts. `own` comes first. `shared` follows; all ranks with
// the same plan share that string. Null: `own` is the whole text.
struct RankPlanText {
  std::string own;
  std::shared_ptr<const std::string> shared;
};

// `to`: the plan with its job, place and ranks. `texts`: of the job.
RankPlanText RankPlanJson(wire::RankPlan to, const PublishedPlan& plan, PlanTexts* texts) {
  to.version = plan.version.version;
  to.profile_wanted = plan.profile_wanted;
  const CurvePlan* const curve_plan = plan.PlanOf(to.pipeline);
  if (curve_plan == nullptr) {
    to.reason = "no_plan";
    to.sentence = plan.curve == nullptr
                      ? plan.sentence
                      : "This pipeline is a straggler, which no plan helps; run at maximum clocks.";
    return {wire::HeadText(to) + wire::RowsText(to), nullptr};
  }
  to.reason = plan.version.reason;
  to.iteration_time_seconds = curve_plan->iteration_time_seconds;
  to.requested_time_seconds = curve_plan->requested_time_seconds;
  to.baseline_time_seconds = plan.curve->baseline_time_seconds();
  if (plan.curve->believable()) {
    to.saving_percent = curve_plan->saving_percent;
    to.saving_interval = curve_plan->saving_interval;
  }
  if (plan.comparison.is_on()) to.comparison = plan.comparison;
  return {wire::HeadText(to), texts->Of(plan.curve, *curve_plan, to.pp_rank)};
}

Response PlanAnswer(RankPlanText text) {
  return http::JsonResponse(200, std::move(text.own), std::move(text.shared));
}

// Sends the text that `render` makes of the first version after `after`.
void SendWhenNew(const JobPointer& job, const CallPointer& call,
                 std::function<RankPlanText(const PublishedPlan&)> render) {
  const auto after = QueryInteger(call->request, "after");
  const double wait = QueryWait(call->request);
  // after=-1: whatever there is, at once; also that there is no plan yet.
  if (after == kNow && job->board().Current() == nullptr) {
    PublishedPlan none;
    none.sentence = "There is no plan yet; run at maximum clocks.";
    none.profile_wanted = job->WantsProfile();
    call->responder.Send(PlanAnswer(render(none)));
    return;
  }
  AnswerWhenNew(job, after.value_or(kNow), wait + kWaiterGraceSeconds, call->responder,
                [id = job->id(), render = std::move(render)](const PlanPointer& plan) {
                  return plan->gone ? FailureResponse(NoSuchJob(id)) : PlanAnswer(render(*plan));
                });
  // After that, lest 204 overtakes the answer to a client that does not wait.
  call->responder.AnswerAfter(wait, NoContent());
}

void GetPlan(const JobPointer& job, const CallPointer& call) {
  const std::int64_t number = *QueryInteger(call->request, "rank");
  const auto place = PlaceOf(*job, *call, number);
  if (!place) return;
  SendWhenNew(
      job, call,
      [id = job->id(), place = *place, texts = job->board().texts()](const PublishedPlan& plan) {
        return RankPlanJson(
            {.job = id, .rank = place.rank, .pipeline = place.dp_rank, .pp_rank = place.pp_rank},
            plan, texts.get());
      });
}

// "0-7,12" in order; nullopt where it is no such list.
std::optional<std::vector<int>> ParseRanks(std::string_view text) {
  std::vector<int> ranks;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    int first = 0;
    const char* const end = part.data() + part.size();
    auto read = std::from_chars(part.data(), end, first);
    int last = first;
    if (read.ec == std::errc() && read.ptr != end && *read.ptr == '-') {
      read = std::from_chars(read.ptr + 1, end, last);
    }
    if (read.ec != std::errc() || read.ptr != end || first < 0 || last < first ||
        static_cast<std::size_t>(last - first) >= kMostRanksAtOnce - ranks.size()) {
      return std::nullopt;
    }
    for (int rank = first; rank <= last; ++rank) ranks.push_back(rank);
  }
  if (ranks.empty()) return std::nullopt;
  return ranks;
}

// By pipeline and pipeline rank: one plan for all ranks that run the same.
using Groups = std::map<std::pair<int, int>, std::vector<int>>;

RankPlanText NodePlansJson(const std::string& id, const Groups& groups, const PublishedPlan& plan,
                           PlanTexts* texts) {
  std::string text =
      fmt::format("{{\"job\":\"{}\",\"version\":{},\"plans\":[", id, plan.version.version);
  bool first = true;
  for (const auto& [position, members] : groups) {
    if (!std::exchange(first, false)) text += ',';
    const RankPlanText one = RankPlanJson(
        {.job = id, .ranks = members, .pipeline = position.first, .pp_rank = position.second}, plan,
        texts);
    text += one.own;
    if (one.shared) text += *one.shared;
  }
  return RankPlanText{text + "]}", nullptr};
}

void GetPlans(const JobPointer& job, const CallPointer& call) {
  const auto ranks = ParseRanks(call->request.query.at("ranks"));
  if (!ranks) {
    return Send(*call,
                FailureResponse({FailureCode::kInvalid,
                                 fmt::format("'ranks' must be a list such as 0-7,12 of at most {}",
                                             kMostRanksAtOnce),
                                 "ranks"}));
  }
  const auto groups = std::make_shared<Groups>();
  for (const int rank : *ranks) {
    const auto place = PlaceOf(*job, *call, rank);
    if (!place) return;
    (*groups)[{place->dp_rank, place->pp_rank}].push_back(rank);
  }
  SendWhenNew(job, call,
              [id = job->id(), groups, texts = job->board().texts()](const PublishedPlan& plan) {
                return NodePlansJson(id, *groups, plan, texts.get());
              });
}

}  // namespace

Messages PlanMessages() {
  static constexpr const AnyMessage* kAll[] = {&wire::kRankPlan, &wire::kNodePlans};
  return kAll;
}

void AddPlanRoutes(RouteMaker* routes) {
  routes->OnJob(RowOf("getPlan"), GetPlan);
  routes->OnJob(RowOf("getPlans"), GetPlans);
}

}  // namespace perseus::server
