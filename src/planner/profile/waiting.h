// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PROFILE_WAITING_H_
#define PERSEUS_PROFILE_WAITING_H_

#include <string_view>
#include <vector>

#include "common/csv_records.h"
#include "perseus/profile.h"
#include "profile/rows.h"

namespace perseus::profile {

// Profile::waiting from the rows `blocking` of a text. Errors: a row twice, a stage without a
// computation, a label that only some rows have.
Parsed<std::vector<WaitingPower>> AssembleWaiting(std::string_view text, const Rows& rows,
                                                  int num_stages);

}  // namespace perseus::profile

#endif  // PERSEUS_PROFILE_WAITING_H_
