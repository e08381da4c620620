// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "planner_c/planner_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "common/numbers.h"
#include "job/job_fields.h"
#include "perseus/profile.h"
#include "perseus/schedule.h"
#include "planner_c/boundary.h"
#include "planner_c/profile_text.h"

namespace perseus::planner_c {
namespace {

using c_boundary::TextOf;

constexpr std::string_view kSettings = "settings";

// Without the place, "settings:1:17: ", which says nothing to whoever gave values one by one.
std::string WithoutPlace(std::string message) {
  std::string_view rest = message;
  if (!rest.starts_with(kSettings)) return message;
  rest.remove_prefix(kSettings.size());
  for (int part = 0; part < 2; ++part) {
    if (!rest.starts_with(':')) return message;
    rest.remove_prefix(1);
    const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    if (digits == 0) return message;
    rest.remove_prefix(digits);
  }
  if (!rest.starts_with(": ")) return message;
  rest.remove_prefix(2);
  return std::string(rest);
}

Result<Profile> ReadProfileOf(const perseus_planner_input& input, const JobFile& settings) {
  const ProfileOptions options = ProfileOptionsOf(settings);
  const std::string name = input.profile_name == nullptr ? "profile" : input.profile_name;
  if (input.profile_csv != nullptr) {
    const auto text = TextOf("profile_csv", input.profile_csv, input.profile_csv_size);
    if (!text) return tl::unexpected(text.error());
    return ParseProfile(*text, name, options);
  }
  if (input.profile_arrays != nullptr) {
    const auto arrays = c_boundary::CopyIn("perseus_profile_arrays", input.profile_arrays);
    if (!arrays) return tl::unexpected(arrays.error());
    if (arrays->reserved != 0) return InvalidInput("'reserved' of the profile's arrays is not 0");
    const Result<std::string> text = ProfileText(*arrays);
    if (!text) return tl::unexpected(text.error());
    return ParseProfile(*text, name, options);
  }
  if (!settings.profile) return InvalidInput("'profile' is missing");
  return ReadProfile(*settings.profile, options);
}

}  // namespace

Result<JobFile> ReadSettings(std::string_view json) {
  if (json.empty()) return JobFile{};
  Result<JobFile> settings = ParseJobFile(json, std::string(kSettings), JobFileFormat::kJson);
  if (!settings) {
    settings.error().message = WithoutPlace(std::move(settings.error().message));
    return settings;
  }
  settings->places.clear();
  return settings;
}

Result<JobFile> ReadPlanSettings(std::string_view json, const JobFile& job) {
  Result<JobFile> asked = ReadSettings(json);
  if (!asked) return asked;
  for (const job::Field& field : job::Fields()) {
    if (field.of_one_plan || field.condition() || !job::IsSet(field, *asked)) continue;
    return InvalidInput(
        fmt::format("'{}' is of the whole job and cannot be set for one plan; make another planner",
                    field.key));
  }
  JobFile settings = job;
  job::Merge(*asked, &settings);
  return settings;
}

Result<Job> ReadJob(const perseus_planner_input& input) {
  if (input.reserved != 0) return InvalidInput("'reserved' of the planner's input is not 0");
  const auto json = TextOf("settings_json", input.settings_json, input.settings_json_size);
  if (!json) return tl::unexpected(json.error());
  const Result<JobFile> overrides = ReadSettings(*json);
  if (!overrides) return tl::unexpected(overrides.error());
  const int profiles = static_cast<int>(input.profile_csv != nullptr) +
                       static_cast<int>(input.profile_arrays != nullptr);
  if (profiles > 1 || (profiles > 0 && (input.path != nullptr || overrides->profile))) {
    return InvalidInput("more than one profile is given; keep one of them");
  }
  Result<JobFile> settings =
      LoadSettings(input.path == nullptr ? std::string() : std::string(input.path), *overrides);
  if (!settings) return tl::unexpected(settings.error());
  Result<Profile> profile = ReadProfileOf(input, *settings);
  if (!profile) return tl::unexpected(profile.error());
  if (input.schedule_csv == nullptr) return Job::Make(*std::move(profile), *std::move(settings));
  if (overrides->schedule || overrides->schedule_file || overrides->schedule_csv) {
    return InvalidInput("'schedule' is given twice, by name and as CSV; keep one of them");
  }
  const std::string name = input.schedule_name == nullptr ? "schedule" : input.schedule_name;
  const auto text = TextOf("schedule_csv", input.schedule_csv, input.schedule_csv_size);
  if (!text) return tl::unexpected(text.error());
  const Result<Schedule> schedule = ParseSchedule(*text, name);
  if (!schedule) return tl::unexpected(schedule.error());
  // Instead of that of the job file.
  settings->schedule.reset();
  settings->schedule_csv.reset();
  settings->schedule_file = name;
  return Job::Make(*std::move(profile), *schedule, *std::move(settings));
}

}  // namespace perseus::planner_c
