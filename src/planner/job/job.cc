// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/belief.h"
#include "job/job_checks.h"
#include "job/job_fields.h"
#include "job/job_schedule.h"
#include "perseus/work.h"
#include "plan/limits.h"
#include "plan/named_times.h"

namespace perseus {
inline namespace v0 {
namespace {

std::string Count(int count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : noun.ends_with("ch") ? "es" : "s");
}

// With the place of the field in the job file, where it is from there.
tl::unexpected<Error> AboutField(const JobFile& settings, std::string_view key, Error error) {
  return tl::unexpected<Error>(job::AboutField(settings, key, std::move(error)));
}

tl::unexpected<Error> AboutFile(const JobFile& settings, std::string_view key, Error error) {
  return tl::unexpected<Error>(job::AboutFile(settings, key, std::move(error)));
}

tl::unexpected<Error> WrongField(const JobFile& settings, std::string_view key,
                                 std::string message) {
  return AboutField(settings, key, {ErrorCode::kInvalidInput, std::move(message)});
}

Result<void> CheckComplete(const JobFile& settings, const Profile& profile) {
  std::vector<std::string> missing;
  for (const std::string_view key : MissingFields(settings, &profile)) {
    missing.push_back(fmt::format("'{}'", key));
  }
  if (missing.empty()) return {};
  return InvalidInput(
      fmt::format("{} {} missing", fmt::join(missing, ", "), missing.size() == 1 ? "is" : "are"));
}

Result<void> CheckStages(const JobFile& settings, const Profile& profile) {
  if (!settings.stages || *settings.stages == profile.num_stages) return {};
  return WrongField(
      settings, "stages",
      fmt::format("'stages' is {}, but {} has {}; 'stages' counts the model's stages (ranks x "
                  "virtual stages) "
                  "and may be left out",
                  *settings.stages, profile.source, Count(profile.num_stages, "stage")));
}

// What could never be planned, before it is built.
Result<void> CheckComputations(const JobFile& settings, const Profile& profile) {
  const std::int64_t computations = std::int64_t{2} * profile.num_stages * *settings.microbatches;
  if (computations <= plan::kMostComputations) return {};
  return AboutField(settings, "microbatches",
                    {ErrorCode::kOverflow, plan::TooManyToPlan(computations)});
}

// The work of a job: of its table, or of the factors in its settings.
Result<Work> WorkOfJob(const JobFile& settings, const Profile& profile, const PipelineDag& dag,
                       std::vector<Note>* notes) {
  if (!settings.work) return Work();
  if (!settings.work->factors.empty()) {
    if (settings.work->factors.size() != static_cast<std::size_t>(dag.num_microbatches)) {
      return WrongField(
          settings, "work",
          fmt::format("'work' gives {}, but the pipeline has {}; give one for each",
                      Count(static_cast<int>(settings.work->factors.size()), "factor"),
                      Count(dag.num_microbatches, "microbatch")));
    }
    return Work(settings.work->factors);
  }
  const Result<WorkTable> table = ReadWork(settings.work->file);
  if (!table) return AboutFile(settings, "work", table.error());
  TokenRule rule;
  rule.profiled_tokens = settings.work_tokens;
  if (!table->in_tokens && (settings.work_fit || settings.work_tokens)) {
    const std::string_view key = settings.work_fit ? "work_fit" : "work_tokens";
    return WrongField(settings, key,
                      fmt::format("'{}' is for a work table in tokens, and {} states factors", key,
                                  table->source));
  }
  if (settings.work_fit && settings.work_tokens) {
    return WrongField(settings, "work_tokens",
                      "'work_fit' says what tokens take, so 'work_tokens' has no use; keep one of "
                      "them");
  }
  if (settings.work_fit) {
    Result<WorkFit> fit = ReadWorkFit(*settings.work_fit);
    if (!fit) return AboutFile(settings, "work_fit", fit.error());
    rule.fit = *std::move(fit);
  } else if (table->in_tokens) {
    std::string text =
        "without a fit (work_fit) computations are taken to last in proportion to their tokens";
    if (!settings.work_tokens) {
      text +=
          ", and the profile to be of microbatches of the table's mean length (or give "
          "work_tokens)";
    }
    notes->push_back(
        {.severity = Severity::kOdd, .text = std::move(text), .source = table->source});
  }
  std::set<int> stated;
  for (const WorkRow& row : table->rows) stated.insert(row.microbatch);
  const int count = static_cast<int>(stated.size());
  if (!table->in_tokens && count < dag.num_microbatches) {
    notes->push_back({.severity = Severity::kOdd,
                      .text = fmt::format("rows for {} of {}; the others are as in the profile",
                                          count, Count(dag.num_microbatches, "microbatch")),
                      .source = table->source});
  }
  std::set<std::pair<int, ComputationType>> kinds;
  for (const Computation& computation : dag.computations) {
    kinds.emplace(computation.id.stage, computation.id.type);
    if (computation.fused) kinds.emplace(computation.fused->stage, computation.fused->type);
  }
  return MakeWork(*table, rule, profile, dag.num_microbatches, {kinds.begin(), kinds.end()});
}

}  // namespace

Result<JobFile> LoadSettings(const std::string& path, const JobFile& overrides) {
  JobFile settings;
  if (IsJobFileName(path)) {
    Result<JobFile> file = ReadJobFile(path);
    if (!file) return file;
    settings = *std::move(file);
    if (!settings.profile && !overrides.profile) {
      return InvalidInput(fmt::format(
          "{}: the job file names no profile; add a line such as profile = \"profile.csv\"", path));
    }
  } else if (!path.empty()) {
    settings.profile = path;
  }
  job::Merge(overrides, &settings);
  return settings;
}

ProfileOptions ProfileOptionsOf(const JobFile& settings) {
  return {.baseline = settings.baseline.value_or(""), .strict = settings.strict.value_or(false)};
}

bool HasConditions(const JobFile& settings) {
  const std::span<const job::Field> fields = job::Fields();
  return std::any_of(fields.begin(), fields.end(), [&](const job::Field& field) {
    return field.condition() && job::IsSet(field, settings);
  });
}

void ApplyConditions(const JobFile& settings, Conditions* conditions) {
  const auto set = [](const auto& value, auto* target) {
    if (value) *target = *value;
  };
  // A single value takes the range of another one away.
  const auto set_range = [](const std::optional<ValueRange>& value, double* target,
                            std::optional<ValueRange>* range) {
    if (!value) return;
    *target = value->middle();
    *range = value->is_one() ? std::nullopt : value;
  };
  TimeNoise& noise = conditions->noise;
  ConditionRanges& ranges = conditions->ranges;
  set_range(settings.noise, &noise.per_computation, &ranges.noise);
  set(settings.stage_noise, &noise.per_stage);
  set(settings.gpu_noise, &noise.per_gpu);
  set_range(settings.rank_noise, &noise.per_rank, &ranges.rank_noise);
  set(settings.noise_correlation, &noise.correlation);
  set(settings.rare_noise, &noise.rare_length);
  set(settings.rare_noise_share, &noise.rare_share);
  ClockSwitching& switching = conditions->switching;
  set_range(settings.switch_latency_seconds, &switching.latency_seconds,
            &ranges.switch_latency_seconds);
  if (settings.switch_latency_seconds || !settings.switch_latency_at.empty()) {
    switching.latency_at = settings.switch_latency_at;
  }
  set(settings.switch_latency_spread_seconds, &switching.latency_spread_seconds);
  set(settings.switch_stall_seconds, &switching.stall_seconds);
  set(settings.call_ahead, &switching.call_ahead);
  set(settings.max_early_loss, &switching.max_early_loss);
  set(settings.min_call_interval_seconds, &switching.min_interval_seconds);
  set(settings.change_price_joules, &conditions->change_joules);
  set(settings.max_slowdown, &conditions->max_slowdown);
  set(settings.confidence, &conditions->confidence);
  set(settings.profile_errors, &conditions->profile_errors);
  if (settings.max_changes) conditions->max_changes = *settings.max_changes;
}

Conditions ConditionsOf(const JobFile& settings) {
  Conditions conditions;
  ApplyConditions(settings, &conditions);
  return conditions;
}

std::vector<std::string_view> MissingFields(const JobFile& settings, const Profile* profile) {
  std::vector<std::string_view> missing;
  const bool has_order = settings.schedule_file || settings.schedule_csv;
  if (!settings.schedule && !has_order) missing.emplace_back("schedule");
  if (!settings.microbatches && !has_order) missing.emplace_back("microbatches");
  const bool is_known = profile != nullptr && profile->SaysWaiting();
  if (settings.blocking_power_watts.empty() && !is_known) missing.emplace_back("blocking_power");
  return missing;
}

Result<Job> Job::Load(const std::string& path, const JobFile& overrides) {
  Result<JobFile> settings = LoadSettings(path, overrides);
  if (!settings) return tl::unexpected(settings.error());
  return Load(*std::move(settings));
}

Result<Job> Job::Load(JobFile settings) {
  // First of all: whoever mistyped a path wants to hear of that.
  if (!settings.profile) return InvalidInput("'profile' is missing");
  Result<Profile> profile = ReadProfile(*settings.profile, ProfileOptionsOf(settings));
  if (!profile) return AboutFile(settings, "profile", profile.error());
  return Make(*std::move(profile), std::move(settings));
}

namespace {

// Of a profile in memory, its own and what its numbers say. A file's rows say more than those of a
// profile, so what it has said already is not said again.
std::vector<Note> NotesOf(const Profile& profile) {
  std::vector<Note> notes = profile.notes;
  const bool was_read = !profile.sha256.empty();
  for (Note& note : profile.FindNotes()) {
    const bool is_worse =
        std::all_of(profile.notes.begin(), profile.notes.end(),
                    [&](const Note& known) { return known.severity < note.severity; });
    if (is_worse && (!was_read || note.severity != Severity::kOdd))
      notes.push_back(std::move(note));
  }
  return notes;
}

// Before the schedule is built, so that the sentence is about the stages.
Result<void> CheckSettings(const JobFile& settings, const Profile& profile) {
  if (auto good = CheckComplete(settings, profile); !good) return good;
  if (auto good = CheckStages(settings, profile); !good) return good;
  if (auto good = job::CheckOneSchedule(settings); !good) return good;
  if (!settings.schedule) return {};  // The reader of orders has its own limits.
  return CheckComputations(settings, profile);
}

// What settings, profile and schedule come to, which were checked one by one.
Result<Job> CostJob(Job job, const Schedule& schedule) {
  if (schedule.num_stages != job.profile.num_stages) {
    return InvalidInput(fmt::format("the schedule has {}, but {} has {}; they must be the same",
                                    Count(schedule.num_stages, "stage"), job.profile.source,
                                    Count(job.profile.num_stages, "stage")));
  }
  job.virtual_stages = schedule.virtual_stages();
  job.fixed.comm_delay_seconds = job.settings.comm_delay_seconds;
  job.fixed.data_loading_seconds = job.settings.data_loading_seconds.value_or(0);
  job.fixed.iteration_overhead_seconds = job.settings.iteration_overhead_seconds.value_or(0);
  Result<PipelineDag> dag = BuildDag(schedule, job.fixed);
  if (!dag) {
    return job.fixed.comm_delay_seconds.empty()
               ? tl::unexpected(dag.error())
               : AboutField(job.settings, "comm_delay", dag.error());
  }
  job.costs.blocking_power_watts = job.settings.blocking_power_watts;
  job.costs.waiting_is_constant = job.settings.waiting_is_constant;
  job.costs.tensor_parallel = job.settings.tensor_parallel;
  job.costs.split_ratio = job.settings.split_ratio.value_or(job.costs.split_ratio);
  std::vector<Note> notes = NotesOf(job.profile);
  Result<Work> work = WorkOfJob(job.settings, job.profile, *dag, &notes);
  if (!work) return tl::unexpected(work.error());
  job.costs.work = *std::move(work);
  Result<CostedPipeline> pipeline = CostPipeline(job.profile, *std::move(dag), job.costs);
  if (!pipeline) {
    const std::size_t powers = job.costs.blocking_power_watts.size();
    return powers == 1 || powers == static_cast<std::size_t>(schedule.num_ranks)
               ? tl::unexpected(pipeline.error())
               : AboutField(job.settings, "blocking_power", pipeline.error());
  }
  job.pipeline = *std::move(pipeline);
  const auto add = [&notes](std::vector<Note> more) {
    notes.insert(notes.end(), std::make_move_iterator(more.begin()),
                 std::make_move_iterator(more.end()));
  };
  add(job.pipeline.notes);
  add(job::CheckJob(job));
  if (job.settings.accept_implausible.value_or(false)) AcceptImplausible(&notes);
  job::SortNotes(&notes);
  if (auto good = RefuseNotes(notes, job.settings.strict.value_or(false)); !good) {
    return tl::unexpected(good.error());
  }
  job.notes = std::move(notes);
  return job;
}

}  // namespace

Result<Job> Job::Make(Profile profile, JobFile settings) {
  if (auto good = profile.Validate(); !good) return tl::unexpected(good.error());
  if (auto good = CheckSettings(settings, profile); !good) return tl::unexpected(good.error());
  const Result<Schedule> schedule = job::ScheduleOf(settings, profile.num_stages);
  if (!schedule) return tl::unexpected(schedule.error());
  Job job;
  if (settings.schedule) job.schedule = job::ScheduleSpecOf(settings, profile.num_stages);
  job.profile = std::move(profile);
  job.settings = std::move(settings);
  return CostJob(std::move(job), *schedule);
}

Result<Job> Job::Make(Profile profile, const Schedule& schedule, JobFile settings) {
  if (auto good = profile.Validate(); !good) return tl::unexpected(good.error());
  if (!settings.schedule_file) settings.schedule_file = schedule.name;
  if (auto good = CheckSettings(settings, profile); !good) return tl::unexpected(good.error());
  if (auto good = job::CheckShape(settings, schedule); !good) return tl::unexpected(good.error());
  Job job;
  job.profile = std::move(profile);
  job.settings = std::move(settings);
  return CostJob(std::move(job), schedule);
}

PlanConstraints ConstraintsOf(const JobFile& settings) {
  PlanConstraints constraints;
  constraints.granularity = settings.granularity.value_or(constraints.granularity);
  const TimeMargin margin = settings.time_margin.value_or(TimeMargin{});
  constraints.time_margin_sigmas = margin.sigmas;
  constraints.time_margin_fraction = margin.fraction;
  return constraints;
}

RobustPlanSpec RobustSpecOf(const JobFile& settings) {
  RobustPlanSpec spec;
  spec.conditions = ConditionsOf(settings);
  spec.constraints = ConstraintsOf(settings);
  spec.effort = settings.effort.value_or(spec.effort);
  spec.pipelines = settings.data_parallel.value_or(spec.pipelines);
  return spec;
}

StreamOptions StreamOptionsOf(const JobFile& settings) {
  StreamOptions options;
  options.target = settings.at.value_or(PlanTarget{});
  options.constraints = ConstraintsOf(settings);
  options.effort = settings.effort;
  return options;
}

PlanConstraints Job::Constraints() const { return ConstraintsOf(settings); }

PlannerOptions Job::SolverOptions() const {
  PlannerOptions options;
  options.slope_quantum_watts = settings.coarse_watts;
  options.exponential_fit = settings.exponential_fit.value_or(false);
  return options;
}

Result<Planner> Job::MakePlanner(const ProgressFunction& progress) const {
  PlannerOptions options = SolverOptions();
  options.progress = progress;
  return Planner::Create(pipeline, options);
}

Result<StreamPlanner> Job::MakeStream() const {
  if (HasConditions(settings)) {
    return InvalidInput(
        "'conditions' are for the one plan of a job: plans of single iterations know none; leave "
        "them out for a stream");
  }
  return StreamPlanner::Create(profile, pipeline.dag, costs, StreamOptionsOf(settings));
}

std::vector<Note> Job::NotesAt(const Frontier& frontier, double seconds) const {
  std::vector<Note> found = notes;
  if (seconds > frontier.tstar_seconds && !plan::SameTime(seconds, frontier.tstar_seconds)) {
    found.push_back(job::NoteOn(
        settings, "at", Severity::kOdd,
        fmt::format("the time asked for, {:.6g} s, is beyond T* ({:.6g} s), and more time than "
                    "that saves nothing; the least energy is with the target economic ({:.6g} s)",
                    seconds, frontier.tstar_seconds, frontier.economic_seconds)));
  }
  return found;
}

PlanContext Job::Context() const {
  PlanContext context;
  context.profile_source = profile.source;
  context.profile_sha256 = profile.sha256;
  context.data_parallel = DataParallel();
  context.constraints = Constraints();
  return context;
}

Result<PlanDocument> Job::Document(const Planner& planner, const perseus::Plan& plan) const {
  return Document(planner, plan, Constraints());
}

Result<PlanDocument> Job::Document(const Planner& planner, const perseus::Plan& plan,
                                   const PlanConstraints& constraints) const {
  if (planner.baseline().pipeline != pipeline.Fingerprint()) {
    return InvalidInput("the planner was made for another job; use one of this job's");
  }
  PlanContext context = Context();
  context.constraints = constraints;
  context.notes = NotesAt(planner.frontier(), plan.requested_time_seconds);
  return MakePlanDocument(planner, plan, context);
}

}  // namespace v0
}  // namespace perseus
