// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "job/job_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "perseus/pipeline.h"
#include "profile/plausible.h"

namespace perseus::job {
namespace {

using profile::kWaitingWatts;

constexpr double kMilli = 1e-3;

// "stage 0 forward at 1410".
std::string OptionName(const CostedPipeline& pipeline, const CostTable& table,
                       const CostOption& option) {
  return fmt::format("stage {} {} at {}", table.stage, ComputationTypeName(table.type),
                     pipeline.knobs[static_cast<std::size_t>(option.knob)].label);
}

class Checks {
 public:
  explicit Checks(const Job& job)
      : job_(job), settings_(job.settings), pipeline_(job.pipeline), dag_(job.pipeline.dag) {
    std::vector<double> seconds;
    std::vector<double> computing(static_cast<std::size_t>(dag_.num_ranks), 0);
    for (int i = 0; i < dag_.size(); ++i) {
      seconds.push_back(pipeline_.TableOf(i).baseline.time_seconds);
      computing[static_cast<std::size_t>(dag_.computations[i].rank)] += seconds.back();
    }
    iteration_seconds_ = Replay(dag_, seconds).iteration_time_seconds;
    computing_seconds_ = *std::max_element(computing.begin(), computing.end());
  }

  std::vector<Note> Run() {
    CheckStatable();
    CheckWaiting();
    CheckFixedTimes();
    CheckIteration();
    CheckStageCount();
    CheckMargin();
    CheckSwitching();
    CheckHighestClocks();
    CheckSaving();
    CheckInterleaving();
    CheckSplitRatio();
    SortNotes(&notes_);
    return std::move(notes_);
  }

 private:
  void Add(std::string_view key, Severity severity, std::string text) {
    notes_.push_back(NoteOn(settings_, key, severity, std::move(text)));
  }
  void AddOnProfile(Severity severity, std::string text) {
    notes_.push_back(
        {.severity = severity, .text = std::move(text), .source = job_.profile.source});
  }

  // Everything that is computed from a time and an energy can be stated.
  void CheckStatable() {
    for (const CostTable& table : pipeline_.tables) {
      for (const CostOption& option : table.all_options) {
        if (std::isfinite(option.energy_joules / option.time_seconds)) continue;
        return AddOnProfile(
            Severity::kImpossible,
            fmt::format("{} of stage {} takes {} s and {} J, a power too large to state; check the "
                        "units (seconds, joules)",
                        ComputationTypeName(table.type), table.stage, option.time_seconds,
                        option.energy_joules));
      }
    }
  }

  // At the option's clock.
  double WaitingWatts(const CostTable& table, const CostOption& option) const {
    if (!pipeline_.waiting_depends_on_clock()) return table.blocking_power_watts;
    const auto index = &table - pipeline_.tables.data();
    const auto of = std::find(pipeline_.table_of.begin(), pipeline_.table_of.end(), index);
    const int rank =
        dag_.computations[static_cast<std::size_t>(of - pipeline_.table_of.begin())].rank;
    return table.blocking_power_watts + pipeline_.DearerWatts(rank, option.knob);
  }

  void CheckWaiting() {
    if (settings_.blocking_power_is_assumed) return;
    const double gpus = pipeline_.tensor_parallel;
    std::vector<double> waiting = pipeline_.rank_blocking_power_watts;
    for (double& of_rank : waiting) of_rank /= gpus;
    if (auto note = CheckWaitingPower(settings_, waiting)) notes_.push_back(*std::move(note));
    const CostTable* frugal = nullptr;
    const CostOption* least = nullptr;
    double watts = 0;
    for (const CostTable& table : pipeline_.tables) {
      for (const CostOption& option : table.all_options) {
        const double drawn = option.energy_joules / option.time_seconds;
        if (!(drawn < WaitingWatts(table, option))) continue;
        if (least != nullptr && drawn >= watts) continue;
        frugal = &table;
        least = &option;
        watts = drawn;
      }
    }
    if (frugal == nullptr) return;
    Add("blocking_power", Severity::kImplausible,
        fmt::format("a GPU draws more while it waits ({:.6g} W, the blocking power) than while it "
                    "computes {} ({:.4g} W); check the units (watts, seconds, joules)",
                    WaitingWatts(*frugal, *least) / gpus, OptionName(pipeline_, *frugal, *least),
                    watts / gpus));
  }

