// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/plan_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "common/temporary_directory.h"
#include "formats/sample_plan.h"
#include "perseus/plan_document.h"
#include "support/mentions.h"

namespace perseus {
namespace {

constexpr std::string_view kSampleText = R"({
  "schema_version": 1,
  "generator": {"name": "perseus", "version": "9.8.7"},
  "schedule": "1f1b",
  "stages": 2,
  "virtual_stages": 1,
  "microbatches": 1,
  "tensor_parallel": 4,
  "data_parallel": 16,
  "profile": {"source": "profile.csv", "sha256": "abc123"},
  "knob_kind": "sm_clock_mhz",
  "requested_time_s": 1.25,
  "iteration_time_s": 1.2,
  "energy_j": 480.5,
  "average_power_w": 400.25,
  "lower_bound_j": 480,
  "gap_percent": 0.1,
  "saving_percent": 12.5,
  "knob_changes": 3,
  "distinct_knobs": 2,
  "shared_clocks": {"lower_bound_j": 480.25, "gap_percent": 0.05, "proven": true},
  "optimality_gap": {"lower_bound_j": 480, "gap_percent": 0.1, "method": "dual bound of the coarse frontier", "slope_quantum_w": 2, "certified_error": 0.0002, "cost_curve": "measured"},
  "baseline": {
    "iteration_time_s": 1.1,
    "energy_j": 549,
    "average_power_w": 499,
    "computations": [
      {"type": "forward", "stage": 0, "knob": 1410, "duration_s": 0.2, "energy_j": 60}
    ]
  },
  "constraints": {"granularity": "phase"},
  "time_margin": {"sigmas": 2, "fraction": 0.01},
  "fixed_times": {"comm_delay_s": [0.001], "data_loading_s": 0.002, "iteration_overhead_s": 0.003},
  "split_ratio": 0.4,
  "notes": [],
  "ranks": [
    {"rank": 0, "blocking_power_w": 83.64, "computations": [
      {"type": "forward", "stage": 0, "microbatch": 0, "knob": 1410, "start_s": 0, "duration_s": 0.25, "energy_j": 75},
      {"type": "backward", "stage": 0, "microbatch": 0, "knob": 1305, "start_s": 0.75, "duration_s": 0.5, "energy_j": 150}
    ]},
    {"rank": 1, "blocking_power_w": 83.5, "computations": [
      {"type": "forward", "stage": 1, "microbatch": 0, "knob": 1410, "start_s": 0.25, "duration_s": 0.125, "energy_j": 37.5},
      {"type": "backward", "stage": 1, "microbatch": 0, "knob": 1410, "start_s": 0.375, "duration_s": 0.375, "energy_j": 112.5}
    ]}
  ]
}
)";

// The message on the sample with the first `from` replaced by `to`.
std::string ErrorWith(std::string_view from, std::string_view to) {
  std::string text(kSampleText);
  const std::size_t at = text.find(from);
  if (at == std::string::npos) return "the sample has no such text";
  text.replace(at, from.size(), to);
  const Result<PlanDocument> plan = ParsePlanJson(text, "plan.json");
  return plan ? "accepted" : plan.error().message;
}

PlanDocument FusedPlan() {
  PlanDocument plan = SamplePlan();
  plan.stages = 4;
  plan.virtual_stages = 2;
  plan.ranks[0].computations[1].id = {ComputationType::kForward, 3, 0};
  plan.ranks[0].computations[1].fused = ComputationId{ComputationType::kBackwardInput, 0, 0};
  plan.baseline.costs[0].fused_type = ComputationType::kBackwardInput;
  plan.baseline.costs[0].fused_stage = 3;
  return plan;
}

TEST(PlanFile, HasTheDocumentedForm) { EXPECT_EQ(FormatPlanJson(SamplePlan()), kSampleText); }

