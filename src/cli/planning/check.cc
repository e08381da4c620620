// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/framework/table.h"
#include "cli/planning/job.h"
#include "cli/planning/summary.h"
#include "common/json_text.h"
#include "formats/plan_json.h"
#include "perseus/job.h"
#include "perseus/note.h"
#include "perseus/profile.h"

namespace perseus::cli {

void AddCheckCommand(CommandParser* parser, Invocation* invocation) {
  parser->AddCommand(
      "check",
      "Find wrong units and odd figures in a profile or a job, without planning.\n\nFinds, for "
      "example, times in milliseconds, energies in millijoules or of several GPUs, and clocks in "
      "GHz. Every other command prints the same notes before its figures. If you give a schedule, "
      "microbatches and blocking power (as options or in a job file), the job is checked as well "
      "as the profile. The exit code is 2 if something is implausible or cannot be read, and with "
      "--strict if anything is odd.",
      {{"check a profile", "perseus check profile.csv"},
       {"check a whole job", "perseus check job.toml"}});
  AddPipelineOptions(parser, &invocation->job,
                     "Data-parallel pipelines of the job (default 1). Only the job's total depends "
                     "on this number.");
  AddPlanOptions(parser, &invocation->job,
                 "How much work to search for a plan. This command ignores it.");
  AddConditionOptions(parser, &invocation->job);
  parser->SetGroup("Output");
  parser->AddFlag(&invocation->json, "--json", "Print one JSON document instead of text.");
}

namespace {

struct Checked {
  std::vector<Note> notes;
  std::vector<std::string> missing;  // Flags without which the profile alone is checked.
  bool has_job_file = false;
};

Result<Checked> Check(const JobFlags& flags, JobFile settings) {
  settings.strict = false;  // Everything is to be said, and then judged.
  Checked checked;
  checked.has_job_file = settings.places.contains("profile");
  if (settings.profile && !MissingFields(settings).empty()) {
    const Result<Profile> profile = ReadProfile(*settings.profile, ProfileOptionsOf(settings));
    if (!profile) return tl::unexpected(profile.error());
    for (const std::string_view key : MissingFields(settings, &*profile)) {
      checked.missing.emplace_back(FlagOfField(key));
    }
    checked.notes = profile->notes;
    if (!checked.missing.empty()) return checked;
  }
  Result<Job> job = LoadJob(flags, std::move(settings), "check");
  if (!job) return tl::unexpected(job.error());
  checked.notes = std::move(job->notes);
  return checked;
}

// An error as a note; the place that begins its sentence has members of its own.
Note ImpossibleNote(const Error& error) {
  Note note = {.severity = Severity::kImpossible, .text = error.message, .source = ""};
  if (error.line == 0) return note;
  note.source = error.file;
  note.line = error.line;
  note.column = error.column;
  const std::string place = fmt::format("{}:{}:{}: ", error.file, error.line, error.column);
  if (note.text.starts_with(place)) note.text.erase(0, place.size());
  return note;
}

std::string CheckText(const Checked& checked, const Style& style) {
  std::string out = FormatNotes(checked.notes, style);
  if (checked.notes.empty()) out = "Nothing is odd.\n";
  if (checked.missing.empty()) return out;
  return out +
         Wrap(fmt::format("Only the profile was checked; give {} (or {}) to check the job.",
                          fmt::join(checked.missing, ", "),
                          checked.has_job_file ? "complete the job file" : "a job file"),
              style.columns, 0) +
         "\n";
}

}  // namespace

Result<Printout> RunCheck(const Invocation& invocation, const Style& style) {
  Result<JobFile> settings = MergeSettings(invocation.job);
  const bool strict = settings && settings->strict.value_or(false);
  Result<Checked> checked = settings ? Check(invocation.job, *std::move(settings))
                                     : Result<Checked>(tl::unexpected(settings.error()));
  if (!checked) {
    if (checked.error().code != ErrorCode::kInvalidInput || !invocation.json) {
      return tl::unexpected(checked.error());
    }
    checked =
        Checked{.notes = {ImpossibleNote(checked.error())}, .missing = {}, .has_job_file = false};
  }
  const std::vector<Note>& notes = checked->notes;
  Printout printout;
  if (invocation.json) {
    nlohmann::ordered_json json = {{"schema_version", 1},
                                   {"checked", checked->missing.empty() ? "job" : "profile"}};
    json["notes"] = nlohmann::ordered_json::parse(formats::NotesJson(notes));
    printout.text = FormatIndented(json);
  } else {
    printout.text = CheckText(*checked, style);
  }
  printout.is_refusal = std::any_of(notes.begin(), notes.end(), [strict](const Note& note) {
    return strict || note.severity != Severity::kOdd;
  });
  return printout;
}

}  // namespace perseus::cli
