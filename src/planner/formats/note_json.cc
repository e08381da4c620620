// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "formats/note_json.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/json_text.h"

namespace perseus::formats {
namespace {

std::string Quoted(const std::string& text) { return FormatCompact(nlohmann::ordered_json(text)); }

}  // namespace

std::string NoteJson(const Note& note) {
  std::string json = fmt::format("{{\"severity\": \"{}\", \"text\": {}",
                                 SeverityName(note.severity), Quoted(note.text));
  if (!note.source.empty()) {
    json += fmt::format(", \"source\": {}",
                        Quoted(std::filesystem::path(note.source).filename().string()));
  }
  if (note.line > 0) {
    json += fmt::format(", \"line\": {}, \"column\": {}", note.line, note.column);
  }
  return json + "}";
}

std::string NotesJson(const std::vector<Note>& notes) {
  std::string json = "[";
  for (const Note& note : notes) json += (json.size() > 1 ? ", " : "") + NoteJson(note);
  return json + "]";
}

}  // namespace perseus::formats