TEST(PlanFile, ReadsBackEveryField) {
  const Result<PlanDocument> plan = ParsePlanJson(kSampleText, "plan.json");
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  // Every field of the sample has its own value, so equal text is equal fields.
  EXPECT_EQ(FormatPlanJson(*plan), kSampleText);
  EXPECT_EQ(plan->ranks[0].computations[1].id, (ComputationId{ComputationType::kBackward, 0, 0}));
  EXPECT_EQ(plan->ranks[0].computations[1].knob.number, 1305);
  EXPECT_EQ(plan->ranks[0].computations[1].knob.label, "1305");
  EXPECT_EQ(plan->constraints.granularity, Granularity::kPhase);
}

TEST(PlanFile, KeepsConditionsAndWhatIsExpectedUnderThem) {
  PlanDocument plan = SamplePlan();
  Conditions& conditions = plan.conditions.emplace();
  conditions.noise = {.per_computation = 0.01,
                      .per_stage = 0.02,
                      .per_gpu = 0.03,
                      .per_rank = 0.04,
                      .correlation = 0.5,
                      .rare_length = 0.06,
                      .rare_share = 0.07};
  conditions.switching = {.latency_seconds = 0.015,
                          .latency_at = {{1410, 0.009}, {607.5, 0.1}},
                          .latency_spread_seconds = 0.002,
                          .stall_seconds = 0.001,
                          .call_ahead = CallAhead::kPredicted,
                          .max_early_loss = 0.04,
                          .min_interval_seconds = 0.0125};
  conditions.change_joules = 2.5;
  conditions.max_slowdown = 0.002;
  conditions.confidence = 0.9;
  conditions.max_changes = 300;
  plan.expected = {.iteration_time_seconds = 1.21,
                   .iteration_time_spread_seconds = 0.01,
                   .energy_joules = 481,
                   .energy_spread_joules = 0.5,
                   .slowdown_percent = -0.05,
                   .slowdown_spread_percent = 0.03,
                   .saving_percent = 11.5,
                   .saving_spread_percent = 0.02,
                   .clock_calls = 280.5,
                   .seeds = 5,
                   .iterations = 200};
  const std::string text = FormatPlanJson(plan);
  const auto read = ParsePlanJson(text, "plan.json");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->conditions, plan.conditions);
  EXPECT_EQ(read->expected, plan.expected);
  EXPECT_EQ(FormatPlanJson(*read), text);
  const nlohmann::json json = nlohmann::json::parse(text);
  EXPECT_EQ(json["conditions"]["call_ahead"], "predicted");
  EXPECT_EQ(json["conditions"]["switch_latency_s"], 0.015);
  EXPECT_EQ(json["expected"]["saving_percent"], 11.5);
  EXPECT_EQ(json["expected"]["iteration_time_s"], 1.21);
  // Without them they are not named.
  conditions.max_changes.reset();
  EXPECT_EQ(FormatPlanJson(plan).find("max_changes"), std::string::npos);
  EXPECT_EQ(FormatPlanJson(SamplePlan()).find("conditions"), std::string::npos);
}

