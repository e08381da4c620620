// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "job/job_schedule.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "job/job_fields.h"

namespace perseus::job {
namespace {

constexpr const char* kText = "schedule_csv";

tl::unexpected<Error> About(const JobFile& settings, std::string_view key, Error error) {
  return tl::unexpected<Error>(AboutField(settings, key, std::move(error)));
}

// The setting that an error of BuildSchedule() asks to change.
std::string_view BlamedSetting(std::string_view sentence) {
  const auto says = [sentence](std::string_view words) {
    return sentence.find(words) != std::string_view::npos;
  };
  if (says("virtual_stages")) return "virtual_stages";
  if (says("microbatch_group_size") || says("use groups of")) return "microbatch_group_size";
  return says("microbatches") ? "microbatches" : "schedule";
}

Result<Schedule> Checked(const JobFile& settings, Result<Schedule> schedule) {
  if (!schedule) return schedule;
  if (auto good = CheckShape(settings, *schedule); !good) return tl::unexpected(good.error());
  return schedule;
}

}  // namespace

Result<void> CheckOneSchedule(const JobFile& settings) {
  const char* const other = settings.schedule_csv ? kText : "schedule_file";
  const int given = static_cast<int>(settings.schedule.has_value()) +
                    static_cast<int>(settings.schedule_file.has_value()) +
                    static_cast<int>(settings.schedule_csv.has_value());
  if (given < 2) return {};
  return InvalidInput(fmt::format("'{}' and '{}' exclude each other; keep one of them",
                                  settings.schedule ? "schedule" : "schedule_file", other));
}

Result<void> CheckShape(const JobFile& settings, const Schedule& schedule) {
  const std::string name = settings.schedule_file.value_or(kText);
  struct Said {
    std::string_view key;
    std::optional<int> value;
    int has;
    std::string_view one;
    std::string_view several;
  };
  for (const Said& said :
       {Said{"stages", settings.stages, schedule.num_stages, "stage", "stages"},
        Said{"microbatches", settings.microbatches, schedule.num_microbatches, "microbatch",
             "microbatches"},
        Said{"virtual_stages", settings.virtual_stages, schedule.virtual_stages(),
             "stage on each rank", "stages on each rank"}}) {
    if (!said.value || *said.value == said.has) continue;
    return About(settings, said.key,
                 {ErrorCode::kInvalidInput,
                  fmt::format("'{}' is {}, but {} has {} {}; with a schedule file it may be left "
                              "out",
                              said.key, *said.value, name, said.has,
                              said.has == 1 ? said.one : said.several)});
  }
  return {};
}

ScheduleSpec ScheduleSpecOf(const JobFile& settings, int num_stages) {
  ScheduleSpec spec;
  spec.name = settings.schedule.value_or("");
  spec.num_stages = num_stages;
  spec.virtual_stages = settings.virtual_stages.value_or(1);
  spec.num_microbatches = settings.microbatches.value_or(0);
  spec.microbatch_group_size = settings.microbatch_group_size;
  return spec;
}

Result<Schedule> ScheduleOf(const JobFile& settings, int num_stages) {
  if (settings.schedule_csv) {
    return Checked(settings, ParseSchedule(*settings.schedule_csv, kText));
  }
  if (settings.schedule_file) {
    Result<Schedule> read = ReadSchedule(*settings.schedule_file);
    if (!read) return tl::unexpected(AboutFile(settings, "schedule_file", read.error()));
    return Checked(settings, std::move(read));
  }
  Result<Schedule> built = BuildSchedule(ScheduleSpecOf(settings, num_stages));
  if (built) return built;
  return About(settings, BlamedSetting(built.error().message), built.error());
}

}  // namespace perseus::job
