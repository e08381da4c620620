// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/framework/table.h"
#include "cli/planning/job_flags.h"
#include "cli/planning/plan_notes.h"
#include "common/belief.h"
#include "common/file.h"
#include "common/printable.h"
#include "perseus/profile.h"
#include "trace/links.h"
#include "trace/recording.h"
#include "trace/trace_answer.h"
#include "trace/trace_checks.h"
#include "trace/trace_energy.h"
#include "trace/what_if.h"

namespace perseus::cli {
namespace {

using trace::NamedSlowdown;
using trace::Recording;
using trace::TraceAnswer;
using trace::TraceEnergy;
using trace::WhatIf;

constexpr std::size_t kMostTraceRows = 10;

std::string NameOfFile(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

std::string SlowdownText(double slowdown) { return fmt::format("{:.4f}", slowdown); }

std::string StepsText(const WhatIf& what_if, const Style& style) {
  Table table({"step", "recorded s", "replayed s", "recorded over replayed", "without stragglers s",
               "slowdown"},
              {Align::kLeft});
  const std::size_t shown = std::min(kMostTraceRows, what_if.steps.size());
  for (const trace::StepTimes& step : std::span(what_if.steps).first(shown)) {
    table.AddRow({fmt::format("{}", step.step), fmt::format("{:.4f}", step.recorded_seconds),
                  fmt::format("{:.4f}", step.replayed_seconds),
                  FormatSignedPercent(100 * (step.recorded_seconds / step.replayed_seconds - 1), 2),
                  fmt::format("{:.4f}", step.without_stragglers_seconds),
                  SlowdownText(step.replayed_seconds / step.without_stragglers_seconds)});
  }
  std::string text = table.Format(style.rule());
  if (const std::size_t rest = what_if.steps.size() - shown; rest > 0) {
    text += fmt::format("and {} more\n", rest);
  }
  return text;
}

std::string ByText(const std::string& heading, std::vector<NamedSlowdown> rows,
                   const Style& style) {
  if (rows.empty()) {
    return "\n" +
           Wrap(fmt::format("By {}: left out, because there are too many to replay each.", heading),
                style.columns, 0) +
           "\n";
  }
  std::stable_sort(rows.begin(), rows.end(), [](const NamedSlowdown& a, const NamedSlowdown& b) {
    return a.slowdown > b.slowdown;
  });
  Table table({heading, "slowdown"}, {Align::kLeft});
  for (std::size_t i = 0; i < rows.size() && i < kMostTraceRows; ++i) {
    table.AddRow({rows[i].name, SlowdownText(rows[i].slowdown)});
  }
  std::string text = "\n" + table.Format(style.rule());
  if (rows.size() > kMostTraceRows) {
    text += fmt::format("and {} more\n", rows.size() - kMostTraceRows);
  }
  return text;
}

std::string AttributionText(const Recording& recording, const WhatIf& what_if, const Style& style) {
  std::string text = ByText("operation", what_if.by_operation, style);
  std::vector<NamedSlowdown> rows;
  for (std::size_t i = 0; i < what_if.by_stage.size(); ++i) {
    rows.push_back({fmt::format("{}", i), what_if.by_stage[i]});
  }
  text += ByText("stage", std::move(rows), style);
  rows.clear();
  for (std::size_t i = 0; i < what_if.by_pipeline.size(); ++i) {
    rows.push_back({fmt::format("{}", i), what_if.by_pipeline[i]});
  }
  text += ByText("pipeline", std::move(rows), style);
  rows.clear();
  for (int place = 0; place < static_cast<int>(what_if.by_place.size()); ++place) {
    rows.push_back({fmt::format("{} (pipeline {}, stage {})", recording.rank_of[place],
                                place / recording.stages, place % recording.stages),
                    what_if.by_place[place]});
  }
  return text + ByText("rank", std::move(rows), style);
}

std::string DelaysText(const WhatIf& what_if, const Style& style) {
  constexpr double kShownSeconds = 0.5e-6;  // What is not 0.000 ms.
  Table table({"before", "stage", "ms a step"}, {Align::kLeft});
  std::size_t shown = 0;
  double gaps = 0;
  double most_of_rest = 0;
  for (const trace::LaunchDelay& delay : what_if.launch_delays) {
    gaps += delay.seconds;
    if (shown < kMostTraceRows && delay.seconds >= kShownSeconds) {
      table.AddRow({delay.operation, fmt::format("{}", delay.stage),
                    fmt::format("{:.3f}", 1e3 * delay.seconds)});
      ++shown;
    } else {
      most_of_rest = std::max(most_of_rest, delay.seconds);
    }
  }
  std::string text = "\n";
  if (shown == 0) {
    text += Wrap("No step has an unexplained gap of 0.001 ms or more.", style.columns, 0) + "\n";
  } else {
    text += Wrap(
                "Launch delays: gaps in a recorded step's longest chain of operations for which "
                "the trace shows no reason. Mean of a step:",
                style.columns, 0) +
            "\n" + table.Format(style.rule());
    if (const std::size_t rest = what_if.launch_delays.size() - shown; rest > 0) {
      text += fmt::format("and {} more {}\n", rest,
                          most_of_rest >= kShownSeconds
                              ? fmt::format("of at most {:.3f} ms each", 1e3 * most_of_rest)
                              : std::string("below 0.001 ms"));
    }
  }
  const double differ = what_if.recorded_seconds - what_if.replayed_seconds;
  if (gaps < kShownSeconds && differ < kShownSeconds) return text;
  return text +
         Wrap(fmt::format("A recorded step is {1:.3f} ms longer than a replayed one. Launch delays "
                          "are {0:.3f} ms of that.",
                          1e3 * gaps, 1e3 * differ),
              style.columns, 0) +
         "\n";
}

std::string EnergyText(const TraceAnswer& answer, const Style& style) {
  const TraceEnergy& energy = *answer.energy;
  std::string text = "\n" +
                     Wrap(fmt::format("{} Profile: {}, {} W of a GPU that waits, {} a rank.",
                                      trace::kRelativeCosts, Printable(answer.costs.name),
                                      answer.costs.blocking_power_watts,
                                      CountOf(answer.costs.gpus_per_rank, "GPU")),
                          style.columns, 0) +
                     "\n";
  if (!answer.costs.modelled.empty()) {
    text += Wrap(Printable("The profile: " + answer.costs.modelled), style.columns, 0) + "\n";
  }
  const auto share = [&](double joules) {
    return FormatPercent(energy.energy_joules > 0 ? 100 * joules / energy.energy_joules : 0, 2);
  };
  Table split({"energy of a step", "J", "share"}, {Align::kLeft});
  const auto row = [&](const char* name, double joules) {
    split.AddRow({name, WithThousands(joules, 1), share(joules)});
  };
  row("useful", energy.useful_joules);
  row("intrinsic bloat", energy.intrinsic_joules);
  row("extrinsic bloat", energy.extrinsic_joules);
  row("blocking", energy.blocking_joules);
  row("all", energy.energy_joules);
  text += "\n" + split.Format(style.rule()) + "\n";
  Table plans({"plan", "step s", "slowdown", "energy J", "saving"}, {Align::kLeft});
  const std::string no_plan_saves = trace::NoPlanSaves(energy);
  for (const trace::TracePlanOutcome& plan : energy.plans) {
    plans.AddRow({plan.name, fmt::format("{:.4f}", plan.step_seconds),
                  FormatSignedPercent(plan.slowdown_percent, 2),
                  WithThousands(plan.energy_joules, 1), FormatPercent(plan.saving_percent, 2)});
    if (!no_plan_saves.empty()) break;
  }
  text += plans.Format(style.rule());
  if (!no_plan_saves.empty()) text += Wrap(no_plan_saves, style.columns, 0) + "\n";
  return text +
         Wrap(fmt::format("A straggler is a pipeline that is 5 % slower than the median one in "
                          "three quarters of {}. In {} a straggler was known. One length for each "
                          "microbatch predicts the times of computations within {} (root mean "
                          "square).",
                          CountOf(answer.costs.detector_steps, "recorded step"),
                          CountOf(energy.stragglers_answered, "step"),
                          FormatPercent(100 * energy.length_error, 1)),
              style.columns, 0) +
         "\n";
}

// " (0.9315 to 1.0685 in single steps)", where that is not the same.
std::string SingleStepsText(const WhatIf& what_if) {
  if (what_if.steps.empty()) return "";
  const auto slowdown = [](const trace::StepTimes& step) {
    return step.replayed_seconds / step.without_stragglers_seconds;
  };
  double least = slowdown(what_if.steps.front());
  double most = least;
  for (const trace::StepTimes& step : what_if.steps) {
    least = std::min(least, slowdown(step));
    most = std::max(most, slowdown(step));
  }
  const std::string lowest = SlowdownText(least);
  const std::string highest = SlowdownText(most);
  return lowest == highest ? "" : fmt::format(" ({} to {} in single steps)", lowest, highest);
}

std::string TraceText(const TraceAnswer& answer, const Style& style) {
  const Recording& recording = *answer.recording;
  const WhatIf& what_if = answer.what_if;
  std::string text =
      Wrap(fmt::format("{}: {} x {} x {} of a rank (DP x PP x TP), {} a step, {}, {} operations.",
                       Printable(answer.name), CountOf(recording.pipelines, "pipeline"),
                       CountOf(recording.stages, "stage"), CountOf(recording.gpus_per_rank, "GPU"),
                       CountOf(recording.microbatches, "microbatch"),
                       CountOf(static_cast<long long>(recording.steps.size()), "recorded step"),
                       recording.operations.size()),
           style.columns, 0) +
      "\n\n";
  text += FormatNotes(answer.notes, style);
  if (!answer.notes.empty()) text += "\n";
  text +=
      Wrap(fmt::format("Stragglers make a step {:.4f} times as long{}. A replayed step takes {}, "
                       "without stragglers {}; the recorded one took {}. (Means. In a replay, "
                       "each operation starts as soon as it can.)",
                       what_if.blocking_slowdown, SingleStepsText(what_if),
                       FormatSeconds(what_if.replayed_seconds),
                       FormatSeconds(what_if.without_stragglers_seconds),
                       FormatSeconds(what_if.recorded_seconds)),
           style.columns, 0) +
      "\n\n";
  text += StepsText(what_if, style);
  text += "\n" +
          Wrap(
              "The slowdown if only these operations keep their recorded times and all others run "
              "as without stragglers:",
              style.columns, 0) +
          "\n";
  text += AttributionText(recording, what_if, style);
  text += DelaysText(what_if, style);
  if (answer.energy) text += EnergyText(answer, style);
  return text;
}

Result<void> AddEnergy(const TraceFlags& flags, const Profile& profile, TraceAnswer* answer) {
  ProgressLine progress("plans");
  trace::TraceEnergySpec spec;
  spec.costs.profile = &profile;
  spec.costs.blocking_power_watts = *flags.blocking_power_watts;
  spec.costs.gpus_per_rank = flags.gpus_per_rank.value_or(answer->recording->gpus_per_rank);
  spec.detector_steps = flags.detector_steps;
  spec.effort = flags.effort.value_or(spec.effort);
  spec.progress = progress.Function();
  auto energy = trace::ComputeTraceEnergy(*answer->recording, *answer->links, spec);
  if (!energy) return tl::unexpected(energy.error());
  answer->energy = *std::move(energy);
  answer->costs = {NameOfFile(flags.profile),       profile.modelled,         profile.num_stages,
                   spec.costs.blocking_power_watts, spec.costs.gpus_per_rank, spec.detector_steps};
  return {};
}

}  // namespace

Result<Printout> RunTrace(const TraceFlags& flags, const Style& style) {
  if (flags.input.empty()) {
    return InvalidInput("the trace is missing, as in 'perseus trace trace.csv.gz'");
  }
  if (!flags.profile.empty() && !flags.blocking_power_watts) {
    return InvalidInput(
        "--profile needs --blocking-power WATTS, the power of a GPU that waits, as in 'perseus "
        "trace trace.csv.gz --profile profile.csv --blocking-power 83.64'");
  }
  if (flags.profile.empty() &&
      (flags.blocking_power_watts || flags.gpus_per_rank || flags.effort)) {
    return InvalidInput(
        "--blocking-power, --tp and --effort are for energies; give --profile FILE, too");
  }
  if (!flags.output_directory.empty()) {
    std::vector<InputFile> inputs = {{"the trace", flags.input}};
    if (!flags.profile.empty()) inputs.push_back({"the profile", flags.profile});
    const auto good =
        CheckOutputFiles(flags.output_directory, {"trace.html", "trace.json"}, inputs);
    if (!good) return tl::unexpected(good.error());
  }
  std::optional<Profile> profile;
  if (!flags.profile.empty()) {
    auto read = ReadProfile(flags.profile, {.baseline = "", .strict = flags.strict});
    if (!read) return tl::unexpected(read.error());
    profile = *std::move(read);
  }
  const Result<Recording> recording = trace::ReadRecording(flags.input);
  if (!recording) return tl::unexpected(recording.error());
  std::vector<Note> notes =
      trace::CheckRecording(*recording, profile ? &*profile : nullptr, NameOfFile(flags.input));
  if (profile) notes.insert(notes.end(), profile->notes.begin(), profile->notes.end());
  if (flags.accept_implausible) AcceptImplausible(&notes);
  std::stable_sort(notes.begin(), notes.end(),
                   [](const Note& a, const Note& b) { return a.severity > b.severity; });
  if (auto good = RefuseNotes(notes, flags.strict); !good) return tl::unexpected(good.error());
  if (auto good = RefuseUnbelievable(notes, AcceptingFlag()); !good) {
    return tl::unexpected(good.error());
  }
  const Result<trace::Links> links = trace::LinkOperations(*recording);
  if (!links) return tl::unexpected(links.error());
  TraceAnswer answer;
  answer.recording = &*recording;
  answer.links = &*links;
  answer.name = NameOfFile(flags.input);
  answer.what_if = trace::AskWhatIf(*recording, *links);
  answer.notes = std::move(notes);
  if (profile) {
    if (auto good = AddEnergy(flags, *profile, &answer); !good) return tl::unexpected(good.error());
  }
  const std::string json = FormatTraceJson(answer);
  if (!flags.output_directory.empty()) {
    const Result<void> written = WriteFilesAtomically(
        flags.output_directory, {{"trace.html", FormatTraceHtml(answer)}, {"trace.json", json}});
    if (!written) return tl::unexpected(written.error());
  }
  return Printout(flags.json ? json : TraceText(answer, style), flags.output_directory);
}

}  // namespace perseus::cli