TEST(PlanFileTest, NotesRoundTrip) {
  PlanDocument plan = SamplePlan();
  plan.notes = {{.severity = Severity::kImplausible,
                 .text = "a \"wrong\" unit",
                 .source = "p.csv",
                 .line = 3,
                 .column = 18},
                {.severity = Severity::kOdd, .text = "odd", .source = ""}};
  const std::string text = FormatPlanJson(plan);
  const auto read = ParsePlanJson(text, "plan.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->notes, plan.notes);
  EXPECT_EQ(FormatPlanJson(*read), text);
  const auto json = nlohmann::json::parse(text)["notes"];
  EXPECT_EQ(json[0]["line"], 3);
  EXPECT_FALSE(json[1].contains("line"));
  // A plan of before has none, and no other severity is known.
  EXPECT_EQ(FormatPlanJson(SamplePlan()).find("\"notes\": [],\n") == std::string::npos, false);
  std::string other = text;
  other.replace(other.find("implausible"), 11, "unheard-of");
  EXPECT_FALSE(ParsePlanJson(other, "plan.json"));
}

TEST(PlanFile, KeepsRangesAndWhetherErrorsCount) {
  PlanDocument plan = SamplePlan();
  plan.expected.emplace();
  Conditions& conditions = plan.conditions.emplace();
  EXPECT_EQ(FormatPlanJson(plan).find("ranges"), std::string::npos);
  EXPECT_EQ(FormatPlanJson(plan).find("profile_errors"), std::string::npos);
  conditions.noise.per_computation = 0.01;
  conditions.switching.latency_seconds = 0.02;
  conditions.ranges = {.noise = ValueRange(0.005, 0.015),
                       .rank_noise = ValueRange(0, 0.01),
                       .switch_latency_seconds = ValueRange(0.01, 0.03)};
  conditions.profile_errors = false;
  const std::string text = FormatPlanJson(plan);
  const auto read = ParsePlanJson(text, "plan.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->conditions, plan.conditions);
  for (const std::string_view wrong : {"[0.02, 0.03]", "[0.005]", "[0.005, 2]", "0.01"}) {
    std::string changed = text;
    const std::string_view right = "[0.005, 0.015]";
    changed.replace(changed.find(right), right.size(), wrong);
    const auto refused = ParsePlanJson(changed, "plan.json");
    ASSERT_FALSE(refused) << wrong;
    EXPECT_NE(refused.error().message.find("conditions.ranges.noise"), std::string::npos);
  }
}

// Plans of before there were ranges do not say these two.
TEST(PlanFile, ExpectedFiguresWithoutCornersAreThoseOfAll) {
  PlanDocument plan = SamplePlan();
  plan.conditions.emplace();
  plan.expected = {.slowdown_percent = 0.05, .saving_percent = 7};
  std::string text = FormatPlanJson(plan);
  for (const std::string_view line :
       {"\"most_slowdown_percent\": 0, ", "\"least_saving_percent\": 0, "}) {
    ASSERT_NE(text.find(line), std::string::npos) << text;
    text.erase(text.find(line), line.size());
  }
  const auto read = ParsePlanJson(text, "plan.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->expected->most_slowdown_percent, 0.05);
  EXPECT_EQ(read->expected->least_saving_percent, 7);
}

TEST(PlanFile, RefusesConditionsThatCannotBe) {
  PlanDocument plan = SamplePlan();
  plan.conditions.emplace();
  plan.expected.emplace();
  const std::string text = FormatPlanJson(plan);
  const auto error = [&](std::string_view from, std::string_view to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    const Result<PlanDocument> read = ParsePlanJson(changed, "plan.json");
    return read ? "accepted" : read.error().message;
  };
  EXPECT_EQ(error("\"seeds\": 0", "\"other\": 0"), "accepted");
  EXPECT_NE(error("\"call_ahead\": \"none\"", "\"call_ahead\": \"late\"")
                .find("conditions.call_ahead: expected none, end or predicted"),
            std::string::npos);
  EXPECT_NE(error("\"noise\": 0", "\"noise\": 0.3"), "accepted");
  EXPECT_NE(error("\"confidence\": 0.95", "\"confidence\": 2"), "accepted");
  for (const std::string_view confidence : {"0", "1"}) {
    EXPECT_NE(error("0.95", confidence).find("conditions.confidence: expected a number"),
              std::string::npos)
        << confidence;
  }
  EXPECT_NE(error("\"switch_latency_spread_s\": 0", "\"switch_latency_spread_s\": 0.1")
                .find("conditions.switch_latency_spread_s: expected at most switch_latency_s"),
            std::string::npos);
  const auto latency_at = [&](const std::string& list) {
    return error("\"confidence\": 0.95", "\"confidence\": 0.95, \"switch_latency_at_s\": " + list);
  };
  EXPECT_NE(latency_at("[[1410, 0.009]]").find("give 'switch_latency', too"), std::string::npos);
  EXPECT_NE(latency_at("[[1410]]").find("conditions.switch_latency_at_s[0]: expected a clock and"),
            std::string::npos);
  EXPECT_NE(error("\"seeds\": 0", "\"seeds\": -1"), "accepted");
  // Rare noise is a length and a share. A zero is as good as none.
  constexpr std::string_view kLast = "\"confidence\": 0.95";
  const auto with = [&](const std::string& more) {
    return error(kLast, std::string(kLast) + ", " + more);
  };
  EXPECT_EQ(with("\"rare_noise\": 0.05, \"rare_noise_share\": 0.01"), "accepted");
  EXPECT_EQ(with("\"rare_noise\": 0, \"rare_noise_share\": 0"), "accepted");
  for (const std::string half :
       {"\"rare_noise\": 0.05", "\"rare_noise\": 0.05, \"rare_noise_share\": 0"}) {
    EXPECT_THAT(with(half), Mentions("plan.json:", "conditions.rare_noise:", "rare_noise_share"));
  }
  EXPECT_THAT(with("\"rare_noise_share\": 0.01"),
              Mentions("plan.json:", "conditions.rare_noise_share:", "rare_noise"));
}

TEST(PlanFile, SaysThatTheProfileIsModelled) {
  PlanDocument plan = SamplePlan();
  plan.profile_modelled = "MODELLED, not measured: \"a model\"";
  const std::string text = FormatPlanJson(plan);
  EXPECT_NE(text.find("\"modelled\": \"MODELLED, not measured: \\\"a model\\\"\"}"),
            std::string::npos);
  const auto read = ParsePlanJson(text, "plan.json");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->profile_modelled, plan.profile_modelled);
}

TEST(PlanFile, WritesAFusedComputationAsTwoEntries) {
  const PlanDocument plan = FusedPlan();
  const std::string text = FormatPlanJson(plan);
  const nlohmann::json json = nlohmann::json::parse(text);
  const nlohmann::json& entries = json["ranks"][0]["computations"];
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[1]["type"], "forward");
  EXPECT_EQ(entries[1]["stage"], 3);
  EXPECT_EQ(entries[2]["type"], "backward_input");
  EXPECT_EQ(entries[2]["stage"], 0);
  EXPECT_EQ(entries[1]["knob"], entries[2]["knob"]);
  EXPECT_EQ(entries[1]["fused"], true);
  EXPECT_EQ(entries[2]["fused"], true);
  EXPECT_FALSE(entries[0].contains("fused"));

  const Result<PlanDocument> read = ParsePlanJson(text, "plan.json");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(FormatPlanJson(*read), text);
  EXPECT_EQ(read->ranks[0].computations.size(), 2U);
  EXPECT_EQ(read->ranks[0].computations[1].fused,
            (ComputationId{ComputationType::kBackwardInput, 0, 0}));
}

TEST(PlanFile, ARecomputeRunsWithItsOwnBackwardOnly) {
  PlanDocument plan = FusedPlan();
  PlannedComputation& fused = plan.ranks[0].computations[1];
  fused.id.type = ComputationType::kRecompute;
  fused.fused = {ComputationType::kBackward, fused.id.stage, fused.id.microbatch};
  const std::string text = FormatPlanJson(plan);
  const Result<PlanDocument> read = ParsePlanJson(text, "plan.json");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->ranks[0].computations[1].id, fused.id);
  EXPECT_EQ(read->ranks[0].computations[1].fused, fused.fused);
  EXPECT_EQ(FormatPlanJson(*read), text);
  fused.fused->microbatch = 1 - fused.id.microbatch;
  EXPECT_FALSE(ParsePlanJson(FormatPlanJson(plan), "plan.json"));
}

