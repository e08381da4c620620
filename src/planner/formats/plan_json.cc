// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "formats/plan_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/file.h"
#include "common/input_limits.h"
#include "common/json_text.h"
#include "common/tree.h"
#include "model/noise.h"
#include "model/plan_figures.h"
#include "perseus/computation.h"
#include "perseus/note.h"
#include "perseus/plan.h"
#include "perseus/plan_document.h"
#include "perseus/plan_file.h"
#include "perseus/work.h"
#include "pipeline/schedules.h"

namespace perseus::formats {
namespace {

std::string Quoted(const std::string& text) { return FormatCompact(nlohmann::ordered_json(text)); }

}  // namespace

std::string NoteJson(const Note& note) {
  std::string json = fmt::format("{{\"severity\": \"{}\", \"text\": {}",
                                 SeverityName(note.severity), Quoted(note.text));
  if (!note.source.empty()) {
    json += fmt::format(", \"source\": {}",
                        Quoted(std::filesystem::path(note.source).filename().string()));
  }
  if (note.line > 0) {
    json += fmt::format(", \"line\": {}, \"column\": {}", note.line, note.column);
  }
  return json + "}";
}

std::string NotesJson(const std::vector<Note>& notes) {
  std::string json = "[";
  for (const Note& note : notes) json += (json.size() > 1 ? ", " : "") + NoteJson(note);
  return json + "]";
}

KnobCounts CountKnobs(const PlanDocument& plan) {
  KnobCounts counts;
  std::set<std::string_view> distinct;
  for (const PlannedRank& rank : plan.ranks) {
    const std::vector<PlannedComputation>& run = rank.computations;
    for (std::size_t k = 0; k < run.size(); ++k) {
      const bool changes = k > 0 && run[k].knob.label != run[k - 1].knob.label;
      if (changes) ++counts.changes.within;
      if (k == 0 || changes) distinct.insert(run[k].knob.label);
    }
    if (!run.empty() && run.front().knob.label != run.back().knob.label) ++counts.changes.back;
  }
  counts.figures.knob_changes = counts.changes.within;
  counts.figures.distinct_knobs = static_cast<int>(distinct.size());
  return counts;
}

namespace {

constexpr int kMostCount = std::numeric_limits<int>::max();

void Set(const TreeCursor& object, std::string_view key, const NumberRange& range, double* value) {
  if (const auto found = object.Find(key)) *value = found->Number(range);
}

// The ranges by their keys, and the values that they contain.
template <typename Visit>
void VisitRanges(Visit&& visit) {
  visit("noise", &ConditionRanges::noise,
        [](const Conditions& of) { return of.noise.per_computation; });
  visit("rank_noise", &ConditionRanges::rank_noise,
        [](const Conditions& of) { return of.noise.per_rank; });
  visit("switch_latency_s", &ConditionRanges::switch_latency_seconds,
        [](const Conditions& of) { return of.switching.latency_seconds; });
}

std::string RangesJson(const ConditionRanges& ranges) {
  std::string json;
  VisitRanges([&](std::string_view key, auto member, auto&& /*value*/) {
    const std::optional<ValueRange>& range = ranges.*member;
    if (!range) return;
    json +=
        fmt::format("{}\"{}\": [{}, {}]", json.empty() ? "" : ", ", key, range->least, range->most);
  });
  return "{" + json + "}";
}

void ReadRanges(const TreeCursor& object, Conditions* conditions) {
  VisitRanges([&](std::string_view key, auto member, auto&& value_of) {
    const auto found = object.Find(key);
    if (!found) return;
    const double most = key == "switch_latency_s" ? kNotNegative.most : kMostNoise;
    const std::vector<double> ends = found->Numbers({.least = 0, .most = most});
    const double value = value_of(*conditions);
    if (ends.size() != 2 || !(ends[0] <= value && value <= ends[1])) {
      found->FailExpected("two numbers, the least and the most that it may be");
      return;
    }
    conditions->ranges.*member = ValueRange(ends[0], ends[1]);
  });
}

}  // namespace

std::string ConditionsJson(const Conditions& conditions) {
  const TimeNoise& noise = conditions.noise;
  const ClockSwitching& switching = conditions.switching;
  std::string json = fmt::format(
      "{{\"noise\": {}, \"stage_noise\": {}, \"gpu_noise\": {}, \"switch_latency_s\": {}, "
      "\"switch_latency_spread_s\": {}, \"switch_stall_s\": {}, \"call_ahead\": \"{}\", "
      "\"max_early_loss\": {}, \"min_call_interval_s\": {}, \"change_price_j\": {}, "
      "\"max_slowdown\": {}, \"confidence\": {}",
      noise.per_computation, noise.per_stage, noise.per_gpu, switching.latency_seconds,
      switching.latency_spread_seconds, switching.stall_seconds,
      CallAheadName(switching.call_ahead), switching.max_early_loss, switching.min_interval_seconds,
      conditions.change_joules, conditions.max_slowdown, conditions.confidence);
  if (noise.per_rank > 0) json += fmt::format(", \"rank_noise\": {}", noise.per_rank);
  if (noise.correlation > 0) json += fmt::format(", \"noise_correlation\": {}", noise.correlation);
  if (noise.has_rare()) {
    json += fmt::format(", \"rare_noise\": {}, \"rare_noise_share\": {}", noise.rare_length,
                        noise.rare_share);
  }
  if (!switching.latency_at.empty()) {
    std::string list;
    for (const ClockLatency& each : switching.latency_at) {
      list += fmt::format("{}[{}, {}]", list.empty() ? "" : ", ", each.clock, each.seconds);
    }
    json += fmt::format(", \"switch_latency_at_s\": [{}]", list);
  }
  if (conditions.max_changes) json += fmt::format(", \"max_changes\": {}", *conditions.max_changes);
  if (!conditions.profile_errors) json += ", \"profile_errors\": false";
  if (conditions.ranges.any()) {
    json += fmt::format(", \"ranges\": {}", RangesJson(conditions.ranges));
  }
  return json + "}";
}

std::string ExpectedJson(const ExpectedFigures& expected) {
  return "{" + FigureMembers(expected) + "}";
}

Conditions ReadConditions(const TreeCursor& object) {
  constexpr NumberRange kNoise = {.least = 0, .most = kMostNoise};
  constexpr NumberRange kShare = {.least = 0, .most = 1};
  constexpr NumberRange kInnerShare = {
      .least = 0, .most = 1, .above_least = true, .below_most = true};
  Conditions conditions;
  Set(object, "noise", kNoise, &conditions.noise.per_computation);
  Set(object, "stage_noise", kNoise, &conditions.noise.per_stage);
  Set(object, "gpu_noise", kNoise, &conditions.noise.per_gpu);
  Set(object, "rank_noise", kNoise, &conditions.noise.per_rank);
  Set(object, "noise_correlation", {.least = 0, .most = 1, .below_most = true},
      &conditions.noise.correlation);
  Set(object, "rare_noise", kNoise, &conditions.noise.rare_length);
  Set(object, "rare_noise_share", kNoise, &conditions.noise.rare_share);
  if (model::HasHalfOfRareNoise(conditions.noise)) {
    const bool has_length = conditions.noise.rare_length > 0;
    object.Get(has_length ? "rare_noise" : "rare_noise_share")
        .Fail(fmt::format("expected {} above 0, too, or neither of the two",
                          has_length ? "rare_noise_share" : "rare_noise"));
  }
  ClockSwitching& switching = conditions.switching;
  Set(object, "switch_latency_s", kNotNegative, &switching.latency_seconds);
  if (const auto found = object.Find("switch_latency_spread_s")) {
    switching.latency_spread_seconds = found->Number(kNotNegative);
    if (switching.latency_spread_seconds > switching.latency_seconds) {
      found->FailExpected("at most switch_latency_s");
    }
  }
  if (const auto found = object.Find("switch_latency_at_s")) {
    for (std::size_t i = 0; i < found->Size(); ++i) {
      const std::vector<double> pair = found->At(i).Numbers(kNotNegative);
      if (pair.size() != 2) found->At(i).FailExpected("a clock and its latency");
      if (pair.size() == 2) switching.latency_at.push_back({pair[0], pair[1]});
    }
    if (const auto checked = CheckClockLatencies(switching); !checked) {
      found->Fail(checked.error().message);
    }
  }
  Set(object, "switch_stall_s", kNotNegative, &switching.stall_seconds);
  if (const auto found = object.Find("call_ahead")) {
    const std::optional<CallAhead> call_ahead = ParseCallAhead(found->String());
    if (!call_ahead) found->FailExpected("none, end or predicted");
    switching.call_ahead = call_ahead.value_or(CallAhead::kNone);
  }
  Set(object, "max_early_loss", kShare, &switching.max_early_loss);
  Set(object, "min_call_interval_s", kNotNegative, &switching.min_interval_seconds);
  Set(object, "change_price_j", kNotNegative, &conditions.change_joules);
  Set(object, "max_slowdown", kShare, &conditions.max_slowdown);
  Set(object, "confidence", kInnerShare, &conditions.confidence);
  if (const auto found = object.Find("max_changes")) {
    conditions.max_changes = found->Integer(0, kMostCount);
  }
  if (const auto found = object.Find("profile_errors")) conditions.profile_errors = found->Bool();
  if (const auto found = object.Find("ranges")) ReadRanges(*found, &conditions);
  return conditions;
}

ExpectedFigures ReadExpected(const TreeCursor& object) {
  ExpectedFigures expected;
  ReadFigures(object, &expected);
  // Plans of before there were ranges have neither.
  if (!object.Find("most_slowdown_percent")) {
    expected.most_slowdown_percent = expected.slowdown_percent;
  }
  if (!object.Find("least_saving_percent")) {
    expected.least_saving_percent = expected.saving_percent;
  }
  return expected;
}

namespace {

std::string ConstraintValueJson(Granularity granularity) {
  return fmt::format("\"{}\"", GranularityName(granularity));
}
std::string ConstraintValueJson(double value) { return fmt::format("{}", value); }

void ReadConstraint(const TreeCursor& found, Granularity* value) {
  const std::optional<Granularity> granularity = ParseGranularity(found.String());
  if (!granularity) found.FailExpected("computation, phase, stage-type or stage");
  *value = granularity.value_or(Granularity::kComputation);
}
void ReadConstraint(const TreeCursor& found, double* value) { *value = found.Number(kNotNegative); }

}  // namespace

// The members of plan.json that say what constrains the plan, each in a line.
std::string ConstraintsJson(const PlanConstraints& constraints) {
  std::string json;
  std::string_view table;
  for (const model::Constraint& each : model::Constraints()) {
    if (each.table != table) {
      json += fmt::format("{}  \"{}\": {{", json.empty() ? "" : "},\n", each.table);
      table = each.table;
    } else {
      json += ", ";
    }
    json += fmt::format("\"{}\": {}", each.key, each.On(constraints, [](const auto& value) {
      return ConstraintValueJson(value);
    }));
  }
  return json + "},\n";
}

// Its inverse, on the object that has these members. Those that are missing constrain nothing.
PlanConstraints ReadConstraints(const TreeCursor& root) {
  PlanConstraints constraints;
  for (const model::Constraint& each : model::Constraints()) {
    const std::optional<TreeCursor> table = root.Find(each.table);
    const std::optional<TreeCursor> found = table ? table->Find(each.key) : std::nullopt;
    if (found) each.On(constraints, [&](auto& value) { ReadConstraint(*found, &value); });
  }
  return constraints;
}

}  // namespace perseus::formats

