// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "perseus/profile.h"
#include "profile/rows.h"

// A profile in memory goes through the reader of profiles, so that there is one set of rules.
namespace perseus {
namespace {

std::string QuotedCell(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

}  // namespace

inline namespace v0 {

ProfileBuilder& ProfileBuilder::Add(int stage, ComputationType type, double mhz, double seconds,
                                    double joules) {
  return Add(stage, type, fmt::format("{}", mhz), seconds, joules);
}

ProfileBuilder& ProfileBuilder::Add(int stage, ComputationType type, std::string_view knob,
                                    double seconds, double joules) {
  if (knob.find_first_of("\r\n") != std::string::npos && wrong_.empty()) {
    wrong_ = fmt::format("{}: a knob of {} of stage {} has a line's end in it", name_,
                         ComputationTypeName(type), stage);
  }
  fmt::format_to(std::back_inserter(rows_), "{},{},{},{},{}\n", stage, ComputationTypeName(type),
                 QuotedCell(knob), seconds, joules);
  return *this;
}

ProfileBuilder& ProfileBuilder::AddWaiting(std::optional<int> stage, double mhz, double watts) {
  fmt::format_to(std::back_inserter(rows_), "{},{},{},1,{}\n",
                 stage ? std::to_string(*stage) : std::string(), profile::kBlockingRow, mhz, watts);
  return *this;
}

Result<Profile> ProfileBuilder::Build() const { return Build({}); }

Result<Profile> ProfileBuilder::Build(const ProfileOptions& options) const {
  if (!wrong_.empty()) return InvalidInput(wrong_);
  return ParseProfile("stage,instruction,frequency,time,energy\n" + rows_, name_, options);
}

// A rank's energy is that of its GPUs together, and the checks are about one.
std::vector<Note> Profile::FindNotes() const {
  std::string text = "stage,instruction,frequency,time,energy,time_std,energy_std\n";
  const double gpus = std::max(tensor_parallel_ranks, 1);
  for (const OptionTable& table : tables) {
    for (const Option& option : table.options) {
      const Knob& knob = knobs[static_cast<std::size_t>(option.knob)];
      const std::string label =
          KnobsAreRanked() ? fmt::format("{}{}", knob.number, knobs_are_numbers ? "" : knob_unit)
                           : knob.label;
      fmt::format_to(std::back_inserter(text), "{},{},{},{},{},{},{}\n", table.stage,
                     ComputationTypeName(table.type), QuotedCell(label), option.time_seconds,
                     option.energy_joules / gpus, option.time_std_seconds,
                     option.energy_std_joules / gpus);
    }
  }
  const Result<Profile> read = ParseProfile(text, source);
  if (!read) return {};  // What is no profile is for Validate().
  std::vector<Note> found = read->notes;
  for (Note& note : found) note.line = note.column = 0;
  return found;
}

}  // namespace v0
}  // namespace perseus
