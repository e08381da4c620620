// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "job/job_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "common/input_limits.h"
#include "common/located_error.h"
#include "job/limits.h"
#include "perseus/work.h"

namespace perseus::job {
namespace {

constexpr NumberRange UpTo(int most) { return {.least = 1, .most = static_cast<double>(most)}; }

constexpr double kMostTokens = 1e12;
constexpr NumberRange kStages = UpTo(kMaxStages);
constexpr NumberRange kMicrobatches = UpTo(kMaxMicrobatches);
constexpr NumberRange kGpus = UpTo(kMaxGpus);
constexpr NumberRange kWatts = {.least = 0, .most = kMaxWatts};
constexpr NumberRange kSeconds = {.least = 0, .most = kMaxSeconds};
constexpr NumberRange kNoise = {.least = 0, .most = kMostNoise};
constexpr NumberRange kShare = {.least = 0, .most = 1};
constexpr NumberRange kJoules = {.least = 0, .most = kMaxJoules};
constexpr NumberRange kInnerShare = {
    .least = 0, .most = 1, .above_least = true, .below_most = true};

constexpr NumberRange kConfidence = {.least = 0.5, .most = 1, .below_most = true};

const std::array<Field, 41> kFields = {{
    {"profile", &JobFile::profile, Unit::kPath, {}},
    {"baseline", &JobFile::baseline, Unit::kLabel, {}},
    {"strict", &JobFile::strict, Unit::kNone, {}},
    {"schedule", &JobFile::schedule, Unit::kScheduleName, {}},
    {"schedule_file", &JobFile::schedule_file, Unit::kPath, {}},
    {"stages", &JobFile::stages, Unit::kNone, kStages},
    {"microbatches", &JobFile::microbatches, Unit::kNone, kMicrobatches},
    {"virtual_stages", &JobFile::virtual_stages, Unit::kNone, kStages},
    {"microbatch_group_size", &JobFile::microbatch_group_size, Unit::kNone, kMicrobatches},
    {"blocking_power", &JobFile::blocking_power_watts, Unit::kWatts, kWatts},
    {"tp", &JobFile::tensor_parallel, Unit::kNone, kGpus},
    {"dp", &JobFile::data_parallel, Unit::kNone, kGpus},
    {"split_ratio", &JobFile::split_ratio, Unit::kNone, kInnerShare},
    {"work", &JobFile::work, Unit::kPath, {.least = kLeastWork, .most = kMostWork}},
    {"work_fit", &JobFile::work_fit, Unit::kPath, {}},
    {"work_tokens",
     &JobFile::work_tokens,
     Unit::kNone,
     {.least = 0, .most = kMostTokens, .above_least = true}},
    {"time_margin", &JobFile::time_margin, Unit::kNone, {}},
    {"comm_delay", &JobFile::comm_delay_seconds, Unit::kSeconds, kSeconds},
    {"data_loading", &JobFile::data_loading_seconds, Unit::kSeconds, kSeconds},
    {"iteration_overhead", &JobFile::iteration_overhead_seconds, Unit::kSeconds, kSeconds},
    {"at", &JobFile::at, Unit::kNone, {}},
    {"granularity", &JobFile::granularity, Unit::kNone, {}},
    {"min_dwell", &JobFile::min_dwell_seconds, Unit::kSeconds, kSeconds},
    {"max_clocks", &JobFile::max_clocks, Unit::kNone, UpTo(kMaxClocks)},
    {"effort", &JobFile::effort, Unit::kNone, {.least = kMinEffort, .most = kMaxEffort}},
    {"coarse_watts", &JobFile::coarse_watts, Unit::kWatts, kWatts},
    {"exponential_fit", &JobFile::exponential_fit, Unit::kNone, {}},
    {"output", &JobFile::output, Unit::kPath, {}},
    {"noise", &JobFile::noise, Unit::kShare, kNoise, true},
    {"stage_noise", &JobFile::stage_noise, Unit::kShare, kNoise, true},
    {"gpu_noise", &JobFile::gpu_noise, Unit::kShare, kNoise, true},
    {"switch_latency", &JobFile::switch_latency_seconds, Unit::kSeconds, kSeconds, true},
    {"switch_latency_spread", &JobFile::switch_latency_spread_seconds, Unit::kSeconds, kSeconds,
     true},
    {"switch_stall", &JobFile::switch_stall_seconds, Unit::kSeconds, kSeconds, true},
    {"call_ahead", &JobFile::call_ahead, Unit::kNone, {}, true},
    {"max_early_loss", &JobFile::max_early_loss, Unit::kShare, kShare, true},
    {"min_call_interval", &JobFile::min_call_interval_seconds, Unit::kSeconds, kSeconds, true},
    {"change_price", &JobFile::change_price_joules, Unit::kJoules, kJoules, true},
    {"max_slowdown", &JobFile::max_slowdown, Unit::kShare, kShare, true},
    {"confidence", &JobFile::confidence, Unit::kShare, kConfidence, true},
    {"max_changes", &JobFile::max_changes, Unit::kNone, {.least = 0, .most = kMaxChanges}, true},
}};

template <typename T>
bool Has(const std::optional<T>& value) {
  return value.has_value();
}

bool Has(const std::vector<double>& value) { return !value.empty(); }

}  // namespace

std::span<const Field> Fields() { return kFields; }

const Field* FindField(std::string_view key) {
  const auto found = std::find_if(kFields.begin(), kFields.end(),
                                  [&](const Field& field) { return field.key == key; });
  return found == kFields.end() ? nullptr : &*found;
}

Quantity QuantityOf(Unit unit) {
  if (unit == Unit::kWatts) return kInWatts;
  return unit == Unit::kJoules ? kInJoules : Quantity{};
}

bool IsSet(const Field& field, const JobFile& settings) {
  return std::visit([&](auto member) { return Has(settings.*member); }, field.member);
}

Error AboutField(const JobFile& settings, std::string_view key, Error error) {
  const auto place = settings.places.find(key);
  if (place != settings.places.end()) {
    const JobPlace& at = place->second;
    Error located = ErrorAt(at.file, at.line, at.column, error.message);
    located.code = error.code;
    error = std::move(located);
  }
  error.field = key;
  return error;
}

Error AboutFile(const JobFile& settings, std::string_view key, Error error) {
  return error.code == ErrorCode::kIo ? AboutField(settings, key, std::move(error)) : error;
}

void Merge(const JobFile& overrides, JobFile* settings) {
  // A schedule by name and one from a file replace each other.
  if (overrides.schedule) settings->schedule_file.reset();
  if (overrides.schedule_file) settings->schedule.reset();
  for (const Field& field : kFields) {
    if (!IsSet(field, overrides)) continue;
    std::visit([&](auto member) { settings->*member = overrides.*member; }, field.member);
    settings->places.erase(std::string(field.key));
  }
}

}  // namespace perseus::job
