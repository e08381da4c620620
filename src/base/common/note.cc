// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/note.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "common/belief.h"
#include "common/nearest_name.h"
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

inline namespace v0 {
namespace {

constexpr EnumNames<Severity, 3> kSeverityNames = {{"odd", "implausible", "impossible"}};

}  // namespace

std::string_view SeverityName(Severity severity) { return kSeverityNames.Of(severity); }

std::optional<Severity> ParseSeverity(std::string_view name) { return kSeverityNames.Parse(name); }

std::string NoteText(const Note& note) {
  if (note.source.empty()) return note.text;
  if (note.line == 0) return fmt::format("{}: {}", note.source, note.text);
  return fmt::format("{}:{}:{}: {}", note.source, note.line, note.column, note.text);
}

Result<void> RefuseNotes(const std::vector<Note>& notes, bool strict) {
  const auto worst = std::max_element(notes.begin(), notes.end(), [](const Note& a, const Note& b) {
    return a.severity < b.severity;
  });
  if (worst == notes.end() || (!strict && worst->severity != Severity::kImpossible)) return {};
  const std::size_t others = notes.size() - 1;
  tl::unexpected<Error> refused = InvalidInput(
      NoteText(*worst) +
      (strict && others > 0 ? fmt::format(" (and {} more such)", others) : std::string()));
  refused.value().file = worst->source;
  refused.value().line = worst->line;
  refused.value().column = worst->column;
  return refused;
}

}  // namespace v0
}  // namespace perseus
