// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/planner_c.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "common/c_boundary.h"
#include "common/numbers.h"
#include "job/job_fields.h"
#include "model/plan_figures.h"
#include "perseus/costed_pipeline.h"
#include "perseus/job.h"
#include "perseus/job_file.h"
#include "perseus/note.h"
#include "perseus/plan.h"
#include "perseus/plan_document.h"
#include "perseus/plan_file.h"
#include "perseus/planner.h"
#include "perseus/profile.h"
#include "perseus/progress.h"
#include "perseus/report.h"
#include "perseus/result.h"
#include "perseus/schedule.h"
#include "perseus/stream.h"
#include "plan/limits.h"
#include "plan/told.h"

namespace perseus::planner_c {

// The border between C and C++.
using c_boundary::Fail;
using c_boundary::FailInvalid;
using c_boundary::Guarded;
using c_boundary::NewText;

// Fills in a struct of the caller's.
template <typename Struct>
perseus_status Give(const char* name, const Struct& from, Struct* to, char** message) {
  const Result<void> given = c_boundary::CopyOut(name, from, to);
  return given ? PERSEUS_OK : Fail(given.error(), message);
}

// What `next` makes of a value, or why there is none.
template <typename T, typename Next>
auto Then(const Result<T>& value, const Next& next) -> decltype(next(*value)) {
  if (!value) return tl::unexpected(value.error());
  return next(*value);
}

// Gives a text that `make` makes of the caller's object.
template <typename Object, typename Make>
perseus_status GiveText(const Object* object, const char* missing, char** text, char** message,
                        const Make& make) {
  return Guarded(message, [&] {
    if (text != nullptr) *text = nullptr;
    if (object == nullptr || text == nullptr) return FailInvalid(missing, message);
    const Result<std::string> made = make(*object);
    if (!made) return Fail(made.error(), message);
    *text = NewText(*made);
    return PERSEUS_OK;
  });
}

// Gives a plan, a planner or a solution that `make` makes of the caller's object.
template <typename From, typename Object, typename Make>
perseus_status GiveNew(const From* from, const char* missing, Object** to, char** message,
                       const Make& make) {
  return Guarded(message, [&] {
    if (to != nullptr) *to = nullptr;
    if (from == nullptr || to == nullptr) return FailInvalid(missing, message);
    Result<std::unique_ptr<Object>> made = make(*from);
    if (!made) return Fail(made.error(), message);
    *to = made->release();
    return PERSEUS_OK;
  });
}

// A caller's callback.
struct Progress {
  perseus_planner_progress function = nullptr;
  void* user = nullptr;

  // Whether to go on.
  bool operator()(double share) const { return function == nullptr || function(user, share) == 0; }
};
// The same for C++; `progress` must outlive it.
inline ProgressFunction ToldAs(const Progress& progress) {
  if (progress.function == nullptr) return {};
  return [&progress](const perseus::Progress& now) { return progress(now.share); };
}

constexpr const char* kNoPlanner = "there is no planner, or no place for the text";
constexpr const char* kNoPlaceForPlan = "there is no planner, or no place for the plan";
constexpr const char* kNoPlan = "there is no plan, or no place for its text";

// The types behind the pointers of perseus/planner_c.h.

struct FrontierColumns {
  explicit FrontierColumns(const Planner& planner);

  // Its pointers are good as long as this is.
  perseus_frontier Frontier() const;

  std::vector<double> time_seconds;
  std::vector<double> energy_joules;
  std::vector<double> slope_watts;
  perseus_frontier scalars = {};
};

struct PlannedJob {
  Job job;
  Planner planner;
  FrontierColumns frontier;
  StreamPlanner stream;
};

// The computations of a plan as columns. Moved, not copied: `knob` points into `labels`.
struct PlanColumns {
  explicit PlanColumns(const PlanDocument& document);
  PlanColumns(const PlanColumns&) = delete;
  PlanColumns& operator=(const PlanColumns&) = delete;
  PlanColumns(PlanColumns&&) = default;
  PlanColumns& operator=(PlanColumns&&) = default;
  ~PlanColumns() = default;

  perseus_plan_columns Columns() const;

  int num_ranks = 0;
  std::vector<std::int32_t> rank;
  std::vector<std::int32_t> type;
  std::vector<std::int32_t> stage;
  std::vector<std::int32_t> microbatch;
  std::vector<std::int32_t> fused_type;
  std::vector<std::int32_t> fused_stage;
  std::vector<std::int32_t> fused_microbatch;
  std::vector<double> clock_mhz;
  std::vector<std::string> labels;
  std::vector<const char*> knob;  // Into labels.
  std::vector<double> start_seconds;
  std::vector<double> duration_seconds;
  std::vector<double> energy_joules;
};

}  // namespace perseus::planner_c

// NOLINTBEGIN(readability-identifier-naming): names of C.
struct perseus_planner {
  std::shared_ptr<const perseus::planner_c::PlannedJob> job;
};

struct perseus_plan {
  perseus::PlanDocument document;
  perseus::planner_c::PlanColumns columns;
  // The source of reports; a plan that was read has none.
  std::shared_ptr<const perseus::planner_c::PlannedJob> job = {};
  perseus::JobFile settings = {};
  std::optional<perseus::JobPlan> made = {};  // Without its document, which is above.
};
// NOLINTEND(readability-identifier-naming)

