// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "job/job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/belief.h"
#include "job/job_fields.h"
#include "perseus/job.h"
#include "perseus/pipeline.h"
#include "perseus/work.h"
#include "plan/limits.h"
#include "plan/named_times.h"
#include "profile/profile_checks.h"

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

  // Notes that no plan saves energy: no option is faster than the baseline or really costs less. A
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

namespace {

constexpr const char* kText = "schedule_csv";

tl::unexpected<Error> About(const JobFile& settings, std::string_view key, Error error) {
  return tl::unexpected<Error>(AboutField(settings, key, std::move(error)));
}

// The setting that an error of BuildSchedule() asks to change.
std::string_view BlamedSetting(std::string_view sentence) {
  const auto says = [sentence](std::string_view words) {
    return sentence.find(words) != std::string_view::npos;
  };
  if (says("virtual_stages")) return "virtual_stages";
  if (says("microbatch_group_size") || says("use groups of")) return "microbatch_group_size";
  return says("microbatches") ? "microbatches" : "schedule";
}

Result<Schedule> Checked(const JobFile& settings, Result<Schedule> schedule) {
  if (!schedule) return schedule;
  if (auto good = CheckShape(settings, *schedule); !good) return tl::unexpected(good.error());
  return schedule;
}

}  // namespace

Result<void> CheckOneSchedule(const JobFile& settings) {
  const char* const other = settings.schedule_csv ? kText : "schedule_file";
  const int given = static_cast<int>(settings.schedule.has_value()) +
                    static_cast<int>(settings.schedule_file.has_value()) +
                    static_cast<int>(settings.schedule_csv.has_value());
  if (given < 2) return {};
  return InvalidInput(fmt::format("'{}' and '{}' exclude each other; keep one of them",
                                  settings.schedule ? "schedule" : "schedule_file", other));
}

Result<void> CheckShape(const JobFile& settings, const Schedule& schedule) {
  const std::string name = settings.schedule_file.value_or(kText);
  struct Said {
    std::string_view key;
    std::optional<int> value;
    int has;
    std::string_view one;
    std::string_view several;
  };
  for (const Said& said :
       {Said{"stages", settings.stages, schedule.num_stages, "stage", "stages"},
        Said{"microbatches", settings.microbatches, schedule.num_microbatches, "microbatch",
             "microbatches"},
        Said{"virtual_stages", settings.virtual_stages, schedule.virtual_stages(),
             "stage on each rank", "stages on each rank"}}) {
    if (!said.value || *said.value == said.has) continue;
    return About(settings, said.key,
                 {ErrorCode::kInvalidInput,
                  fmt::format("'{}' is {}, but {} has {} {}; with a schedule file it may be left "
                              "out",
                              said.key, *said.value, name, said.has,
                              said.has == 1 ? said.one : said.several)});
  }
  return {};
}

ScheduleSpec ScheduleSpecOf(const JobFile& settings, int num_stages) {
  ScheduleSpec spec;
  spec.name = settings.schedule.value_or("");
  spec.num_stages = num_stages;
  spec.virtual_stages = settings.virtual_stages.value_or(1);
  spec.num_microbatches = settings.microbatches.value_or(0);
  spec.microbatch_group_size = settings.microbatch_group_size;
  return spec;
}

Result<Schedule> ScheduleOf(const JobFile& settings, int num_stages) {
  if (settings.schedule_csv) {
    return Checked(settings, ParseSchedule(*settings.schedule_csv, kText));
  }
  if (settings.schedule_file) {
    Result<Schedule> read = ReadSchedule(*settings.schedule_file);
    if (!read) return tl::unexpected(AboutFile(settings, "schedule_file", read.error()));
    return Checked(settings, std::move(read));
  }
  Result<Schedule> built = BuildSchedule(ScheduleSpecOf(settings, num_stages));
  if (built) return built;
  return About(settings, BlamedSetting(built.error().message), built.error());
}

}  // namespace perseus::job

