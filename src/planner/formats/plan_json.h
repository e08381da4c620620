// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_FORMATS_PLAN_JSON_H_
#define PERSEUS_FORMATS_PLAN_JSON_H_

#include <fmt/format.h>

#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/tree.h"
#include "model/plan_figures.h"
#include "perseus/conditions.h"
#include "perseus/note.h"
#include "perseus/plan.h"
#include "perseus/plan_document.h"

namespace perseus::formats {

// {"severity": ..., "text": ..., "source": ..., "line": ..., "column": ...}, on one line; the last
// three where they are known. Of the file its base name: the same on every machine.
std::string NoteJson(const Note& note);

// All of them as one array, on one line.
std::string NotesJson(const std::vector<Note>& notes);

// The figures as members of a JSON object, without its braces.
template <typename Of>
std::string FigureMembers(const Of& of, std::string_view between = ", ") {
  std::string json;
  for (const model::Figure<Of>& figure : model::Figures<Of>()) {
    figure.On(of, [&](auto value) {
      fmt::format_to(std::back_inserter(json), "{}\"{}\": {}", json.empty() ? "" : between,
                     figure.name, value);
    });
  }
  return json;
}

// Its inverse. A missing figure is left as it is in `of`, if it may be missing.
template <typename Of>
void ReadFigures(const TreeCursor& object, Of* of) {
  for (const model::Figure<Of>& figure : model::Figures<Of>()) {
    const std::optional<TreeCursor> found =
        figure.required ? object.Get(figure.name) : object.Find(figure.name);
    if (!found) continue;
    figure.On(*of, [&]<typename Value>(Value& value) {
      if constexpr (std::is_same_v<Value, double>) {
        value = found->Number(figure.range);
      } else if constexpr (std::is_same_v<Value, int>) {
        value = found->Integer(0, std::numeric_limits<int>::max());
      } else {
        value = found->Bool();
      }
    });
  }
}

// Counts over all ranks of one pipeline.
struct KnobCounts {
  KnobChanges changes;
  PlanFigures figures;  // Those that are counts: whole numbers.
};

KnobCounts CountKnobs(const PlanDocument& plan);

// Writes and reads the members `conditions` and `expected` of plan.json, one line each
// (docs/reference/files.md). A missing member reads as its default.
std::string ConditionsJson(const Conditions& conditions);
std::string ExpectedJson(const ExpectedFigures& expected);
Conditions ReadConditions(const TreeCursor& object);
ExpectedFigures ReadExpected(const TreeCursor& object);

}  // namespace perseus::formats

#endif  // PERSEUS_FORMATS_PLAN_JSON_H_