namespace perseus::planner_c {
namespace {

// A cell of CSV, quoted where it must be.
Result<std::string> Cell(const char* text, std::string_view column, std::size_t row) {
  if (text == nullptr) {
    return InvalidInput(fmt::format("row {} of the profile has no {}", row, column));
  }
  const std::string_view cell = text;
  if (cell.find_first_of("\r\n") != std::string_view::npos) {
    return InvalidInput(
        fmt::format("row {} of the profile has a {} with a line's end in it", row, column));
  }
  if (cell.find_first_of(",\"") == std::string_view::npos) return std::string(cell);
  std::string quoted = "\"";
  for (const char c : cell) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

}  // namespace

// The CSV of a profile in arrays: numbers in their shortest digits, so that they are read back to
// the same bits. Row i is line i + 2. Errors: arrays that are missing, a text with a line's end.
Result<std::string> ProfileText(const perseus_profile_arrays& arrays) {
  if (arrays.stage == nullptr || arrays.instruction == nullptr || arrays.time_seconds == nullptr ||
      arrays.energy_joules == nullptr ||
      (arrays.clock_mhz == nullptr) == (arrays.knob == nullptr)) {
    return InvalidInput(
        "the arrays of a profile are stage, instruction, time, energy, and either clocks or knobs");
  }
  std::string text = "stage,instruction,frequency,time,energy";
  if (arrays.time_std_seconds != nullptr) text += ",time_std";
  if (arrays.energy_std_joules != nullptr) text += ",energy_std";
  text += '\n';
  const auto out = std::back_inserter(text);
  for (std::size_t row = 0; row < arrays.rows; ++row) {
    Result<std::string> instruction = Cell(arrays.instruction[row], "instruction", row);
    if (!instruction) return instruction;
    fmt::format_to(out, "{},{},", arrays.stage[row], *instruction);
    if (arrays.clock_mhz != nullptr) {
      fmt::format_to(out, "{}", arrays.clock_mhz[row]);
    } else {
      Result<std::string> knob = Cell(arrays.knob[row], "knob", row);
      if (!knob) return knob;
      text += *knob;
    }
    fmt::format_to(out, ",{},{}", arrays.time_seconds[row], arrays.energy_joules[row]);
    if (arrays.time_std_seconds != nullptr) {
      fmt::format_to(out, ",{}", arrays.time_std_seconds[row]);
    }
    if (arrays.energy_std_joules != nullptr) {
      fmt::format_to(out, ",{}", arrays.energy_std_joules[row]);
    }
    text += '\n';
  }
  return text;
}

namespace {

using c_boundary::TextOf;

constexpr std::string_view kSettings = "settings";

// Without the place, "settings:1:17: ", which says nothing to whoever gave values one by one.
std::string WithoutPlace(std::string message) {
  std::string_view rest = message;
  if (!rest.starts_with(kSettings)) return message;
  rest.remove_prefix(kSettings.size());
  for (int part = 0; part < 2; ++part) {
    if (!rest.starts_with(':')) return message;
    rest.remove_prefix(1);
    const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    if (digits == 0) return message;
    rest.remove_prefix(digits);
  }
  if (!rest.starts_with(": ")) return message;
  rest.remove_prefix(2);
  return std::string(rest);
}

Result<Profile> ReadProfileOf(const perseus_planner_input& input, const JobFile& settings) {
  const ProfileOptions options = ProfileOptionsOf(settings);
  const std::string name = input.profile_name == nullptr ? "profile" : input.profile_name;
  if (input.profile_csv != nullptr) {
    const auto text = TextOf("profile_csv", input.profile_csv, input.profile_csv_size);
    if (!text) return tl::unexpected(text.error());
    return ParseProfile(*text, name, options);
  }
  if (input.profile_arrays != nullptr) {
    const auto arrays = c_boundary::CopyIn("perseus_profile_arrays", input.profile_arrays);
    if (!arrays) return tl::unexpected(arrays.error());
    if (arrays->reserved != 0) return InvalidInput("'reserved' of the profile's arrays is not 0");
    const Result<std::string> text = ProfileText(*arrays);
    if (!text) return tl::unexpected(text.error());
    return ParseProfile(*text, name, options);
  }
  if (!settings.profile) return InvalidInput("'profile' is missing");
  return ReadProfile(*settings.profile, options);
}

}  // namespace

// The settings of a JSON object; "" is none. They come from no file: errors name the key and no
// place.
Result<JobFile> ReadSettings(std::string_view json) {
  if (json.empty()) return JobFile{};
  Result<JobFile> settings = ParseJobFile(json, std::string(kSettings), JobFileFormat::kJson);
  if (!settings) {
    settings.error().message = WithoutPlace(std::move(settings.error().message));
    return settings;
  }
  settings->places.clear();
  return settings;
}

// The settings that only say which plan of a job is wanted; those of `job` where they do not.
// Conditions are refused in both.
Result<JobFile> ReadPlanSettings(std::string_view json, const JobFile& job) {
  Result<JobFile> asked = ReadSettings(json);
  if (!asked) return asked;
  for (const job::Field& field : job::Fields()) {
    if (field.of_one_plan || field.condition() || !job::IsSet(field, *asked)) continue;
    return InvalidInput(
        fmt::format("'{}' is of the whole job and cannot be set for one plan; make another planner",
                    field.key));
  }
  JobFile settings = job;
  job::Merge(*asked, &settings);
  return settings;
}

Result<Job> ReadJob(const perseus_planner_input& input) {
  if (input.reserved != 0) return InvalidInput("'reserved' of the planner's input is not 0");
  const auto json = TextOf("settings_json", input.settings_json, input.settings_json_size);
  if (!json) return tl::unexpected(json.error());
  const Result<JobFile> overrides = ReadSettings(*json);
  if (!overrides) return tl::unexpected(overrides.error());
  const int profiles = static_cast<int>(input.profile_csv != nullptr) +
                       static_cast<int>(input.profile_arrays != nullptr);
  if (profiles > 1 || (profiles > 0 && (input.path != nullptr || overrides->profile))) {
    return InvalidInput("more than one profile is given; keep one of them");
  }
  Result<JobFile> settings =
      LoadSettings(input.path == nullptr ? std::string() : std::string(input.path), *overrides);
  if (!settings) return tl::unexpected(settings.error());
  Result<Profile> profile = ReadProfileOf(input, *settings);
  if (!profile) return tl::unexpected(profile.error());
  if (input.schedule_csv == nullptr) return Job::Make(*std::move(profile), *std::move(settings));
  if (overrides->schedule || overrides->schedule_file || overrides->schedule_csv) {
    return InvalidInput("'schedule' is given twice, by name and as CSV; keep one of them");
  }
  const std::string name = input.schedule_name == nullptr ? "schedule" : input.schedule_name;
  const auto text = TextOf("schedule_csv", input.schedule_csv, input.schedule_csv_size);
  if (!text) return tl::unexpected(text.error());
  const Result<Schedule> schedule = ParseSchedule(*text, name);
  if (!schedule) return tl::unexpected(schedule.error());
  // Instead of that of the job file.
  settings->schedule.reset();
  settings->schedule_csv.reset();
  settings->schedule_file = name;
  return Job::Make(*std::move(profile), *schedule, *std::move(settings));
}

namespace {

Result<std::unique_ptr<perseus_planner>> CreatePlanner(const perseus_planner_input& input) {
  Result<Job> job = ReadJob(input);
  if (!job) return tl::unexpected(job.error());
  const Progress progress = {input.progress, input.user};
  PlannerOptions options = job->SolverOptions();
  options.progress = ToldAs(progress);
  Result<Planner> planner = Planner::Create(job->pipeline, options);
  if (!planner) return tl::unexpected(planner.error());
  FrontierColumns frontier(*planner);
  Result<StreamPlanner> stream = StreamPlanner::Create(job->profile, job->pipeline.dag, job->costs,
                                                       StreamOptionsOf(job->settings));
  if (!stream) return tl::unexpected(stream.error());
  auto handle = std::make_unique<perseus_planner>();
  handle->job = std::make_shared<const PlannedJob>(
      PlannedJob{*std::move(job), *std::move(planner), std::move(frontier), *std::move(stream)});
  return handle;
}

// The profile as it was read: one row for each option, ranks aggregated.
Result<std::string> ProfileTextOf(const Profile& profile) {
  std::vector<std::int32_t> stage;
  std::vector<const char*> type;
  std::vector<const char*> knob;
  std::vector<double> time;
  std::vector<double> energy;
  for (const OptionTable& table : profile.tables) {
    for (const Option& option : table.options) {
      stage.push_back(table.stage);
      type.push_back(ComputationTypeName(table.type).data());
      knob.push_back(profile.knobs[option.knob].label.c_str());
      time.push_back(option.time_seconds);
      energy.push_back(option.energy_joules);
    }
  }
  perseus_profile_arrays arrays = {};
  arrays.rows = stage.size();
  arrays.stage = stage.data();
  arrays.instruction = type.data();
  arrays.knob = knob.data();
  arrays.time_seconds = time.data();
  arrays.energy_joules = energy.data();
  return ProfileText(arrays);
}

}  // namespace

FrontierColumns::FrontierColumns(const Planner& planner) {
  const struct Frontier& frontier = planner.frontier();
  for (const FrontierPoint& point : frontier.points) {
    time_seconds.push_back(point.iteration_time_seconds);
    energy_joules.push_back(point.energy_joules);
    slope_watts.push_back(point.slope_watts);
  }
  scalars.fitted = frontier.fitted ? 1 : 0;
  scalars.count = frontier.points.size();
  scalars.fastest_seconds = frontier.fastest_seconds;
  scalars.min_energy_seconds = frontier.min_energy_seconds;
  scalars.tstar_seconds = frontier.tstar_seconds;
  scalars.certified_error = frontier.certified_error;
  scalars.total_blocking_power_watts = frontier.total_blocking_power_watts;
  scalars.baseline_time_seconds = planner.baseline().iteration_time_seconds;
  scalars.baseline_energy_joules = planner.baseline().energy_joules;
}

perseus_frontier FrontierColumns::Frontier() const {
  perseus_frontier frontier = scalars;
  frontier.time_seconds = time_seconds.data();
  frontier.energy_joules = energy_joules.data();
  frontier.slope_watts = slope_watts.data();
  return frontier;
}

// The note of this index, for C: its texts are those of `notes`.
perseus_status GiveNote(const std::vector<Note>& notes, std::size_t index, perseus_note* to,
                        char** message) {
  if (index >= notes.size()) {
    return FailInvalid(
        fmt::format("there is no note {}: there are {}, counted from 0", index, notes.size()),
        message);
  }
  const Note& note = notes[index];
  const perseus_note given = {.struct_size = 0,
                              .severity = static_cast<std::int32_t>(note.severity),
                              .text = note.text.c_str(),
                              .source = note.source.c_str(),
                              .line = note.line,
                              .column = note.column};
  return Give("perseus_note", given, to, message);
}

}  // namespace perseus::planner_c

namespace pc = perseus::planner_c;

int perseus_planner_abi_version(void) { return PERSEUS_PLANNER_ABI_VERSION; }

void perseus_planner_free_text(char* text) { std::free(text); }

void perseus_planner_input_init(perseus_planner_input* input, size_t struct_size) {
  if (input == nullptr || struct_size < sizeof(input->struct_size)) return;
  perseus_init(input, struct_size);
}

perseus_status perseus_planner_create(const perseus_planner_input* input, perseus_planner** planner,
                                      char** message) {
  constexpr const char* kMissing = "there is no place for the planner";
  return pc::GiveNew(&input, kMissing, planner, message, [](const auto* given) {
    return pc::Then(perseus::c_boundary::CopyIn("perseus_planner_input", given), pc::CreatePlanner);
  });
}

void perseus_planner_free(perseus_planner* planner) { delete planner; }

perseus_status perseus_planner_frontier(const perseus_planner* planner, perseus_frontier* frontier,
                                        char** message) {
  return pc::Guarded(message, [&] {
    if (planner == nullptr) return pc::FailInvalid("there is no planner", message);
    return pc::Give("perseus_frontier", planner->job->frontier.Frontier(), frontier, message);
  });
}

perseus_status perseus_planner_frontier_csv(const perseus_planner* planner, char** text,
                                            char** message) {
  return pc::GiveText(planner, pc::kNoPlanner, text, message, [](const perseus_planner& from) {
    return perseus::FormatFrontierCsv(from.job->planner.frontier());
  });
}

perseus_status perseus_planner_profile_csv(const perseus_planner* planner, char** text,
                                           char** message) {
  return pc::GiveText(planner, pc::kNoPlanner, text, message, [](const perseus_planner& from) {
    return pc::ProfileTextOf(from.job->job.profile);
  });
}

size_t perseus_planner_note_count(const perseus_planner* planner) {
  return planner == nullptr ? 0 : planner->job->job.notes.size();
}

perseus_status perseus_planner_get_note(const perseus_planner* planner, size_t index,
                                        perseus_note* note, char** message) {
  return pc::Guarded(message, [&] {
    if (planner == nullptr) return pc::FailInvalid("there is no planner", message);
    return pc::GiveNote(planner->job->job.notes, index, note, message);
  });
}

namespace perseus::planner_c {
namespace {

using SharedJob = std::shared_ptr<const PlannedJob>;
using NewPlanResult = Result<std::unique_ptr<perseus_plan>>;

std::unique_ptr<perseus_plan> NewPlan(PlanDocument document) {
  PlanColumns columns(document);
  return std::make_unique<perseus_plan>(perseus_plan{std::move(document), std::move(columns)});
}

std::unique_ptr<perseus_plan> NewPlan(const SharedJob& planned, JobFile settings, JobPlan made) {
  auto plan = NewPlan(std::exchange(made.document, {}));
  plan->job = planned;
  plan->settings = std::move(settings);
  plan->made = std::move(made);
  return plan;
}

NewPlanResult NewPlan(const SharedJob& planned, JobFile settings, const Planner& planner, Plan plan,
                      const PlanConstraints& constraints) {
  PlanContext context = planned->job.Context();
  context.constraints = constraints;
  context.notes = planned->job.NotesAt(planner.frontier(), plan.requested_time_seconds);
  JobPlan made = {.planner = planner, .plan = std::move(plan)};
  Result<PlanDocument> document = MakePlanDocument(planner, made.plan, context);
  if (!document) return tl::unexpected(document.error());
  made.document = *std::move(document);
  return NewPlan(planned, std::move(settings), std::move(made));
}

// report.html, with the one row of the plan.
Result<std::string> ReportText(const perseus_plan& plan) {
  if (!plan.made) {
    return InvalidInput(
        "a plan that was read from a file knows no profile, which a report shows; make the plan "
        "again with a planner");
  }
  Job job = plan.job->job;
  job.settings = plan.settings;
  JobPlan made = *plan.made;
  made.document = plan.document;
  return FormatHtmlReport(ReportOf(job, made));
}

NewPlanResult MakePlan(const SharedJob& planned, std::string_view settings_json,
                       const Progress& progress) {
  Result<JobFile> settings = ReadPlanSettings(settings_json, planned->job.settings);
  if (!settings) return tl::unexpected(settings.error());
  JobPlanSpec spec = {.settings = *settings, .with_bound = false};
  spec.progress = ToldAs(progress);
  Result<JobPlan> made = MakeJobPlan(planned->job, planned->planner, spec);
  if (!made) return tl::unexpected(made.error());
  return NewPlan(planned, *std::move(settings), *std::move(made));
}

// `others`: as many factors as `work` has for each of the pipelines that this one waits for.
NewPlanResult MakePlanForWork(const SharedJob& planned, const double* work, std::size_t work_count,
                              const double* others, std::size_t num_others,
                              std::string_view settings_json, const Progress& progress) {
  const Result<JobFile> settings = ReadPlanSettings(settings_json, planned->job.settings);
  if (!settings) return tl::unexpected(settings.error());
  // The job's conditions are for its one plan.
  if (const auto asked = ReadSettings(settings_json); asked && HasConditions(*asked)) {
    return InvalidInput(
        "a plan for given lengths is made without conditions; leave 'conditions' out here");
  }
  const auto microbatches = static_cast<std::size_t>(planned->job.pipeline.dag.num_microbatches);
  if (work_count != microbatches) {
    return InvalidInput(fmt::format(
        "the work of {} microbatches is given, but the pipeline has {}; give one factor for each",
        work_count, microbatches));
  }
  const StreamOptions options = StreamOptionsOf(*settings);
  const StreamPlanner stream = planned->stream.With(options);
  double slowest = 0;
  for (std::size_t k = 0; k < num_others; ++k) {
    // Those may need a frontier each.
    if (progress.function != nullptr && !progress(0)) {
      return MakeError(ErrorCode::kCancelled, "the search for a plan was cancelled");
    }
    const double* const other = others + k * microbatches;
    const Result<double> seconds = stream.TargetSeconds(Work({other, other + microbatches}));
    if (!seconds) {
      return MakeError(seconds.error().code,
                       fmt::format("others[{}]: {}", k, seconds.error().message));
    }
    slowest = std::max(slowest, *seconds);
  }
  Result<StreamPlan> made =
      stream.PlanFor(Work({work, work + work_count}), slowest, ToldAs(progress));
  if (!made) return tl::unexpected(made.error());
  return NewPlan(planned, *settings, made->planner, std::move(made->plan), options.constraints);
}

// The figures of plan.json that have a member in C, by their group and name in the list of figures.
using CFigures = perseus_plan_figures;
constexpr struct {
  std::string_view group;
  std::string_view name;
  std::variant<double CFigures::*, std::int32_t CFigures::*> member;
} kMembers[] = {
    {"", "requested_time_s", &CFigures::requested_time_seconds},
    {"", "iteration_time_s", &CFigures::iteration_time_seconds},
    {"", "energy_j", &CFigures::energy_joules},
    {"", "average_power_w", &CFigures::average_power_watts},
    {"", "lower_bound_j", &CFigures::lower_bound_joules},
    {"", "gap_percent", &CFigures::gap_percent},
    {"", "saving_percent", &CFigures::saving_percent},
    {"", "knob_changes", &CFigures::knob_changes},
    {"", "distinct_knobs", &CFigures::distinct_knobs},
    {model::kSharedKnobGroup, "lower_bound_j", &CFigures::shared_knob_bound_joules},
    {model::kSharedKnobGroup, "gap_percent", &CFigures::shared_knob_gap_percent},
    {model::kSharedKnobGroup, "proven", &CFigures::proven_best},
    {model::kExpectedGroup, "iteration_time_s", &CFigures::expected_iteration_time_seconds},
    {model::kExpectedGroup, "energy_j", &CFigures::expected_energy_joules},
    {model::kExpectedGroup, "slowdown_percent", &CFigures::expected_slowdown_percent},
    {model::kExpectedGroup, "saving_percent", &CFigures::expected_saving_percent},
    {model::kExpectedGroup, "clock_calls", &CFigures::expected_clock_calls},
};

CFigures FiguresOf(const perseus_plan& plan) {
  CFigures figures = {};
  figures.has_shared_knob_bound = plan.document.shared_knobs ? 1 : 0;
  figures.has_expected = plan.document.expected ? 1 : 0;
  for (const model::FigureValue& value : model::FigureValues(plan.document)) {
    if (!value.known) continue;
    for (const auto& [group, name, member] : kMembers) {
      if (group != value.group || name != value.name) continue;
      std::visit(
          [&](auto pointer) {
            using Number = std::remove_reference_t<decltype(figures.*pointer)>;
            figures.*pointer = static_cast<Number>(value.value);
          },
          member);
    }
  }
  return figures;
}

// The texts of the list of figures are literals, so they end with a zero.
perseus_figure FigureOf(const model::FigureValue& from) {
  perseus_figure figure = {};
  figure.known = from.known ? 1 : 0;
  figure.whole = from.whole ? 1 : 0;
  figure.group = from.group.data();
  figure.name = from.name.data();
  figure.unit = model::FigureUnitName(from.unit).data();
  figure.text = from.says.data();
  figure.value = from.value;
  return figure;
}

}  // namespace

PlanColumns::PlanColumns(const PlanDocument& document)
    : num_ranks(static_cast<int>(document.ranks.size())) {
  for (int r = 0; r < num_ranks; ++r) {
    for (const PlannedComputation& computation : document.ranks[r].computations) {
      const std::optional<ComputationId>& fused = computation.fused;
      rank.push_back(r);
      type.push_back(static_cast<std::int32_t>(computation.id.type));
      stage.push_back(computation.id.stage);
      microbatch.push_back(computation.id.microbatch);
      fused_type.push_back(fused ? static_cast<std::int32_t>(fused->type) : -1);
      fused_stage.push_back(fused ? fused->stage : -1);
      fused_microbatch.push_back(fused ? fused->microbatch : -1);
      clock_mhz.push_back(document.knobs_are_numbers ? computation.knob.number
                                                     : std::numeric_limits<double>::quiet_NaN());
      labels.push_back(computation.knob.label);
      start_seconds.push_back(computation.start_seconds);
      duration_seconds.push_back(computation.duration_seconds);
      energy_joules.push_back(computation.energy_joules);
    }
  }
  for (const std::string& label : labels) knob.push_back(label.c_str());
}

perseus_plan_columns PlanColumns::Columns() const {
  perseus_plan_columns columns = {};
  columns.num_ranks = num_ranks;
  columns.count = rank.size();
  columns.rank = rank.data();
  columns.type = type.data();
  columns.stage = stage.data();
  columns.microbatch = microbatch.data();
  columns.fused_type = fused_type.data();
  columns.fused_stage = fused_stage.data();
  columns.fused_microbatch = fused_microbatch.data();
  columns.clock_mhz = clock_mhz.data();
  columns.knob = knob.data();
  columns.start_seconds = start_seconds.data();
  columns.duration_seconds = duration_seconds.data();
  columns.energy_joules = energy_joules.data();
  return columns;
}

}  // namespace perseus::planner_c

perseus_status perseus_planner_plan(const perseus_planner* planner, const char* settings_json,
                                    size_t settings_json_size, perseus_planner_progress progress,
                                    void* user, perseus_plan** plan, char** message) {
  return pc::GiveNew(planner, pc::kNoPlaceForPlan, plan, message, [&](const perseus_planner& from) {
    return pc::Then(perseus::c_boundary::TextOf("settings_json", settings_json, settings_json_size),
                    [&](std::string_view json) {
                      return pc::MakePlan(from.job, json, {progress, user});
                    });
  });
}

perseus_status perseus_planner_plan_work(const perseus_planner* planner, const double* work,
                                         size_t work_count, const char* settings_json,
                                         size_t settings_json_size,
                                         perseus_planner_progress progress, void* user,
                                         perseus_plan** plan, char** message) {
  return perseus_planner_plan_work_among(planner, work, work_count, nullptr, 0, settings_json,
                                         settings_json_size, progress, user, plan, message);
}

perseus_status perseus_planner_plan_work_among(const perseus_planner* planner, const double* work,
                                               size_t work_count, const double* others,
                                               size_t num_others, const char* settings_json,
                                               size_t settings_json_size,
                                               perseus_planner_progress progress, void* user,
                                               perseus_plan** plan, char** message) {
  constexpr const char* kMissing = "there is no planner, no work, or no place for the plan";
  const perseus_planner* const from = work == nullptr ? nullptr : planner;
  return pc::GiveNew(from, kMissing, plan, message, [&](const auto&) -> pc::NewPlanResult {
    if (others == nullptr && num_others > 0) {
      return perseus::InvalidInput("the work of other pipelines is not given");
    }
    return pc::Then(perseus::c_boundary::TextOf("settings_json", settings_json, settings_json_size),
                    [&](std::string_view json) {
                      return pc::MakePlanForWork(planner->job, work, work_count, others, num_others,
                                                 json, {progress, user});
                    });
  });
}

perseus_status perseus_planner_baseline(const perseus_planner* planner, perseus_plan** plan,
                                        char** message) {
  return pc::GiveNew(planner, pc::kNoPlaceForPlan, plan, message, [](const perseus_planner& from) {
    const perseus::Planner& made = from.job->planner;
    return pc::NewPlan(from.job, from.job->job.settings, made, made.baseline(), {});
  });
}

perseus_status perseus_plan_read(const char* json, size_t json_size, const char* name,
                                 perseus_plan** plan, char** message) {
  constexpr const char* kMissing = "there is no text of a plan, or no place for the plan";
  return pc::GiveNew(json, kMissing, plan, message, [&](const char&) -> pc::NewPlanResult {
    const auto text = perseus::c_boundary::TextOf("json", json, json_size);
    if (!text) return tl::unexpected(text.error());
    auto document = perseus::ParsePlanJson(*text, name == nullptr ? "plan.json" : name);
    if (!document) return tl::unexpected(document.error());
    return pc::NewPlan(*std::move(document));
  });
}

void perseus_plan_free(perseus_plan* plan) { delete plan; }

perseus_status perseus_plan_get_figures(const perseus_plan* plan, perseus_plan_figures* figures,
                                        char** message) {
  return pc::Guarded(message, [&] {
    if (plan == nullptr) return pc::FailInvalid("there is no plan", message);
    return pc::Give("perseus_plan_figures", pc::FiguresOf(*plan), figures, message);
  });
}

size_t perseus_plan_figure_count(const perseus_plan* plan) {
  return plan == nullptr ? 0 : perseus::model::FigureValues(plan->document).size();
}

perseus_status perseus_plan_get_figure(const perseus_plan* plan, size_t index,
                                       perseus_figure* figure, char** message) {
  return pc::Guarded(message, [&] {
    if (plan == nullptr) return pc::FailInvalid("there is no plan", message);
    const auto values = perseus::model::FigureValues(plan->document);
    if (index >= values.size()) {
      return pc::FailInvalid(
          fmt::format("there is no figure {}: there are {}, counted from 0", index, values.size()),
          message);
    }
    return pc::Give("perseus_figure", pc::FigureOf(values[index]), figure, message);
  });
}

perseus_status perseus_plan_get_columns(const perseus_plan* plan, perseus_plan_columns* columns,
                                        char** message) {
  return pc::Guarded(message, [&] {
    if (plan == nullptr) return pc::FailInvalid("there is no plan", message);
    return pc::Give("perseus_plan_columns", plan->columns.Columns(), columns, message);
  });
}

size_t perseus_plan_note_count(const perseus_plan* plan) {
  return plan == nullptr ? 0 : plan->document.notes.size();
}

perseus_status perseus_plan_get_note(const perseus_plan* plan, size_t index, perseus_note* note,
                                     char** message) {
  return pc::Guarded(message, [&] {
    if (plan == nullptr) return pc::FailInvalid("there is no plan", message);
    return pc::GiveNote(plan->document.notes, index, note, message);
  });
}

perseus_status perseus_plan_json(const perseus_plan* plan, char** text, char** message) {
  return pc::GiveText(plan, pc::kNoPlan, text, message, [](const perseus_plan& from) {
    return perseus::FormatPlanJson(from.document);
  });
}

perseus_status perseus_plan_zeus(const perseus_plan* plan, char** text, char** message) {
  return pc::GiveText(plan, pc::kNoPlan, text, message, [](const perseus_plan& from) {
    return perseus::FormatZeusPlan(from.document);
  });
}

perseus_status perseus_plan_report(const perseus_plan* plan, char** text, char** message) {
  constexpr const char* kMissing = "there is no plan, or no place for its report";
  return pc::GiveText(plan, kMissing, text, message, pc::ReportText);
}

namespace perseus::planner_c {

// A graph of operations in the words of the planner: operations are computations, chains of them
// ranks, waiting costs nothing, and option k of a curve is knob k.
struct DagPipeline {
  CostedPipeline pipeline;
  std::vector<int> computation_of;  // [operation]
};

namespace {

constexpr std::size_t kMostPrecedences = std::size_t{1} << 26;

Result<void> CheckDag(const perseus_dag& dag) {
  if (dag.reserved != 0) return InvalidInput("'reserved' of the graph is not 0");
  if (dag.num_operations < 1 || dag.num_operations > plan::kMostComputations) {
    return InvalidInput(fmt::format("the graph has {} operations; expected 1 to {}",
                                    dag.num_operations, plan::kMostComputations));
  }
  if (dag.num_curves < 1 || dag.num_curves > dag.num_operations) {
    return InvalidInput(fmt::format(
        "the graph has {} tables of options; expected 1 to the number of operations, {}",
        dag.num_curves, dag.num_operations));
  }
  if (dag.num_precedences > kMostPrecedences) {
    return InvalidInput(fmt::format("the graph has {} edges; expected at most {}",
                                    dag.num_precedences, kMostPrecedences));
  }
  if (dag.curve_of == nullptr || dag.first_option == nullptr || dag.option_time == nullptr ||
      dag.option_cost == nullptr ||
      (dag.num_precedences > 0 && (dag.from == nullptr || dag.to == nullptr))) {
    return InvalidInput("an array of the graph is missing");
  }
  if (dag.first_option[0] != 0) return InvalidInput("the first options do not begin at 0");
  for (int curve = 0; curve < dag.num_curves; ++curve) {
    if (dag.first_option[curve + 1] <= dag.first_option[curve]) {
      return InvalidInput(fmt::format("option table {} is empty", curve));
    }
    for (int k = dag.first_option[curve]; k < dag.first_option[curve + 1]; ++k) {
      const double time = dag.option_time[k];
      const double cost = dag.option_cost[k];
      if (time >= 0 && std::isfinite(time) && std::isfinite(cost)) continue;
      return InvalidInput(
          fmt::format("option {} of table {} takes {} and costs {}; expected a time that is not "
                      "negative, and finite numbers",
                      k - dag.first_option[curve], curve, time, cost));
    }
  }
  for (int i = 0; i < dag.num_operations; ++i) {
    if (dag.curve_of[i] >= 0 && dag.curve_of[i] < dag.num_curves) continue;
    return InvalidInput(fmt::format("operation {} names option table {}; there are {}", i,
                                    dag.curve_of[i], dag.num_curves));
  }
  for (int i = 0; dag.rank != nullptr && i < dag.num_operations; ++i) {
    if (dag.rank[i] >= 0 && dag.rank[i] < dag.num_operations) continue;
    return InvalidInput(fmt::format("operation {} is on rank {}; expected 0 to {}", i, dag.rank[i],
                                    dag.num_operations - 1));
  }
  for (int i = 0; dag.begin != nullptr && i < dag.num_operations; ++i) {
    if (dag.begin[i] >= 0 && std::isfinite(dag.begin[i])) continue;
    return InvalidInput(
        fmt::format("operation {} begins at {}; expected a finite number >= 0", i, dag.begin[i]));
  }
  for (std::size_t e = 0; e < dag.num_precedences; ++e) {
    for (const int end : {dag.from[e], dag.to[e]}) {
      if (end >= 0 && end < dag.num_operations) continue;
      return InvalidInput(
          fmt::format("edge {} names operation {}; there are {}", e, end, dag.num_operations));
    }
    const double delay = dag.delay == nullptr ? 0 : dag.delay[e];
    if (delay >= 0 && std::isfinite(delay)) continue;
    return InvalidInput(
        fmt::format("edge {} has a delay of {}; expected a finite number >= 0", e, delay));
  }
  return {};
}

struct Successors {
  std::vector<int> first;  // [operation], and one more
  std::vector<int> edges;
};

Successors SuccessorsOf(const perseus_dag& dag) {
  Successors out;
  out.first.assign(dag.num_operations + 1, 0);
  for (std::size_t e = 0; e < dag.num_precedences; ++e) ++out.first[dag.from[e] + 1];
  for (int i = 0; i < dag.num_operations; ++i) out.first[i + 1] += out.first[i];
  out.edges.resize(dag.num_precedences);
  std::vector<int> next(out.first.begin(), out.first.end() - 1);
  for (std::size_t e = 0; e < dag.num_precedences; ++e) {
    out.edges[next[dag.from[e]]++] = static_cast<int>(e);
  }
  return out;
}

// Operations so that each comes after what it waits for; of several that could be next, the first.
Result<std::vector<int>> TopologicalOrder(const perseus_dag& dag, const Successors& successors) {
  std::vector<int> waits_for(dag.num_operations, 0);
  for (std::size_t e = 0; e < dag.num_precedences; ++e) ++waits_for[dag.to[e]];
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i < dag.num_operations; ++i) {
    if (waits_for[i] == 0) ready.push(i);
  }
  std::vector<int> order;
  order.reserve(dag.num_operations);
  while (!ready.empty()) {
    const int i = ready.top();
    ready.pop();
    order.push_back(i);
    for (int k = successors.first[i]; k < successors.first[i + 1]; ++k) {
      const int to = dag.to[successors.edges[k]];
      if (--waits_for[to] == 0) ready.push(to);
    }
  }
  if (order.size() == static_cast<std::size_t>(dag.num_operations)) return order;
  const auto stuck = std::find_if(waits_for.begin(), waits_for.end(), [](int n) { return n > 0; });
  return InvalidInput(
      fmt::format("the graph has a cycle: operation {} waits, in the end, for itself or for one "
                  "that does",
                  stuck - waits_for.begin()));
}

CostTable TableOf(const perseus_dag& dag, int curve) {
  CostTable table;
  const int begin = dag.first_option[curve];
  for (int k = begin; k < dag.first_option[curve + 1]; ++k) {
    CostOption option;
    option.knob = k - begin;
    option.time_seconds = dag.option_time[k];
    option.energy_joules = dag.option_cost[k];
    table.all_options.push_back(option);
  }
  std::vector<CostOption> sorted = table.all_options;
  std::stable_sort(sorted.begin(), sorted.end(), [](const CostOption& a, const CostOption& b) {
    return a.time_seconds != b.time_seconds ? a.time_seconds < b.time_seconds
                                            : a.energy_joules < b.energy_joules;
  });
  for (const CostOption& option : sorted) {
    if (table.options.empty() || option.energy_joules < table.options.back().energy_joules) {
      table.options.push_back(option);
    }
  }
  table.dominated = static_cast<int>(table.all_options.size() - table.options.size());
  table.baseline = table.options.front();
  return table;
}

// The precedences in the order of PipelineDag, one for each pair.
void AddPrecedences(const perseus_dag& dag, const std::vector<int>& computation_of,
                    PipelineDag* out) {
  for (std::size_t e = 0; e < dag.num_precedences; ++e) {
    out->precedences.push_back({computation_of[dag.from[e]], computation_of[dag.to[e]],
                                dag.delay == nullptr ? 0 : dag.delay[e]});
  }
  std::sort(out->precedences.begin(), out->precedences.end(),
            [](const Precedence& a, const Precedence& b) {
              if (a.to != b.to) return a.to < b.to;
              return a.from != b.from ? a.from < b.from : a.delay_seconds > b.delay_seconds;
            });
  const auto same = [](const Precedence& a, const Precedence& b) {
    return a.to == b.to && a.from == b.from;
  };
  out->precedences.erase(std::unique(out->precedences.begin(), out->precedences.end(), same),
                         out->precedences.end());
  out->first_precedence.assign(out->computations.size() + 1, 0);
  for (const Precedence& p : out->precedences) ++out->first_precedence[p.to + 1];
  for (std::size_t i = 0; i < out->computations.size(); ++i) {
    out->first_precedence[i + 1] += out->first_precedence[i];
  }
}

// Adds ranks. Without given ones, a computation goes on that of the first that it waits for and
// nothing else follows yet: the search looks at neighbours on a rank together.
void AddRanks(const perseus_dag& dag, PipelineDag* out) {
  std::vector<bool> followed(out->computations.size(), false);
  if (dag.rank != nullptr) {
    out->rank_order.resize(*std::max_element(dag.rank, dag.rank + dag.num_operations) + 1);
  }
  for (int i = 0; i < out->size(); ++i) {
    int rank = dag.rank == nullptr ? -1 : dag.rank[out->computations[i].id.microbatch];
    for (int k = out->first_precedence[i]; rank < 0 && k < out->first_precedence[i + 1]; ++k) {
      const int before = out->precedences[k].from;
      if (followed[before]) continue;
      followed[before] = true;
      rank = out->computations[before].rank;
    }
    if (rank < 0) {
      rank = static_cast<int>(out->rank_order.size());
      out->rank_order.emplace_back();
    }
    out->computations[i].rank = rank;
    out->computations[i].position = static_cast<int>(out->rank_order[rank].size());
    out->rank_order[rank].push_back(i);
  }
  out->num_ranks = static_cast<int>(out->rank_order.size());
}

}  // namespace

// Errors: missing arrays, sizes and indices out of range, numbers that are not finite or negative
// times, a cycle.
Result<DagPipeline> MakeDagPipeline(const perseus_dag& dag) {
  if (auto good = CheckDag(dag); !good) return tl::unexpected(good.error());
  const Result<std::vector<int>> order = TopologicalOrder(dag, SuccessorsOf(dag));
  if (!order) return tl::unexpected(order.error());

  DagPipeline made;
  CostedPipeline& costs = made.pipeline;
  std::size_t most_options = 0;
  // The solver's numbers are scaled to what is used, so nothing else may be there.
  std::vector<int> table_of(dag.num_curves, -1);
  for (int i = 0; i < dag.num_operations; ++i) {
    const int curve = dag.curve_of[i];
    if (table_of[curve] >= 0) continue;
    table_of[curve] = static_cast<int>(costs.tables.size());
    costs.tables.push_back(TableOf(dag, curve));
    most_options = std::max(most_options, costs.tables.back().all_options.size());
  }
  for (std::size_t k = 0; k < most_options; ++k) {
    costs.knobs.push_back({.label = fmt::format("{}", k), .number = static_cast<double>(k)});
  }
  costs.knobs_are_numbers = false;

  PipelineDag& out = costs.dag;
  out.num_stages = 1;
  out.num_microbatches = dag.num_operations;
  out.schedule_name = "graph";
  made.computation_of.resize(dag.num_operations);
  for (int i = 0; i < dag.num_operations; ++i) {
    const int operation = (*order)[i];
    made.computation_of[operation] = i;
    Computation computation;
    computation.id.microbatch = operation;
    out.computations.push_back(computation);
    out.start_delay_seconds.push_back(dag.begin == nullptr ? 0 : dag.begin[operation]);
    costs.table_of.push_back(table_of[dag.curve_of[operation]]);
  }
  AddPrecedences(dag, made.computation_of, &out);
  AddRanks(dag, &out);
  costs.rank_blocking_power_watts.assign(out.num_ranks, 0);
  return made;
}

}  // namespace perseus::planner_c

