// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Jobs: created, listed, shown, changed and ended; and the library of profiles.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/json_text.h"
#include "common/nearest_name.h"
#include "common/numbers.h"
#include "perseus/plan_file.h"
#include "perseus/profile.h"
#include "profile/sha256.h"
#include "server/api/api_handlers.h"
#include "server/api/messages.h"
#include "server/planning/job_spec.h"

namespace perseus::server {
namespace {

using http::Response;

// The profile is one text. The settings are copied to an object whose keys are looked
// for one by one.
constexpr int kMostJobValues = 20'000;

// Labels.

using LabelChanges = std::map<std::string, std::optional<std::string>>;

// Reads {"team": "vision", "project": null}, without checking names and values.
void ReadLabels(const Field& /*field*/, const TreeCursor& labels, void* member) {
  auto& changes = *static_cast<LabelChanges*>(member);
  const auto* const table = std::get_if<TreeNode::Table>(&labels.node().value);
  if (table == nullptr)
    return labels.FailExpected("an object of labels, as {\"team\": \"vision\"}");
  for (const TreeMember& each : *table) {
    if (std::holds_alternative<std::monostate>(each.node.value)) {
      changes[each.key] = std::nullopt;
    } else if (const auto* const value = std::get_if<std::string>(&each.node.value)) {
      changes[each.key] = *value;
    } else {
      labels.Fail(fmt::format("the label {} must have a text as its value, not {}", Shown(each.key),
                              each.node.Describe()));
    }
  }
}

// Those that are set, if they are allowed.
Outcome<JobLabels> NewLabelsOf(const LabelChanges& changes) {
  JobLabels labels;
  for (const auto& [name, value] : changes) {
    if (value) labels.emplace(name, *value);
  }
  const Result<void> good = CheckLabels(labels);
  if (!good) return Fail(FailureCode::kInvalid, good.error().message, "labels");
  return labels;
}

// Bodies.

struct NewJob {
  std::string client_key = {};
  std::string name = {};
  LabelChanges given_labels;
  std::string settings_json = {};
  std::string profile_csv = {};
  JobLabels labels = {};
};
// Beside the fields of job files.
constexpr Field kJobSettingsFields[] = {
    Text("model").Most(256).Optional().Says(
        "A label: the job takes over the profile of an earlier one with the same label, layout "
        "(stages, schedule, tensor parallelism, `microbatch_size` where given) and GPUs, if there "
        "is one."),
    Number("microbatch_size").In(kPositive).Optional(),
    Boolean("reuse_profile").Optional().Says("false: the ranks measure all the same.")};
constexpr AnyMessage kJobSettings = {
    .name = "JobSettings",
    .fields = kJobSettingsFields,
    .about = "The fields of job files (docs/reference/files.md) but those that name files.",
    .is_closed = true};
constexpr Field kNewJobFields[] = {
    Value<&NewJob::client_key>("client_key").Most(256).Sometimes(),
    Value<&NewJob::name>("name").Most(256).Sometimes(),
    Value<&NewJob::given_labels>("labels")
        .ReadBy(ReadLabels)
        .Optional()
        .Says(
            "Name to value, as in {\"team\": \"vision\"}: for lists and accounts. See setLabels."),
    // Read from the body.
    Object<&NewJob::settings_json>("job", kJobSettings)
        .ReadBy([](const Field&, const TreeCursor&, void*) {}),
    Value<&NewJob::profile_csv>("profile_csv")
        .Most(wire::rows::kMostJobBytes)
        .Sometimes()
        .Says("Missing: the ranks measure.")};
constexpr Message<NewJob> kNewJob = Message<NewJob>("NewJob", kNewJobFields).Closed();

constexpr Field kLabelChangesFields[] = {Value<&SetLabels::labels>("labels")
                                             .ReadBy(ReadLabels)
                                             .Says("Name to value, as in {\"team\": \"vision\"}. "
                                                   "null takes a label away; what is not named "
                                                   "stays. A job has at most 16 labels.")};
constexpr Message<SetLabels> kLabelChanges =
    Message<SetLabels>("LabelChanges", kLabelChangesFields).Closed();

constexpr Field kPointFields[] = {
    Value<&SetTarget::text>("at")
        .ReadBy([](const Field&, const TreeCursor& at, void* member) {
          // Of a number the target's reader says how else to write it.
          *static_cast<std::string*>(member) =
              at.IsNumber() ? fmt::format("{}", at.Number(kPositive)) : at.String();
        })
        .Says(
            "1.05x (of the time at maximum clocks), 5.3s (seconds), fastest, min-energy or tstar")};
constexpr Message<SetTarget> kPoint = Message<SetTarget>("Point", kPointFields).Closed();

constexpr NumberRange kCounted = {.least = 0, .most = kMaxCount};
constexpr Field kNewStragglerFields[] = {
    Value<&AddStraggler::pipeline>("pipeline").In(kCounted).Optional(),
    Value<&AddStraggler::rank>("rank").In(kCounted).Optional(),
    Value<&AddStraggler::node>("node").Most(256).Optional(),
    Value<&AddStraggler::factor>("factor").In({.least = 1}).Optional(),
    Value<&AddStraggler::delay_seconds>("delay_s").In(kPositive).Optional(),
    Value<&AddStraggler::expires_in_seconds>("expires_s").Optional().Says("Seconds from now"),
    Value<&AddStraggler::starts_in_seconds>("starts_s").Optional().Says("Seconds from now")};
constexpr Message<AddStraggler> kNewStraggler =
    Message<AddStraggler>("NewStraggler", kNewStragglerFields,
                          "Exactly one of pipeline, rank and node, and one of factor and delay_s.")
        .Closed();

constexpr NumberRange kThresholds = {.least = kLeastThreshold, .most = kMostThreshold};
constexpr Field kNewDetectionFields[] = {
    Choice<&SetWatch::mode>("mode", kDetectionModeNames)
        .Optional()
        .Says("advisory: only says so; act: has the plans answer"),
    Value<&SetWatch::threshold>("threshold")
        .In(kThresholds)
        .Optional()
        .Says("A shift smaller than this share is none"),
    Value<&SetWatch::window>("window")
        .In({.least = kLeastWindow, .most = kMostWindow})
        .Optional()
        .Says("Iterations that are looked at together")};
constexpr Message<SetWatch> kNewDetection =
    Message<SetWatch>("NewDetection", kNewDetectionFields).Closed();

constexpr NumberRange kComparisonRange = {.least = 0, .most = ComparisonBlocks::kMostEvery};
constexpr Field kNewComparisonFields[] = {
    Value<&ComparisonBlocks::every>("every").In(kComparisonRange).Says("0: no comparison"),
    Value<&ComparisonBlocks::iterations>("iterations").In(kComparisonRange).Optional()};
constexpr Message<ComparisonBlocks> kNewComparison =
    Message<ComparisonBlocks>("NewComparison", kNewComparisonFields).Closed();

// Answers.

constexpr Field kStragglerListFields[] = {Object<&JobView::stragglers>("stragglers", kStraggler)};
constexpr Message<JobView> kStragglerList = {"StragglerList", kStragglerListFields};
constexpr Field kStragglerSetFields[] = {Value<&Answer::straggler>("straggler_id"),
                                         Value<&Answer::plan_version>("plan_version")};
constexpr Message<Answer> kStragglerSet = {"StragglerSet", kStragglerSetFields};
constexpr Field kDetectionNowFields[] = {Inline<&Answer::settings>(kDetectionSettings)};
constexpr Message<Answer> kDetectionNow = {"DetectionSettings", kDetectionNowFields};

// Creating.

Outcome<NewJob> ReadNewJob(const std::string& body) {
  Outcome<NewJob> job = ReadBody(kNewJob, body, kMostJobValues);
  if (!job) return job;
  Outcome<JobLabels> labels = NewLabelsOf(job->given_labels);
  if (!labels) return tl::unexpected(labels.error());
  job->labels = *std::move(labels);
  // Depth and size were checked by the reader above.
  auto tree = ParseObject(body);
  job->settings_json = tree["job"].dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
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
      // The defaults of a job: one pipeline, and one GPU a stage.
      if (found == other->end() && value == 1 && (key == "dp" || key == "tp")) continue;
      if (found == other->end() || *found != value) return key;
    }
  }
  return "";
}