TEST(PlanFile, RefusesHalfAFusedComputation) {
  const std::string text = FormatPlanJson(FusedPlan());
  const auto error = [&](std::string_view from, std::string_view to) {
    std::string changed = text;
    changed.replace(changed.rfind(from), from.size(), to);
    const Result<PlanDocument> plan = ParsePlanJson(changed, "plan.json");
    return plan ? "accepted" : plan.error().message;
  };
  const std::string expected =
      "plan.json:39:7: ranks[0].computations[1]: a fused computation must be followed by the "
      "backward that runs with it, with the same knob, start_s, duration_s and energy_j";
  EXPECT_EQ(error(", \"fused\": true", ""), expected);
  EXPECT_EQ(error("\"knob\": 1305", "\"knob\": 1290"), expected);
  EXPECT_EQ(error("\"backward_input\"", "\"backward_weight\""), expected);
}

TEST(PlanFile, KeepsLabels) {
  PlanDocument plan = SamplePlan();
  plan.knobs_are_numbers = false;
  plan.baseline.costs[0].knob = {"max", 0};
  for (PlannedRank& rank : plan.ranks) {
    for (PlannedComputation& computation : rank.computations) {
      computation.knob = {"1200MHz/\"12\"\n\tSM \xC3\xA9", 0};
    }
  }
  const std::string text = FormatPlanJson(plan);
  const Result<PlanDocument> read = ParsePlanJson(text, "plan.json");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->ranks[0].computations[0].knob.label, "1200MHz/\"12\"\n\tSM \xC3\xA9");
  EXPECT_FALSE(read->knobs_are_numbers);
  EXPECT_EQ(FormatPlanJson(*read), text);
}

