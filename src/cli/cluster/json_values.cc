// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/cluster/json_values.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/framework/table.h"
#include "common/printable.h"

namespace perseus::cli {

std::string MemberText(const nlohmann::ordered_json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return "";
  return Printable(found->is_string() ? found->get<std::string>() : found->dump());
}

std::optional<double> NumberOf(const nlohmann::ordered_json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

const nlohmann::ordered_json& ObjectOf(const nlohmann::ordered_json& object, const char* key) {
  static const nlohmann::ordered_json kNothing = nlohmann::ordered_json::object();
  const auto found = object.find(key);
  return found == object.end() || !found->is_object() ? kNothing : *found;
}

const nlohmann::ordered_json& ListOf(const nlohmann::ordered_json& object, const char* key) {
  static const nlohmann::ordered_json kNothing = nlohmann::ordered_json::array();
  const auto found = object.find(key);
  return found == object.end() || !found->is_array() ? kNothing : *found;
}

std::string DayText(const nlohmann::ordered_json& object, const char* key) {
  constexpr double kMostSeconds = 2e11;
  const double seconds = NumberOf(object, key).value_or(0);
  if (!(seconds > 0 && seconds < kMostSeconds)) return "";
  return fmt::format("{:%Y-%m-%d %H:%M}", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

std::string SecondsOf(const nlohmann::ordered_json& object, const char* key) {
  const auto number = NumberOf(object, key);
  return number ? FormatSeconds(*number) : "";
}

std::string Line(const char* what, const std::string& value) {
  return value.empty() ? "" : fmt::format("{:<12} {}\n", what, value);
}

std::string SavingOf(const nlohmann::ordered_json& plan) {
  const auto percent = NumberOf(plan, "saving_percent");
  return percent ? FormatPercent(*percent, 2) : "";
}

const nlohmann::ordered_json& WholeJobOf(const nlohmann::ordered_json& plan) {
  const nlohmann::ordered_json& whole = ObjectOf(plan, "whole_job");
  return whole.empty() ? plan : whole;
}

bool HasEnded(const nlohmann::ordered_json& job) {
  return job.value("ended", nlohmann::ordered_json()) == true ||
         MemberText(job, "state") == "finished";
}

std::string LabelsOf(const nlohmann::ordered_json& job) {
  std::string text;
  for (const auto& [name, value] : ObjectOf(job, "labels").items()) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", Printable(name),
                        value.is_string() ? Printable(value.get<std::string>()) : "");
  }
  return text;
}

std::string LabelFilter(const JobLabels& labels) {
  std::string text;
  for (const auto& [name, value] : labels) {
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", name, value);
  }
  return text;
}

std::optional<DefaultClockFigures> DefaultClocksOf(const nlohmann::ordered_json& plan) {
  const nlohmann::ordered_json& default_clocks = ObjectOf(plan, "default_clocks");
  const auto seconds = NumberOf(default_clocks, "iteration_time_s");
  const auto joules = NumberOf(default_clocks, "energy_j");
  const auto slowdown = NumberOf(default_clocks, "slowdown_percent");
  const auto saving = NumberOf(default_clocks, "saving_percent");
  if (!seconds || !joules || !slowdown || !saving) return std::nullopt;
  return DefaultClockFigures{.iteration_time_seconds = *seconds,
                             .energy_joules = *joules,
                             .slowdown_percent = *slowdown,
                             .saving_percent = *saving};
}

std::string StateOf(const nlohmann::ordered_json& job) {
  return MemberText(job, "state") +
         (HasEnded(job) && MemberText(job, "state") != "finished" ? ", ended" : "");
}

bool NobodyFollows(const nlohmann::ordered_json& job) {
  return NumberOf(job, "following") == 0 && !HasEnded(job);
}

bool IsBelievable(const nlohmann::ordered_json& object) {
  return object.value("believable", nlohmann::ordered_json()) != false;
}

std::string SavingNow(const nlohmann::ordered_json& job) {
  std::string saving = SavingOf(WholeJobOf(ObjectOf(job, "plan")));
  if (saving.empty()) return saving;
  if (NobodyFollows(job)) return "none now";
  return IsBelievable(job) ? saving : "not believable";
}

bool HasFirstPlan(const nlohmann::ordered_json& job) {
  return !ObjectOf(job, "plan").empty() &&
         job.value("refined", nlohmann::ordered_json()) == false &&
         MemberText(job, "state") != "finished";
}

long long SlowPipelines(const nlohmann::ordered_json& job) {
  for (const char* const key : {"slow_pipelines", "stragglers"}) {
    const auto count = job.find(key);
    if (count != job.end() && count->is_number_integer()) return count->get<long long>();
  }
  return static_cast<long long>(ListOf(job, "stragglers").size());
}

std::string CountText(const nlohmann::ordered_json& value) {
  return value.is_array() ? std::to_string(value.size()) : Printable(value.dump());
}

}  // namespace perseus::cli