// NOLINTNEXTLINE(readability-identifier-naming): a name of C.
struct perseus_dag_solution {
  perseus::Planner planner;
  perseus::planner_c::FrontierColumns frontier;
  std::vector<int> computation_of;  // [operation]
};

namespace perseus::planner_c {
namespace {

// Whether the planner may decide how coarse the slopes of a large graph are: it scales them by the
// mean power, which must be one.
bool HasPower(const CostedPipeline& pipeline) {
  double cost = 0;
  double time = 0;
  for (const int table : pipeline.table_of) {
    cost += pipeline.tables[table].baseline.energy_joules;
    time += pipeline.tables[table].baseline.time_seconds;
  }
  return cost > 0 && time > 0 && std::isfinite(cost / time);
}

Result<std::unique_ptr<perseus_dag_solution>> SolveDag(const perseus_dag& dag,
                                                       const Progress& progress) {
  Result<DagPipeline> made = MakeDagPipeline(dag);
  if (!made) return tl::unexpected(made.error());
  PlannerOptions options;
  options.costs_are_energies = false;
  options.slope_quantum_watts = HasPower(made->pipeline) ? std::nullopt : std::optional(0.0);
  options.progress = ToldAs(progress);
  Result<Planner> planner = Planner::Create(std::move(made->pipeline), options);
  if (!planner && planner.error().code == ErrorCode::kOverflow) {
    return MakeError(ErrorCode::kOverflow, "the graph is too large: " + planner.error().message);
  }
  if (!planner) return tl::unexpected(planner.error());
  FrontierColumns frontier(*planner);
  return std::make_unique<perseus_dag_solution>(perseus_dag_solution{
      *std::move(planner), std::move(frontier), std::move(made->computation_of)});
}

Result<Plan> Choose(const perseus_dag_solution& solution, double deadline, double effort,
                    const Progress& progress) {
  // Later than T* nothing is saved, however late.
  const bool any_time = std::isinf(deadline) && deadline > 0;
  const double asked = any_time ? solution.frontier.scalars.tstar_seconds : deadline;
  const Result<double> time = solution.planner.TargetSeconds({PlanTarget::Kind::kSeconds, asked});
  if (!time) {
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("no choice of options ends by {}: the fastest takes {}", deadline,
                                 solution.frontier.scalars.fastest_seconds));
  }
  const ProgressFunction caller = ToldAs(progress);
  plan::Told told(caller);
  Result<Plan> plan =
      solution.planner.PlanFor(*time, {.effort = effort, .progress = told.Function()});
  if (told.stopped())
    return MakeError(ErrorCode::kCancelled, "the search for options was cancelled");
  return plan;
}

}  // namespace
}  // namespace perseus::planner_c

