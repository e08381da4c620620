// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/planning/job_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/belief.h"
#include "common/json_text.h"
#include "job/job.h"
#include "job/job_fields.h"
#include "perseus/job.h"
#include "perseus/job_file.h"
#include "perseus/profile.h"
#include "perseus/schedule.h"
#include "robust/plan_under.h"
#include "server/base/failure.h"
#include "server/planning/conditions_state.h"
#include "server/planning/measured_times.h"
#include "server/store/store.h"

namespace perseus::server {

std::string FormatLibraryRequest(const LibraryRequest& request) {
  return FormatCompact({{"model", request.model},
                        {"microbatch_size", request.microbatch_size},
                        {"may_reuse", request.may_reuse}});
}

LibraryRequest ParseLibraryRequest(const std::string& json) {
  LibraryRequest request;
  const auto tree = ParseObject(json);
  if (tree.is_null()) return request;
  const auto model = tree.find("model");
  const auto size = tree.find("microbatch_size");
  const auto may_reuse = tree.find("may_reuse");
  if (model != tree.end() && model->is_string()) request.model = *model;
  if (size != tree.end() && size->is_number()) request.microbatch_size = *size;
  if (may_reuse != tree.end() && may_reuse->is_boolean()) request.may_reuse = *may_reuse;
  return request;
}
namespace {

constexpr const char* kSettingsName = "job";
constexpr const char* kProfileName = "profile_csv";
constexpr std::size_t kMostModelBytes = 256;
constexpr const char* kAccepting = "set 'accept_implausible' to true";

// The settings with the keys of job files only.
Outcome<std::string> WithJobFileKeys(const std::string& settings_json) {
  auto settings = ParseObject(settings_json);
  if (settings.is_null()) return Fail(FailureCode::kInvalid, "'job' must be a JSON object", "job");
  for (const job::Field& field : job::Fields()) {
    if (field.unit != job::Unit::kPath) continue;
    // A list is no path: the factors of `work`. The reader refuses one for the others.
    const auto value = settings.find(field.key);
    if (value == settings.end() || value->is_array()) continue;
    return Fail(
        FailureCode::kInvalid,
        fmt::format("'{}' names a file, and the server reads none; send 'schedule' by name, "
                    "or its file's text as 'schedule_csv', the profile's text as 'profile_csv' "
                    "and 'work' as factors",
                    field.key),
        fmt::format("job.{}", field.key));
  }
  constexpr std::array<std::array<const char*, 2>, 2> kSpellings = {
      {{"tensor_parallel", "tp"}, {"data_parallel", "dp"}}};
  for (const auto& [long_key, key] : kSpellings) {
    if (!settings.contains(long_key)) continue;
    if (settings.contains(key)) {
      return Fail(FailureCode::kInvalid,
                  fmt::format("'{}' and '{}' are the same; keep one of them", long_key, key),
                  fmt::format("job.{}", long_key));
    }
    settings[key] = settings[long_key];
    settings.erase(long_key);
  }
  return FormatCompact(settings);
}

// Takes the job's request to the profile library out.
Outcome<std::string> TakeLibraryKeys(std::string* settings_json) {
  auto settings = ParseObject(*settings_json);
  LibraryRequest request;
  const auto take = [&](const char* key) {
    nlohmann::ordered_json value = settings.value(key, nlohmann::ordered_json());
    settings.erase(key);
    return value;
  };
  const auto wrong = [](const char* key, const char* expected) {
    return Fail(FailureCode::kInvalid, fmt::format("'{}' must be {}", key, expected),
                fmt::format("job.{}", key));
  };
  if (const auto model = take("model"); !model.is_null()) {
    if (!model.is_string()) return wrong("model", "text that names the model");
    request.model = model;
    if (request.model.empty() || request.model.size() > kMostModelBytes) {
      return wrong("model", "text of 1 to 256 bytes that names the model");
    }
  }
  if (const auto size = take("microbatch_size"); !size.is_null()) {
    if (!size.is_number() || !IsPositive(size)) return wrong("microbatch_size", "above 0");
    request.microbatch_size = size;
  }
  if (const auto reuse = take("reuse_profile"); !reuse.is_null()) {
    if (!reuse.is_boolean()) return wrong("reuse_profile", "true or false");
    request.may_reuse = reuse;
  }
  *settings_json = FormatCompact(settings);
  return FormatLibraryRequest(request);
}

Outcome<Shape> CheckedShape(std::int64_t pipeline_parallel, const JobFile& settings) {
  Shape shape;
  shape.pipeline_parallel = static_cast<int>(pipeline_parallel);
  shape.data_parallel = settings.data_parallel.value_or(1);
  shape.tensor_parallel = settings.tensor_parallel.value_or(1);
  if (shape.world_size() > kMostRanks) {
    return Fail(FailureCode::kTooLarge,
                fmt::format("the job has {} ranks; one server takes at most {}", shape.world_size(),
                            kMostRanks),
                "job");
  }
  return shape;
}

Outcome<void> CheckComputations(std::int64_t computations) {
  if (computations <= kMostComputations) return {};
  return Fail(
      FailureCode::kTooLarge,
      fmt::format("an iteration of a pipeline has {} computations or more; one server takes "
                  "at most {}: give fewer microbatches, of which the steady ones repeat",
                  computations, kMostComputations),
      "job.microbatches");
}

// Plans under conditions are replayed hundreds of times with all pipelines, which nothing but their
// end interrupts.
Outcome<void> CheckHeld(std::int64_t computations, const JobFile& settings) {
  const std::int64_t pipelines = settings.data_parallel.value_or(1);
  if (!HasConditions(settings) || computations * pipelines <= kMostHeldComputations) return {};
  return Fail(FailureCode::kTooLarge,
              fmt::format("an iteration has {} computations in {} pipelines; a server plans under "
                          "conditions for at most {} in all: leave 'conditions' out",
                          computations, pipelines, kMostHeldComputations),
              "job.conditions");
}

// Before anything is built of them.
Outcome<void> CheckComputations(std::int64_t stages, const JobFile& settings) {
  return CheckComputations(2 * stages * settings.microbatches.value_or(0));
}

// Of a job whose ranks measure: everything but the costs.
Outcome<Shape> ShapeWithoutProfile(const JobFile& settings) {
  const bool is_named = settings.schedule && settings.microbatches && settings.stages;
  if (!is_named && !settings.schedule_csv) {
    return Fail(FailureCode::kInvalid,
                "without a profile the job needs 'schedule', 'microbatches' and 'stages', or "
                "'schedule_csv'",
                "job");
  }
  if (is_named) {
    if (auto few = CheckComputations(*settings.stages, settings); !few) {
      return tl::unexpected(few.error());
    }
  }
  const Result<Schedule> schedule = job::ScheduleOf(settings, settings.stages.value_or(0));
  if (!schedule) return Invalid(schedule.error());
  std::int64_t computations = 0;
  for (const auto& steps : schedule->ranks) {
    computations += static_cast<std::int64_t>(steps.size());
  }
  if (auto few = CheckComputations(computations); !few) return tl::unexpected(few.error());
  if (auto few = CheckHeld(computations, settings); !few) return tl::unexpected(few.error());
  return CheckedShape(schedule->num_ranks, settings);
}

// Checks the waiting power, before anything is measured.
Result<void> CheckBelievable(const JobFile& settings) {
  if (settings.accept_implausible.value_or(false)) return {};
  const auto note = job::CheckWaitingPower(settings, settings.blocking_power_watts);
  return note ? RefuseUnbelievable({*note}, kAccepting) : Result<void>();
}

Result<Profile> ProfileOf(const std::string& csv, const JobFile& settings) {
  Result<Profile> profile = ParseProfile(csv, kProfileName, ProfileOptionsOf(settings));
  if (!profile) return profile;
  if (!profile->knobs_are_numbers) {
    return InvalidInput(
        "the profile's knobs are labels, but ranks can only follow SM clocks; give clocks in MHz");
  }
  if (profile->knobs.size() > static_cast<std::size_t>(store::kMaxKnobs)) {
    return InvalidInput(fmt::format("the profile has {} clocks; {} are the most",
                                    profile->knobs.size(), store::kMaxKnobs));
  }
  return profile;
}

Note NoteOf(const TimeCorrection& correction) {
  return {.severity = Severity::kOdd,
          .text = fmt::format("plans are made for the times that training shows: computations "
                              "of {} stages take {:+.1f} to {:+.1f} % against the profile",
                              correction.stages, 100 * (correction.least - 1),
                              100 * (correction.most - 1))};
}

}  // namespace

tl::unexpected<Failure> Invalid(const Error& error) {
  const FailureCode code =
      error.code == ErrorCode::kInternal ? FailureCode::kInternal : FailureCode::kInvalid;
  return Fail(code, error.message);
}

Outcome<JobDescription> DescriptionOf(const std::string& settings_json) {
  Outcome<std::string> text = WithJobFileKeys(settings_json);
  if (!text) return tl::unexpected(text.error());
  Outcome<std::string> library = TakeLibraryKeys(&*text);
  if (!library) return tl::unexpected(library.error());
  return JobDescription{.settings_json = *std::move(text), .library_json = *std::move(library)};
}

Outcome<JobSpec> MakeJobSpec(const std::string& settings_json, const std::string& profile_csv) {
  Outcome<JobDescription> description = DescriptionOf(settings_json);
  if (!description) return tl::unexpected(description.error());
  const std::string& text = description->settings_json;
  Result<JobFile> settings = ParseJobFile(text, kSettingsName, JobFileFormat::kJson);
  if (!settings) return Fail(FailureCode::kInvalid, settings.error().message, "job");
  const bool measures = settings->measures_conditions;
  if (measures) SetConditions(PlannedConditions(), &*settings);
  if (HasConditions(*settings)) {
    const int pipelines = settings->data_parallel.value_or(1);
    const auto checked = robust::CheckConditions(ConditionsOf(*settings), pipelines);
    if (!checked) return Fail(FailureCode::kInvalid, checked.error().message, "job.conditions");
  }
  if (settings->schedule_csv && settings->schedule_csv->size() > kMostScheduleBytes) {
    return Fail(FailureCode::kTooLarge,
                fmt::format("'schedule_csv' has {} bytes; {} are the most",
                            settings->schedule_csv->size(), kMostScheduleBytes),
                "job.schedule_csv");
  }
  JobSpec spec;
  spec.settings_json = text;
  spec.library_json = description->library_json;
  if (measures) spec.conditions_json = FormatConditionsState({});
  spec.profile_csv = profile_csv;
  Outcome<Shape> shape;
  if (profile_csv.empty()) {
    shape = ShapeWithoutProfile(*settings);
    if (auto good = CheckBelievable(*settings); !good) spec.doubt = good.error().message;
  } else {
    Result<Profile> profile = ProfileOf(profile_csv, *settings);
    if (!profile) return Fail(FailureCode::kInvalid, profile.error().message, "profile_csv");
    if (auto few = CheckComputations(profile->num_stages, *settings); !few) {
      return tl::unexpected(few.error());
    }
    const Result<Job> job = Job::Make(*std::move(profile), *settings);
    if (!job) return Invalid(job.error());
    if (auto few = CheckComputations(job->pipeline.dag.size()); !few) {
      return tl::unexpected(few.error());
    }
    if (auto few = CheckHeld(job->pipeline.dag.size(), *settings); !few) {
      return tl::unexpected(few.error());
    }
    if (auto good = RefuseUnbelievable(job->notes, kAccepting); !good) {
      return Invalid(good.error());
    }
    shape = CheckedShape(job->pipeline.dag.num_ranks, *settings);
    if (shape) shape->tensor_parallel = job->pipeline.tensor_parallel;
  }
  if (!shape) return tl::unexpected(shape.error());
  spec.shape = *shape;
  return spec;
}

Result<Schedule> ScheduleOfSettings(const std::string& settings_json) {
  const Result<JobFile> settings = ParseJobFile(settings_json, kSettingsName, JobFileFormat::kJson);
  if (!settings) return tl::unexpected(settings.error());
  return job::ScheduleOf(*settings, settings->stages.value_or(0));
}

Result<std::vector<ComputationCounts>> CountsOfSettings(const std::string& settings_json) {
  const Result<Schedule> schedule = ScheduleOfSettings(settings_json);
  if (!schedule) return tl::unexpected(schedule.error());
  std::vector<ComputationCounts> counts;
  for (const std::vector<ScheduleStep>& steps : schedule->ranks) {
    ComputationCounts& of_rank = counts.emplace_back();
    for (const ScheduleStep& step : steps) {
      ++of_rank[{step.id.type, step.id.stage}];
      if (step.fused) ++of_rank[{step.fused->type, step.fused->stage}];
    }
  }
  return counts;
}

Result<Measurable> MeasurableOf(const std::string& settings_json) {
  const Result<Schedule> schedule = ScheduleOfSettings(settings_json);
  if (!schedule) return tl::unexpected(schedule.error());
  Measurable measurable;
  measurable.num_stages = schedule->num_stages;
  const auto is_part = [](const ScheduleStep& step) {
    return step.id.type == ComputationType::kBackwardInput ||
           step.id.type == ComputationType::kBackwardWeight;
  };
  const auto is_recompute = [](const ScheduleStep& step) {
    return step.id.type == ComputationType::kRecompute;
  };
  for (const auto& steps : schedule->ranks) {
    measurable.splits_backward |= std::any_of(steps.begin(), steps.end(), is_part);
    measurable.recomputes |= std::any_of(steps.begin(), steps.end(), is_recompute);
  }
  return measurable;
}

Result<std::shared_ptr<const Job>> BuildJob(const store::JobRecord& record) {
  Result<JobFile> settings =
      ParseJobFile(record.settings_json, kSettingsName, JobFileFormat::kJson);
  if (!settings) return tl::unexpected(settings.error());
  settings->places.clear();  // In a text that nobody has seen.
  const auto conditions = ParseConditionsState(record.conditions_json);
  if (conditions) SetConditions(conditions->plan, &*settings);
  Result<Profile> profile = ProfileOf(record.profile_csv, *settings);
  if (!profile) return tl::unexpected(profile.error());
  if (conditions) SetTransfers(conditions->plan.transfers, profile->num_stages, &*settings);
  // Rows of waiting by clock say more.
  if (settings->blocking_power_watts.empty() && !profile->SaysWaiting()) {
    settings->blocking_power_watts = record.blocking_power_watts;
  }
  const bool is_unknown = settings->blocking_power_watts.empty() && !profile->SaysWaiting();
  settings->blocking_power_is_assumed = is_unknown;
  // A GPU that has all stages waits for no other, so it measures no waiting, and needs none until
  // another pipeline is slow; others may wait too little to measure it. At 0 W waiting costs
  // nothing: no plan then slows a computation down for more than it saves itself.
  if (is_unknown) settings->blocking_power_watts = {0};
  // Clients set a clock for waiting where gaps are surely long enough, so plans without conditions,
  // which wait at it in every gap, would predict more than is kept. Those under conditions know
  // that.
  settings->waiting_is_constant = !HasConditions(*settings);
  const auto too_large = [](const Failure& failure) { return InvalidInput(failure.message); };
  if (auto few = CheckComputations(profile->num_stages, *settings); !few) {
    return too_large(few.error());
  }
  Result<Job> job = Job::Make(*profile, *settings);
  if (!job) return tl::unexpected(job.error());
  if (auto few = CheckComputations(job->pipeline.dag.size()); !few) return too_large(few.error());
  if (conditions && !conditions->plan.times.empty()) {
    const TimeCorrection correction =
        CorrectTimes(job->pipeline, conditions->plan.times, &*profile);
    job = Job::Make(*std::move(profile), *std::move(settings));
    if (!job) return tl::unexpected(job.error());
    if (correction.stages > 0) job->notes.push_back(NoteOf(correction));
  }
  if (is_unknown) {
    job->notes.push_back(
        {.severity = Severity::kOdd,
         .text = record.pipeline_parallel > 1
                     ? "GPUs waited too little to measure the power of one that waits; 0 W is "
                       "assumed, so the energy of waiting is in no figure; give 'blocking_power' "
                       "if you know it"
                     : "a GPU with all stages never waits within an iteration, so nobody measured "
                       "its power while it waits; 0 W is assumed, and what is saved while another "
                       "pipeline is slow may be more; give 'blocking_power' if you know it"});
  }
  return std::make_shared<const Job>(*std::move(job));
}

PlanTarget TargetOf(const store::JobRecord& record) {
  if (!record.target.empty()) {
    if (const Result<PlanTarget> target = ParsePlanTarget(record.target)) return *target;
  }
  const Result<JobFile> settings =
      ParseJobFile(record.settings_json, kSettingsName, JobFileFormat::kJson);
  return settings && settings->at ? *settings->at : PlanTarget{};
}

}  // namespace perseus::server
