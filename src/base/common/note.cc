// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/note.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/enum_names.h"

namespace perseus {
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
