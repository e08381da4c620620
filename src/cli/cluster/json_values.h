// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_CLUSTER_JSON_VALUES_H_
#define PERSEUS_CLI_CLUSTER_JSON_VALUES_H_

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "common/labels.h"
#include "perseus/job_file.h"
#include "perseus/plan.h"

// Members of what a server answered, for people. What is missing or of another type is
// nothing.
namespace perseus::cli {

// A member's text, safe for a terminal: a server's names may hold anything.
std::string MemberText(const nlohmann::ordered_json& object, const char* key);
std::optional<double> NumberOf(const nlohmann::ordered_json& object, const char* key);
// These live as long as `object`, or forever.
const nlohmann::ordered_json& ObjectOf(const nlohmann::ordered_json& object, const char* key);
const nlohmann::ordered_json& ListOf(const nlohmann::ordered_json& object, const char* key);

// "2026-11-27 08:10", in UTC, of a time in seconds since 1970; empty where the server says none
// that there can be.
std::string DayText(const nlohmann::ordered_json& object, const char* key);

// "18.2340 s"; empty where the member is no number.
std::string SecondsOf(const nlohmann::ordered_json& object, const char* key);

// "what         value"; empty where the value is.
std::string Line(const char* what, const std::string& value);

// Parts of a server's answer on a job, as lists and descriptions of jobs show them.

// Of a plan's figures: "12.30 %"; empty where it has none.
std::string SavingOf(const nlohmann::ordered_json& plan);

// Of a plan: the figures of all pipelines together.
const nlohmann::ordered_json& WholeJobOf(const nlohmann::ordered_json& plan);

// Whether it is finished, or its trainers have ended; a run with the same name goes on.
bool HasEnded(const nlohmann::ordered_json& job);

// "project=x, team=vision"; empty: none.
std::string LabelsOf(const nlohmann::ordered_json& job);

// The same for a query: "project:x,team:vision".
std::string LabelFilter(const JobLabels& labels);

// A plan against iterations at default clocks; nothing where that was not measured.
std::optional<DefaultClockFigures> DefaultClocksOf(const nlohmann::ordered_json& plan);

// "profiling"; "profiling, ended".
std::string StateOf(const nlohmann::ordered_json& job);

// Whether ranks have reported, and none of them follows the plan, which then saves nothing.
bool NobodyFollows(const nlohmann::ordered_json& job);

// Of a job, or of what its plan predicts.
bool IsBelievable(const nlohmann::ordered_json& object);

// The present saving of a job by its plan.
std::string SavingNow(const nlohmann::ordered_json& job);

// Whether the plan that a job follows is a first one, while a better one is searched for.
bool HasFirstPlan(const nlohmann::ordered_json& job);

// How many pipelines are slow.
long long SlowPipelines(const nlohmann::ordered_json& job);

// Of a list or of a number.
std::string CountText(const nlohmann::ordered_json& value);

// The settings as the server takes them: without those that name files.
nlohmann::ordered_json SettingsJson(const JobFile& settings);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_CLUSTER_JSON_VALUES_H_