TEST(PlanFile, WritesValidJsonForAnyLabel) {
  PlanDocument plan = SamplePlan();
  plan.profile_source = "\xFF\xFE.csv";
  EXPECT_TRUE(nlohmann::json::accept(FormatPlanJson(plan)));
}

TEST(PlanFile, IgnoresFieldsOfLaterVersions) {
  EXPECT_EQ(ErrorWith("\"stages\": 2,", "\"stages\": 2, \"colour\": {\"a\": [null]},"), "accepted");
}

TEST(PlanFile, NeedsOnlyWhatItsReadersNeed) {
  const std::string_view text = R"({"schema_version": 1, "schedule": "1f1b", "stages": 1,
      "virtual_stages": 1, "microbatches": 1, "requested_time_s": 1, "iteration_time_s": 1,
      "energy_j": 1, "lower_bound_j": 1, "gap_percent": 0, "saving_percent": 0,
      "baseline": {"iteration_time_s": 1, "energy_j": 1}, "ranks": [{"computations": [
      {"type": "forward", "stage": 0, "microbatch": 0, "knob": "slow", "start_s": 0,
       "duration_s": 1, "energy_j": 1}]}]})";
  const Result<PlanDocument> plan = ParsePlanJson(text, "plan.json");
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  EXPECT_FALSE(plan->knobs_are_numbers);
  EXPECT_EQ(plan->tensor_parallel, 1);
}

TEST(PlanFile, CountsWhatIsNotSaid) {
  std::string text(kSampleText);
  for (const std::string_view line : {"  \"knob_changes\": 3,\n", "  \"distinct_knobs\": 2,\n",
                                      "  \"average_power_w\": 400.25,\n"}) {
    text.erase(text.find(line), line.size());
  }
  const Result<PlanDocument> plan = ParsePlanJson(text, "plan.json");
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  EXPECT_EQ(plan->knob_changes, 1);
  EXPECT_EQ(plan->distinct_knobs, 2);
  EXPECT_DOUBLE_EQ(plan->average_power_watts, 480.5 / 1.2);
}

