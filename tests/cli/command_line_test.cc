// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "cli/cluster/flags.h"
#include "common/labels.h"
#include "perseus/job.h"
#include "support/mentions.h"

namespace perseus::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string ErrorOf(const std::vector<std::string>& arguments) {
  const auto parsed = ParseCommandLine(arguments, 80);
  return parsed ? "" : parsed.error().message;
}

TEST(CommandLineTest, ReadsThePlanCommand) {
  const auto parsed = ParseCommandLine({"plan",
                                        "p.csv",
                                        "--schedule",
                                        "1F1B",
                                        "--stages=8",
                                        "--microbatches",
                                        "96",
                                        "--blocking-power",
                                        "83.64,80",
                                        "--at",
                                        "1.02x",
                                        "--comm-delay",
                                        "2ms",
                                        "-o",
                                        "out",
                                        "--granularity",
                                        "phase",
                                        "--time-margin",
                                        "2sigma",
                                        "--set",
                                        "coarse_watts=auto",
                                        "--json"},
                                       80);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->invocation.command, "plan");
  EXPECT_TRUE(parsed->invocation.json);
  EXPECT_EQ(parsed->invocation.job.input, "p.csv");
  const JobFile& flags = parsed->invocation.job.overrides;
  EXPECT_EQ(flags.schedule, "1f1b");
  EXPECT_EQ(flags.stages, 8);
  EXPECT_EQ(flags.microbatches, 96);
  EXPECT_EQ(flags.blocking_power_watts, (std::vector<double>{83.64, 80}));
  EXPECT_EQ(flags.at->value, 1.02);
  EXPECT_EQ(flags.comm_delay_seconds, (std::vector<double>{2 * 1e-3}));
  EXPECT_EQ(flags.output, "out");
  EXPECT_EQ(flags.granularity, Granularity::kPhase);
  EXPECT_EQ(flags.time_margin->sigmas, 2);
  EXPECT_EQ(flags.coarse_watts, -1);
  EXPECT_FALSE(flags.tensor_parallel);
}

TEST(CommandLineTest, ReadsTheEmulateCommand) {
  const auto parsed = ParseCommandLine({"emulate",
                                        "job.toml",
                                        "--dp",
                                        "16",
                                        "--at=1.1x",
                                        "--effort",
                                        "0.5",
                                        "--iterations",
                                        "7",
                                        "--seed",
                                        "3",
                                        "--noise",
                                        "1%",
                                        "--set",
                                        "stage_noise=0.02",
                                        "--set",
                                        "gpu_noise=3%",
                                        "--set",
                                        "rank_noise=0.4%",
                                        "--set",
                                        "noise_correlation=0.9",
                                        "--set",
                                        "rare_noise=5%",
                                        "--set",
                                        "rare_noise_share=1.5%",
                                        "--switch-latency",
                                        "15ms",
                                        "--switch-stall",
                                        "2ms",
                                        "--call-ahead=end",
                                        "--straggler",
                                        "slow=1.5",
                                        "--straggler",
                                        "clock=1100,pipeline=2,from=4,for=5",
                                        "--straggler-rate",
                                        "5%,power=250,for=15min",
                                        "--reaction-delay",
                                        "2s",
                                        "--power-interval",
                                        "100ms",
                                        "-o",
                                        "out"},
                                       80);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->invocation.command, "emulate");
  const EmulateFlags& flags = parsed->invocation.emulate;
  EXPECT_EQ(flags.iterations, 7);
  EXPECT_EQ(flags.spec.seed, 3u);
  const JobFile& given = parsed->invocation.job.overrides;
  EXPECT_EQ(given.noise, 0.01);
  EXPECT_EQ(given.stage_noise, 0.02);
  EXPECT_EQ(given.gpu_noise, 0.03);
  EXPECT_EQ(given.rank_noise, 0.4 / 100);
  EXPECT_EQ(given.noise_correlation, 0.9);
  EXPECT_EQ(given.rare_noise, 5.0 / 100);
  EXPECT_EQ(given.rare_noise_share, 1.5 / 100);
  EXPECT_EQ(given.switch_latency_seconds, 15 * 1e-3);
  EXPECT_EQ(given.switch_stall_seconds, 2 * 1e-3);
  EXPECT_EQ(given.call_ahead, CallAhead::kEnd);
  ASSERT_EQ(flags.spec.stragglers.size(), 2u);
  EXPECT_EQ(flags.spec.stragglers[0].value, 1.5);
  EXPECT_EQ(flags.spec.stragglers[1].kind, StragglerKind::kClockCap);
  EXPECT_EQ(flags.spec.stragglers[1].first_iteration, 4);
  const RandomStragglers& random = flags.spec.random_stragglers;
  EXPECT_EQ(random.share_of_gpus_per_day, 0.05);
  EXPECT_EQ(random.kind, StragglerKind::kPowerCap);
  EXPECT_EQ(random.value, 250);
  EXPECT_EQ(random.duration_seconds, 900);
  EXPECT_EQ(flags.spec.control.delay_seconds, 2);
  EXPECT_EQ(flags.power_interval_seconds, 0.1);
  EXPECT_EQ(flags.output_directory, "out");
}

