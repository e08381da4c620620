// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <utility>

#include "perseus/profile.h"

// A profile in memory goes through the reader of profiles, so that there is one set of rules.
namespace perseus {
inline namespace v0 {

ProfileBuilder& ProfileBuilder::Add(int stage, ComputationType type, double mhz, double seconds,
                                    double joules) {
  return Add(stage, type, fmt::format("{}", mhz), seconds, joules);
}

ProfileBuilder& ProfileBuilder::Add(int stage, ComputationType type, std::string knob,
                                    double seconds, double joules) {
  if (knob.find_first_of("\r\n") != std::string::npos && wrong_.empty()) {
    wrong_ = fmt::format("{}: a knob of {} of stage {} has a line's end in it", name_,
                         ComputationTypeName(type), stage);
  }
  std::string quoted = "\"";
  for (const char c : knob) quoted.append(c == '"' ? 2 : 1, c);
  fmt::format_to(std::back_inserter(rows_), "{},{},{}\",{},{}\n", stage, ComputationTypeName(type),
                 quoted, seconds, joules);
  return *this;
}

Result<Profile> ProfileBuilder::Build() const { return Build({}); }

Result<Profile> ProfileBuilder::Build(const ProfileOptions& options) const {
  if (!wrong_.empty()) return InvalidInput(wrong_);
  return ParseProfile("stage,instruction,frequency,time,energy\n" + rows_, name_, options);
}

}  // namespace v0
}  // namespace perseus