TEST(PlanFile, NamesTheFieldThatIsWrong) {
  EXPECT_EQ(ErrorWith("\"knob\": 1305", "\"knob\": null"),
            "plan.json:39:65: ranks[0].computations[1].knob: expected a number or a string, found "
            "null");
  EXPECT_EQ(ErrorWith("\"knob\": 1305", "\"knob\": 0"),
            "plan.json:39:65: ranks[0].computations[1].knob: expected a number above 0, found 0");
  EXPECT_EQ(
      ErrorWith("\"knob\": 1305", "\"knob\": \"1305\""),
      "plan.json:39:65: ranks[0].computations[1].knob: expected a number above 0, found it in "
      "quotes; write 1305 without them");
  EXPECT_EQ(ErrorWith("\"stage\": 1", "\"stage\": -1"),
            "plan.json:42:36: ranks[1].computations[0].stage: expected a whole number from 0 to 1, "
            "found -1");
  EXPECT_EQ(ErrorWith("\"microbatch\": 0", "\"microbatch\": 0.5"),
            "plan.json:38:53: ranks[0].computations[0].microbatch: expected a whole number from 0 "
            "to 0, found 0.5");
  EXPECT_EQ(ErrorWith("{\"type\": \"backward\"", "{\"type\": \"sideways\""),
            "plan.json:39:16: ranks[0].computations[1].type: expected forward, backward, "
            "backward_input, backward_weight or recompute, found 'sideways'");
  EXPECT_EQ(ErrorWith("\"energy_j\": 480.5", "\"energy_j\": -1"),
            "plan.json:14:15: energy_j: expected a number of at least 0, found -1");
  EXPECT_EQ(ErrorWith("\"energy_j\": 480.5", "\"energy_j\": [1]"),
            "plan.json:14:15: energy_j: expected a number of at least 0, found an array");
  EXPECT_EQ(ErrorWith("\"phase\"", "\"phrase\""),
            "plan.json:31:34: constraints.granularity: expected computation, phase, stage-type or "
            "stage, found 'phrase'");
  EXPECT_EQ(ErrorWith("\"sm_clock_mhz\"", "\"watts\""),
            "plan.json:11:16: knob_kind: expected sm_clock_mhz or label, found 'watts'");
  EXPECT_EQ(ErrorWith("[0.001]", "[0.001, -2]"),
            "plan.json:33:43: fixed_times.comm_delay_s[1]: expected a number of at least 0, found "
            "-2");
}

TEST(PlanFile, NamesTheFieldThatIsMissing) {
  EXPECT_EQ(ErrorWith("\"saving_percent\"", "\"saved\""),
            "plan.json:1:1: 'saving_percent' is missing");
  EXPECT_EQ(ErrorWith("\"microbatch\"", "\"batch\""),
            "plan.json:38:7: ranks[0].computations[0]: 'microbatch' is missing");
  EXPECT_EQ(ErrorWith("\"baseline\": {", "\"baseline\": 3, \"other\": {"),
            "plan.json:23:15: baseline: expected an object, found 3");
}

TEST(PlanFile, RefusesOtherVersions) {
  EXPECT_EQ(ErrorWith("\"schema_version\": 1", "\"schema_version\": 2"),
            "plan.json:2:21: schema_version: this perseus reads version 1, found 2; plan again, or "
            "use the perseus that wrote the file");
  EXPECT_EQ(
      ErrorWith("\"schema_version\": 1", "\"schema_version\": \"1\""),
      "plan.json:2:21: schema_version: expected a whole number from 0 to 2147483647, found it "
      "in quotes; write 1 without them");
}

TEST(PlanFile, RefusesContradictions) {
  EXPECT_EQ(ErrorWith("\"stages\": 2", "\"stages\": 3"),
            "plan.json:36:12: ranks: 2 ranks with 1 virtual stages each do not make 3 stages");
  EXPECT_EQ(ErrorWith("\"rank\": 1", "\"rank\": 2"),
            "plan.json:41:14: ranks[1].rank: ranks are listed in order; expected 1");
  EXPECT_EQ(ErrorWith("\"type\": \"forward\", \"stage\": 1", "\"type\": \"forward\", \"stage\": 0"),
            "plan.json:42:7: ranks[1].computations[0]: forward of stage 0, microbatch 0 is already "
            "on line 38; each computation runs once an iteration");
}