  void CheckFixedTimes() {
    const auto check = [this](std::string_view key, std::string_view what, double seconds,
                              double most_share) {
      if (seconds <= most_share * computing_seconds_) return false;
      Add(key, Severity::kImplausible,
          fmt::format("{} takes {:g} s, and all computations of a rank in an iteration {:.4g} s{}",
                      what, seconds, computing_seconds_,
                      kMilli * seconds <= most_share * computing_seconds_
                          ? fmt::format("; did you mean {:g}ms?", seconds)
                          : std::string("; check the unit (seconds)")));
      return true;
    };
    for (const double seconds : job_.fixed.comm_delay_seconds) {
      if (check("comm_delay", "a transfer between stages (the communication delay)", seconds,
                profile::kMostDelayShare)) {
        break;
      }
    }
    check("data_loading", "data loading", job_.fixed.data_loading_seconds,
          profile::kMostFixedShare);
    check("iteration_overhead", "the overhead of an iteration",
          job_.fixed.iteration_overhead_seconds, profile::kMostFixedShare);
  }

  // Long contexts make computations long, and leave few of them to an iteration.
  void CheckIteration() {
    const auto longer_than = [this](double seconds) {
      return std::any_of(
          pipeline_.tables.begin(), pipeline_.tables.end(),
          [=](const CostTable& table) { return table.baseline.time_seconds > seconds; });
    };
    if (computing_seconds_ <= profile::kLongIterationSeconds) return;
    // The profile has a note on such computations, or on their power.
    if (longer_than(profile::kTaskSeconds.most) ||
        std::any_of(pipeline_.tables.begin(), pipeline_.tables.end(),
                    [this](const CostTable& table) {
                      return !profile::kComputingWatts.Has(
                          table.baseline.energy_joules /
                          (table.baseline.time_seconds * pipeline_.tensor_parallel));
                    })) {
      return;
    }
    const bool implausible = computing_seconds_ > profile::kMostIterationSeconds ||
                             longer_than(profile::kLongTaskSeconds);
    constexpr double kMinute = 60;
    AddOnProfile(
        implausible ? Severity::kImplausible : Severity::kOdd,
        fmt::format("a rank computes for {:.3g} minutes in an iteration at maximum clocks, "
                    "and iterations of training take seconds, or a few minutes; are the "
                    "times in milliseconds (and the energies in millijoules)?",
                    computing_seconds_ / kMinute));
  }

  // A profile whose last stage is missing looks like one of a shorter pipeline.
  void CheckStageCount() {
    const int stages = job_.profile.num_stages;
    if (settings_.stages || stages == 1 || stages % 2 == 0) return;
    AddOnProfile(Severity::kOdd,
                 fmt::format("the profile ends with stage {}, and pipelines of {} stages are rare; "
                             "does it lack a stage? If not, say that there are {} (stages)",
                             stages - 1, stages, stages));
  }

  void CheckMargin() {
    const TimeMargin margin = settings_.time_margin.value_or(TimeMargin{});
    if (margin.fraction >= profile::kMostMarginShare) {
      Add("time_margin", Severity::kImplausible,
          fmt::format("a time margin of {:g} % lets hardly any clock be lowered; margins are a few "
                      "percent",
                      100 * margin.fraction));
    }
    if (margin.sigmas > profile::kMostMarginSigmas) {
      Add("time_margin", Severity::kImplausible,
          fmt::format("a time margin of {:g} standard deviations lets hardly any clock be lowered; "
                      "2 or 3 are usual",
                      margin.sigmas));
    }
  }

  // ": the consequence", and whether milliseconds were meant.
  std::string LongerThanAnIteration(std::string_view what, double seconds,
                                    std::string_view consequence) const {
    return fmt::format("{} is {:g} s, longer than an iteration ({:.4g} s): {}{}", what, seconds,
                       iteration_seconds_, consequence,
                       seconds >= 1 && kMilli * seconds < iteration_seconds_
                           ? fmt::format("; did you mean {:g}ms?", seconds)
                           : std::string());
  }

  void CheckSwitching() {
    const ClockSwitching switching = ConditionsOf(settings_).switching;
    struct Time {
      std::string_view key;
      std::string what;
      double seconds;
      std::string_view consequence;
    };
    constexpr std::string_view kTooLate =
        "a clock comes into effect when others are asked for already";
    std::vector<Time> times = {
        {"switch_latency", "the latency of a clock", switching.latency_seconds, kTooLate},
        {"switch_latency_spread", "the spread of that latency", switching.latency_spread_seconds,
         "nobody can tell when a clock comes"},
        {"switch_stall", "the stall at a change of clock", switching.stall_seconds,
         "a change of clock outlasts all that it could save"},
        {"min_call_interval", "the least time between two calls for clocks",
         switching.min_interval_seconds, "a rank may not even ask for a clock in each iteration"},
    };
    for (const ClockLatency& each : switching.latency_at) {
      times.push_back({"switch_latency_at",
                       fmt::format("the latency of the clock {:g}", each.clock), each.seconds,
                       kTooLate});
    }
    for (const auto& [key, what, seconds, consequence] : times) {
      if (seconds > iteration_seconds_) {
        // Iterations may be as short as that; times of clocks may not be as long as all of them.
        const bool may_be = seconds <= profile::kLongSwitchSeconds;
        Add(key, may_be ? Severity::kOdd : Severity::kImplausible,
            LongerThanAnIteration(what, seconds, consequence));
      } else if (seconds > profile::kLongSwitchSeconds && key != "min_call_interval") {
        Add(key, Severity::kImplausible,
            fmt::format("{} is {:g} s, and clocks of GPUs take 5 to 200 ms; did you mean {:g}ms?",
                        what, seconds, seconds));
      }
    }
  }

