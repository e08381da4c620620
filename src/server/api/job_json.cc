// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/api/job_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "common/belief.h"
#include "common/json_text.h"
#include "formats/plan_json.h"
#include "server/api/api_schemas.h"
#include "server/api/conditions_json.h"
#include "server/api/profile_json.h"
#include "server/api/watch_json.h"
#include "server/domain/profile_library.h"
#include "server/domain/profiling_summary.h"
#include "server/store/store.h"

namespace perseus::server {
namespace {

using Json = nlohmann::ordered_json;

constexpr Field kWholeJobMembers[] = {
    Number("iteration_time_s").Sometimes().Says("Until the slowest pipeline has ended"),
    Number("energy_j")
        .Sometimes()
        .Says("Of all pipelines, with waiting for the slowest at blocking power"),
    Number("saving_percent").Sometimes().Says("Against maximum clocks with the same stragglers"),
    Boolean("straggling").Sometimes()};
constexpr Field kSavingIntervalMembers[] = {Number("least_percent").Says("As in plan.json."),
                                            Number("most_percent")};
constexpr Field kUnlockedMembers[] = {
    Number("iteration_time_s").Says("With no clock set, as the job runs without Perseus."),
    Number("energy_j").Says("Of one pipeline, then."),
    Number("slowdown_percent").Says("Of the plan. Below 0: the plan is faster."),
    Number("saving_percent").Says("Of the plan.")};
constexpr Field kPipelinePlanMembers[] = {Number("requested_time_s"), Number("iteration_time_s"),
                                          Number("energy_j"), Number("saving_percent")};
constexpr Field kPlanShownMembers[] = {
    Integer("version"),
    Text("reason"),
    Number("at").Says("Since when, seconds since 1970."),
    Text("sentence").Sometimes(),
    Number("requested_time_s").Sometimes(),
    Number("iteration_time_s").Sometimes(),
    Number("energy_j").Sometimes(),
    Number("saving_percent").Sometimes(),
    Object("saving_interval", "SavingInterval").Sometimes(),
    Object("unlocked", "AgainstUnlocked").Sometimes(),
    Object("whole_job", "WholeJob").Sometimes(),
    Object("pipelines")
        .Sometimes()
        .Says("By number: a PipelinePlan of each that runs another one.")};
constexpr Field kFrontierFiguresMembers[] = {Number("fastest_s"), Number("economic_s"),
                                             Number("tstar_s"), Number("baseline_s"),
                                             Integer("plans")};
constexpr Field kIterationSummaryMembers[] = {Integer("plan_version"), Integer("reports"),
                                              Number("mean_s"),        Number("least_s"),
                                              Number("most_s"),        Number("energy_j")};
constexpr Field kTroubledMembers[] = {Integer("rank"), Text("error")};
constexpr Field kClientsShownMembers[] = {
    Object("counts").Says("Sums over ranks."),
    Object("states").Sometimes().Says("How many ranks report each state."),
    Integer("complaining").Sometimes().Says("How many ranks report an error."),
    Object("troubled", "TroubledClient").List().Says("The first 100 of them.")};
constexpr Field kJobSummaryMembers[] = {
    Text("id"),
    Integer("revision").Says("Grows with every change; see If-Match."),
    Text("name").Sometimes(),
    Object("labels").Sometimes().Says("Name to value."),
    Text("client_key").Sometimes().Says("As given at creation; begins with - where none was"),
    Choice("state", store::kJobStateNames),
    Text("reason"),
    Choice("origin", "api zeus").Sometimes(),
    Number("created_at").Sometimes(),
    Integer("world_size"),
    Integer("pipeline_parallel").Sometimes(),
    Integer("data_parallel").Sometimes(),
    Integer("tensor_parallel").Sometimes(),
    Integer("ranks_registered").Sometimes(),
    Integer("ranks_measured").Sometimes(),
    Text("at").Sometimes(),
    Number("progress").Sometimes(),
    Boolean("refined").Sometimes(),
    Boolean("believable")
        .Sometimes()
        .Says("false: the job has an implausible note, and its planned figures are no result."),
    Object("plan", "PlanShown")
        .Optional()
        .Says("Its figures are those of the pipelines that do not straggle, an iteration of one "
              "pipeline each; 'pipelines' has those that run another plan, 'whole_job' what all do "
              "together"),
    Integer("stragglers").Sometimes().Says("Reports: several may be of one pipeline."),
    Integer("slow_pipelines")
        .Sometimes()
        .Says("How many pipelines the stragglers slow, now or later."),
    Integer("complaining").Sometimes().Says("How many ranks report an error."),
    Object("measured", "MeasuredNow")
        .Optional()
        .Says("What the last iterations took; null: this server heard of none."),
    Object("realised", "LastRealised")
        .Optional()
        .Says("The saving of the newest plan that was compared with no clock set, in percent; "
              "null: none was compared."),
    Integer("following")
        .Sometimes()
        .Says("How many ranks report to this server that they follow the plan. 0: all report here, "
              "and none follows, so the plan saves nothing. Missing: it is not known."),
    Boolean("ended").Sometimes().Says(
        "true: all its registered ranks have told this server that their trainers end. A run with "
        "the same client key goes on."),
    Text("profile_source")
        .Optional()
        .Says("given, measured, or \"reused from JOB (PROFILE)\"; null: there is no profile yet.")};
constexpr Field kNoteMembers[] = {
    Choice("severity", "odd implausible impossible"),
    Text("text").Says("One sentence, without a full stop."),
    Text("source").Sometimes().Says("profile_csv, where the line is one of it."),
    Integer("line").Sometimes(), Integer("column").Sometimes()};
constexpr Field kJobMembers[] = {
    Object("notes", "Note")
        .List()
        .Says("What is odd or implausible in the profile and the settings: wrong units, most "
              "likely."),
    Object("settings").Optional(),
    Integer("missing_ranks").List().Sometimes().Says("The first 8 that have not registered."),
    Object("clients", "ClientsShown").Sometimes(),
    Object("frontier", "FrontierFigures").Optional(),
    Object("stragglers", "Straggler").List(),
    Object("iterations", "IterationSummary").List().Sometimes(),
    Object("detection", "Detection").Sometimes(),
    Object("savings", "Savings").Sometimes(),
    Text("model").Sometimes().Says("The label that the profile library goes by."),
    Object("profiling", "Profiling").Sometimes(),
    Object("conditions", "Conditions").Sometimes(),
    Object("timeline", "TimelineHead")
        .Optional()
        .Says("The last iteration that its ranks timed, which GET .../timeline has; null: none "
              "since this server began."),
    Object("drift", "Drift")
        .List()
        .Sometimes()
        .Says("Kinds of computations that take another time than the profile says, as far as they "
              "report to this server.")};
constexpr Field kTimelineHeadMembers[] = {
    Integer("iteration"), Integer("plan_version"),
    Number("at").Says("When its last rank reported, seconds since 1970.")};
constexpr Field kMeasuredNowMembers[] = {
    Integer("iterations").Says("The figures are of these last ones."),
    Number("iteration_time_s").Says("Their median; of each iteration the slowest rank."),
    Number("power_w").Nullable().Says(
        "Of all GPUs together; null: not all ranks report their energy."),
    Number("at").Says("When the last one was over, seconds since 1970.")};
constexpr Field kJobListMembers[] = {
    Object("jobs", "JobSummary").List(),
    Text("next").Nullable().Says("`after` of the next page; null: this was the last.")};
constexpr AnyMessage kJobSchemas[] = {
    {"WholeJob", kWholeJobMembers},
    {"SavingInterval", kSavingIntervalMembers},
    {"AgainstUnlocked", kUnlockedMembers,
     "The plan against iterations with no clock set, where the profile says their cost; without "
     "stragglers."},
    {"PipelinePlan", kPipelinePlanMembers},
    {"PlanShown", kPlanShownMembers,
     "Its figures are those of the pipelines that do not straggle, an iteration of one pipeline "
     "each; 'pipelines' has those that run another plan, 'whole_job' what all do together."},
    {"FrontierFigures", kFrontierFiguresMembers},
    {"IterationSummary", kIterationSummaryMembers},
    {"TroubledClient", kTroubledMembers},
    {"Note", kNoteMembers},
    {"ClientsShown", kClientsShownMembers},
    {"MeasuredNow", kMeasuredNowMembers},
    {"TimelineHead", kTimelineHeadMembers},
    {"JobSummary", kJobSummaryMembers},
    {.name = "Job", .fields = kJobMembers, .base = "JobSummary"},
    {"JobList", kJobListMembers}};

Json CurvePlanJson(const CurvePlan& plan) {
  return {{"requested_time_s", plan.requested_time_seconds},
          {"iteration_time_s", plan.iteration_time_seconds},
          {"energy_j", plan.energy_joules},
          {"saving_percent", plan.saving_percent}};
}

Json MaximumClocksJson(const Curve& curve) {
  return {{"requested_time_s", curve.planned_baseline_seconds()},
          {"iteration_time_s", curve.baseline_time_seconds()},
          {"energy_j", curve.baseline_energy_joules()},
          {"saving_percent", 0.0}};
}

// What all pipelines do together, with the stragglers that there are: whoever has ended his
// iteration waits for the slowest, at blocking power; so does a slow GPU in the time that it takes
// longer.
Json WholeJobJson(const PublishedPlan& published, int pipelines) {
  const Curve& curve = *published.curve;
  double seconds = published.straggler_seconds;
  for (int i = 0; i < pipelines; ++i) {
    const CurvePlan* const plan = published.PlanOf(i);
    seconds = std::max(
        seconds, plan == nullptr ? curve.baseline_time_seconds() : plan->iteration_time_seconds);
  }
  const double baseline_seconds =
      std::max(published.straggler_baseline_seconds, curve.baseline_time_seconds());
  const double watts = curve.frontier().total_blocking_power_watts;
  const double baseline_joules =
      curve.baseline_energy_joules() + watts * (baseline_seconds - curve.baseline_time_seconds());
  double joules = 0;
  for (int i = 0; i < pipelines; ++i) {
    const CurvePlan* const plan = published.PlanOf(i);
    joules +=
        plan == nullptr
            ? curve.baseline_energy_joules() + watts * (seconds - curve.baseline_time_seconds())
            : plan->energy_joules + watts * (seconds - plan->iteration_time_seconds);
  }
  return {{"iteration_time_s", seconds},
          {"energy_j", joules},
          {"saving_percent", 100 * (1 - joules / (pipelines * baseline_joules))},
          {"straggling", published.straggler_seconds > 0}};
}

Json PublishedJson(const PublishedPlan& published, int pipelines) {
  Json json = {{"version", published.version.version},
               {"reason", published.version.reason},
               {"at", published.version.at_seconds}};
  if (!published.sentence.empty()) json["sentence"] = published.sentence;
  if (published.curve == nullptr) return json;
  if (const CurvePlan* const plan = published.curve->Find(published.version.plan)) {
    json.update(CurvePlanJson(*plan));
    if (plan->saving_interval) json["saving_interval"] = SavingIntervalJson(*plan->saving_interval);
    if (plan->unlocked) json["unlocked"] = UnlockedJson(*plan->unlocked);
    json["whole_job"] = WholeJobJson(published, pipelines);
  }
  Json exceptions = Json::object();
  for (const auto& [pipeline, id] : published.version.exceptions) {
    const CurvePlan* const plan = published.curve->Find(id);
    exceptions[std::to_string(pipeline)] =
        plan == nullptr ? MaximumClocksJson(*published.curve) : CurvePlanJson(*plan);
  }
  json["pipelines"] = std::move(exceptions);
  return json;
}

Json FiguresJson(const Curve& curve) {
  return {{"fastest_s", curve.frontier().fastest_seconds},
          {"economic_s", curve.frontier().economic_seconds},
          {"tstar_s", curve.frontier().tstar_seconds},
          {"baseline_s", curve.planned_baseline_seconds()},
          {"plans", curve.plans().size()}};
}

Json MeasuredJson(const std::optional<RecentFigures>& recent) {
  if (!recent) return nullptr;
  return {{"iterations", recent->iterations},
          {"iteration_time_s", recent->iteration_seconds},
          {"power_w", recent->watts ? Json(*recent->watts) : Json(nullptr)},
          {"at", recent->at_seconds}};
}

Json IterationsJson(const store::IterationSummary& summary) {
  return {{"plan_version", summary.plan_version},
          {"reports", summary.reports},
          {"mean_s", summary.total_seconds / static_cast<double>(summary.reports)},
          {"least_s", summary.least_seconds},
          {"most_s", summary.most_seconds},
          {"energy_j", summary.total_joules}};
}

}  // namespace

Schemas JobSchemas() { return kJobSchemas; }

Json JobSummaryJson(const JobView& view) {
  const store::JobRecord& record = view.record;
  Json json = {
      {"id", record.id},
      {"revision", view.revision},
      {"name", record.name},
      {"labels", record.labels},
      {"client_key", record.client_key},
      {"state", store::JobStateName(record.state)},
      {"reason", record.reason},
      {"origin", record.origin == store::JobOrigin::kZeus ? "zeus" : "api"},
      {"created_at", record.created_at_seconds},
      {"world_size",
       Shape{record.pipeline_parallel, record.data_parallel, record.tensor_parallel}.world_size()},
      {"pipeline_parallel", record.pipeline_parallel},
      {"data_parallel", record.data_parallel},
      {"tensor_parallel", record.tensor_parallel},
      {"ranks_registered", view.ranks_registered},
      {"ranks_measured", view.ranks_measured},
      {"at", view.target},
      {"progress", view.progress},
      {"refined", view.refined},
      {"stragglers", view.stragglers.size()},
      {"slow_pipelines", view.slow_pipelines},
      {"complaining", view.complaining_clients},
      {"measured", MeasuredJson(view.watch.recent)},
      {"realised", LastRealisedJson(view.watch)},
      {"believable", AreBelievable(view.notes)}};
  std::int64_t heard = 0;
  for (const auto& [state, ranks] : view.client_states) heard += ranks;
  const auto found = view.client_states.find("following");
  const std::int64_t following = found == view.client_states.end() ? 0 : found->second;
  // Ranks that report to another server may follow there.
  if (following > 0 || (heard > 0 && heard >= view.ranks_registered)) {
    json["following"] = following;
  }
  if (view.has_ended) json["ended"] = true;
  json["profile_source"] = view.profile_source.empty() ? Json(nullptr) : Json(view.profile_source);
  json["plan"] =
      view.plan == nullptr ? Json(nullptr) : PublishedJson(*view.plan, record.data_parallel);
  return json;
}

Json JobJson(const JobView& view) {
  Json json = JobSummaryJson(view);
  json["settings"] = Json::parse(view.record.settings_json, nullptr, false);
  if (json["settings"].is_discarded()) json["settings"] = nullptr;
  json["notes"] = Json::parse(formats::NotesJson(view.notes));
  json["frontier"] = view.plan == nullptr || view.plan->curve == nullptr
                         ? Json(nullptr)
                         : FiguresJson(*view.plan->curve);
  if (!view.missing_ranks.empty()) json["missing_ranks"] = view.missing_ranks;
  json["stragglers"] = Json::array();
  for (const auto& straggler : view.stragglers) {
    json["stragglers"].push_back(Json::parse(wire::Write(kStraggler, straggler)));
  }
  json["iterations"] = Json::array();
  for (const auto& summary : view.iterations) json["iterations"].push_back(IterationsJson(summary));
  json["model"] = ParseLibraryRequest(view.record.library_json).model;
  json["profiling"] = ProfilingJson(view.profiling);
  json["profiling"]["again"] = view.sweeps_again;
  json["conditions"] = ConditionsJson(view);
  json["timeline"] = view.timeline == nullptr ? Json(nullptr)
                                              : Json{{"iteration", view.timeline->iteration},
                                                     {"plan_version", view.timeline->plan_version},
                                                     {"at", view.timeline->heard_at_seconds}};
  json["drift"] = DriftJson(view.drifts);
  json["detection"] = DetectionJson(view.watch);
  json["savings"] = SavingsJson(view);
  json["clients"] = {{"counts", view.client_counts},
                     {"states", view.client_states},
                     {"complaining", view.complaining_clients},
                     {"troubled", Json::array()}};
  for (const ClientReport& client : view.troubled_clients) {
    json["clients"]["troubled"].push_back({{"rank", client.rank}, {"error", client.error}});
  }
  return json;
}

Json SavingIntervalJson(const SavingInterval& interval) {
  return Json::parse("{" + formats::FigureMembers(interval) + "}");
}

Json UnlockedJson(const UnlockedFigures& unlocked) {
  return Json::parse("{" + formats::FigureMembers(unlocked) + "}");
}

Json RankJson(const store::RankRecord& rank) {
  return {{"rank", rank.rank},       {"dp_rank", rank.dp_rank},
          {"pp_rank", rank.pp_rank}, {"tp_rank", rank.tp_rank},
          {"node", rank.node},       {"gpu", {{"uuid", rank.gpu_uuid}, {"name", rank.gpu_name}}}};
}

namespace {

std::string SavingMembers(const CurvePlan& plan) {
  std::string members = fmt::format("\"saving_percent\":{},", plan.saving_percent);
  if (plan.saving_interval) {
    members += fmt::format("\"saving_interval\":{{{}}},",
                           formats::FigureMembers(*plan.saving_interval, ","));
  }
  return members;
}

}  // namespace

RankPlanText RankPlanJson(const std::string& job, const PublishedPlan& plan, int pipeline,
                          int pp_rank, const std::string& for_ranks, PlanTexts* texts) {
  const std::string head = fmt::format(
      "{{\"job\":\"{}\",\"version\":{},{},\"pipeline\":{},\"pp_rank\":{},\"profile_wanted\":{}",
      job, plan.version.version, for_ranks, pipeline, pp_rank, plan.profile_wanted);
  const CurvePlan* const curve_plan = plan.PlanOf(pipeline);
  if (curve_plan == nullptr) {
    const std::string sentence =
        plan.curve == nullptr
            ? plan.sentence
            : "This pipeline is a straggler, which no plan helps; run at maximum clocks.";
    return {fmt::format("{},\"reason\":\"no_plan\",\"sentence\":{},\"computations\":[]}}", head,
                        FormatCompact(sentence)),
            nullptr};
  }
  const ComparisonBlocks& blocks = plan.comparison;
  const std::string comparison =
      !blocks.is_on() ? ""
                      : fmt::format("\"comparison\":{{\"every\":{},\"iterations\":{}}},",
                                    blocks.every, blocks.iterations);
  return {fmt::format("{},\"reason\":\"{}\",\"iteration_time_s\":{},\"requested_time_s\":{},"
                      "\"baseline_iteration_time_s\":{},{}{}\"computations\":",
                      head, plan.version.reason, curve_plan->iteration_time_seconds,
                      curve_plan->requested_time_seconds, plan.curve->baseline_time_seconds(),
                      plan.curve->believable() ? SavingMembers(*curve_plan) : "", comparison),
          texts->Of(plan.curve, *curve_plan, pp_rank)};
}

}  // namespace perseus::server
