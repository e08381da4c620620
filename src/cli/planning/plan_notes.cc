// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/planning/plan_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "cli/framework/table.h"
#include "cli/framework/terminal.h"
#include "cli/planning/job.h"
#include "common/printable.h"

namespace perseus::cli {
namespace {

void NoteLowerClocks(const Profile& profile, std::vector<std::string>* notes) {
  if (!profile.knobs_are_numbers) return;
  std::string note;
  int others = 0;
  for (const OptionTable& table : profile.tables) {
    const int highest = table.options[table.baseline].knob;
    if (highest == 0) continue;
    if (!note.empty()) {
      ++others;
      continue;
    }
    note =
        fmt::format("stage {} {} has no row at {}; its highest is {}, and savings count from there",
                    table.stage, ComputationTypeName(table.type), profile.knobs.front().label,
                    profile.knobs[highest].label);
  }
  if (note.empty()) return;
  if (others > 0)
    note += fmt::format(" (so with {} of the profile)", CountOf(others, "other kind"));
  notes->push_back(note + ".");
}

void NoteSchedule(const CostedPipeline& pipeline, int virtual_stages,
                  std::vector<std::string>* notes) {
  const std::string& name = pipeline.dag.schedule_name;
  const bool interleaves = name == "interleaved-1f1b" || name == "megatron-interleaved" ||
                           name == "interleaved-zero-bubble";
  if (interleaves && virtual_stages == 1) {
    notes->push_back(fmt::format(
        "each rank holds one stage, so {} has nothing to interleave; give --virtual-stages.",
        name));
  }
  const int ranks = pipeline.dag.num_ranks;
  if (virtual_stages > 1) {
    const int gpus = ranks * pipeline.tensor_parallel;
    notes->push_back(fmt::format(
        "{} stages are {} on each of {} ranks: this pipeline is {}, not {}. To compare with one "
        "stage a rank on as many: 'perseus emulate' with --schedule 1f1b --virtual-stages 1 "
        "--sweep stages={}.",
        ranks * virtual_stages, virtual_stages, ranks, CountOf(gpus, "GPU"), gpus * virtual_stages,
        ranks));
  }
  const auto& computations = pipeline.dag.computations;
  if (std::any_of(computations.begin(), computations.end(),
                  [](const Computation& each) { return each.fused.has_value(); })) {
    notes->push_back(
        "a fused forward and backward is planned as one computation at one knob, and takes the sum "
        "of both times: what the GPU gains by overlapping them is not in the profile.");
  }
}

void NoteTimes(const CostedPipeline& pipeline, std::vector<std::string>* notes) {
  constexpr double kLongSeconds = 10;
  const CostTable* longest = nullptr;
  for (const CostTable& table : pipeline.tables) {
    if (longest == nullptr || table.baseline.time_seconds > longest->baseline.time_seconds) {
      longest = &table;
    }
  }
  if (longest == nullptr || longest->baseline.time_seconds <= kLongSeconds) return;
  notes->push_back(
      fmt::format("stage {} {} takes {} at its fastest knob; if the profile's times are "
                  "milliseconds, divide them by 1000.",
                  longest->stage, ComputationTypeName(longest->type),
                  FormatSeconds(longest->baseline.time_seconds)));
}

void NotePower(const CostedPipeline& pipeline, const Plan& baseline,
               std::vector<std::string>* notes) {
  constexpr double kMostWatts = 3000;
  constexpr double kLeastWatts = 1;
  const std::string_view baseline_name =
      pipeline.knobs_are_numbers ? "maximum clocks" : "the baseline knobs";
  const double per_gpu =
      baseline.average_power_watts / (pipeline.tensor_parallel * pipeline.dag.num_ranks);
  if (per_gpu > kMostWatts || per_gpu < kLeastWatts) {
    notes->push_back(
        fmt::format("a GPU draws {} on average at {}, which no GPU does; check the units "
                    "(seconds, joules).",
                    FormatWatts(per_gpu), baseline_name));
  }
  for (int rank = 0; rank < pipeline.dag.num_ranks; ++rank) {
    double joules = 0;
    double seconds = 0;
    for (const int computation : pipeline.dag.rank_order[rank]) {
      const CostOption& option = pipeline.TableOf(computation).baseline;
      joules += option.energy_joules;
      seconds += option.time_seconds;
    }
    const double waiting = pipeline.rank_blocking_power_watts[rank];
    if (!(joules < waiting * seconds)) continue;
    notes->push_back(fmt::format(
        "rank {} draws more while it waits ({} for each GPU, --blocking-power) than while it "
        "computes at {} ({} on average); check the units (watts, seconds, joules).",
        rank, FormatWatts(waiting / pipeline.tensor_parallel), baseline_name,
        FormatWatts(joules / seconds / pipeline.tensor_parallel)));
    return;
  }
}

}  // namespace

std::vector<std::string> InputNotes(const Profile& profile, const CostedPipeline& pipeline,
                                    const Plan& baseline, int virtual_stages) {
  std::vector<std::string> notes;
  for (const ProfileNote& note : profile.notes) notes.push_back(NoteText(profile, note) + ".");
  for (const std::string& note : pipeline.notes) notes.push_back(note + ".");
  NoteLowerClocks(profile, &notes);
  NoteSchedule(pipeline, virtual_stages, &notes);
  NoteTimes(pipeline, &notes);
  NotePower(pipeline, baseline, &notes);
  return notes;
}

void WriteProfileNotes(const Profile& profile) {
  for (const ProfileNote& note : profile.notes) {
    WriteStandardError(fmt::format("perseus: {}\n", Printable(NoteText(profile, note))));
  }
}

void NoteLongWait(std::string_view name, double seconds, double iteration_seconds,
                  std::string_view consequence, std::vector<std::string>* notes) {
  if (seconds <= iteration_seconds) return;
  constexpr double kMilli = 1e-3;
  const bool meant_milliseconds = seconds * kMilli < iteration_seconds;
  notes->push_back(fmt::format(
      "{0} is {1:g} s, longer than an iteration ({2}): {3}{4}", name, seconds,
      FormatSeconds(iteration_seconds), consequence,
      meant_milliseconds ? fmt::format("; did you mean {:g}ms?", seconds) : std::string(".")));
}

void NoteLongSwitching(const JobFile& settings, const ClockSwitching& switching,
                       double iteration_seconds, std::vector<std::string>* notes) {
  constexpr double kLongSeconds = 1;
  const struct {
    std::string_view key;
    double seconds;
    std::string_view consequence;
  } times[] = {
      {"switch_latency", switching.latency_seconds,
       "a clock comes into effect when others are asked for already"},
      {"switch_latency_spread", switching.latency_spread_seconds,
       "nobody can tell when a clock comes"},
      {"switch_stall", switching.stall_seconds,
       "a change of clock outlasts all that it could save"},
      {"min_call_interval", switching.min_interval_seconds,
       "a rank may not even ask for a clock in each iteration"},
  };
  for (const auto& [key, seconds, consequence] : times) {
    const std::string name = NameAndPlaceOf(settings, key);
    if (seconds > iteration_seconds) {
      NoteLongWait(name, seconds, iteration_seconds, consequence, notes);
    } else if (seconds > kLongSeconds && key != "min_call_interval") {
      notes->push_back(
          fmt::format("{} is {:g} s, and clocks of GPUs take 5 to 200 ms; did you mean {:g}ms?",
                      name, seconds, seconds));
    }
  }
}

}  // namespace perseus::cli