// The first key in which a known job's description differs now; empty: none. A profile that was
// measured since is not part of a description.
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
  // The profile of a job that has ended, or is not built yet, was not read.
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

// The requested job, if the client may make it; else answers with the refusal.
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
  call->service.GetByKey(job->client_key, [call, job = *job](const Outcome<JobPointer>& known) {
    if (known && Sees(call->request.binding, **known)) return AnswerKnown(*known, call, job);
    if (!known && known.error().code == FailureCode::kUnavailable) {
      return Send(*call, FailureResponse(known.error()));
    }
    CreateNew(call, job);
  });
}

// Deletes a damaged job as its store has it: the job's sentence asks for that.
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

template <typename C>
void Set(const Message<C>& message, const JobPointer& job, const CallPointer& call) {
  Outcome<C> command = ReadBody(message, call->request.body);
  if (!command) return Send(*call, FailureResponse(command.error()));
  ChangeAndShow(job, call, *std::move(command));
}

// The published plan with a curve, or a failure that names the missing part.
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

// Lists.

// The place at which a page ends. Jobs are listed by the time of their creation, those of one
// moment by id, so that a job that is deleted meanwhile does no harm.
struct ListPlace {
  double created_at_seconds = 0;
  std::string id = {};

  static ListPlace Of(const JobService::Listed& each) {
    return {each.head.created_at_seconds, each.head.id};
  }
  bool operator<(const ListPlace& other) const {
    return std::pair(created_at_seconds, std::string_view(id)) <
           std::pair(other.created_at_seconds, std::string_view(other.id));
  }
  std::string text() const { return fmt::format("{}_{}", created_at_seconds, id); }
};

