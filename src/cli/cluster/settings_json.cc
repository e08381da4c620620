// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/cluster/settings_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "job/job_fields.h"
#include "job/setting_text.h"
#include "perseus/job_file.h"

namespace perseus::cli {
namespace {

using Json = nlohmann::ordered_json;

// A value of a job file; nullopt for paths.
class ValueJson {
 public:
  ValueJson(const job::Field& field, const JobFile& settings) : field_(field), job_(settings) {}

  std::optional<Json> operator()(std::optional<std::string> JobFile::*member) const {
    if (field_.unit == job::Unit::kPath) return std::nullopt;
    return Json(*(job_.*member));
  }
  std::optional<Json> operator()(std::optional<PlanTarget> JobFile::*member) const {
    return Json(PlanTargetText(*(job_.*member)));
  }
  std::optional<Json> operator()(std::optional<Granularity> JobFile::*member) const {
    return Json(GranularityName(*(job_.*member)));
  }
  std::optional<Json> operator()(std::optional<CallAhead> JobFile::*member) const {
    return Json(CallAheadName(*(job_.*member)));
  }
  std::optional<Json> operator()(std::optional<TimeMargin> JobFile::*member) const {
    const TimeMargin& margin = *(job_.*member);
    return Json(fmt::format("{}sigma,{}%", margin.sigmas, 100 * margin.fraction));
  }
  std::optional<Json> operator()(std::optional<WorkSetting> JobFile::*member) const {
    const WorkSetting& work = *(job_.*member);
    return work.factors.empty() ? std::nullopt : std::optional(Json(work.factors));
  }
  std::optional<Json> operator()(std::optional<ValueRange> JobFile::*member) const {
    const ValueRange& range = *(job_.*member);
    if (range.is_one()) return Json(range.least);
    return Json(fmt::format("{}-{}", range.least, range.most));
  }
  std::optional<Json> operator()(std::vector<double> JobFile::*member) const {
    return Json(job_.*member);
  }
  std::optional<Json> operator()(std::vector<ClockLatency> JobFile::*member) const {
    return Json(job::ClockLatenciesText(job_.*member));
  }
  template <typename T>
  std::optional<Json> operator()(std::optional<T> JobFile::*member) const {
    return Json(*(job_.*member));
  }

 private:
  const job::Field& field_;
  const JobFile& job_;
};

}  // namespace

Json SettingsJson(const JobFile& settings) {
  Json json = Json::object();
  if (settings.measures_conditions) json[std::string(job::kConditionsTable)] = Json::object();
  for (const job::Field& field : job::Fields()) {
    if (!job::IsSet(field, settings)) continue;
    if (auto value = std::visit(ValueJson(field, settings), field.member)) {
      Json& table = field.condition() ? json[std::string(job::kConditionsTable)] : json;
      table[std::string(field.key)] = *std::move(value);
    }
  }
  return json;
}

}  // namespace perseus::cli
