// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_NEAREST_NAME_H_
#define PERSEUS_COMMON_NEAREST_NAME_H_

#include <string>
#include <string_view>
#include <vector>

namespace perseus {

// Whether the names are equal, ignoring case and the characters '-', '_' and ' '.
bool SameName(std::string_view a, std::string_view b);

// The form that SameName() compares: lower case, without '-', '_' and ' '.
std::string FoldedName(std::string_view name);

// The one of `names` that is most similar to `given` (compared as FoldedName); "" if none is
// similar.
std::string NearestName(std::string_view given, const std::vector<std::string>& names);

// "; did you mean 'NAME'?" with NearestName(); "" if no name is similar.
std::string NearestHint(std::string_view given, const std::vector<std::string>& names);

// `text` in quotes for a message: shortened, and as Printable() shows it.
std::string Shown(std::string_view text);

}  // namespace perseus

#endif  // PERSEUS_COMMON_NEAREST_NAME_H_