std::optional<ListPlace> ParseListPlace(std::string_view text) {
  const std::size_t size = std::min(text.find('_'), text.size());
  const auto seconds = ParseFinite(text.substr(0, size));
  if (!seconds || size == text.size()) return std::nullopt;
  return ListPlace{*seconds, std::string(text.substr(size + 1))};
}

// The query of a request for a list.
struct ListQuery {
  std::string state = {};
  std::string name = {};
  JobLabels labels = {};
  std::string client_key = {};
  std::optional<std::int64_t> limit = {};
  std::optional<ListPlace> from = {};

  bool Fits(const Call& call, const JobService::Listed& each) const {
    const store::JobHead& head = each.head;
    return (!from || *from < ListPlace::Of(each)) &&
           Sees(call.request.binding, head.id, head.client_key) &&
           (client_key.empty() || head.client_key == client_key) &&
           (name.empty() || head.name == name) && HasLabels(head.labels, labels) &&
           (state.empty() || store::JobStateName(head.state) == state);
  }
};

// One page. Finished jobs that were not asked for lately are read from the store, one by one.
struct ListPage {
  CallPointer call;
  std::vector<JobService::Listed> jobs = {};
  RawJson list = {};
  std::optional<std::string> next = {};

  void Add(const ManagedJob& job) {
    list.text += list.text.empty() ? "[" : ",";
    wire::Append(kJobSummary, job.View(), &list.text);
  }
  void Send();
};
constexpr Field kJobListFields[] = {Object<&ListPage::list>("jobs", kJobSummary).List(),
                                    Value<&ListPage::next>("next").Nullable().Says(
                                        "`after` of the next page; null: this was the last.")};
constexpr Message<ListPage> kJobList = {"JobList", kJobListFields};

void ListPage::Send() {
  list.text += list.text.empty() ? "[]" : "]";
  call->responder.Send(JsonAnswer(200, kJobList, *this));
}

void Fill(const std::shared_ptr<ListPage>& page, std::size_t from) {
  for (std::size_t i = from; i < page->jobs.size(); ++i) {
    const JobService::Listed& each = page->jobs[i];
    if (each.job != nullptr) {
      page->Add(*each.job);
      continue;
    }
    return page->call->service.Get(each.head.id, [page, i](const Outcome<JobPointer>& job) {
      // One that was deleted meanwhile, or cannot be read, is left out.
      if (job) page->Add(**job);
      page->call->service.OnReader([page, i] { Fill(page, i + 1); });
    });
  }
  page->Send();
}

void ListJobs(const CallPointer& call) {
  ListQuery query{.state = QueryText(call->request, "state"),
                  .name = QueryText(call->request, "name"),
                  .client_key = QueryText(call->request, "client_key"),
                  .limit = QueryInteger(call->request, "limit"),
                  .from = ParseListPlace(QueryText(call->request, "after"))};
  if (!QueryText(call->request, "after").empty() && !query.from) {
    return Send(
        *call, FailureResponse({FailureCode::kInvalid,
                                "'after' must be what `next` of an earlier answer says", "after"}));
  }
  Outcome<JobLabels> labels = WantedLabels(call->request);
  if (!labels) return Send(*call, FailureResponse(labels.error()));
  query.labels = *std::move(labels);
  std::vector<JobService::Listed> jobs = call->service.List();
  std::sort(jobs.begin(), jobs.end(),
            [](const auto& a, const auto& b) { return ListPlace::Of(a) < ListPlace::Of(b); });
  const auto page = std::make_shared<ListPage>();
  page->call = call;
  for (JobService::Listed& each : jobs) {
    if (!query.Fits(*call, each)) continue;
    if (query.limit && static_cast<std::int64_t>(page->jobs.size()) == *query.limit) {
      page->next = ListPlace::Of(page->jobs.back()).text();
      break;
    }
    page->jobs.push_back(std::move(each));
  }
  Fill(page, 0);
}

