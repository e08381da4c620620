// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PROFILE_ERROR_SOURCES_H_
#define PERSEUS_PROFILE_ERROR_SOURCES_H_

#include <string>
#include <string_view>
#include <vector>

#include "perseus/profile.h"
#include "profile/rows.h"

namespace perseus::profile {

// The cells of the column `error_sources`: "0.001 0.0008 -0.0002|0.004 0.003|0.0005". Three lists,
// of the time, the power and the blocking power: the standard error first, then the sources.
std::string FormatErrorSources(const OptionErrors& errors);

// Those of all rows. Empty where the profile has no such column, where a cell of it is empty, and
// where rows tell GPUs apart.
Parsed<std::vector<OptionErrors>> ReadErrorSources(std::string_view text, const Rows& rows);

}  // namespace perseus::profile

#endif  // PERSEUS_PROFILE_ERROR_SOURCES_H_