TEST(PlanFile, RefusesWhatIsNoPlan) {
  EXPECT_EQ(ParsePlanJson("[]", "plan.json").error().message,
            "plan.json:1:1: expected an object, found an array");
  EXPECT_EQ(ErrorWith("\"energy_j\": 480.5", "\"energy_j\": NaN").substr(0, 41),
            "plan.json:14:15: is not valid JSON: synta");
  EXPECT_NE(ParsePlanJson(std::string("\0\x7f\x45", 3), "plan.json")
                .error()
                .message.find("plan.json:1:1: is not valid JSON"),
            std::string::npos);
}

TEST(PlanFile, IsReadFromDisk) {
  const TemporaryDirectory directory;
  directory.Put("plan.json", kSampleText);
  const Result<PlanDocument> plan = ReadPlan(directory.Path("plan.json"));
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->stages, 2);
  EXPECT_EQ(ReadPlan(directory.Path("none.json")).error().code, ErrorCode::kIo);
}

// Every value of a plan, and all that are in it.
void CollectPointers(const nlohmann::json& value, const nlohmann::json::json_pointer& place,
                     std::vector<nlohmann::json::json_pointer>* places) {
  if (!place.empty()) places->push_back(place);
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) CollectPointers(member, place / key, places);
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) CollectPointers(value[i], place / i, places);
  }
}

// Two values are wrong, anywhere: a plan or a sentence.
TEST(PlanFile, SurvivesASecondFault) {
  const auto good = nlohmann::json::parse(FormatPlanJson(FusedPlan()));
  std::vector<nlohmann::json::json_pointer> places;
  CollectPointers(good, nlohmann::json::json_pointer(), &places);
  const std::vector<nlohmann::json> wrong = {nullptr, -1, "", nlohmann::json::array(),
                                             nlohmann::json::object()};
  for (std::size_t i = 0; i < places.size(); ++i) {
    for (std::size_t j = i + 1; j < places.size(); ++j) {
      nlohmann::json plan = good;
      // The later one first: it may be within the earlier one.
      plan[places[j]] = wrong[(i + j) % wrong.size()];
      plan[places[i]] = wrong[(2 * i + 3 * j) % wrong.size()];
      const auto read = ParsePlanJson(plan.dump(), "plan.json");
      ASSERT_TRUE(read || read.error().code == ErrorCode::kInvalidInput) << plan.dump();
    }
  }
}

// Keys may come in any order: as `jq -S` sorts them, what bounds the
// computations comes after them.
TEST(PlanFile, TakesItsKeysInAnyOrder) {
  const std::string sorted = nlohmann::json::parse(FormatPlanJson(FusedPlan())).dump();
  ASSERT_LT(sorted.find("\"ranks\""), sorted.find("\"stages\""));
  const Result<PlanDocument> plan = ParsePlanJson(sorted, "plan.json");
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  EXPECT_EQ(FormatPlanJson(*plan), FormatPlanJson(FusedPlan()));
}

// Of the largest pipelines either number may be as high as the computations'.
TEST(PlanFile, HasTheLimitsOfSchedules) {
  EXPECT_EQ(ErrorWith("\"microbatches\": 1", "\"microbatches\": 4000000"), "accepted");
  EXPECT_NE(ErrorWith("\"microbatches\": 1", "\"microbatches\": 4000001"), "accepted");
}

// Plans without shared clocks have no such bound, and other programs need none.
TEST(PlanFile, MayLackTheBoundOfSharedClocks) {
  PlanDocument plan = SamplePlan();
  plan.shared_knobs.reset();
  const std::string text = FormatPlanJson(plan);
  EXPECT_EQ(text.find("shared_clocks"), std::string::npos);
  const Result<PlanDocument> read = ParsePlanJson(text, "plan.json");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_FALSE(read->shared_knobs.has_value());
  EXPECT_NE(ErrorWith("\"proven\": true", "\"proven\": 1"), "accepted");
}