// Stragglers.

void SetStraggler(const JobPointer& job, const CallPointer& call) {
  const auto straggler = ReadBody(kNewStraggler, call->request.body);
  if (!straggler) return Send(*call, FailureResponse(straggler.error()));
  Change(job, call, *straggler,
         [](const Answer& added) { return JsonAnswer(201, kStragglerSet, added); });
}

void ClearAll(const JobPointer& job, const CallPointer& call) {
  Change(job, call, ClearStragglers{}, [](const Answer&) { return NoContent(); });
}

void ClearOne(const JobPointer& job, const CallPointer& call) {
  const std::string& text = call->parameters[1];
  const auto id = ParseInteger<std::int64_t>(text);
  if (!id) {
    return Send(*call, FailureOf(*job, {FailureCode::kNotFound,
                                        "there is no straggler " + text +
                                            "; 'perseus job show' has those that there are"}));
  }
  Change(job, call, ClearStraggler{*id}, [](const Answer&) { return NoContent(); });
}

// Detection, and the comparison of the plan with default clocks.

// Settings that the body does not name stay as they are.
void SetDetection(const JobPointer& job, const CallPointer& call) {
  const auto detection = ReadBody(kNewDetection, call->request.body);
  if (!detection) return Send(*call, FailureResponse(detection.error()));
  Change(job, call, *detection,
         [](const Answer& set) { return JsonAnswer(200, kDetectionNow, set); });
}

Outcome<ComparisonBlocks> ReadComparison(const std::string& body) {
  Outcome<ComparisonBlocks> blocks = ReadBody(kNewComparison, body);
  if (!blocks) return blocks;
  if (blocks->every == 0) return ComparisonBlocks{};
  if (blocks->is_valid()) return blocks;
  return Fail(FailureCode::kInvalid,
              fmt::format("of every {} iterations {} at default clocks: each phase needs at "
                          "least {}, as its first one only settles",
                          blocks->every, blocks->iterations, ComparisonBlocks::kLeastPhase),
              "iterations");
}

void SetComparison(const JobPointer& job, const CallPointer& call,
                   const Outcome<ComparisonBlocks>& blocks) {
  if (!blocks) return Send(*call, FailureResponse(blocks.error()));
  Change(job, call, SetWatch{.comparison = *blocks}, [](const Answer& set) {
    return JsonAnswer(200, kComparisonNow, set.settings.comparison);
  });
}

// The library of profiles.

// A token that is bound to jobs sees the profiles that these measured.
bool SeesProfile(const Call& call, const store::ProfileRecord& profile) {
  if (call.request.binding.is_free()) return true;
  const auto job = call.service.HeadOf(profile.job);
  return job && Sees(call.request.binding, job->id, job->client_key);
}

struct ProfileList {
  std::vector<store::ProfileRecord> profiles = {};
};
constexpr Field kProfileListFields[] = {Object<&ProfileList::profiles>("profiles", kProfileRecord)};
constexpr Message<ProfileList> kProfileList = {"ProfileList", kProfileListFields};

Response ListProfiles(const Call& call) {
  const auto profiles = call.service.ListProfiles();
  if (!profiles) return FailureResponse(profiles.error());
  ProfileList list;
  for (const store::ProfileRecord& profile : *profiles) {
    if (!SeesProfile(call, profile)) continue;
    list.profiles.push_back(profile);
    list.profiles.back().profile_csv.clear();
  }
  return JsonAnswer(200, kProfileList, list);
}

// Of the path, as far as the token sees it.
Outcome<store::ProfileRecord> FindProfile(const Call& call) {
  const std::string& id = call.parameters[0];
  auto profile = call.service.FindProfile(id);
  if (profile && !SeesProfile(call, *profile)) {
    return tl::unexpected(NoSuchProfile(id));
  }
  return profile;
}

