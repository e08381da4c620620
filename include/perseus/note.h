// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_NOTE_H_
#define PERSEUS_NOTE_H_

// Link perseus::model (pkg-config: perseus-model).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perseus/export.h"
#include "perseus/result.h"

PERSEUS_EXPORT_BEGIN
namespace perseus {
inline namespace v0 {

// How much is wrong with what was given.
enum class Severity : std::uint8_t {
  kOdd,          // Valid, and perhaps not what was meant.
  kImplausible,  // No GPU or job is like that. Most likely a unit is wrong.
  kImpossible,   // Nothing can be computed from it, so it is refused.
};
std::string_view SeverityName(Severity severity);  // "odd", "implausible", "impossible"
std::optional<Severity> ParseSeverity(std::string_view name);

// A finding of a check of a profile or of a job.
struct Note {
  Severity severity = Severity::kOdd;
  std::string text = {};    // One sentence, without a full stop.
  std::string source = {};  // The file that it is about, as given; empty if none.
  int line = 0;             // From 1, as is `column`; both 0 for the file as a whole.
  int column = 0;

  friend bool operator==(const Note&, const Note&) = default;
};

// "profile.csv:12:16: the sentence", or without what is not known.
std::string NoteText(const Note& note);

// An error if a note is impossible; if `strict`, an error if there is any note. It is that of the
// worst note, and of the first of several.
Result<void> RefuseNotes(const std::vector<Note>& notes, bool strict);

}  // namespace v0
}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_NOTE_H_
