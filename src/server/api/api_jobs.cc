// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// One job: create, show, point, export, finish, delete.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/json_text.h"
#include "perseus/plan_file.h"
#include "perseus/profile.h"
#include "profile/sha256.h"
#include "server/api/api_handlers.h"
#include "server/api/api_schemas.h"
#include "server/api/api_text.h"
#include "server/api/job_json.h"
#include "server/api/label_texts.h"
#include "server/planning/job_spec.h"

namespace perseus::server {
namespace {

using http::Response;

// The profile is one text. The settings are copied to an object whose keys are looked
// for one by one.
constexpr int kMostJobValues = 20'000;

constexpr Field kNewJobMembers[] = {
    Text("client_key").Most(256).Sometimes(), Text("name").Most(256).Sometimes(),
    Object("labels").Optional().Says("Name to value, as in {\"team\": \"vision\"}: for lists and "
                                     "accounts. See setLabels."),
    Object("job", "JobSettings"),
    Text("profile_csv").Most(rows::kMostJobBytes).Sometimes().Says("Missing: the ranks measure.")};
constexpr AnyMessage kNewJobSchema = {
    .name = "NewJob", .fields = kNewJobMembers, .is_closed = true};
constexpr Field kPointMembers[] = {Text("at").Says(
    "1.05x (of the time at maximum clocks), 5.3s (seconds), fastest, economic or tstar")};
constexpr AnyMessage kPointSchema = {.name = "Point", .fields = kPointMembers, .is_closed = true};
constexpr AnyMessage kNewJobSchemas[] = {kNewJobSchema, kPointSchema};
// Beside the fields of job files.
constexpr Field kJobSettingsMembers[] = {
    Text("model").Most(256).Optional().Says(
        "A label: the job takes over the profile of an earlier one with the same label, layout "
        "(stages, schedule, tensor parallelism, `microbatch_size` where given) and GPUs, if there "
        "is one."),
    Number("microbatch_size").In(kPositive).Optional(),
    Boolean("reuse_profile").Optional().Says("false: the ranks measure all the same.")};
constexpr AnyMessage kJobSettings = {
    .name = "JobSettings",
    .fields = kJobSettingsMembers,
    .about = "The fields of job files (docs/reference/files.md) but those that name files.",
    .is_closed = true};

struct NewJob {
  std::string client_key;
  std::string name;
  JobLabels labels;
  std::string settings_json;
  std::string profile_csv;
};

Outcome<NewJob> ReadNewJob(const std::string& body) {
  NewJob job;
  LabelChanges labels;
  const auto read_job = [&](const TreeCursor& root) {
    AllowOnly(kNewJobSchema, root);
    job.client_key = FindText(root, "client_key", 256);
    job.name = FindText(root, "name", 256);
    if (const auto given = FindSet(root, "labels")) labels = ReadLabels(*given);
    job.profile_csv = FindText(root, "profile_csv", rows::kMostJobBytes);
    root.Get("job");
  };
  const Outcome<void> read = ReadBody(body, read_job, kMostJobValues);
  if (!read) return tl::unexpected(read.error());
  Outcome<JobLabels> good = NewLabelsOf(labels);
  if (!good) return tl::unexpected(good.error());
  job.labels = *std::move(good);
  // Depth and size were checked by the reader above.
  auto tree = ParseObject(body);
  job.settings_json = tree["job"].dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return job;
}

// The first key with another value; empty where there is none. `b_may_be_short`: a key that b
// leaves out does not differ.
std::string DifferingKey(const std::string& a_json, const std::string& b_json,
                         bool b_may_be_short) {
  // Not ordered: keys may come in any order.
  const auto a = nlohmann::json::parse(a_json, nullptr, false);
  const auto b = nlohmann::json::parse(b_json, nullptr, false);
  if (a == b) return "";
  for (const auto& [one, other] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    for (const auto& [key, value] : one->items()) {
      const auto found = other->find(key);
      if (found == other->end() && other == &b && b_may_be_short) continue;
      // One pipeline and one GPU a stage is what jobs have that do not say it.
      if (found == other->end() && value == 1 && (key == "dp" || key == "tp")) continue;
      if (found == other->end() || *found != value) return key;
    }
  }
  return "";
}

// What of a job that is known is described otherwise now; empty: nothing. A profile that was
// measured since is nobody's description.
Outcome<std::string> OtherThan(const JobView& known, const NewJob& job) {
  const Outcome<JobDescription> now = DescriptionOf(job.settings_json);
  if (!now) return tl::unexpected(now.error());
  // A rank that asks for a job need not know all that its operator said of it.
  const bool asks = job.profile_csv.empty();
  for (const auto& [before, after] : {std::pair(&known.record.settings_json, &now->settings_json),
                                      std::pair(&known.record.library_json, &now->library_json)}) {
    if (std::string key = DifferingKey(*before, *after, asks); !key.empty()) return key;
  }
  if (asks) return std::string();
  // Of a job that has ended, or is not built yet, nobody has read the profile.
  const bool differs =
      known.profile_source == kGivenSource
          ? !known.profile_sha256.empty() && Sha256Hex(job.profile_csv) != known.profile_sha256
          : known.profile_source.empty();
  return std::string(differs ? "profile_csv" : "");
}

void ShowCreated(const Call& call, const NewJob& job, const Outcome<JobService::Created>& created) {
  if (!created) return Send(call, FailureResponse(created.error()));
  if (!created->is_new) {
    const Outcome<std::string> other = OtherThan(created->job->View(), job);
    if (!other) return Send(call, FailureResponse(other.error()));
    if (!other->empty()) {
      return Send(call, FailureResponse(
                            {FailureCode::kConflict,
                             fmt::format("job {} has the client key '{}' and another description "
                                         "('{}' differs); give another client_key, or delete that "
                                         "job first",
                                         created->job->id(), job.client_key, *other),
                             "client_key"}));
    }
  }
  Response response = ShowJob(*created->job, created->is_new ? 201 : 200);
  response.headers.emplace_back("Location", "/api/v1/jobs/" + created->job->id());
  call.responder.Send(std::move(response));
}

// What is asked for, where it may be made; else it is answered why not.
std::optional<JobSpec> SpecOf(const Call& call, const NewJob& job) {
  if (auto refusal = CheckMayCreate(call, job.client_key)) {
    Send(call, *std::move(refusal));
    return std::nullopt;
  }
  Outcome<JobSpec> spec = MakeJobSpec(job.settings_json, job.profile_csv);
  if (!spec) {
    Send(call, FailureResponse(spec.error()));
    return std::nullopt;
  }
  spec->client_key = job.client_key;
  spec->name = job.name;
  spec->labels = job.labels;
  return *std::move(spec);
}

void CreateFrom(const CallPointer& call, const NewJob& job, const JobSpec& spec) {
  call->service.Create(spec, store::JobOrigin::kApi, call->caller,
                       [call, job](const auto& created) { ShowCreated(*call, job, created); });
}

void CreateNew(const CallPointer& call, const NewJob& job) {
  if (const auto spec = SpecOf(*call, job)) CreateFrom(call, job, *spec);
}

// A run goes on whose job ended by itself, as its ranks were silent: in a new job, which is known
// to be one before the old one goes. It keeps labels that were set since; those that its ranks give
// come first.
void Replace(const JobPointer& silent, const CallPointer& call, const NewJob& job) {
  auto spec = SpecOf(*call, job);
  if (!spec) return;
  for (const auto& label : silent->View().record.labels) {
    if (spec->labels.size() < kMostLabels) spec->labels.insert(label);
  }
  silent->Do(DeleteJob{}, call->caller,
             [call, job, spec = *std::move(spec), id = silent->id()](const auto& deleted) {
               if (!deleted && deleted.error().code != FailureCode::kNotFound) {
                 return Send(*call, FailureResponse(deleted.error()));
               }
               call->service.Forget(id);
               CreateFrom(call, job, spec);
             });
}

// A run whose ranks measured nothing to plan from is begun again under its name: its ranks measure
// anew.
bool MayStartAnew(const ManagedJob& known, const NewJob& job) {
  const JobView view = known.View();
  const Outcome<std::string> other = OtherThan(view, job);
  return view.record.state == store::JobState::kFailed && job.profile_csv.empty() &&
         view.profile_source != kGivenSource && other && other->empty();
}

void AnswerKnown(const JobPointer& known, const CallPointer& call, const NewJob& job) {
  if (known->has_ended_itself()) return Replace(known, call, job);
  const auto show = [call, job, known] {
    ShowCreated(*call, job, JobService::Created{known, false});
  };
  if (!MayStartAnew(*known, job)) return show();
  known->Do(Reprofile{}, call->caller, [call, show](const auto& begun) {
    if (!begun && begun.error().code == FailureCode::kUnavailable) {
      return Send(*call, FailureResponse(begun.error()));
    }
    show();  // Also where another rank was first.
  });
}

// Every rank may ask for the job: the key is looked up before anything is built.
void CreateJob(const CallPointer& call) {
  const Outcome<NewJob> job = ReadNewJob(call->request.body);
  if (!job) return Send(*call, FailureResponse(job.error()));
  if (job->client_key.empty()) return CreateNew(call, *job);
  call->service.GetByKey(job->client_key, call->caller.is_wanted,
                         [call, job = *job](const Outcome<JobPointer>& known) {
                           if (known && Sees(call->request.binding, **known)) {
                             return AnswerKnown(*known, call, job);
                           }
                           if (!known && known.error().code == FailureCode::kUnavailable) {
                             return Send(*call, FailureResponse(known.error()));
                           }
                           CreateNew(call, job);
                         });
}

// A damaged job is deleted as its store has it: that is what its sentence asks for.
void DeleteOne(const CallPointer& call) {
  const std::string& id = call->parameters[0];
  call->service.Get(id, [call, id](const Outcome<JobPointer>& job) {
    const auto head = call->service.HeadOf(id);
    const bool is_seen = Sees(call->request.binding, id, head ? head->client_key : "");
    if (IsDamaged(job) && is_seen) {
      return call->service.DeleteDamaged(id, call->caller, [call](const Outcome<void>& deleted) {
        Send(*call, deleted ? NoContent() : FailureResponse(deleted.error()));
      });
    }
    if (!job || !Sees(call->request.binding, **job)) {
      return Send(*call, FailureResponse(job ? NoSuchJob(id) : job.error()));
    }
    Change(*job, call, DeleteJob{}, [call, id](const Answer&) {
      call->service.Forget(id);
      return NoContent();
    });
  });
}

void SetPoint(const JobPointer& job, const CallPointer& call) {
  std::string at;
  const Outcome<void> read = ReadBody(call->request.body, [&](const TreeCursor& root) {
    AllowOnly(kPointSchema, root);
    const TreeCursor value = root.Get("at");
    // Of a number the target's reader says how else to write it.
    at = value.IsNumber() ? fmt::format("{}", value.Number(kPositive)) : value.String();
  });
  if (!read) return Send(*call, FailureResponse(read.error()));
  ChangeAndShow(job, call, SetTarget{at});
}

// The published plan with a curve, or a failure that says what is missing.
Outcome<std::shared_ptr<const PublishedPlan>> PlanWithCurve(ManagedJob& job) {
  auto plan = job.board().Current();
  if (plan != nullptr && plan->curve != nullptr) return plan;
  return Fail(FailureCode::kConflict,
              plan != nullptr ? plan->sentence : "the job has no frontier yet; ask again later");
}

constexpr std::int64_t kAllPoints = std::numeric_limits<std::int64_t>::max();

// Every so many lines of a table, with its head and its last line.
std::string Thinned(const std::string& csv, std::size_t points) {
  const auto lines = static_cast<std::size_t>(std::count(csv.begin(), csv.end(), '\n')) - 1;
  if (lines <= points) return csv;
  std::string kept;
  std::size_t line = 0;
  std::size_t taken = 0;
  for (std::size_t begin = 0; begin < csv.size(); ++line) {
    const std::size_t end = csv.find('\n', begin) + 1;
    // Line 0 is the head, 1 the first point, `lines` the last.
    const bool is_due = line == 0 || (line - 1) * (points - 1) >= taken * (lines - 1);
    if (is_due) kept.append(csv, begin, end - begin);
    if (is_due && line > 0) ++taken;
    begin = end;
  }
  return kept;
}

Response GetFrontier(ManagedJob& job, const Call& call) {
  const auto plan = PlanWithCurve(job);
  if (!plan) return FailureOf(job, plan.error());
  const auto points =
      static_cast<std::size_t>(QueryInteger(call.request, "points").value_or(kAllPoints));
  Response response;
  response.content_type = "text/csv";
  response.body = std::make_shared<const std::string>(
      Thinned(FormatFrontierCsv((*plan)->curve->frontier()), points));
  return response;
}

Response GetPlanFile(ManagedJob& job, const Call& call) {
  const std::int64_t number = QueryInteger(call.request, "pipeline").value_or(0);
  if (number < 0 || number >= job.shape().data_parallel) {
    return FailureOf(
        job, {FailureCode::kNotFound,
              fmt::format("the job has {} pipelines, counted from 0", job.shape().data_parallel),
              "pipeline"});
  }
  const auto plan = PlanWithCurve(job);
  if (!plan) return FailureOf(job, plan.error());
  const CurvePlan* const found = (*plan)->PlanOf(static_cast<int>(number));
  if (found == nullptr) {
    return FailureOf(job, {FailureCode::kConflict,
                           fmt::format("pipeline {} is a straggler that runs at maximum clocks, "
                                       "without a plan; ask for another pipeline",
                                       number),
                           "pipeline"});
  }
  PlanDocument document = (*plan)->curve->Document(*found);
  document.generator_name = "perseus serve";
  return http::JsonResponse(200, FormatPlanJson(document));
}

}  // namespace

Schemas NewJobSchemas() { return kNewJobSchemas; }
const AnyMessage& JobSettingsSchema() { return kJobSettings; }

void AddJobRoutes(RouteMaker* routes) {
  routes->On(RowOf("createJob"), CreateJob);
  routes->OnLook(RowOf("getJob"), [](ManagedJob& job, const Call&) { return ShowJob(job); });
  routes->On(RowOf("deleteJob"), DeleteOne);
  routes->OnJob(RowOf("finishJob"), [](const JobPointer& job, const CallPointer& call) {
    ChangeAndShow(job, call, FinishJob{});
  });
  routes->OnJob(RowOf("setPoint"), SetPoint);
  routes->OnLook(RowOf("getFrontier"), GetFrontier);
  routes->OnLook(RowOf("getPlanFile"), GetPlanFile);
}

}  // namespace perseus::server
