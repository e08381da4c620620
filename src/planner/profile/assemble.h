// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PROFILE_ASSEMBLE_H_
#define PERSEUS_PROFILE_ASSEMBLE_H_

#include <string_view>

#include "perseus/profile.h"
#include "profile/rows.h"

namespace perseus::profile {

// Fills the tables of a profile from its rows: checks what concerns several
// rows (duplicates, ranks, stages, instructions) and aggregates ranks. `text`
// is that of the rows, for positions; `baseline` as in ProfileOptions.
Parsed<Profile> AssembleProfile(std::string_view text, Rows rows, std::string_view baseline);

}  // namespace perseus::profile

#endif  // PERSEUS_PROFILE_ASSEMBLE_H_
