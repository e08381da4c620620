// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Plans and emulations under conditions.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/run_perseus.h"
#include "cli/sample_job_testing.h"
#include "support/mentions.h"

namespace perseus::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

// Plans of the sample profile under conditions.
class BinaryConditionsTest : public SampleJobTest {
 protected:
  static std::string Out(const std::vector<std::string>& arguments) {
    const RunResult run = RunPerseus(arguments);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run.out;
  }
  // Without line breaks.
  static std::string Words(const std::string& text) {
    std::string words;
    for (const char c : text) {
      if (c != ' ' && c != '\n') {
        words += c;
      } else if (!words.empty() && words.back() != ' ') {
        words += ' ';
      }
    }
    return words;
  }
  // Under the conditions of a file.
  std::vector<std::string> With(const std::string& file, std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = Arguments("plan", {"--conditions", file});
    arguments.insert(arguments.end(), {"--effort", "0.001"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  static std::string Fault(const std::vector<std::string>& arguments) {
    const RunResult run = RunPerseus(arguments);
    EXPECT_EQ(run.exit_code, 2) << run.out;
    EXPECT_EQ(run.out, "");
    return run.err;
  }
  // The file that the plan of these flags is written to.
  std::string Write(const std::vector<std::string>& flags, const std::string& name) const {
    std::vector<std::string> arguments = Arguments("plan", flags);
    arguments.insert(arguments.end(), {"--effort", "0.05", "-o", folder_.Path(name)});
    Out(arguments);
    return folder_.Path(name) + "/plan.json";
  }

  std::vector<std::string> flags_ = {"--switch-latency", "20ms",      "--noise",        "1%",
                                     "--call-ahead",     "predicted", "--max-slowdown", "0.5%",
                                     "--max-changes",    "6"};
};

TEST_F(BinaryConditionsTest, ExplainAndFrontierSayWhatHoldsWithoutConditionsAlone) {
  const std::string path = Write(flags_, "explained");
  const std::string text = Out({"explain", path});
  EXPECT_THAT(Words(text), Mentions("conditions:", "noise"));
  EXPECT_THAT(Words(text), Mentions("Emulated", "says:"));
  const json explained = json::parse(Out({"explain", path, "--json"}));
  const json plan = json::parse(ReadText(path));
  EXPECT_EQ(explained["conditions"], plan["conditions"]);
  EXPECT_EQ(explained["expected"], plan["expected"]);
  EXPECT_EQ(explained["as_the_file_says"], json::array({"conditions", "expected"}));
  json edited = plan;
  edited["conditions"]["max_changes"] = 0;
  const RunResult refused = RunPerseus({"explain", folder_.Write("edited.json", edited.dump())});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, Mentions("conditions.max_changes", "0"));
  const std::string paper = Write({}, "paper");
  EXPECT_THAT(Out({"explain", paper}), Not(Mentions("conditions")));
  EXPECT_FALSE(json::parse(Out({"explain", paper, "--json"})).contains("expected"));
  const auto is_said = Mentions("knows");
  const std::string job = folder_.Write(
      "conditions.toml",
      "profile = \"profile.csv\"\nschedule = \"1f1b\"\nmicrobatches = 4\nblocking_power = 20\n"
      "[conditions]\nnoise = \"1%\"\n");
  EXPECT_THAT(Out({"frontier", job}), is_said);
  EXPECT_THAT(Out(Arguments("frontier", {})), Not(is_said));
}

TEST_F(BinaryConditionsTest, JobFileAndFlagsSayTheSame) {
  Write(flags_, "flags");
  const std::string job = folder_.Write(
      "job.toml",
      "profile = 'profile.csv'\nschedule = '1f1b'\nmicrobatches = 4\nblocking_power = 20\n"
      "effort = 0.05\noutput = 'file'\n[conditions]\nswitch_latency = '20ms'\nnoise = '1%'\n"
      "call_ahead = 'predicted'\nmax_slowdown = '0.5%'\nmax_changes = 6\n");
  Out({"plan", job});
  EXPECT_EQ(ReadText(folder_.Path("file/plan.json")), ReadText(folder_.Path("flags/plan.json")));
}

TEST_F(BinaryConditionsTest, ALatencyOfAClockThatIsNotThereIsSaid) {
  const auto said = [this](const std::string& latencies) {
    return Words(Out(Arguments("plan", {"--switch-latency", "2ms", "--set",
                                        "switch_latency_at=" + latencies, "--effort", "0.01"})));
  };
  EXPECT_THAT(said("1399=9ms"), Mentions("Note", "1399"));
  EXPECT_THAT(said("1400=9ms"), Not(Mentions("Note")));
}

TEST_F(BinaryConditionsTest, WithoutThemNothingIsSaidOfThem) {
  Write({}, "paper");
  EXPECT_THAT(ReadText(folder_.Path("paper/plan.json")), Not(Mentions("conditions")));
  EXPECT_THAT(Out(Arguments("plan", {"--json"})), Not(Mentions("expected")));
}

// The same number everywhere: with those from the end of an iteration to the start of the next.
TEST_F(BinaryConditionsTest, ChangesAreCountedAsTheLimitDoes) {
  std::vector<std::string> arguments = {"plan",          "examples/gpt3-1.3b-a100-sxm.toml",
                                        "--at",          "tstar",
                                        "--noise",       "1%",
                                        "--max-changes", "10",
                                        "--effort",      "0.25"};
  const std::string text = Words(Out(arguments));
  arguments.emplace_back("--json");
  const json document = json::parse(Out(arguments));
  const int last = document["price_curve"].back()["changes"];
  EXPECT_LE(last, 10);
  EXPECT_GT(last, document["knob_changes"]);
  EXPECT_THAT(text, Mentions(std::to_string(last), "changes"));
  EXPECT_NEAR(document["expected"]["clock_calls"], last, 0.1);
}

TEST_F(BinaryConditionsTest, TheTableMarksThePlanThatIsWritten) {
  std::vector<std::string> arguments = Arguments("plan", flags_);
  arguments.insert(arguments.end(), {"--effort", "0.05"});
  EXPECT_THAT(Out(arguments), HasSubstr("\n>  for the conditions"));
  arguments.insert(arguments.end(), {"--json", "-o", folder_.Path("out")});
  const json document = json::parse(Out(arguments));
  int chosen = 0;
  for (const json& point : document["points"]) {
    if (!point["chosen"]) continue;
    ++chosen;
    EXPECT_EQ(point["name"], "without_conditions");
    EXPECT_EQ(point["energy_j"], document["energy_j"]);
  }
  EXPECT_EQ(chosen, 1);
  EXPECT_THAT(ReadText(folder_.Path("out/report.html")),
              HasSubstr("Saving of energy, under the conditions"));
}

TEST_F(BinaryConditionsTest, WhatIsMisplacedInAJobFileIsSaid) {
  const std::string job =
      "profile = 'profile.csv'\nschedule = '1f1b'\nmicrobatches = 4\nblocking_power = 20\n";
  const RunResult below =
      RunPerseus({"plan", folder_.Write("a.toml", job + "[conditions]\nnoise = '1%'\ndp = 2\n")});
  EXPECT_EQ(below.exit_code, 2);
  EXPECT_THAT(below.err, Mentions("a.toml:7:1:"));
  EXPECT_THAT(below.err, Mentions("[conditions]"));
  const RunResult above = RunPerseus({"plan", folder_.Write("b.toml", job + "noise = '1%'\n")});
  EXPECT_EQ(above.exit_code, 2);
  EXPECT_THAT(above.err, Mentions("[conditions]"));
}

// `plan --conditions FILE`: conditions that are not in the job file, as `doctor` writes them.

TEST_F(BinaryConditionsTest, AFileCountsWhereNoOptionSaysOtherwise) {
  const std::string file = folder_.Write("measured.toml",
                                         "[conditions]\nswitch_latency = \"30ms-40ms\"\n"
                                         "switch_stall = \"1ms\"\ncall_ahead = \"predicted\"\n");
  const json plan = json::parse(Out(With(file, {"--noise", "1%", "--json"})));
  EXPECT_EQ(plan["conditions"]["switch_stall_s"], 0.001);
  EXPECT_EQ(plan["conditions"]["noise"], 0.01);
  EXPECT_EQ(plan["conditions"]["call_ahead"], "predicted");
  EXPECT_EQ(plan["conditions"]["ranges"]["switch_latency_s"], json({0.03, 0.04}));
  const json other = json::parse(Out(With(file, {"--switch-latency", "5ms", "--json"})));
  EXPECT_EQ(other["conditions"]["switch_latency_s"], 0.005);
  EXPECT_EQ(other["conditions"]["switch_stall_s"], 0.001);
}

TEST_F(BinaryConditionsTest, SaysWhatIsWrongWithAFile) {
  EXPECT_THAT(Fault(With(folder_.Path("none.toml"))), HasSubstr("none.toml"));
  EXPECT_THAT(Fault(With(folder_.Write("profile.txt", "x"))), HasSubstr(".toml"));
  EXPECT_THAT(Fault(With(folder_.Write("empty.toml", "[conditions]\n"))),
              HasSubstr("switch_latency"));
  const std::string job =
      folder_.Write("job.toml", "microbatches = 4\n[conditions]\nnoise = \"1%\"\n");
  EXPECT_THAT(Fault(With(job)), HasSubstr("'microbatches' stands outside"));
  EXPECT_THAT(Fault(With(folder_.Write("bad.toml", "[conditions]\nnoise = 7\n"))),
              HasSubstr("bad.toml:2"));
}

// Savings under conditions on the sample, against what is known of it.

TEST_F(BinaryConditionsTest, ConstraintsBesideConditionsLeaveMostOfTheSaving) {
  std::vector<std::string> flags = flags_;
  const json without = json::parse(ReadText(Write(flags, "without")));
  flags.insert(flags.end(), {"--time-margin", "0.1%"});
  const json with = json::parse(ReadText(Write(flags, "with")));
  EXPECT_GT(with["expected"]["saving_percent"].get<double>(),
            0.7 * without["expected"]["saving_percent"].get<double>());
}

// With stages that are about equally slow a margin leaves room off the critical path alone.
TEST_F(BinaryConditionsTest, AMarginWithFewChangesSavesNearlyAsMuch) {
  const auto saving = [](const std::vector<std::string>& margin) {
    std::vector<std::string> arguments = {"plan",   "examples/gpt3-1.3b-a100-sxm.toml",
                                          "--json", "--switch-latency",
                                          "15ms",   "--max-changes",
                                          "20",     "--effort",
                                          "0.0157"};
    arguments.insert(arguments.end(), margin.begin(), margin.end());
    return json::parse(Out(arguments))["expected"]["saving_percent"].get<double>();
  };
  EXPECT_GT(saving({"--time-margin", "1%"}), 0.8 * saving({}));
}

// By hand, stage 0 at 1200 MHz but for its first and last computation: 4.2 % with two changes.
TEST_F(BinaryConditionsTest, TwoChangesSaveWhatTwoByHandSave) {
  const std::vector<std::string> arguments = {"plan",      "examples/gpt3-1.3b-a100-sxm.toml",
                                              "--json",    "--switch-latency",
                                              "15ms",      "--call-ahead",
                                              "predicted", "--noise",
                                              "1%",        "--max-changes",
                                              "2",         "--effort",
                                              "0.0625"};
  const json plan = json::parse(Out(arguments));
  EXPECT_GT(plan["expected"]["saving_percent"], 4.2);
  EXPECT_LE(plan["expected"]["slowdown_percent"], 0.1);
}

// Limits that are searched one by one gave 4.56, 3.33, 3.93 and 4.79 %
// (docs/explanation/planning.md); a walk that may never pass the limit 0.98 % with 5, 2.75 %
// with 20.
TEST_F(BinaryConditionsTest, AGranularityWithFewChangesSavesWhatFewChangesCan) {
  double before = 0;
  for (const std::string most : {"5", "10", "20", "50"}) {
    const std::vector<std::string> arguments = {"plan",   "examples/gpt3-1.3b-a100-sxm.toml",
                                                "--json", "--switch-latency",
                                                "15ms",   "--max-changes",
                                                most,     "--granularity",
                                                "phase"};
    const double saving = json::parse(Out(arguments))["expected"]["saving_percent"].get<double>();
    EXPECT_GE(saving, before - 1e-9) << most;
    EXPECT_GT(saving, 4) << most;
    before = saving;
  }
}

// Advice of `plan` under conditions: what is given up, would help, or was probably not meant.

// A value in another unit than meant is said before the figures that it spoils.
TEST_F(BinaryConditionsTest, ALatencyThatIsTooLongIsSaidFirst) {
  for (const char* const command : {"emulate", "plan"}) {
    std::vector<std::string> arguments = Arguments(command, {"--switch-latency", "1000"});
    arguments.insert(arguments.end(), {"--effort", "0.02", "--accept-implausible"});
    const std::string out = Out(arguments);
    const std::size_t note = out.find("the latency of a clock is 1000 s");
    ASSERT_NE(note, std::string::npos) << command;
    EXPECT_LT(note, out.find("saving")) << command;
    EXPECT_EQ(out.find("the latency of a clock is 1000 s", note + 1), std::string::npos);
  }
}

TEST_F(BinaryConditionsTest, PlanSaysWhatItGivesUp) {
  std::vector<std::string> arguments = Arguments("plan", flags_);
  arguments.insert(arguments.end(), {"--effort", "0.05"});
  const std::string text = Out(arguments);
  EXPECT_THAT(text, Mentions("1", "20"));
  EXPECT_THAT(text, Mentions("Emulated"));
  EXPECT_THAT(text, Mentions("Cost"));
  EXPECT_THAT(text, Mentions("Otherwise"));
  arguments.emplace_back("--json");
  const json document = json::parse(Out(arguments));
  EXPECT_GT(document["paper_plan"]["saving_percent"], 0);
  EXPECT_TRUE(document["bound"].contains("proven"));
  EXPECT_TRUE(document["price_curve"].is_array());
}

// Noise that is drawn once for a job leaves little to slow: said so, with a slowdown that helps.
TEST_F(BinaryConditionsTest, NoiseOfAJobSaysWhichSlowdownWouldHelp) {
  const std::vector<std::string> base = {
      "plan", "examples/gpt3-1.3b-a100-sxm.toml", "--set", "stage_noise=1%", "--effort", "0.05"};
  const std::string text = Words(Out(base));
  EXPECT_THAT(text, Mentions("beforehand"));
  const std::string flag = "accept --max-slowdown ";
  const std::size_t at = text.find(flag);
  ASSERT_NE(at, std::string::npos) << text;
  const std::string slowdown =
      text.substr(at + flag.size(), text.find(',', at + flag.size()) - (at + flag.size()));
  std::vector<std::string> more = base;
  more.insert(more.end(), {"--json", "--max-slowdown", slowdown});
  const json with = json::parse(Out(more));
  EXPECT_GE(with["expected"]["saving_percent"].get<double>(),
            with["paper_plan"]["expected"]["saving_percent"].get<double>() - 0.01);
  // Just below, as the name has two digits, that plan does not hold: what holds is another one.
  const double named = std::stod(slowdown);
  const double digit = std::pow(10, std::floor(std::log10(named)) - 1);
  std::vector<std::string> tight = base;
  tight.insert(tight.end(),
               {"--json", "--max-slowdown", std::to_string(named - 1.01 * digit) + "%"});
  const json below = json::parse(Out(tight));
  EXPECT_NE(below["energy_j"], below["paper_plan"]["energy_j"]);
}

// The limit counts changes, of which late calls make fewer.
TEST_F(BinaryConditionsTest, WhatTheLimitForbidsIsNotAdvised) {
  std::vector<std::string> arguments = {"plan",
                                        "examples/gpt3-1.3b-a100-sxm.toml",
                                        "--set",
                                        "stage_noise=1%",
                                        "--switch-latency",
                                        "20ms",
                                        "--set",
                                        "min_call_interval=500ms",
                                        "--effort",
                                        "0.02"};
  arguments.insert(arguments.end(), {"--max-changes", "12"});
  const std::string text = Words(Out(arguments));
  EXPECT_THAT(text, Mentions("--max-slowdown", "confidence"));
  EXPECT_THAT(text, Not(Mentions("enough")));
}

// Changes that cost more than they save are no help.
TEST_F(BinaryConditionsTest, AdviceCountsThePriceOfChanges) {
  const std::string text =
      Words(Out({"plan", "examples/gpt3-1.3b-a100-sxm.toml", "--set", "stage_noise=1%", "--set",
                 "change_price=5", "--effort", "0.02"}));
  EXPECT_THAT(text, Not(Mentions("enough")));
  EXPECT_THAT(text, MatchesRegex(".*Cost [^.]* -[0-9]+[.][0-9]+ %.*"));
  EXPECT_THAT(text, MatchesRegex(".*With the price of its changes the saving is -[0-9.]+ %.*"));
}

// A slower plan is compared with one that has that time, too.
TEST_F(BinaryConditionsTest, ASlowerPlanIsComparedAtItsOwnTime) {
  const std::string text =
      Words(Out({"plan", "examples/gpt3-1.3b-a100-sxm.toml", "--set", "stage_noise=1%",
                 "--max-slowdown", "2%", "--effort", "0.02"}));
  EXPECT_THAT(text, MatchesRegex(".*Cost [^(]* [0-9.]+ % in the same time "
                                 "\\(\\+[0-9.]+ %\\)[^.]* [0-9.]+ %[.] .*"));
}

// Advice on a key of the job file names no flag.
TEST_F(BinaryConditionsTest, AdviceNamesKeysOfTheJobFile) {
  const std::string job = folder_.Write(
      "keys.toml",
      "profile = 'profile.csv'\nschedule = '1f1b'\nmicrobatches = 4\nblocking_power = 20\n"
      "at = '1000s'\neffort = 0.02\n[conditions]\nstage_noise = '3%'\nmax_slowdown = '0.1%'\n"
      "confidence = '95%'\n");
  const std::string text = Words(Out({"plan", job}));
  EXPECT_THAT(text, Mentions("keys.toml:5:6:", "1000"));
  const std::string tight = folder_.Write(
      "tight.toml",
      "profile = 'profile.csv'\nschedule = '1f1b'\nmicrobatches = 4\nblocking_power = 20\n"
      "effort = 0.02\n[conditions]\nstage_noise = '1%'\nmax_slowdown = '0.1%'\n"
      "confidence = '95%'\n");
  const std::string helps = Words(Out({"plan", tight}));
  EXPECT_THAT(helps, Mentions("max_slowdown"));
  EXPECT_THAT(helps, Mentions("'confidence'"));
}

TEST_F(BinaryConditionsTest, AnotherModeOfCallsIsNamedWhereItSavesMore) {
  const auto text = [](const std::string& latency, const std::string& mode) {
    return Words(Out({"plan", "examples/gpt3-1.3b-a100-sxm.toml", "--switch-latency", latency,
                      "--call-ahead", mode, "--effort", "0.05"}));
  };
  EXPECT_THAT(text("200ms", "end"),
              MatchesRegex(".*Calls with --call-ahead (none|predicted).* instead of end.* "
                           "[0-9.]+ %.*"));
  EXPECT_THAT(text("15ms", "none"), Mentions("--call-ahead"));
  EXPECT_THAT(text("15ms", "predicted"), Not(Mentions("--call-ahead")));
}

TEST_F(BinaryConditionsTest, LateTargetsHaveABoundAndPointsThatDiffer) {
  const std::vector<std::string> base = {
      "plan", "examples/gpt3-1.3b-a100-sxm.toml", "--at", "tstar", "--noise", "1%", "--effort",
      "0.05"};
  std::vector<std::string> arguments = base;
  arguments.emplace_back("--json");
  const json document = json::parse(Out(arguments));
  // Least energy is at T_energy, where 24.1 % are saved.
  EXPECT_GT(document["bound"]["saving_percent"], document["expected"]["saving_percent"]);
  EXPECT_LT(document["bound"]["saving_percent"], 25);
  const std::string text = Words(Out(base));
  const std::string curve = "Changes an iteration without changes of clock saves ";
  const std::size_t at = text.find(curve);
  ASSERT_NE(at, std::string::npos) << text;
  const std::size_t end = text.find(" %", at);
  const std::string first = text.substr(at + curve.size(), end - at - curve.size());
  EXPECT_THAT(text.substr(end, text.find(". ", end) - end), Not(HasSubstr(" " + first + " %")));
}

TEST_F(BinaryConditionsTest, WhatChangesSaveIsASentence) {
  std::vector<std::string> arguments = {"plan",          "examples/gpt3-1.3b-a100-sxm.toml",
                                        "--noise",       "1%",
                                        "--effort",      "0.02",
                                        "--max-changes", "6"};
  const std::string sentence =
      ".* an iteration without changes of clock saves -?[0-9.]+ %"
      "(, with [0-9]+ changes? -?[0-9.]+ %)+";
  EXPECT_THAT(Words(Out(arguments)), MatchesRegex(sentence + "[.] Next .*"));
  arguments.insert(arguments.end(), {"--set", "change_price=5"});
  EXPECT_THAT(Words(Out(arguments)), MatchesRegex(sentence + " \\([^)]*price[^)]*\\)[.] Next .*"));
}

TEST_F(BinaryConditionsTest, ALatencyInTheWrongUnitIsRefused) {
  const std::vector<std::string> arguments =
      Arguments("plan", {"--switch-latency", "20s", "--effort", "0.05"});
  EXPECT_THAT(Refused(arguments), Mentions("20ms", "--accept-implausible"));
}

// Emulations under conditions: those of a plan that was written, and those of flags.

TEST_F(BinaryConditionsTest, EmulationJsonRecordsItsScenario) {
  const auto scenario = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments =
        Arguments("emulate", {"--iterations", "3", "--dp", "2", "-o", folder_.Path("scenario")});
    arguments.insert(arguments.end(), more.begin(), more.end());
    Out(arguments);
    return json::parse(ReadText(folder_.Path("scenario/emulation.json")))["scenario"];
  };
  const json with = scenario({"--noise", "1%", "--switch-latency", "20ms", "--call-ahead", "end",
                              "--straggler", "slow=1.2,pipeline=1,from=1"});
  EXPECT_EQ(with["noise"], 0.01);
  EXPECT_EQ(with["switch_latency_s"], 0.02);
  EXPECT_EQ(with["call_ahead"], "end");
  EXPECT_EQ(with["iterations"], 3);
  ASSERT_EQ(with["stragglers"].size(), 1u);
  EXPECT_EQ(with["stragglers"][0]["kind"], "slow");
  EXPECT_EQ(with["stragglers"][0]["value"], 1.2);
  EXPECT_EQ(with["stragglers"][0]["pipeline"], 1);
  EXPECT_EQ(with["stragglers"][0]["rank"], nullptr);
  EXPECT_EQ(with["stragglers"][0]["from"], 1);
  EXPECT_EQ(with["random_stragglers"], nullptr);
  EXPECT_THAT(with["in_words"].get<std::string>(), HasSubstr("noise of 1 % a computation"));
  EXPECT_THAT(ReadText(folder_.Path("scenario/report.html")), Mentions("Scenario:", "1"));
  const json without = scenario({});
  EXPECT_EQ(without["noise"], 0);
  EXPECT_TRUE(without["stragglers"].empty());
  const json random = scenario({"--straggler-rate", "5%"})["random_stragglers"];
  EXPECT_EQ(random["rate_per_day"], 0.05);
}

TEST_F(BinaryConditionsTest, EmulateSaysThatItSearchesLess) {
  const auto is_said = Mentions("0.2");
  EXPECT_THAT(Out(Arguments("emulate", {})), is_said);
  EXPECT_THAT(Out(Arguments("emulate", {"--effort", "0.2"})), Not(is_said));
  EXPECT_THAT(Out(Arguments("emulate", {"--plan", "max-clocks"})), Not(is_said));
}

TEST_F(BinaryConditionsTest, EmulateTakesThemFromThePlanUnlessAFlagSaysOtherwise) {
  const std::string path = Write(flags_, "held");
  const json plan = json::parse(ReadText(folder_.Path("held/plan.json")));
  EXPECT_EQ(plan["conditions"]["switch_latency_s"], 0.02);
  EXPECT_EQ(plan["conditions"]["call_ahead"], "predicted");
  EXPECT_EQ(plan["conditions"]["max_changes"], 6);
  EXPECT_LE(plan["knob_changes"], 6);
  const json& expected = plan["expected"];
  EXPECT_LE(expected["slowdown_percent"], 0.5);
  // The first of its five seeds.
  const auto emulate = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments =
        Arguments("emulate", {"--plan", path, "--iterations", "200", "--seed", "1001", "--json"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return json::parse(Out(arguments));
  };
  const json same = emulate({});
  EXPECT_LT(
      std::fabs(same["saving_percent"].get<double>() - expected["saving_percent"].get<double>()),
      10 * expected["saving_spread_percent"].get<double>() + 1e-9);
  EXPECT_GT(same["clock_calls"], 0);
  EXPECT_EQ(same["iterations"], emulate({"--switch-latency", "20ms"})["iterations"]);
  EXPECT_NE(same["iterations"], emulate({"--noise", "0"})["iterations"]);
  EXPECT_NE(same["iterations"], emulate({"--call-ahead", "none"})["iterations"]);
}

TEST_F(BinaryConditionsTest, ThePriceOfChangesIsStatedApart) {
  const std::vector<std::string> late = {"--switch-latency", "20ms", "--iterations", "4", "--json"};
  std::vector<std::string> priced = late;
  priced.insert(priced.end(), {"--set", "change_price=0.5"});
  const std::string path = Write(flags_, "held");
  const auto emulate = [&](std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--plan", path});
    return json::parse(Out(Arguments("emulate", flags)));
  };
  const json without = emulate(late);
  EXPECT_FALSE(without.contains("price_of_changes"));
  const json with = emulate(priced);
  EXPECT_EQ(with["energy_j"], without["energy_j"]);
  const json& price = with["price_of_changes"];
  EXPECT_EQ(price["price_j"], 0.5 * with["clock_calls"].get<double>());
  EXPECT_GT(price["price_j"], 0);
  EXPECT_EQ(price["baseline_price_j"], 0);
  EXPECT_LT(price["saving_percent"], with["saving_percent"]);
  // In text, too, and what the plan says of itself.
  std::vector<std::string> plan = Arguments("plan", flags_);
  plan.insert(plan.end(), {"--effort", "0.05", "--set", "change_price=0.5"});
  EXPECT_THAT(Out(plan), Mentions("change_price", "500.0", "1.0"));
}

TEST_F(BinaryConditionsTest, APlanForMicrobatchesThatDifferIsNotReplayedSilently) {
  const std::string work = folder_.Write("work.csv", "microbatch,factor\n0,1\n1,2\n2,1\n3,0.5\n");
  const std::string path = Write({"--work", work}, "work");
  const auto notes = [&](const std::vector<std::string>& more) {
    std::vector<std::string> flags = {"--plan", path, "--iterations", "2", "--json"};
    flags.insert(flags.end(), more.begin(), more.end());
    const json document = json::parse(Out(Arguments("emulate", flags)));
    return document["notes"].dump() + document["remarks"].dump();
  };
  EXPECT_THAT(notes({}), Mentions("--work"));
  EXPECT_THAT(notes({"--work", work}), Not(Mentions("work")));
  const std::string other = folder_.Write("other.csv", "microbatch,factor\n0,1\n1,2\n2,3\n");
  EXPECT_THAT(notes({"--work", other}), Mentions("lengths"));
  EXPECT_THAT(notes({"--work", other}), Mentions("3", "4"));
}

TEST_F(BinaryConditionsTest, ASpreadIsHeldAgainstTheLatencyOfThePlan) {
  const RunResult run = RunPerseus(Arguments(
      "emulate", {"--plan", Write(flags_, "held"), "--set", "switch_latency_spread=30ms"}));
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, Mentions("switch_latency_spread", "0.03", "0.02"));
  // A latency below the spread that the plan was made for.
  std::vector<std::string> spread = flags_;
  spread.insert(spread.end(), {"--set", "switch_latency_spread=5ms"});
  const RunResult below = RunPerseus(
      Arguments("emulate", {"--plan", Write(spread, "spread"), "--switch-latency", "1ms"}));
  EXPECT_EQ(below.exit_code, 2);
  EXPECT_THAT(below.err, Mentions("--switch-latency", "0.001", "0.005"));
}

TEST_F(BinaryConditionsTest, EmulateMakesTheMakeRobustPlanWhereItIsTold) {
  std::vector<std::string> arguments = Arguments("emulate", flags_);
  arguments.insert(arguments.end(), {"--effort", "0.05", "--iterations", "20"});
  EXPECT_THAT(Out(arguments), Mentions("(holds)"));
}

// The flag, or the key of the job file or of the plan.
TEST_F(BinaryConditionsTest, ThePriceOfChangesIsNamedAsItWasGiven) {
  const std::string job = folder_.Write(
      "priced.toml",
      "profile = 'profile.csv'\nschedule = '1f1b'\nmicrobatches = 4\nblocking_power = 20\n"
      "effort = 0.05\n[conditions]\nnoise = '1 %'\nswitch_latency = '20 ms'\n"
      "call_ahead = 'predicted'\nchange_price = 0.5\n");
  const auto is_key = Mentions("'change_price'");
  const auto is_flag = Mentions("change_price");
  EXPECT_THAT(Words(Out({"plan", job, "-o", folder_.Path("priced")})), is_key);
  EXPECT_THAT(Words(Out({"plan", job, "--set", "change_price=0.6"})), is_flag);
  EXPECT_THAT(Words(Out({"emulate", job, "--iterations", "4"})), is_key);
  const std::vector<std::string> replay =
      Arguments("emulate", {"--iterations", "4", "--plan", folder_.Path("priced/plan.json")});
  EXPECT_THAT(Words(Out(replay)), Mentions("change_price_j"));
  std::vector<std::string> more = replay;
  more.insert(more.end(), {"--set", "change_price=0.6"});
  EXPECT_THAT(Words(Out(more)), is_flag);
}

}  // namespace
}  // namespace perseus::cli
