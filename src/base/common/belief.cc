// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "common/belief.h"

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <utility>

#include "perseus/result.h"

namespace perseus {

void AcceptImplausible(std::vector<Note>* notes) {
  for (Note& note : *notes) {
    if (note.severity == Severity::kImplausible) note.severity = Severity::kOdd;
  }
}

Result<void> RefuseUnbelievable(const std::vector<Note>& notes, std::string_view accepting) {
  std::vector<Note> worst;
  for (const Note& note : notes) {
    if (note.severity != Severity::kOdd) worst.push_back(note);
  }
  auto refused = RefuseNotes(worst, true);
  if (refused) return refused;
  std::string& text = refused.error().message;
  text +=
      fmt::format("{} Correct it, or {} if it is meant", text.ends_with('?') ? "" : ".", accepting);
  return refused;
}

}  // namespace perseus
