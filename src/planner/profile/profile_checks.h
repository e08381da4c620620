// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PROFILE_PROFILE_CHECKS_H_
#define PERSEUS_PROFILE_PROFILE_CHECKS_H_

#include <string>
#include <string_view>
#include <vector>

#include "perseus/note.h"
#include "perseus/profile.h"
#include "profile/rows.h"

namespace perseus::profile {

// "stage 0 forward at 1410".
std::string OptionName(const Rows& rows, const Row& row);

// What is odd or implausible in the rows of `text`, against plausible.h: units, the highest clock,
// spreads, cells that do not fit their curve. `tables` are made of the rows. `named_baseline`:
// whether a label is what savings are measured against. Without the source.
std::vector<Note> CheckProfile(std::string_view text, const Rows& rows,
                               const std::vector<OptionTable>& tables, bool named_baseline);

}  // namespace perseus::profile

#endif  // PERSEUS_PROFILE_PROFILE_CHECKS_H_