TEST(CommandLineTest, PlanAndEmulateTakeTheSameConditions) {
  for (const std::string command : {"plan", "emulate"}) {
    const auto parsed = ParseCommandLine({command,
                                          "job.toml",
                                          "--noise",
                                          "1%",
                                          "--switch-latency",
                                          "15ms",
                                          "--set",
                                          "switch_latency_spread=3ms",
                                          "--call-ahead",
                                          "predicted",
                                          "--set",
                                          "max_early_loss=2%",
                                          "--set",
                                          "min_call_interval=10ms",
                                          "--set",
                                          "change_price=2.5",
                                          "--max-slowdown",
                                          "0.1%",
                                          "--set",
                                          "confidence=99%",
                                          "--max-changes",
                                          "300"},
                                         80);
    ASSERT_TRUE(parsed) << parsed.error().message;
    Conditions expected;
    expected.noise.per_computation = 0.01;
    expected.switching = {.latency_seconds = 15 * 1e-3,
                          .latency_spread_seconds = 3 * 1e-3,
                          .call_ahead = CallAhead::kPredicted,
                          .max_early_loss = 0.02,
                          .min_interval_seconds = 10 * 1e-3};
    expected.change_joules = 2.5;
    expected.max_slowdown = 0.001;
    expected.confidence = 0.99;
    expected.max_changes = 300;
    EXPECT_EQ(ConditionsOf(parsed->invocation.job.overrides), expected);
  }
  const auto wrong = ParseCommandLine({"plan", "job.toml", "--call-ahead", "soon"}, 80);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "--call-ahead: expected none, end or predicted, got 'soon'");
}

TEST(CommandLineTest, SetTakesTheKeysThatHaveNoOptionOfTheirOwn) {
  const auto error = [](const std::string& set) {
    return ErrorOf({"plan", "job.toml", "--set", set, "--set", "split_ratio=0.4"});
  };
  EXPECT_THAT(error("gpu_nose=1%"), Mentions("'gpu_noise'", "KEY=VALUE"));
  EXPECT_THAT(error("noise=1%"), Mentions("--noise"));
  EXPECT_THAT(error("gpu_noise"), Mentions("gpu_noise=VALUE"));
  EXPECT_THAT(error("split_ratio=0.5"), Mentions("twice"));
  EXPECT_THAT(error("gpu_noise=soon"), StartsWith("--set: gpu_noise: "));
}

TEST(CommandLineTest, EveryCommandHasHelpWithExamples) {
  const CommandData root = DescribeCommandLine();
  std::vector<std::string> names;
  for (const CommandData& command : root.commands) {
    names.push_back(command.name);
    const auto help = ParseCommandLine({command.name, "--help"}, 80);
    ASSERT_TRUE(help);
    EXPECT_TRUE(help->text->starts_with("Usage: perseus " + command.name)) << *help->text;
    EXPECT_NE(help->text->find("\nExample"), std::string::npos) << command.name;
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{
                "plan",  "frontier", "schedule", "explain",        "diff",       "check", "emulate",
                "fleet", "agent",    "doctor",   "support-bundle", "demo",       "serve", "store",
                "job",   "top",      "profile",  "report",         "completion", "man"}));
}

// An example of the help that the parser refuses would teach an error.
TEST(CommandLineTest, ExamplesParse) {
  const CommandData root = DescribeCommandLine();
  std::vector<ExampleData> examples;
  const std::function<void(const CommandData&)> append = [&](const CommandData& command) {
    examples.insert(examples.end(), command.examples.begin(), command.examples.end());
    for (const CommandData& each : command.commands) append(each);
  };
  append(root);
  for (const ExampleData& example : examples) {
    std::string text = example.command;
    if (text.starts_with("source <(")) text = text.substr(9, text.size() - 10);
    text = text.substr(0, text.find_first_of("|>"));
    std::vector<std::string> words;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find(' ', at), text.size());
      if (end > at) words.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    ASSERT_EQ(words.front(), "perseus") << example.command;
    words.erase(words.begin());
    EXPECT_EQ(ErrorOf(words), "") << example.command;
  }
}