namespace perseus {
inline namespace v0 {
namespace {

std::string Count(int count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : noun.ends_with("ch") ? "es" : "s");
}

// With the place of the field in the job file, where it is from there.
tl::unexpected<Error> AboutField(const JobFile& settings, std::string_view key, Error error) {
  return tl::unexpected<Error>(job::AboutField(settings, key, std::move(error)));
}

tl::unexpected<Error> AboutFile(const JobFile& settings, std::string_view key, Error error) {
  return tl::unexpected<Error>(job::AboutFile(settings, key, std::move(error)));
}

tl::unexpected<Error> WrongField(const JobFile& settings, std::string_view key,
                                 std::string message) {
  return AboutField(settings, key, {ErrorCode::kInvalidInput, std::move(message)});
}

Result<void> CheckComplete(const JobFile& settings, const Profile& profile) {
  std::vector<std::string> missing;
  for (const std::string_view key : MissingFields(settings, &profile)) {
    missing.push_back(fmt::format("'{}'", key));
  }
  if (missing.empty()) return {};
  return InvalidInput(
      fmt::format("{} {} missing", fmt::join(missing, ", "), missing.size() == 1 ? "is" : "are"));
}

Result<void> CheckStages(const JobFile& settings, const Profile& profile) {
  if (!settings.stages || *settings.stages == profile.num_stages) return {};
  return WrongField(
      settings, "stages",
      fmt::format("'stages' is {}, but {} has {}; 'stages' counts the model's stages (ranks x "
                  "virtual stages) "
                  "and may be left out",
                  *settings.stages, profile.source, Count(profile.num_stages, "stage")));
}

// Refuses a job that is too large to plan, before it is built.
Result<void> CheckComputations(const JobFile& settings, const Profile& profile) {
  const std::int64_t computations = std::int64_t{2} * profile.num_stages * *settings.microbatches;
  if (computations <= plan::kMostComputations) return {};
  return AboutField(settings, "microbatches",
                    {ErrorCode::kOverflow, plan::TooManyToPlan(computations)});
}

// The work of a job: of its table, or of the factors in its settings.
Result<Work> WorkOfJob(const JobFile& settings, const Profile& profile, const PipelineDag& dag,
                       std::vector<Note>* notes) {
  if (!settings.work) return Work();
  if (!settings.work->factors.empty()) {
    if (settings.work->factors.size() != static_cast<std::size_t>(dag.num_microbatches)) {
      return WrongField(
          settings, "work",
          fmt::format("'work' gives {}, but the pipeline has {}; give one for each",
                      Count(static_cast<int>(settings.work->factors.size()), "factor"),
                      Count(dag.num_microbatches, "microbatch")));
    }
    return Work(settings.work->factors);
  }
  const Result<WorkTable> table = ReadWork(settings.work->file);
  if (!table) return AboutFile(settings, "work", table.error());
  TokenRule rule;
  rule.profiled_tokens = settings.work_tokens;
  if (!table->in_tokens && (settings.work_fit || settings.work_tokens)) {
    const std::string_view key = settings.work_fit ? "work_fit" : "work_tokens";
    return WrongField(settings, key,
                      fmt::format("'{}' is for a work table in tokens, and {} states factors", key,
                                  table->source));
  }
  if (settings.work_fit && settings.work_tokens) {
    return WrongField(settings, "work_tokens",
                      "'work_fit' says what tokens take, so 'work_tokens' has no use; keep one of "
                      "them");
  }
  if (settings.work_fit) {
    Result<WorkFit> fit = ReadWorkFit(*settings.work_fit);
    if (!fit) return AboutFile(settings, "work_fit", fit.error());
    rule.fit = *std::move(fit);
  } else if (table->in_tokens) {
    std::string text =
        "without a fit (work_fit) computations are taken to last in proportion to their tokens";
    if (!settings.work_tokens) {
      text +=
          ", and the profile to be of microbatches of the table's mean length (or give "
          "work_tokens)";
    }
    notes->push_back(
        {.severity = Severity::kOdd, .text = std::move(text), .source = table->source});
  }
  std::set<int> stated;
  for (const WorkRow& row : table->rows) stated.insert(row.microbatch);
  const int count = static_cast<int>(stated.size());
  if (!table->in_tokens && count < dag.num_microbatches) {
    notes->push_back({.severity = Severity::kOdd,
                      .text = fmt::format("rows for {} of {}; the others are as in the profile",
                                          count, Count(dag.num_microbatches, "microbatch")),
                      .source = table->source});
  }
  std::set<std::pair<int, ComputationType>> kinds;
  for (const Computation& computation : dag.computations) {
    kinds.emplace(computation.id.stage, computation.id.type);
    if (computation.fused) kinds.emplace(computation.fused->stage, computation.fused->type);
  }
  return MakeWork(*table, rule, profile, dag.num_microbatches, {kinds.begin(), kinds.end()});
}

}  // namespace

Result<JobFile> LoadSettings(const std::string& path, const JobFile& overrides) {
  JobFile settings;
  if (IsJobFileName(path)) {
    Result<JobFile> file = ReadJobFile(path);
    if (!file) return file;
    settings = *std::move(file);
    if (!settings.profile && !overrides.profile) {
      return InvalidInput(fmt::format(
          "{}: the job file names no profile; add a line such as profile = \"profile.csv\"", path));
    }
  } else if (!path.empty()) {
    settings.profile = path;
  }
  job::Merge(overrides, &settings);
  return settings;
}

ProfileOptions ProfileOptionsOf(const JobFile& settings) {
  return {.baseline = settings.baseline.value_or(""), .strict = settings.strict.value_or(false)};
}

bool HasConditions(const JobFile& settings) {
  const std::span<const job::Field> fields = job::Fields();
  return std::any_of(fields.begin(), fields.end(), [&](const job::Field& field) {
    return field.condition() && job::IsSet(field, settings);
  });
}

void ApplyConditions(const JobFile& settings, Conditions* conditions) {
  const auto set = [](const auto& value, auto* target) {
    if (value) *target = *value;
  };
  // A single value takes the range of another one away.
  const auto set_range = [](const std::optional<ValueRange>& value, double* target,
                            std::optional<ValueRange>* range) {
    if (!value) return;
    *target = value->middle();
    *range = value->is_one() ? std::nullopt : value;
  };
  TimeNoise& noise = conditions->noise;
  ConditionRanges& ranges = conditions->ranges;
  set_range(settings.noise, &noise.per_computation, &ranges.noise);
  set(settings.stage_noise, &noise.per_stage);
  set(settings.gpu_noise, &noise.per_gpu);
  set_range(settings.rank_noise, &noise.per_rank, &ranges.rank_noise);
  set(settings.noise_correlation, &noise.correlation);
  set(settings.rare_noise, &noise.rare_length);
  set(settings.rare_noise_share, &noise.rare_share);
  ClockSwitching& switching = conditions->switching;
  set_range(settings.switch_latency_seconds, &switching.latency_seconds,
            &ranges.switch_latency_seconds);
  if (settings.switch_latency_seconds || !settings.switch_latency_at.empty()) {
    switching.latency_at = settings.switch_latency_at;
  }
  set(settings.switch_latency_spread_seconds, &switching.latency_spread_seconds);
  set(settings.switch_stall_seconds, &switching.stall_seconds);
  set(settings.call_ahead, &switching.call_ahead);
  set(settings.max_early_loss, &switching.max_early_loss);
  set(settings.min_call_interval_seconds, &switching.min_interval_seconds);
  set(settings.change_price_joules, &conditions->change_joules);
  set(settings.max_slowdown, &conditions->max_slowdown);
  set(settings.confidence, &conditions->confidence);
  set(settings.profile_errors, &conditions->profile_errors);
  if (settings.max_changes) conditions->max_changes = *settings.max_changes;
}

Conditions ConditionsOf(const JobFile& settings) {
  Conditions conditions;
  ApplyConditions(settings, &conditions);
  return conditions;
}

std::vector<std::string_view> MissingFields(const JobFile& settings, const Profile* profile) {
  std::vector<std::string_view> missing;
  const bool has_order = settings.schedule_file || settings.schedule_csv;
  if (!settings.schedule && !has_order) missing.emplace_back("schedule");
  if (!settings.microbatches && !has_order) missing.emplace_back("microbatches");
  const bool is_known = profile != nullptr && profile->SaysWaiting();
  if (settings.blocking_power_watts.empty() && !is_known) missing.emplace_back("blocking_power");
  return missing;
}

Result<Job> Job::Load(const std::string& path, const JobFile& overrides) {
  Result<JobFile> settings = LoadSettings(path, overrides);
  if (!settings) return tl::unexpected(settings.error());
  return Load(*std::move(settings));
}

Result<Job> Job::Load(JobFile settings) {
  // First of all: whoever mistyped a path wants to hear of that.
  if (!settings.profile) return InvalidInput("'profile' is missing");
  Result<Profile> profile = ReadProfile(*settings.profile, ProfileOptionsOf(settings));
  if (!profile) return AboutFile(settings, "profile", profile.error());
  return Make(*std::move(profile), std::move(settings));
}

namespace {

// Of a profile in memory, its own and what its numbers say. A file's rows say more than those of a
// profile, so what it has said already is not said again.
std::vector<Note> NotesOf(const Profile& profile) {
  std::vector<Note> notes = profile.notes;
  const bool was_read = !profile.sha256.empty();
  for (Note& note : profile.FindNotes()) {
    const bool is_worse =
        std::all_of(profile.notes.begin(), profile.notes.end(),
                    [&](const Note& known) { return known.severity < note.severity; });
    if (is_worse && (!was_read || note.severity != Severity::kOdd))
      notes.push_back(std::move(note));
  }
  return notes;
}

// Before the schedule is built, so that the sentence is about the stages.
Result<void> CheckSettings(const JobFile& settings, const Profile& profile) {
  if (auto good = CheckComplete(settings, profile); !good) return good;
  if (auto good = CheckStages(settings, profile); !good) return good;
  if (auto good = job::CheckOneSchedule(settings); !good) return good;
  if (!settings.schedule) return {};  // The reader of orders has its own limits.
  return CheckComputations(settings, profile);
}

// Costs a job of settings, profile and schedule that were checked one by one.
Result<Job> CostJob(Job job, const Schedule& schedule) {
  if (schedule.num_stages != job.profile.num_stages) {
    return InvalidInput(fmt::format("the schedule has {}, but {} has {}; they must be the same",
                                    Count(schedule.num_stages, "stage"), job.profile.source,
                                    Count(job.profile.num_stages, "stage")));
  }
  job.virtual_stages = schedule.virtual_stages();
  job.fixed.comm_delay_seconds = job.settings.comm_delay_seconds;
  job.fixed.data_loading_seconds = job.settings.data_loading_seconds.value_or(0);
  job.fixed.iteration_overhead_seconds = job.settings.iteration_overhead_seconds.value_or(0);
  Result<PipelineDag> dag = BuildDag(schedule, job.fixed);
  if (!dag) {
    return job.fixed.comm_delay_seconds.empty()
               ? tl::unexpected(dag.error())
               : AboutField(job.settings, "comm_delay", dag.error());
  }
  job.costs.blocking_power_watts = job.settings.blocking_power_watts;
  job.costs.waiting_is_constant = job.settings.waiting_is_constant;
  job.costs.tensor_parallel = job.settings.tensor_parallel;
  job.costs.split_ratio = job.settings.split_ratio.value_or(job.costs.split_ratio);
  std::vector<Note> notes = NotesOf(job.profile);
  Result<Work> work = WorkOfJob(job.settings, job.profile, *dag, &notes);
  if (!work) return tl::unexpected(work.error());
  job.costs.work = *std::move(work);
  Result<CostedPipeline> pipeline = CostPipeline(job.profile, *std::move(dag), job.costs);
  if (!pipeline) {
    const std::size_t powers = job.costs.blocking_power_watts.size();
    return powers == 1 || powers == static_cast<std::size_t>(schedule.num_ranks)
               ? tl::unexpected(pipeline.error())
               : AboutField(job.settings, "blocking_power", pipeline.error());
  }
  job.pipeline = *std::move(pipeline);
  const auto add = [&notes](std::vector<Note> more) {
    notes.insert(notes.end(), std::make_move_iterator(more.begin()),
                 std::make_move_iterator(more.end()));
  };
  add(job.pipeline.notes);
  add(job::CheckJob(job));
  if (job.settings.accept_implausible.value_or(false)) AcceptImplausible(&notes);
  job::SortNotes(&notes);
  if (auto good = RefuseNotes(notes, job.settings.strict.value_or(false)); !good) {
    return tl::unexpected(good.error());
  }
  job.notes = std::move(notes);
  return job;
}

}  // namespace

Result<Job> Job::Make(Profile profile, JobFile settings) {
  if (auto good = profile.Validate(); !good) return tl::unexpected(good.error());
  if (auto good = CheckSettings(settings, profile); !good) return tl::unexpected(good.error());
  const Result<Schedule> schedule = job::ScheduleOf(settings, profile.num_stages);
  if (!schedule) return tl::unexpected(schedule.error());
  Job job;
  if (settings.schedule) job.schedule = job::ScheduleSpecOf(settings, profile.num_stages);
  job.profile = std::move(profile);
  job.settings = std::move(settings);
  return CostJob(std::move(job), *schedule);
}

Result<Job> Job::Make(Profile profile, const Schedule& schedule, JobFile settings) {
  if (auto good = profile.Validate(); !good) return tl::unexpected(good.error());
  if (!settings.schedule_file) settings.schedule_file = schedule.name;
  if (auto good = CheckSettings(settings, profile); !good) return tl::unexpected(good.error());
  if (auto good = job::CheckShape(settings, schedule); !good) return tl::unexpected(good.error());
  Job job;
  job.profile = std::move(profile);
  job.settings = std::move(settings);
  return CostJob(std::move(job), schedule);
}

PlanConstraints ConstraintsOf(const JobFile& settings) {
  PlanConstraints constraints;
  constraints.granularity = settings.granularity.value_or(constraints.granularity);
  const TimeMargin margin = settings.time_margin.value_or(TimeMargin{});
  constraints.time_margin_sigmas = margin.sigmas;
  constraints.time_margin_fraction = margin.fraction;
  return constraints;
}

RobustPlanSpec RobustSpecOf(const JobFile& settings) {
  RobustPlanSpec spec;
  spec.conditions = ConditionsOf(settings);
  spec.constraints = ConstraintsOf(settings);
  spec.effort = settings.effort.value_or(spec.effort);
  spec.pipelines = settings.data_parallel.value_or(spec.pipelines);
  return spec;
}

StreamOptions StreamOptionsOf(const JobFile& settings) {
  StreamOptions options;
  options.target = settings.at.value_or(PlanTarget{});
  options.constraints = ConstraintsOf(settings);
  options.effort = settings.effort;
  return options;
}

PlanConstraints Job::Constraints() const { return ConstraintsOf(settings); }

PlannerOptions Job::SolverOptions() const {
  PlannerOptions options;
  options.slope_quantum_watts = settings.coarse_watts;
  options.exponential_fit = settings.exponential_fit.value_or(false);
  return options;
}

Result<Planner> Job::MakePlanner(const ProgressFunction& progress) const {
  PlannerOptions options = SolverOptions();
  options.progress = progress;
  return Planner::Create(pipeline, options);
}

Result<StreamPlanner> Job::MakeStream() const {
  if (HasConditions(settings)) {
    return InvalidInput(
        "'conditions' are for the one plan of a job: plans of single iterations know none; leave "
        "them out for a stream");
  }
  return StreamPlanner::Create(profile, pipeline.dag, costs, StreamOptionsOf(settings));
}

std::vector<Note> Job::NotesAt(const Frontier& frontier, double seconds) const {
  std::vector<Note> found = notes;
  if (seconds > frontier.tstar_seconds && !plan::SameTime(seconds, frontier.tstar_seconds)) {
    found.push_back(job::NoteOn(
        settings, "at", Severity::kOdd,
        fmt::format("the time asked for, {:.6g} s, is beyond T* ({:.6g} s), and more time than "
                    "that saves nothing; the least energy is with the target min-energy ({:.6g} s)",
                    seconds, frontier.tstar_seconds, frontier.min_energy_seconds)));
  }
  return found;
}

PlanContext Job::Context() const {
  PlanContext context;
  context.profile_source = profile.source;
  context.profile_sha256 = profile.sha256;
  context.data_parallel = DataParallel();
  context.constraints = Constraints();
  return context;
}

Result<PlanDocument> Job::Document(const Planner& planner, const perseus::Plan& plan) const {
  return Document(planner, plan, Constraints());
}

Result<PlanDocument> Job::Document(const Planner& planner, const perseus::Plan& plan,
                                   const PlanConstraints& constraints) const {
  if (planner.baseline().pipeline != pipeline.Fingerprint()) {
    return InvalidInput("the planner was made for another job; use one of this job's");
  }
  PlanContext context = Context();
  context.constraints = constraints;
  context.notes = NotesAt(planner.frontier(), plan.requested_time_seconds);
  return MakePlanDocument(planner, plan, context);
}

}  // namespace v0
}  // namespace perseus