perseus_status perseus_dag_solve(const perseus_dag* dag, perseus_planner_progress progress,
                                 void* user, perseus_dag_solution** solution, char** message) {
  constexpr const char* kMissing = "there is no place for the solution";
  return pc::GiveNew(&dag, kMissing, solution, message, [&](const perseus_dag* given) {
    return pc::Then(perseus::c_boundary::CopyIn("perseus_dag", given),
                    [&](const perseus_dag& known) {
                      return pc::SolveDag(known, {progress, user});
                    });
  });
}

void perseus_dag_free(perseus_dag_solution* solution) { delete solution; }

perseus_status perseus_dag_frontier(const perseus_dag_solution* solution,
                                    perseus_frontier* frontier, char** message) {
  return pc::Guarded(message, [&] {
    if (solution == nullptr) return pc::FailInvalid("there is no solution", message);
    return pc::Give("perseus_frontier", solution->frontier.Frontier(), frontier, message);
  });
}

perseus_status perseus_dag_choose(const perseus_dag_solution* solution, double deadline,
                                  double effort, perseus_planner_progress progress, void* user,
                                  int32_t* options, perseus_dag_choice* choice, char** message) {
  return pc::Guarded(message, [&] {
    if (solution == nullptr || options == nullptr) {
      return pc::FailInvalid("there is no solution, or no place for the options", message);
    }
    const auto plan = pc::Choose(*solution, deadline, effort, {progress, user});
    if (!plan) return pc::Fail(plan.error(), message);
    if (choice != nullptr) {
      perseus_dag_choice known = {};
      known.time = plan->iteration_time_seconds;
      known.cost = plan->energy_joules;
      known.lower_bound = plan->lower_bound_joules;
      const auto given = pc::Give("perseus_dag_choice", known, choice, message);
      if (given != PERSEUS_OK) return given;
    }
    for (std::size_t i = 0; i < solution->computation_of.size(); ++i) {
      options[i] = plan->options[solution->computation_of[i]].knob;
    }
    return PERSEUS_OK;
  });
}