TEST(PlanFile, KeepsTheIntervalOfItsSaving) {
  PlanDocument plan = SamplePlan();
  EXPECT_EQ(FormatPlanJson(plan).find("saving_interval"), std::string::npos);
  plan.saving_interval = {.least_percent = 10.5, .most_percent = 11.25};
  const Result<PlanDocument> read = ParsePlanJson(FormatPlanJson(plan), "plan.json");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  ASSERT_TRUE(read->saving_interval.has_value());
  EXPECT_EQ(read->saving_interval->least_percent, 10.5);
  EXPECT_EQ(read->saving_interval->most_percent, 11.25);
}

TEST(PlanFile, KeepsHowItComparesWithNoClockSet) {
  PlanDocument plan = SamplePlan();
  EXPECT_EQ(FormatPlanJson(plan).find("default"), std::string::npos);
  plan.default_clocks = {.iteration_time_seconds = 1.5,
                         .energy_joules = 2000,
                         .slowdown_percent = 2.5,
                         .saving_percent = -3.25};
  const Result<PlanDocument> read = ParsePlanJson(FormatPlanJson(plan), "plan.json");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->default_clocks, plan.default_clocks);
}

// At 16 x 256 a plan should still open in an editor.
TEST(PlanFile, StaysSmall) {
  PlanDocument plan = SamplePlan();
  PlannedComputation computation = plan.ranks[0].computations[0];
  computation.start_seconds = 1.0 / 3;
  computation.duration_seconds = 2.0 / 3;
  computation.energy_joules = 1000.0 / 3;
  plan.ranks[0].computations.assign(2 * 16 * 256, computation);
  EXPECT_LT(FormatPlanJson(plan).size(), std::size_t{2} << 20);
}

// Any finite doubles come back to the same bits.
RC_GTEST_PROP(PlanFile, ReadsBackTheSameBits, ()) {
  const auto amount =
      rc::gen::map(rc::gen::arbitrary<double>(), [](double x) { return std::abs(x); });
  PlanDocument plan = SamplePlan();
  plan.requested_time_seconds = *amount;
  plan.gap_percent = *rc::gen::arbitrary<double>();
  plan.shared_knobs = {.lower_bound_joules = *rc::gen::arbitrary<double>(),
                       .gap_percent = *rc::gen::arbitrary<double>(),
                       .proven_best = *rc::gen::arbitrary<bool>()};
  for (PlannedRank& rank : plan.ranks) {
    for (PlannedComputation& computation : rank.computations) {
      computation.start_seconds = *amount;
      computation.duration_seconds = *amount;
      computation.energy_joules = *amount;
      const double clock = *rc::gen::suchThat(amount, [](double x) { return x > 0; });
      computation.knob = {"", clock};
    }
  }
  const Result<PlanDocument> read = ParsePlanJson(FormatPlanJson(plan), "plan.json");
  RC_ASSERT(read.has_value());
  RC_ASSERT(read->requested_time_seconds == plan.requested_time_seconds);
  RC_ASSERT(read->gap_percent == plan.gap_percent);
  RC_ASSERT(read->shared_knobs.has_value());
  RC_ASSERT(read->shared_knobs->lower_bound_joules == plan.shared_knobs->lower_bound_joules);
  RC_ASSERT(read->shared_knobs->gap_percent == plan.shared_knobs->gap_percent);
  RC_ASSERT(read->shared_knobs->proven_best == plan.shared_knobs->proven_best);
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    for (std::size_t i = 0; i < plan.ranks[r].computations.size(); ++i) {
      const PlannedComputation& written = plan.ranks[r].computations[i];
      const PlannedComputation& back = read->ranks[r].computations[i];
      RC_ASSERT(back.start_seconds == written.start_seconds);
      RC_ASSERT(back.duration_seconds == written.duration_seconds);
      RC_ASSERT(back.energy_joules == written.energy_joules);
      RC_ASSERT(back.knob.number == written.knob.number);
    }
  }
}

}  // namespace
}  // namespace perseus
