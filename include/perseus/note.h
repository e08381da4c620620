// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_NOTE_H_
#define PERSEUS_NOTE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perseus/export.h"
#include "perseus/result.h"

PERSEUS_EXPORT_BEGIN
namespace perseus {

// How much is wrong with what was given.
enum class Severity : std::uint8_t {
  kOdd,          // Valid, and perhaps not what was meant.
  kImplausible,  // No GPU and no job is like that: a wrong unit, most likely.
  kImpossible,   // Nothing can be computed from it: refused.
};
std::string_view SeverityName(Severity severity);  // "odd", "implausible", "impossible"
std::optional<Severity> ParseSeverity(std::string_view name);

// What a check of a profile or of a job has found.
struct Note {
  Severity severity = Severity::kOdd;
  std::string text;    // One sentence, without a full stop.
  std::string source;  // The file that it is about, as given; empty: none.
  int line = 0;        // 0, and `column` too: the file as a whole.
  int column = 0;

  friend bool operator==(const Note&, const Note&) = default;
};

// "profile.csv:12:16: the sentence", or without what is not known.
std::string NoteText(const Note& note);

// An error where a note is impossible, and where `strict`, of any note: that of the worst, the
// first of them.
Result<void> RefuseNotes(const std::vector<Note>& notes, bool strict);

}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_NOTE_H_