  // Savings of a stage that was not measured at the highest clock count from another one.
  void CheckHighestClocks() {
    const Profile& profile = job_.profile;
    if (!profile.knobs_are_numbers) return;
    std::string text;
    int others = 0;
    for (const OptionTable& table : profile.tables) {
      const int highest = table.options[static_cast<std::size_t>(table.baseline)].knob;
      if (highest == 0) continue;
      if (!text.empty()) {
        ++others;
        continue;
      }
      text = fmt::format(
          "stage {} {} has no row at {}, so its savings are against its own highest clock, {}",
          table.stage, ComputationTypeName(table.type), profile.knobs.front().label,
          profile.knobs[static_cast<std::size_t>(highest)].label);
    }
    if (text.empty()) return;
    if (others > 0) {
      text += fmt::format(" (likewise {} other{})", others, others == 1 ? "" : "s");
    }
    AddOnProfile(Severity::kOdd, std::move(text));
  }

  // Where no option is faster than the baseline or really costs less, no plan saves energy. A
  // profile without a choice has its own note.
  void CheckSaving() {
    constexpr double kRounding = 1e-9;
    bool has_choice = false;
    for (const CostTable& table : pipeline_.tables) {
      const CostOption& highest = table.baseline;
      const double least = EffectiveEnergy(table, highest) - kRounding * highest.energy_joules;
      has_choice = has_choice || table.all_options.size() > 1;
      for (const CostOption& option : table.options) {
        if (option.time_seconds < highest.time_seconds || EffectiveEnergy(table, option) < least) {
          return;
        }
      }
    }
    if (!has_choice) return;
    const bool clocks = pipeline_.knobs_are_numbers;
    AddOnProfile(
        Severity::kOdd,
        fmt::format("no {0} of the profile saves energy against {1}, so no plan does; was each "
                    "{0} in effect while it was measured?",
                    clocks ? "clock" : "knob", clocks ? "the highest one" : "the baseline"));
  }

  void CheckInterleaving() {
    const std::string& name = dag_.schedule_name;
    const bool interleaves = name == "interleaved-1f1b" || name == "megatron-interleaved" ||
                             name == "interleaved-zero-bubble";
    if (!interleaves || job_.virtual_stages > 1) return;
    Add("schedule", Severity::kOdd,
        fmt::format("each rank holds one stage, so {} has nothing to interleave; give virtual "
                    "stages",
                    name));
  }

  void CheckSplitRatio() {
    const bool splits = std::any_of(pipeline_.tables.begin(), pipeline_.tables.end(),
                                    [](const CostTable& table) { return table.split; });
    if (!settings_.split_ratio || splits) return;
    Add("split_ratio", Severity::kOdd,
        "the split ratio is not used: there was nothing to split for this schedule");
  }

  const Job& job_;
  const JobFile& settings_;
  const CostedPipeline& pipeline_;
  const PipelineDag& dag_;
  double iteration_seconds_ = 0;  // All clocks at maximum.
  double computing_seconds_ = 0;  // Of the rank that computes longest, in one iteration.
  std::vector<Note> notes_;
};

}  // namespace

Note NoteOn(const JobFile& settings, std::string_view key, Severity severity, std::string text) {
  Note note = {.severity = severity, .text = std::move(text), .source = ""};
  const auto place = settings.places.find(key);
  if (place == settings.places.end()) return note;
  note.source = place->second.file;
  note.line = place->second.line;
  note.column = place->second.column;
  return note;
}

std::optional<Note> CheckWaitingPower(const JobFile& settings, const std::vector<double>& watts) {
  const auto wrong = std::find_if(watts.begin(), watts.end(),
                                  [](double each) { return !kWaitingWatts.Has(each); });
  if (wrong == watts.end()) return std::nullopt;
  return NoteOn(
      settings, "blocking_power", Severity::kImplausible,
      fmt::format("a GPU of rank {} that waits draws {:.6g} W (the blocking power), and "
                  "GPUs that wait draw {:g} to {:g} W",
                  wrong - watts.begin(), *wrong, kWaitingWatts.least, kWaitingWatts.most));
}

std::vector<Note> CheckJob(const Job& job) { return Checks(job).Run(); }

void SortNotes(std::vector<Note>* notes) {
  std::stable_sort(notes->begin(), notes->end(),
                   [](const Note& a, const Note& b) { return a.severity > b.severity; });
}

}  // namespace perseus::job
