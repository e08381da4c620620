// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_BELIEF_H_
#define PERSEUS_COMMON_BELIEF_H_

#include <algorithm>
#include <string_view>
#include <vector>

#include "perseus/note.h"
#include "perseus/result.h"

namespace perseus {

// Stands where figures would: what follows from a wrong unit is no result.
inline constexpr std::string_view kNotBelievable = "These figures cannot be believed";
inline constexpr std::string_view kCorrectFirst = "correct first what the warning above names";

// Whether figures of what these notes are about may be shown as a result.
inline bool AreBelievable(const std::vector<Note>& notes) {
  return std::none_of(notes.begin(), notes.end(),
                      [](const Note& note) { return note.severity != Severity::kOdd; });
}

// The user has said that all of it is meant: what is implausible counts as odd.
void AcceptImplausible(std::vector<Note>* notes);

// An error if figures of what these notes are about could not be believed. `accepting` is how the
// user says that they are meant: "give --accept-implausible".
Result<void> RefuseUnbelievable(const std::vector<Note>& notes, std::string_view accepting);

}  // namespace perseus

#endif  // PERSEUS_COMMON_BELIEF_H_