TEST(CommandLineTest, LabelsAreSetAndRemoved) {
  const auto parsed = ParseCommandLine(
      {"job", "label", "llama-7", "team=vision", "project-", "--json", "a/b=1"}, 80);
  ASSERT_TRUE(parsed) << parsed.error().message;
  const JobClientFlags& flags = parsed->invocation.job_client;
  EXPECT_EQ(flags.action, "label");
  EXPECT_EQ(flags.job, "llama-7");
  EXPECT_EQ(flags.labels, (JobLabels{{"a/b", "1"}, {"team", "vision"}}));
  EXPECT_EQ(flags.gone_labels.size(), 1U);
  EXPECT_TRUE(flags.gone_labels.contains("project"));
  EXPECT_TRUE(flags.json);
  EXPECT_THAT(ErrorOf({"job", "label", "a", "team=x", "team-"}), Mentions("'team'"));
  EXPECT_THAT(ErrorOf({"job", "label", "a", "team"}), Mentions("team=vision"));
  std::vector<std::string> many = {"job", "label", "a"};
  for (int i = 0; i < 1000; ++i) many.push_back("k" + std::to_string(i) + "=v");
  EXPECT_THAT(ErrorOf(many), Mentions("16"));
  EXPECT_THAT(ErrorOf({"job", "create", "a.toml", "--label", "team="}), Mentions("--label"));
  EXPECT_THAT(ErrorOf({"top", "--label", "team:vision"}), Mentions("team=vision"));
}

TEST(CommandLineTest, EachActionHasItsOwnHelpAndOptions) {
  const auto text = [](const std::vector<std::string>& words) {
    const auto parsed = ParseCommandLine(words, 80);
    return parsed && parsed->text ? *parsed->text : "";
  };
  const std::string clear = text({"job", "straggler", "clear", "--help"});
  EXPECT_THAT(clear, StartsWith("Usage: perseus job straggler clear JOB [ID] [OPTIONS]\n"));
  EXPECT_THAT(clear, testing::Not(Mentions("--factor")));
  EXPECT_THAT(text({"job", "straggler", "set", "-h"}), Mentions("--factor"));
  EXPECT_THAT(text({"job", "list", "-h"}), testing::Not(Mentions("--names")));
  EXPECT_THAT(text({"job", "--help"}), StartsWith("Usage: perseus job ACTION [OPTIONS]\n"));
  EXPECT_EQ(text({"help"}), text({"--help"}));
  EXPECT_EQ(text({"help", "plan"}), text({"plan", "--help"}));
  EXPECT_EQ(text({"help", "job", "straggler"}), text({"job", "straggler", "--help"}));
  EXPECT_EQ(text({"-V"}), text({"--version"}));
  EXPECT_NE(text({"-V"}), "");
}

TEST(CommandLineTest, HelpShowsWhatPeopleUseAndHelpAllTheRest) {
  const std::string common = *ParseCommandLine({"emulate", "--help"}, 80)->text;
  const std::string all = *ParseCommandLine({"emulate", "--help-all"}, 80)->text;
  EXPECT_THAT(common, testing::HasSubstr("'perseus emulate --help-all' shows all "));
  EXPECT_THAT(common, Mentions("PROFILE.csv|JOB.toml|JOB.json"));
  EXPECT_THAT(common, Mentions("--microbatches"));
  EXPECT_THAT(common, testing::Not(Mentions("rare_noise")));
  EXPECT_THAT(all, Mentions("--microbatches"));
  EXPECT_THAT(all, Mentions("rare_noise"));
  EXPECT_THAT(all, testing::Not(testing::HasSubstr("--help-all' shows")));
}

TEST(CommandLineTest, ReadsActions) {
  const auto parsed =
      ParseCommandLine({"job", "straggler", "set", "plan", "--factor", "1.2", "--server", "x"}, 80);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->invocation.command, "job");
  EXPECT_EQ(parsed->invocation.job_client.action, "straggler set");
  EXPECT_EQ(parsed->invocation.job_client.job, "plan");  // Called like a command.
  EXPECT_EQ(parsed->invocation.job_client.factor, 1.2);
  EXPECT_EQ(parsed->invocation.job_client.server.server, "x");
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"job"},
                                             {"profile"},
                                             {"report"},
                                             {"job", "straggler"},
                                             {"job", "--json"},
                                             {"job", "--"}}) {
    EXPECT_THAT(ErrorOf(words), Mentions("action,")) << words.back();
  }
  EXPECT_THAT(ErrorOf({"job", "list", "--factor", "2"}), Mentions("'--factor'"));
}

