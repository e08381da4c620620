// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_FORMATS_FIGURES_JSON_H_
#define PERSEUS_FORMATS_FIGURES_JSON_H_

#include <fmt/format.h>

#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "common/tree_reader.h"
#include "model/plan_figures.h"

namespace perseus::formats {

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
        figure.promised ? object.Get(figure.name) : object.Find(figure.name);
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

}  // namespace perseus::formats

#endif  // PERSEUS_FORMATS_FIGURES_JSON_H_