Response ShowProfile(const Call& call) {
  const auto profile = FindProfile(call);
  if (!profile) return FailureResponse(profile.error());
  return JsonAnswer(200, kProfileRecord, *profile);
}

Response DeleteProfile(const Call& call) {
  const auto profile = FindProfile(call);
  if (!profile) return FailureResponse(profile.error());
  const Outcome<void> deleted = call.service.DeleteProfile(profile->id, call.caller);
  return deleted ? NoContent() : FailureResponse(deleted.error());
}

}  // namespace

const AnyMessage& JobSettingsSchema() { return kJobSettings; }

Outcome<JobLabels> WantedLabels(const http::Request& request) {
  JobLabels wanted;
  const std::string text = QueryText(request, "label");
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    auto label = ParseLabel(rest.substr(0, end), ':');
    if (!label) return Fail(FailureCode::kInvalid, "'label': " + label.error().message, "label");
    if (!wanted.insert(*label).second) {
      return Fail(FailureCode::kInvalid,
                  fmt::format("'label' has {} twice; a job has it once", Shown(label->first)),
                  "label");
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return wanted;
}

bool HasLabels(const JobLabels& labels, const JobLabels& wanted) {
  return std::includes(labels.begin(), labels.end(), wanted.begin(), wanted.end());
}

Messages JobMessages() {
  static constexpr const AnyMessage* kAll[] = {
      &kNewJob,        &kJob,          &kJobList,           &kPoint,
      &kLabelChanges,  &kNewStraggler, &kStragglerList,     &kStragglerSet,
      &kNewDetection,  &kDetection,    &kDetectionSettings, &kNewComparison,
      &kComparisonNow, &kSavings,      &kProfileList};
  return kAll;
}

void AddJobRoutes(RouteMaker* routes) {
  routes->On(RowOf("createJob"), CreateJob);
  routes->On(RowOf("listJobs"), ListJobs);
  routes->OnLook(RowOf("getJob"), [](ManagedJob& job, const Call&) { return ShowJob(job); });
  routes->On(RowOf("deleteJob"), DeleteOne);
  routes->OnJob(RowOf("finishJob"), [](const JobPointer& job, const CallPointer& call) {
    ChangeAndShow(job, call, FinishJob{});
  });
  routes->OnJob(RowOf("setPoint"),
                [](const JobPointer& job, const CallPointer& call) { Set(kPoint, job, call); });
  routes->OnJob(RowOf("setLabels"), [](const JobPointer& job, const CallPointer& call) {
    Set(kLabelChanges, job, call);
  });
  routes->OnLook(RowOf("getFrontier"), GetFrontier);
  routes->OnLook(RowOf("getPlanFile"), GetPlanFile);
  routes->OnJob(RowOf("setStraggler"), SetStraggler);
  routes->OnLook(RowOf("listStragglers"), [](ManagedJob& job, const Call&) {
    return JsonAnswer(200, kStragglerList, job.View());
  });
  routes->OnJob(RowOf("clearStragglers"), ClearAll);
  routes->OnJob(RowOf("clearStraggler"), ClearOne);
  routes->OnJob(RowOf("setDetection"), SetDetection);
  routes->OnLook(RowOf("showDetection"), [](ManagedJob& job, const Call&) {
    return JsonAnswer(200, kDetection, job.View().watch);
  });
  routes->OnJob(RowOf("setComparison"), [](const JobPointer& job, const CallPointer& call) {
    SetComparison(job, call, ReadComparison(call->request.body));
  });
  routes->OnJob(RowOf("endComparison"), [](const JobPointer& job, const CallPointer& call) {
    SetComparison(job, call, ComparisonBlocks{});
  });
  routes->OnLook(RowOf("showSavings"), [](ManagedJob& job, const Call&) {
    return JsonAnswer(200, kSavings, job.View());
  });
  routes->OnStore(RowOf("listProfiles"), ListProfiles);
  routes->OnStore(RowOf("showProfile"), ShowProfile);
  routes->OnStore(RowOf("deleteProfile"), DeleteProfile);
  routes->OnJob(RowOf("reprofile"), [](const JobPointer& job, const CallPointer& call) {
    ChangeAndShow(job, call, Reprofile{});
  });
  routes->OnJob(RowOf("cancelReprofile"), [](const JobPointer& job, const CallPointer& call) {
    ChangeAndShow(job, call, CancelReprofile{});
  });
}

}  // namespace perseus::server
