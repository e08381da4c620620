// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyse/sweep_text.h"
#include "cli/command_options.h"
#include "cli/framework/value_parsers.h"
#include "common/input_limits.h"
#include "common/nearest_name.h"
#include "emulate/straggler_text.h"
#include "perseus/analysis.h"
#include "perseus/effort.h"
#include "perseus/emulator.h"
#include "perseus/policy.h"

namespace perseus::cli {
namespace {

constexpr std::int64_t kMostRunIterations = 1'000'000'000'000;
constexpr int kMostLayers = 100'000;
// More than one straggler a GPU and day is asked for as a percentage only.
constexpr double kMostStragglerShare = 1;

std::vector<std::string> Policies() {
  const std::vector<std::string_view> names = PolicyNames();
  return {names.begin(), names.end()};
}

void AddJobOptions(CommandParser* parser, EmulateFlags* flags) {
  parser->SetGroup("Job");
  parser->AddValue<std::int64_t>(
      &flags->iterations, "--iterations", "N", "Iterations to simulate (default 100).",
      [](std::string_view text) { return ParseLongCount(text, 1, kMaxIterations); });
  parser->AddValue<std::uint64_t>(&flags->spec.seed, "--seed", "N",
                                  "Seed of all random numbers (default 0).", ParseSeed);
  parser->AddText(
      "--policy", "NAME",
      fmt::format("Who chooses the clocks: {} (default perseus).", fmt::join(Policies(), ", ")),
      [flags](const std::string& text) -> Result<void> {
        flags->policy = text;
        if (!PolicySummary(text).empty()) return {};
        const std::string nearest = NearestName(text, Policies());
        return InvalidInput(
            fmt::format("there is no policy '{}'{}; the names are {}", text,
                        nearest.empty() ? "" : fmt::format(", did you mean '{}'?", nearest),
                        fmt::join(Policies(), ", ")));
      },
      {ValueKind::kChoice, Policies()});
  parser->AddText("--plan", "FILE",
                  "Follow this plan instead of a policy: a plan.json, or a Python plan of Zeus or "
                  "lowtime (.py). Without --at, the plan's own time is the target.",
                  CommandParser::NotEmpty(&flags->plan_file, "the name of the file is empty"),
                  {ValueKind::kFile, {}});
  parser->AddFlag(
      &flags->compare, "--compare",
      "Run every policy, and perseus at every granularity, under the same conditions, and show "
      "them in one table. Some policies save only if the job may be slower; give them --at 1.05x.");
}

void AddStragglerOptions(CommandParser* parser, EmulateFlags* flags) {
  parser->AddRepeated(
      "--straggler", "KIND=X[,KEY=N...]",
      "Make one pipeline slow: slow=1.2 (its computations take 1.2 times as long), clock=1100MHz "
      "(no clock above this), power=250W (no GPU draws more) or stall=500ms (its first computation "
      "starts this much later). Then say where and when: pipeline=N (default 0), rank=N (default "
      "all), from=N (first iteration, default 0), for=N (number of iterations, default to the "
      "end). May be given several times.",
      [flags](const std::string& text) -> Result<void> {
        const Result<Straggler> straggler = emulate::ParseStraggler(text);
        if (!straggler) return tl::unexpected(straggler.error());
        flags->spec.stragglers.push_back(*straggler);
        return {};
      });
  parser->AddValue<double>(
      &flags->straggler_rate, "--straggler-rate", "P%",
      "Share of the GPUs that become slow in a day, at random: 5%.",
      [](std::string_view text) { return ParseShare(text, kMostStragglerShare); });
  parser->AddText("--straggler-kind", "KIND=X",
                  "How these GPUs are slow: see --straggler (default slow=1.2).",
                  [flags](const std::string& text) -> Result<void> {
                    if (text.find(',') != std::string::npos) {
                      return InvalidInput(fmt::format(
                          "expected a kind alone, such as slow=1.2 or clock=1100, got '{}'", text));
                    }
                    const Result<Straggler> kind = emulate::ParseStraggler(text);
                    if (!kind) return tl::unexpected(kind.error());
                    flags->straggler_kind = *kind;
                    return {};
                  },
                  {});
  parser->AddValue<double>(&flags->straggler_duration_seconds, "--straggler-duration", "TIME",
                           "How long these GPUs stay slow: 90s, 15min, 1h (default 1h).",
                           ParseLongDuration);
  parser->AddValue<double>(&flags->reaction_delay_seconds, "--reaction-delay", "TIME",
                           "How long the other pipelines wait for new plans after a straggler "
                           "appears or recovers: 2s (default 0).",
                           ParseLongDuration);
  parser->AddFlag(&flags->no_reaction, "--no-reaction",
                  "The other pipelines keep their plans when a straggler appears.");
}

void AddQuestions(CommandParser* parser, EmulateFlags* flags) {
  parser->SetGroup("A training run");
  parser->AddValue<double>(
      &flags->run.gpu_hours, "--gpu-hours", "HOURS",
      "GPU hours that the run takes at maximum clocks. Shows the energy of the run.",
      [](std::string_view text) {
        return ParseQuantity(text, {0, 1e12}, job::kInHours);
      });
  AddPriceOptions(parser, &flags->run.price_per_kwh, &flags->currency,
                  &flags->run.carbon_g_per_kwh);
  parser->SetGroup("Questions");
  parser->AddFlag(&flags->imbalance, "--imbalance",
                  "Show what uneven stages cost, and what a better partition would save.");
  parser->AddValue<std::vector<int>>(
      &flags->layers, "--layers", "N,N,...",
      "Layers of each stage. --imbalance then also finds the best partition of these layers.",
      [](std::string_view text) { return ParseCounts(text, 1, kMostLayers); });
  parser->AddText(
      "--assignment", "FILE.csv",
      "Show what microbatches of different lengths would save in another order, or shared out "
      "otherwise between the pipelines. The file is a work table (microbatch,factor or "
      "microbatch,tokens) with the microbatches of all pipelines, pipeline by pipeline.",
      CommandParser::NotEmpty(&flags->assignment_file, "the name of the file is empty"),
      {ValueKind::kFile, {}});
  parser->AddRepeated(
      "--sweep", "KEY=V,V,...",
      "Show how the saving changes with the shape of the job: microbatches=8,16,32, stages=4,8, "
      "virtual-stages=1,2 or schedule=1f1b,gpipe. The number of stages (ranks x virtual stages) "
      "must divide that of the profile. May be given several times: then every combination is "
      "tried.",
      [flags](const std::string& text) -> Result<void> {
        flags->has_sweep = true;
        return analyse::ParseSweep(text, &flags->sweep);
      });
  parser->AddValue<double>(&flags->power_budget_watts, "--power-budget", "POWER",
                           "Find the fastest plan with which the whole job (all --dp pipelines) "
                           "draws no more than this on average: 300kW.",
                           ParsePower);
  parser->AddValue<double>(
      &flags->deadline_seconds, "--deadline", "TIME",
      "Find the plan of least energy that does --run-iterations within this time: 12h, 30d.",
      ParseLongDuration);
  parser->AddValue<std::int64_t>(
      &flags->run_iterations, "--run-iterations", "N",
      "Iterations of the whole run, for --deadline.",
      [](std::string_view text) { return ParseLongCount(text, 1, kMostRunIterations); });
}

void AddShapeOptions(CommandParser* parser, EmulateFlags* flags) {
  parser->SetGroup("Power as the grid sees it");
  parser->AddValue<PowerBand>(
      &flags->power_band, "--power-band", "HZ-HZ",
      "Show how fast the job's power rises and falls, and how much it swings at these frequencies "
      "(0.1-20, also for the limits below).",
      ParseBand);
  parser->AddValue<double>(
      &flags->power_limits.ramp_watts_per_second, "--ramp-limit", "POWER/s",
      "How much the job's power may change from one second to the next: 50kW/s. Shows which plans "
      "keep this limit, the fastest slower plan that does, and the energy that a load beside the "
      "job would burn to keep it.",
      ParseRamp);
  parser->AddValue<double>(
      &flags->power_limits.band_rms_watts, "--band-limit", "POWER",
      "How much the job's power may swing in --power-band (root mean square): 20kW.", ParsePower);
}

void AddOutputOptions(CommandParser* parser, EmulateFlags* flags) {
  parser->SetGroup("Output");
  parser->AddValue<double>(&flags->power_interval_seconds, "--power-interval", "TIME",
                           "Interval over which power is averaged, in power.csv and for the peak "
                           "(default: a hundredth of an iteration).",
                           ParseDuration);
  parser->AddValue<std::int64_t>(
      &flags->timeline_iteration, "--timeline-iteration", "N",
      "The iteration that timeline.pftrace shows (default: the first with a straggler, else 0).",
      [](std::string_view text) { return ParseLongCount(text, 0, kMaxIterations - 1); });
  parser->AddOutput(&flags->output_directory, ValueKind::kDirectory,
                    "Write emulation.json, iterations.csv, power.csv, timeline.pftrace and "
                    "report.html into this folder. After an error, none of them is written.");
  parser->AddFlag(&flags->json, "--json", "Print one JSON document instead of text.");
}

}  // namespace

void AddPriceOptions(CommandParser* parser, std::optional<double>* price_per_kwh,
                     std::string* currency, std::optional<double>* carbon_g_per_kwh) {
  parser->AddText("--price", "PRICE",
                  "Price of a kWh: a number, or a number with a currency ('0.12 EUR').",
                  [price_per_kwh, currency](const std::string& text) -> Result<void> {
                    Result<Price> price = ParsePrice(text);
                    if (!price) return tl::unexpected(price.error());
                    *price_per_kwh = price->amount;
                    *currency = std::move(price->currency);
                    return {};
                  },
                  {});
  parser->AddValue<double>(carbon_g_per_kwh, "--carbon", "GRAMS",
                           "CO2 of a kWh in grams (380), or with a unit (0.38kg).", ParseCarbon);
}

void AddEmulateCommand(CommandParser* parser, Invocation* invocation) {
  EmulateFlags* flags = &invocation->emulate;
  parser->AddCommand(
      Command::kEmulate, "emulate",
      "Simulate a whole job with a plan: its time, energy and power.\n\nSimulates all pipelines of "
      "the job for many iterations. A policy chooses the clocks. Noise, late clocks and stragglers "
      "come in if you ask for them. The figures are compared with those at maximum clocks under "
      "the same conditions. The same arguments give the same numbers. Without -o no file is "
      "written.",
      {{"16 pipelines with a straggler from iteration 20 on",
        "perseus emulate profile.csv --schedule 1f1b --microbatches 96 --blocking-power 83.64 "
        "--dp 16 --straggler slow=1.2,from=20"},
       {"what each policy saves, with noise and late clocks",
        "perseus emulate job.toml --compare --noise 1% --switch-latency 15ms"},
       {"random stragglers, with report and timeline",
        "perseus emulate job.toml --iterations 1000 --straggler-rate 5% --reaction-delay 2s -o "
        "emulation/"},
       {"the fastest plan under a power budget, and the cheapest for a deadline",
        "perseus emulate job.toml --power-budget 300kW --deadline 30d --run-iterations 500000"}});
  AddPipelineOptions(parser, &invocation->job, "Data-parallel pipelines of the job (default 1).");
  AddPlanOptions(
      parser, &invocation->job,
      fmt::format("How much work to search for each plan (default {}); see 'perseus plan --help'.",
                  kTableEffort));
  AddSolverOptions(parser, &invocation->job);
  AddJobOptions(parser, flags);
  parser->SetGroup("Disturbances");
  AddConditionOptions(parser, &invocation->job);
  AddRobustOptions(parser, &invocation->job);
  AddStragglerOptions(parser, flags);
  AddQuestions(parser, flags);
  AddShapeOptions(parser, flags);
  AddOutputOptions(parser, flags);
  parser->SetCommon({"--schedule", "--microbatches", "--blocking-power", "--dp", "--at", "--plan",
                     "--iterations", "--noise", "--switch-latency", "--straggler", "--output",
                     "--json"});
}

}  // namespace perseus::cli