namespace perseus {
inline namespace v0 {

std::string FormatFrontierCsv(const Frontier& frontier) {
  std::string csv = "iteration_time_s,energy_j,slope_w\n";
  for (const FrontierPoint& point : frontier.points) {
    fmt::format_to(std::back_inserter(csv), "{},{},{}\n", point.iteration_time_seconds,
                   point.energy_joules, point.slope_watts);
  }
  return csv;
}

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
  if (plan.default_clocks) {
    fmt::format_to(out, "  \"{}\": {{{}}},\n", model::kDefaultClocksGroup,
                   formats::FigureMembers(*plan.default_clocks));
  }
  fmt::format_to(out,
                 "  \"optimality_gap\": {{\"lower_bound_j\": {}, \"gap_percent\": {}, "
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

namespace {

using pipeline::kMaxComputations;

constexpr int kMaxInt = std::numeric_limits<int>::max();
// Plans of every possible size can be read: stages and microbatches number at most the computations
// of the pipeline,
constexpr int kMaxPlanCount = static_cast<int>(kMaxComputations);
static_assert(kMaxPlanCount == kMaxComputations);
// lists of computations are not in the tree, which then holds of each rank (two
// computations at least) its object with three members, and a delay between two,
constexpr std::int64_t kHeadValues = 1000;
static_assert(kMaxTreeNodes >= kMaxComputations / 2 * (4 + 1) + kHeadValues);
// and a line of the file is some 170 bytes long.
static_assert(kMaxPlanFileBytes >= kMaxComputations * 256);

// Of figures, until they are made from the others and from the computations.
constexpr int kNotSaid = -1;

// 0 where a double cannot hold it.
double MeanPower(double joules, double seconds) {
  const double watts = joules / seconds;
  return std::isfinite(watts) ? watts : 0;
}

constexpr NumberRange kWorkFactor = {.least = kLeastWork, .most = kMostWork};

// Optional fields: absent means the default.
double NumberOr(const TreeCursor& table, std::string_view key, double otherwise,
                NumberRange range = kNotNegative) {
  const std::optional<TreeCursor> found = table.Find(key);
  return found ? found->Number(range) : otherwise;
}

int IntegerOr(const TreeCursor& table, std::string_view key, int otherwise, int least,
              int most = kMaxPlanCount) {
  const std::optional<TreeCursor> found = table.Find(key);
  return found ? found->Integer(least, most) : otherwise;
}

std::string StringOr(const TreeCursor& table, std::string_view key) {
  const std::optional<TreeCursor> found = table.Find(key);
  return found ? found->String() : std::string();
}

ComputationType ReadType(const TreeCursor& cursor) {
  const std::optional<ComputationType> type = ParseComputationType(cursor.String());
  if (!type) cursor.FailExpected(kComputationTypeList);
  return type.value_or(ComputationType::kForward);
}

// All numbers or all labels; the first knob decides where knob_kind is absent.
Knob ReadKnob(const TreeCursor& cursor, std::optional<bool>* knobs_are_numbers) {
  if (!cursor.IsNumber() && !cursor.IsString()) {
    cursor.FailExpected("a number or a string");
    return {};
  }
  if (!*knobs_are_numbers) *knobs_are_numbers = cursor.IsNumber();
  if (!**knobs_are_numbers) return {.label = cursor.String()};
  const double number = cursor.Number(kPositive);
  return {.label = fmt::format("{}", number), .number = number};
}

constexpr std::string_view kBaselineList = "baseline.computations";
constexpr std::string_view kRankList = "ranks[].computations";

// The lists that make a file long are left out of the tree.
class LongListsDropped : public ListConsumer {
 public:
  bool Begin(std::string_view path) override { return path == kBaselineList || path == kRankList; }
  Result<void> Take(TreeNode /*element*/) override { return {}; }
  Result<void> End() override { return {}; }
};

// All of the plan but its computations.
class HeadParser {
 public:
  HeadParser(const TreeNode& root, const std::string& name) : reader_(root, name) {}

  Result<PlanDocument> Parse() {
    const TreeCursor root = reader_.Root();
    ReadVersion(root);
    ReadHead(root);
    ReadFigures(root);
    ReadSettings(root);
    ReadRanks(root);
    if (reader_.failed()) return tl::unexpected(*reader_.error());
    return std::move(plan_);
  }

  // Empty where the file does not say it.
  std::optional<bool> knobs_are_numbers() const { return knobs_are_numbers_; }

 private:
  void ReadVersion(const TreeCursor& root) {
    const TreeCursor version = root.Get("schema_version");
    const int number = version.Integer(0, kMaxInt);
    if (number != kPlanSchemaVersion) {
      version.Fail(
          fmt::format("this perseus reads version {}, found {}; plan again, or use the "
                      "perseus that wrote the file",
                      kPlanSchemaVersion, number));
    }
  }

  void ReadHead(const TreeCursor& root) {
    if (const auto generator = root.Find("generator")) {
      plan_.generator_name = StringOr(*generator, "name");
      plan_.generator_version = StringOr(*generator, "version");
    }
    plan_.schedule = root.Get("schedule").String();
    plan_.stages = root.Get("stages").Integer(1, kMaxPlanCount);
    plan_.virtual_stages = root.Get("virtual_stages").Integer(1, kMaxPlanCount);
    plan_.microbatches = root.Get("microbatches").Integer(1, kMaxPlanCount);
    plan_.tensor_parallel = IntegerOr(root, "tensor_parallel", 1, 1);
    plan_.data_parallel = IntegerOr(root, "data_parallel", 1, 1);
    if (const auto profile = root.Find("profile")) {
      plan_.profile_source = StringOr(*profile, "source");
      plan_.profile_sha256 = StringOr(*profile, "sha256");
      plan_.profile_modelled = StringOr(*profile, "modelled");
    }
    if (const auto kind = root.Find("knob_kind")) {
      const std::string text = kind->String();
      if (text != "sm_clock_mhz" && text != "label") kind->FailExpected("sm_clock_mhz or label");
      knobs_are_numbers_ = text == "sm_clock_mhz";
    }
  }

  void ReadFigures(const TreeCursor& root) {
    plan_.average_power_watts = kNotSaid;
    for (const auto& figure : model::Figures<PlanFigures>()) {
      if (const auto count = figure.count()) plan_.*count = kNotSaid;
    }
    formats::ReadFigures<PlanFigures>(root, &plan_);
    if (plan_.average_power_watts == kNotSaid) {
      plan_.average_power_watts = MeanPower(plan_.energy_joules, plan_.iteration_time_seconds);
    }
    if (const auto shared = root.Find(model::kSharedKnobGroup)) {
      formats::ReadFigures(*shared, &plan_.shared_knobs.emplace());
    }
    if (const auto default_clocks = root.Find(model::kDefaultClocksGroup)) {
      formats::ReadFigures(*default_clocks, &plan_.default_clocks.emplace());
    }
    if (const auto interval = root.Find(model::kSavingIntervalGroup)) {
      formats::ReadFigures(*interval, &plan_.saving_interval.emplace());
    }
    if (const auto gap = root.Find("optimality_gap")) {
      plan_.slope_quantum_watts = NumberOr(*gap, "slope_quantum_w", 0);
      plan_.certified_error = NumberOr(*gap, "certified_error", 0);
      plan_.exponential_fit = StringOr(*gap, "cost_curve") == "exponential";
    }
    const TreeCursor baseline = root.Get("baseline");
    plan_.baseline.iteration_time_seconds = baseline.Get("iteration_time_s").Number(kNotNegative);
    plan_.baseline.energy_joules = baseline.Get("energy_j").Number(kNotNegative);
    plan_.baseline.average_power_watts =
        NumberOr(baseline, "average_power_w",
                 MeanPower(plan_.baseline.energy_joules, plan_.baseline.iteration_time_seconds));
    if (const auto costs = baseline.Find("computations")) costs->Size();  // An array.
  }

  void ReadSettings(const TreeCursor& root) {
    plan_.constraints = formats::ReadConstraints(root);
    if (const auto fixed = root.Find("fixed_times")) {
      if (const auto delays = fixed->Find("comm_delay_s")) {
        plan_.fixed.comm_delay_seconds = delays->Numbers(kNotNegative);
      }
      plan_.fixed.data_loading_seconds = NumberOr(*fixed, "data_loading_s", 0);
      plan_.fixed.iteration_overhead_seconds = NumberOr(*fixed, "iteration_overhead_s", 0);
    }
    if (const auto ratio = root.Find("split_ratio")) {
      plan_.split_ratio = ratio->Number({.least = 0, .most = 1});
    }
    if (const auto conditions = root.Find("conditions")) {
      plan_.conditions = formats::ReadConditions(*conditions);
    }
    if (const auto expected = root.Find("expected")) {
      plan_.expected = formats::ReadExpected(*expected);
    }
    if (const auto notes = root.Find("notes")) ReadNotes(*notes);
  }

  void ReadNotes(const TreeCursor& notes) {
    const std::size_t count = notes.Size();
    for (std::size_t i = 0; i < count && !reader_.failed(); ++i) {
      const TreeCursor entry = notes.At(i);
      Note& note = plan_.notes.emplace_back();
      const TreeCursor severity = entry.Get("severity");
      const std::optional<Severity> known = ParseSeverity(severity.String());
      if (!known) severity.FailExpected("odd, implausible or impossible");
      note.severity = known.value_or(Severity::kOdd);
      note.text = entry.Get("text").String();
      note.source = StringOr(entry, "source");
      note.line = IntegerOr(entry, "line", 0, 0, kMaxInt);
      note.column = IntegerOr(entry, "column", 0, 0, kMaxInt);
    }
  }

  void ReadRanks(const TreeCursor& root) {
    const TreeCursor ranks = root.Get("ranks");
    const std::size_t count = ranks.Size();
    if (!reader_.failed() && count * static_cast<std::size_t>(plan_.virtual_stages) !=
                                 static_cast<std::size_t>(plan_.stages)) {
      ranks.Fail(fmt::format("{} ranks with {} virtual stages each do not make {} stages", count,
                             plan_.virtual_stages, plan_.stages));
    }
    for (std::size_t r = 0; r < count && !reader_.failed(); ++r) {
      const TreeCursor entry = ranks.At(r);
      PlannedRank& rank = plan_.ranks.emplace_back();
      if (const auto number = entry.Find("rank");
          number && number->Integer(0, kMaxPlanCount) != static_cast<int>(r)) {
        number->Fail(fmt::format("ranks are listed in order; expected {}", r));
      }
      rank.blocking_power_watts = NumberOr(entry, "blocking_power_w", 0);
      if (const auto knob = entry.Find("waiting_knob")) {
        rank.waiting_knob = ReadKnob(*knob, &knobs_are_numbers_);
      }
      if (const auto waiting = entry.Find("waiting")) {
        for (std::size_t k = 0; k < waiting->Size() && !reader_.failed(); ++k) {
          const TreeCursor at = waiting->At(k);
          rank.waiting.push_back({ReadKnob(at.Get("knob"), &knobs_are_numbers_),
                                  at.Get("power_w").Number(kNotNegative)});
        }
      }
      entry.Get("computations").Size();  // An array.
    }
  }

  TreeReader reader_;
  PlanDocument plan_;
  std::optional<bool> knobs_are_numbers_;
};

// Fills the computations of a plan whose head is read, one by one.
class ComputationsParser : public ListConsumer {
 public:
  ComputationsParser(PlanDocument* plan, std::optional<bool> knobs_are_numbers,
                     const std::string& name)
      : plan_(*plan), name_(name), knobs_are_numbers_(knobs_are_numbers) {}

  bool Begin(std::string_view path) override {
    // Every rank has one list, and they come in order.
    if (path == kRankList) ++rank_;
    in_baseline_ = path == kBaselineList;
    index_ = 0;
    return in_baseline_ || path == kRankList;
  }

  Result<void> Take(TreeNode element) override {
    TreeReader reader(element, name_, &place_);
    if (in_baseline_) {
      plan_.baseline.costs.push_back(ReadBaselineCost(reader.Root()));
    } else {
      AddEntry(ReadEntry(reader.Root()), element.position, &reader);
    }
    if (std::max(plan_.baseline.costs.size(), seen_.size()) >
        static_cast<std::size_t>(kMaxComputations)) {
      reader.Root().Fail(fmt::format("is one more than the {} computations that a plan may have",
                                     kMaxComputations));
    }
    if (reader.failed()) return tl::unexpected(*reader.error());
    ++index_;
    return {};
  }

  Result<void> End() override {
    if (half_) return tl::unexpected(HalfMissing());
    return {};
  }

  Result<void> Finish() {
    plan_.knobs_are_numbers = knobs_are_numbers_.value_or(true);
    std::stable_sort(seen_.begin(), seen_.end(),
                     [](const Seen& a, const Seen& b) { return a.id < b.id; });
    const auto twin = std::adjacent_find(seen_.begin(), seen_.end(),
                                         [](const Seen& a, const Seen& b) { return a.id == b.id; });
    if (twin == seen_.end()) return {};
    const Seen& again = *std::next(twin);
    return tl::unexpected(
        TreeError(name_, again.position,
                  fmt::format("{}: {} of stage {}, microbatch {} is already on line {}; each "
                              "computation runs once an iteration",
                              Place(again.rank, again.index), ComputationTypeName(again.id.type),
                              again.id.stage, again.id.microbatch, twin->position.line)));
  }

 private:
  // One entry of "computations" of a rank.
  struct Entry {
    PlannedComputation computation;
    bool fused = false;
  };
  // A computation that was read, and where.
  struct Seen {
    ComputationId id;
    Position position;
    int rank = 0;
    int index = 0;
  };

  static std::string Place(int rank, int index) {
    return fmt::format("ranks[{}].computations[{}]", rank, index);
  }

  BaselineCost ReadBaselineCost(const TreeCursor& entry) {
    BaselineCost cost;
    cost.type = ReadType(entry.Get("type"));
    cost.stage = ReadIndex(entry.Get("stage"), plan_.stages);
    if (const auto fused = entry.Find("fused_type")) {
      cost.fused_type = ReadType(*fused);
      cost.fused_stage = ReadIndex(entry.Get("fused_stage"), plan_.stages);
    }
    cost.knob = ReadKnob(entry.Get("knob"), &knobs_are_numbers_);
    cost.duration_seconds = entry.Get("duration_s").Number(kNotNegative);
    cost.energy_joules = entry.Get("energy_j").Number(kNotNegative);
    cost.work = NumberOr(entry, "work", 1, kWorkFactor);
    cost.fused_work = NumberOr(entry, "fused_work", 1, kWorkFactor);
    return cost;
  }

  Entry ReadEntry(const TreeCursor& cursor) {
    Entry entry;
    PlannedComputation& computation = entry.computation;
    computation.id.type = ReadType(cursor.Get("type"));
    computation.id.stage = ReadIndex(cursor.Get("stage"), plan_.stages);
    computation.id.microbatch = ReadIndex(cursor.Get("microbatch"), plan_.microbatches);
    computation.knob = ReadKnob(cursor.Get("knob"), &knobs_are_numbers_);
    computation.start_seconds = cursor.Get("start_s").Number(kNotNegative);
    computation.duration_seconds = cursor.Get("duration_s").Number(kNotNegative);
    computation.energy_joules = cursor.Get("energy_j").Number(kNotNegative);
    computation.work = NumberOr(cursor, "work", 1, kWorkFactor);
    if (const auto fused = cursor.Find("fused")) entry.fused = fused->Bool();
    return entry;
  }

  // The halves of a fused computation follow each other.
  void AddEntry(Entry entry, Position position, TreeReader* reader) {
    if (reader->failed()) return;
    seen_.push_back({entry.computation.id, position, rank_, index_});
    if (half_) {
      if (!AreFusedPair(*half_, entry)) return reader->FailWith(HalfMissing());
      half_->computation.fused = entry.computation.id;
      half_->computation.fused_work = entry.computation.work;
      entry.computation = std::move(half_->computation);
      half_.reset();
    } else if (entry.fused) {
      half_ = std::move(entry);
      return;
    }
    plan_.ranks[static_cast<std::size_t>(rank_)].computations.push_back(
        std::move(entry.computation));
  }

  // The entry that was read last is the first half.
  Error HalfMissing() const {
    const auto first = std::find_if(seen_.rbegin(), seen_.rend(), [this](const Seen& seen) {
      return seen.id == half_->computation.id;
    });
    return TreeError(
        name_, first->position,
        Place(first->rank, first->index) +
            ": a fused computation must be followed by the backward that runs with it, "
            "with the same knob, start_s, duration_s and energy_j");
  }

  static bool AreFusedPair(const Entry& first, const Entry& second) {
    const PlannedComputation& a = first.computation;
    const PlannedComputation& b = second.computation;
    return second.fused && MayRunAsOne(a.id, b.id) && a.knob.label == b.knob.label &&
           a.start_seconds == b.start_seconds && a.duration_seconds == b.duration_seconds &&
           a.energy_joules == b.energy_joules;
  }

  // Stage or microbatch: 0 .. count - 1.
  static int ReadIndex(const TreeCursor& cursor, int count) { return cursor.Integer(0, count - 1); }

  PlanDocument& plan_;
  const std::string& name_;
  std::optional<bool> knobs_are_numbers_;
  bool in_baseline_ = false;
  int rank_ = -1;
  int index_ = 0;  // In the list that is read.
  const std::function<std::string()> place_ = [this] {
    return in_baseline_ ? fmt::format("{}[{}]", kBaselineList, index_) : Place(rank_, index_);
  };
  std::optional<Entry> half_;  // Whose other half comes next.
  std::vector<Seen> seen_;
};

}  // namespace

Result<PlanDocument> ParsePlanJson(std::string_view text, const std::string& name) {
  if (text.size() > kMaxPlanFileBytes) {
    return InvalidInput(fmt::format("{}: is larger than {} MiB; is it the right file?", name,
                                    kMaxPlanFileBytes >> 20));
  }
  LongListsDropped dropped;
  const Result<TreeNode> tree = ParseJsonTree(text, name, &dropped);
  if (!tree) return tl::unexpected(tree.error());
  HeadParser head(*tree, name);
  Result<PlanDocument> plan = head.Parse();
  if (!plan) return plan;
  // Read again for what does not fit in a tree, now that its limits are known.
  ComputationsParser computations(&*plan, head.knobs_are_numbers(), name);
  if (const Result<TreeNode> again = ParseJsonTree(text, name, &computations); !again) {
    return tl::unexpected(again.error());
  }
  if (const Result<void> finished = computations.Finish(); !finished) {
    return tl::unexpected(finished.error());
  }
  const formats::KnobCounts counts = formats::CountKnobs(*plan);
  for (const auto& figure : model::Figures<PlanFigures>()) {
    const auto count = figure.count();
    if (count && *plan.*count == kNotSaid) *plan.*count = counts.figures.*count;
  }
  return plan;
}

Result<PlanDocument> ReadPlan(const std::string& path) {
  const Result<std::string> text = ReadWholeFileOrPipe(path, kMaxPlanFileBytes);
  if (!text) return tl::unexpected(text.error());
  return ParsePlanJson(*text, path);
}

}  // namespace v0
}  // namespace perseus
