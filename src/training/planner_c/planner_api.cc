// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "perseus/plan_file.h"
#include "perseus/planner_c.h"
#include "perseus/profile.h"
#include "planner_c/boundary.h"
#include "planner_c/handles.h"
#include "planner_c/planner_input.h"
#include "planner_c/profile_text.h"

namespace perseus::planner_c {
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
  scalars.economic_seconds = frontier.economic_seconds;
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
  return pc::Guarded(message, [&] {
    if (planner == nullptr) return pc::FailInvalid("there is no place for the planner", message);
    *planner = nullptr;
    const auto known = perseus::c_boundary::CopyIn("perseus_planner_input", input);
    if (!known) return pc::Fail(known.error(), message);
    return pc::Give(pc::CreatePlanner(*known), planner, message);
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
  return pc::Guarded(message, [&] {
    if (text != nullptr) *text = nullptr;
    if (planner == nullptr || text == nullptr) {
      return pc::FailInvalid("there is no planner, or no place for the text", message);
    }
    *text = pc::NewText(perseus::FormatFrontierCsv(planner->job->planner.frontier()));
    return PERSEUS_OK;
  });
}

perseus_status perseus_planner_profile_csv(const perseus_planner* planner, char** text,
                                           char** message) {
  return pc::Guarded(message, [&] {
    if (text != nullptr) *text = nullptr;
    if (planner == nullptr || text == nullptr) {
      return pc::FailInvalid("there is no planner, or no place for the text", message);
    }
    const perseus::Result<std::string> profile = pc::ProfileTextOf(planner->job->job.profile);
    if (!profile) return pc::Fail(profile.error(), message);
    *text = pc::NewText(*profile);
    return PERSEUS_OK;
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
