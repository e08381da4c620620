// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "common/json_text.h"
#include "formats/conditions_json.h"
#include "formats/constraints_json.h"
#include "formats/figures_json.h"
#include "formats/note_json.h"
#include "model/plan_figures.h"
#include "perseus/computation.h"
#include "perseus/note.h"
#include "perseus/plan_document.h"
#include "perseus/plan_file.h"

namespace perseus {
inline namespace v0 {
namespace {

std::string Quoted(const std::string& text) { return FormatCompact(text); }

std::string KnobValue(const Knob& knob, bool is_number) {
  return is_number ? fmt::format("{}", knob.number) : Quoted(knob.label);
}

// Nothing where there is as much as in the profile.
std::string WorkMember(std::string_view key, double work) {
  return work == 1 ? "" : fmt::format(", \"{}\": {}", key, work);
}

std::string BaselineLine(const BaselineCost& cost, bool knobs_are_numbers) {
  std::string line =
      fmt::format("{{\"type\": \"{}\", \"stage\": {}", ComputationTypeName(cost.type), cost.stage);
  if (cost.fused_type) {
    fmt::format_to(std::back_inserter(line), ", \"fused_type\": \"{}\", \"fused_stage\": {}",
                   ComputationTypeName(*cost.fused_type), cost.fused_stage);
  }
  fmt::format_to(std::back_inserter(line), ", \"knob\": {}, \"duration_s\": {}, \"energy_j\": {}{}",
                 KnobValue(cost.knob, knobs_are_numbers), cost.duration_seconds, cost.energy_joules,
                 WorkMember("work", cost.work));
  if (cost.fused_type) line += WorkMember("fused_work", cost.fused_work);
  return line + "}";
}

// Nothing where the power of waiting is taken as constant.
std::string WaitingMembers(const PlannedRank& rank, bool is_number) {
  std::string members;
  if (rank.waiting_knob) {
    members += fmt::format("\"waiting_knob\": {}, ", KnobValue(*rank.waiting_knob, is_number));
  }
  if (rank.waiting.empty()) return members;
  members += "\"waiting\": [";
  for (std::size_t k = 0; k < rank.waiting.size(); ++k) {
    fmt::format_to(std::back_inserter(members), "{}{{\"knob\": {}, \"power_w\": {}}}",
                   k == 0 ? "" : ", ", KnobValue(rank.waiting[k].knob, is_number),
                   rank.waiting[k].watts);
  }
  return members + "], ";
}

// Writes `lines` as the elements of an array, one a line.
class LineList {
 public:
  LineList(std::string* json, std::string_view indent) : json_(json), indent_(indent) {}

  void Add(std::string_view line) {
    fmt::format_to(std::back_inserter(*json_), "{}\n{}{}", first_ ? "" : ",", indent_, line);
    first_ = false;
  }

 private:
  std::string* json_;
  std::string_view indent_;
  bool first_ = true;
};

void AddComputation(LineList* lines, const PlannedComputation& computation, bool is_number) {
  const auto add = [&](const ComputationId& id, double work) {
    lines->Add(fmt::format(
        "{{\"type\": \"{}\", \"stage\": {}, \"microbatch\": {}, \"knob\": {}, \"start_s\": {}, "
        "\"duration_s\": {}, \"energy_j\": {}{}{}}}",
        ComputationTypeName(id.type), id.stage, id.microbatch,
        KnobValue(computation.knob, is_number), computation.start_seconds,
        computation.duration_seconds, computation.energy_joules, WorkMember("work", work),
        computation.fused ? ", \"fused\": true" : ""));
  };
  add(computation.id, computation.work);
  if (computation.fused) add(*computation.fused, computation.fused_work);
}

void AddHead(std::string* json, const PlanDocument& plan) {
  const auto out = std::back_inserter(*json);
  fmt::format_to(out, "  \"schema_version\": {},\n", kPlanSchemaVersion);
  fmt::format_to(out, "  \"generator\": {{\"name\": {}, \"version\": {}}},\n",
                 Quoted(plan.generator_name), Quoted(plan.generator_version));
  fmt::format_to(out, "  \"schedule\": {},\n", Quoted(plan.schedule));
  fmt::format_to(out,
                 "  \"stages\": {},\n  \"virtual_stages\": {},\n  \"microbatches\": {},\n"
                 "  \"tensor_parallel\": {},\n  \"data_parallel\": {},\n",
                 plan.stages, plan.virtual_stages, plan.microbatches, plan.tensor_parallel,
                 plan.data_parallel);
  fmt::format_to(out, "  \"profile\": {{\"source\": {}, \"sha256\": {}{}}},\n",
                 Quoted(plan.profile_source), Quoted(plan.profile_sha256),
                 plan.profile_modelled.empty()
                     ? ""
                     : fmt::format(", \"modelled\": {}", Quoted(plan.profile_modelled)));
  fmt::format_to(out, "  \"knob_kind\": \"{}\",\n",
                 plan.knobs_are_numbers ? "sm_clock_mhz" : "label");
}

void AddFigures(std::string* json, const PlanDocument& plan) {
  const auto out = std::back_inserter(*json);
  fmt::format_to(out, "  {},\n", formats::FigureMembers<PlanFigures>(plan, ",\n  "));
  if (plan.shared_knobs) {
    fmt::format_to(out, "  \"{}\": {{{}}},\n", model::kSharedKnobGroup,
                   formats::FigureMembers(*plan.shared_knobs));
  }
  if (plan.saving_interval) {
    fmt::format_to(out, "  \"{}\": {{{}}},\n", model::kSavingIntervalGroup,
                   formats::FigureMembers(*plan.saving_interval));
  }
  if (plan.unlocked) {
    fmt::format_to(out, "  \"{}\": {{{}}},\n", model::kUnlockedGroup,
                   formats::FigureMembers(*plan.unlocked));
  }
  fmt::format_to(out,
                 "  \"certificate\": {{\"lower_bound_j\": {}, \"gap_percent\": {}, "
                 "\"method\": \"dual bound of the {} frontier\", \"slope_quantum_w\": {}, "
                 "\"certified_error\": {}, \"cost_curve\": \"{}\"}},\n",
                 plan.lower_bound_joules, plan.gap_percent,
                 plan.slope_quantum_watts > 0 ? "coarse" : "exact", plan.slope_quantum_watts,
                 plan.certified_error, plan.exponential_fit ? "exponential" : "measured");
  fmt::format_to(out,
                 "  \"baseline\": {{\n    \"iteration_time_s\": {},\n    \"energy_j\": {},\n"
                 "    \"average_power_w\": {},\n    \"computations\": [",
                 plan.baseline.iteration_time_seconds, plan.baseline.energy_joules,
                 plan.baseline.average_power_watts);
  LineList costs(json, "      ");
  for (const BaselineCost& cost : plan.baseline.costs) {
    costs.Add(BaselineLine(cost, plan.knobs_are_numbers));
  }
  *json += "\n    ]\n  },\n";
}

void AddSettings(std::string* json, const PlanDocument& plan) {
  const auto out = std::back_inserter(*json);
  *json += formats::ConstraintsJson(plan.constraints);
  fmt::format_to(out,
                 "  \"fixed_times\": {{\"comm_delay_s\": [{}], \"data_loading_s\": {}, "
                 "\"iteration_overhead_s\": {}}},\n",
                 fmt::join(plan.fixed.comm_delay_seconds, ", "), plan.fixed.data_loading_seconds,
                 plan.fixed.iteration_overhead_seconds);
  if (plan.split_ratio) fmt::format_to(out, "  \"split_ratio\": {},\n", *plan.split_ratio);
  if (plan.conditions) {
    fmt::format_to(out, "  \"conditions\": {},\n", formats::ConditionsJson(*plan.conditions));
  }
  if (plan.expected) {
    fmt::format_to(out, "  \"{}\": {},\n", model::kExpectedGroup,
                   formats::ExpectedJson(*plan.expected));
  }
}

void AddNotes(std::string* json, const std::vector<Note>& notes) {
  *json += "  \"notes\": [";
  LineList lines(json, "    ");
  for (const Note& note : notes) lines.Add(formats::NoteJson(note));
  *json += notes.empty() ? "],\n" : "\n  ],\n";
}

}  // namespace

std::string FormatPlanJson(const PlanDocument& plan) {
  std::string json = "{\n";
  AddHead(&json, plan);
  AddFigures(&json, plan);
  AddSettings(&json, plan);
  AddNotes(&json, plan.notes);
  json += "  \"ranks\": [";
  LineList ranks(&json, "    ");
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    ranks.Add(fmt::format("{{\"rank\": {}, \"blocking_power_w\": {}, {}\"computations\": [", r,
                          plan.ranks[r].blocking_power_watts,
                          WaitingMembers(plan.ranks[r], plan.knobs_are_numbers)));
    LineList computations(&json, "      ");
    for (const PlannedComputation& computation : plan.ranks[r].computations) {
      AddComputation(&computations, computation, plan.knobs_are_numbers);
    }
    json += "\n    ]}";
  }
  json += "\n  ]\n}\n";
  return json;
}

}  // namespace v0
}  // namespace perseus
