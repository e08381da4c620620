// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_NEAREST_NAME_H_
#define PERSEUS_COMMON_NEAREST_NAME_H_

#include <string>
#include <string_view>
#include <vector>

namespace perseus {

// Equal but for case and for '-', '_' and ' '.
bool SameName(std::string_view a, std::string_view b);

// What SameName compares: lower case, without '-', '_' and ' '.
std::string FoldedName(std::string_view name);

// The most alike of `names` by SameName's letters, "" if none is alike.
std::string NearestName(std::string_view given, const std::vector<std::string>& names);

// "; did you mean 'NAME'?" for the most alike of `names`, "" if none is alike.
std::string NearestHint(std::string_view given, const std::vector<std::string>& names);

// `text` in quotes for a message: shortened, and as Printable() shows it.
std::string Shown(std::string_view text);

}  // namespace perseus

#endif  // PERSEUS_COMMON_NEAREST_NAME_H_