TEST(CommandLineTest, ReadsWhatToReport) {
  const auto parsed =
      ParseCommandLine({"report", "energy", "--since", "2026-11-01", "--until", "12h", "--by",
                        "user,day", "--price", "0.12 EUR", "--carbon", "0.38kg", "--csv", "x.csv"},
                       80);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->invocation.command, "report");
  const ReportFlags& flags = parsed->invocation.report;
  EXPECT_EQ(flags.action, "energy");
  EXPECT_EQ(flags.since.day_seconds, 1'793'491'200);
  ASSERT_TRUE(flags.until);
  EXPECT_FALSE(flags.until->day_seconds);
  EXPECT_EQ(flags.until->ago_seconds, 43'200);
  EXPECT_EQ(flags.by, "user,day");
  EXPECT_EQ(flags.price_per_kwh, 0.12);
  EXPECT_EQ(flags.currency, "EUR");
  EXPECT_EQ(flags.carbon_g_per_kwh, 380);
  EXPECT_EQ(flags.csv_file, "x.csv");
  EXPECT_THAT(ErrorOf({"report", "energy", "--since", "2026-02-29"}), Mentions("'2026-02-29'"));
  EXPECT_THAT(ErrorOf({"report", "energy", "--by", "day,job"}), Mentions("job,day;"));
  for (const char* const by : {"label:team", "label:example.com/team,day"}) {
    EXPECT_EQ(ErrorOf({"report", "energy", "--by", by, "--label", "a=1", "--label", "b=2"}), "");
  }
  for (const char* const by : {"label:", "label:team,job", "label:a:b", "job,label:team"}) {
    EXPECT_NE(ErrorOf({"report", "energy", "--by", by}), "") << by;
  }
  EXPECT_EQ(LabelOfBy("label:team,day"), "team");
  EXPECT_EQ(LabelOfBy("job,day"), "");
}

// As the unit gives it: all that the agent is run with.
TEST(CommandLineTest, ReleaseTakesWhatRunTakes) {
  const auto run = ParseCommandLine({"help", "agent", "run"}, 80);
  const CommandData root = DescribeCommandLine();
  for (const CommandData& command : root.commands) {
    if (command.name != "agent") continue;
    for (const OptionData& option : command.commands.front().options) {
      if (option.long_name == "--help") continue;
      std::vector<std::string> words = {"agent", "release", "--journaled", option.long_name};
      if (!option.value.empty()) words.push_back(option.value == "TIME" ? "1s" : "1");
      EXPECT_EQ(ErrorOf(words), "") << option.long_name;
    }
  }
}

TEST(CommandLineTest, SuggestsTheNearestWord) {
  EXPECT_THAT(ErrorOf({"job", "strangler", "set"}), Mentions("'straggler'"));
  EXPECT_THAT(ErrorOf({"job", "straggler", "sett", "a"}), Mentions("'set'"));
  EXPECT_THAT(ErrorOf({"help", "job", "lisst"}), Mentions("'list'"));
  EXPECT_THAT(ErrorOf({"plam"}), Mentions("'plan'"));
  EXPECT_THAT(ErrorOf({"plan", "p.csv", "--microbatch", "3"}), Mentions("'--microbatches'"));
  EXPECT_THAT(ErrorOf({"plan", "p.csv", "--zzzzzzzzzzz"}), Mentions("--help"));
  EXPECT_THAT(ErrorOf({"plan", "p.csv", "--schedule", "1f2b"}),
              AllOf(StartsWith("--schedule: "), Mentions("'1f1b'")));
}

// The option is named first; the sentences are in messages.golden.
TEST(CommandLineTest, RefusesWhatItCannotUse) {
  const std::vector<std::vector<std::string>> refused = {
      {"plan", "--stages", "0"},
      {"plan", "--blocking-power", "-3"},
      {"plan", "--set", "split_ratio=1"},
      {"plan", "--stages"},
      {"plan", "--stages", "3", "--stages", "4"},
      {"plan", "--granularity", "gpu"},
      {"plan", "--at", "soon"},
      {"plan", "--time-margin", "2"},
      {"emulate", "--noise", "1"},
      {"emulate", "--straggler", "slow=1.2", "--straggler", "fast=2"},
      {"emulate", "--straggler-rate", "5%,fast=2"},
      {"emulate", "--reaction-delay", "soon"},
      {"emulate", "--straggler"}};
  for (const auto& words : refused) EXPECT_THAT(ErrorOf(words), StartsWith(words[1]));
  EXPECT_THAT(ErrorOf({"plan", "a", "b"}), Mentions("'b'"));
  EXPECT_NE(ErrorOf({}), "");
  EXPECT_NE(ErrorOf({"--"}), "");
}

}  // namespace
}  // namespace perseus::cli
