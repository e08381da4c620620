// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/api/profile_json.h"

#include <nlohmann/json.hpp>

#include "server/api/api_schemas.h"
#include "server/api/conditions_json.h"
#include "server/domain/profiling_summary.h"

namespace perseus::server {
namespace {

using Json = nlohmann::ordered_json;

constexpr Field kProfileCellMembers[] = {
    Integer("stage"), Choice("instruction", kComputationTypeNames), Integer("frequency")};
constexpr Field kWaitingShownMembers[] = {
    Integer("pp_rank").Sometimes(), Integer("frequency").Sometimes(), Number("power_w").Sometimes(),
    Number("power_std_w").Sometimes(),
    Boolean("doubtful").Sometimes().Says("Its standard error is above a tenth of it.")};
constexpr Field kSweepShownMembers[] = {
    Integer("ranks").Sometimes(),         Integer("iterations").Sometimes(),
    Number("seconds").Sometimes(),        Number("joules").Sometimes(),
    Number("extra_seconds").Sometimes(),  Number("extra_joules").Sometimes(),
    Number("counter_period_s").Optional()};
constexpr Field kNoteShownMembers[] = {
    Text("note").Sometimes(), Integer("ranks").Sometimes().Says("How many ranks said it."),
    Integer("first_ranks").List().Sometimes().Says("The first of them.")};
constexpr Field kProfilingMembers[] = {
    Number("blocking_power_w").List().Sometimes().Says("By rank of the pipeline."),
    Number("blocking_power_std_w").List().Sometimes(),
    Object("waiting", "WaitingShown")
        .List()
        .Sometimes()
        .Says(
            "What a GPU that waits draws by clock. Empty: no rank's sweep shows that it depends on "
            "the clock, so `blocking_power_w` is taken as constant."),
    Object("sweep", "SweepShown").Optional().Says("Of the longest rank; joules of all ranks."),
    Object("throttled", "ProfileCell")
        .List()
        .Sometimes()
        .Says("Rows that only GPUs measured which slowed themselves down."),
    Object("notes", "NoteShown").List().Sometimes(),
    Boolean("again").Sometimes().Says(
        "Whether the ranks measure anew, under the plans of the profile before.")};
constexpr Field kProfileMembers[] = {
    Text("id"),
    Text("model"),
    Text("job"),
    Number("created_at"),
    Boolean("reusable")
        .Sometimes()
        .Says(
            "Whether another job may find it: its job had a label, and all ranks said their GPUs."),
    Number("blocking_power_w").List().Sometimes(),
    Object("metadata").Optional(),
    Object("conditions", "KeptConditions")
        .Nullable()
        .Says("null: no job that used it has measured enough."),
    Text("profile_csv").Sometimes()};
constexpr Field kDriftShownMembers[] = {
    Integer("stage").Sometimes(),        Text("instruction").Sometimes(),
    Integer("frequency").Sometimes(),    Number("percent").Sometimes(),
    Number("measured_s").Sometimes(),    Number("profile_s").Sometimes(),
    Integer("computations").Sometimes(), Text("sentence").Sometimes()};
constexpr Field kProfileListMembers[] = {Object("profiles", "Profile").List()};
constexpr AnyMessage kProfileSchemas[] = {
    {"ProfileCell", kProfileCellMembers},
    {"SweepShown", kSweepShownMembers},
    {"WaitingShown", kWaitingShownMembers},
    {"NoteShown", kNoteShownMembers},
    {"Profiling", kProfilingMembers, "What ranks said of their measurements."},
    {"Drift", kDriftShownMembers},
    {"Profile", kProfileMembers, "A profile that some job measured, kept beyond it."},
    {"ProfileList", kProfileListMembers}};

}  // namespace

Schemas ProfileSchemas() { return kProfileSchemas; }

Json DriftJson(const std::vector<Drift>& drifts) {
  Json list = Json::array();
  for (const Drift& drift : drifts) {
    Json json = ProfileKeyJson(drift.key);
    json["percent"] = 100 * (drift.ratio() - 1);
    json["measured_s"] = drift.measured_seconds;
    json["profile_s"] = drift.profile_seconds;
    json["computations"] = drift.computations;
    json["sentence"] = DriftText(drift);
    list.push_back(std::move(json));
  }
  return list;
}

Json ProfileRecordJson(const store::ProfileRecord& profile) {
  Json json = {{"id", profile.id},
               {"model", profile.model},
               {"job", profile.job},
               {"created_at", profile.created_at_seconds},
               {"reusable", !profile.layout.empty()},
               {"blocking_power_w", profile.blocking_power_watts}};
  json["metadata"] = Json::parse(profile.metadata_json, nullptr, false);
  if (json["metadata"].is_discarded()) json["metadata"] = nullptr;
  json["conditions"] = KeptConditionsJson(profile.conditions_json);
  return json;
}

}  // namespace perseus::server
