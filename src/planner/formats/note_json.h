// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_FORMATS_NOTE_JSON_H_
#define PERSEUS_FORMATS_NOTE_JSON_H_

#include <string>
#include <vector>

#include "perseus/note.h"

namespace perseus::formats {

// {"severity": ..., "text": ..., "source": ..., "line": ..., "column": ...}, on one line; the last
// three where they are known. Of the file its base name: the same on every machine.
std::string NoteJson(const Note& note);

// All of them as one array, on one line.
std::string NotesJson(const std::vector<Note>& notes);

}  // namespace perseus::formats

#endif  // PERSEUS_FORMATS_NOTE_JSON_H_
