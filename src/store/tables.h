// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_STORE_TABLES_H_
#define PERSEUS_STORE_TABLES_H_

#include <soci/soci.h>

#include <string>
#include <vector>

#include "perseus/result.h"
#include "store/facts.h"

// Facts in and out of the tables. Both throw what SOCI throws.
namespace perseus::store {

// Within a transaction that the caller began.
void WriteFact(soci::session& sql, const Fact& fact);

// All jobs by the time of their creation, or the one with this id. An error
// where a cell holds what no writer wrote.
Result<std::vector<StoredJob>> ReadJobs(soci::session& sql, const std::string& name,
                                        const std::string& id = "");

}  // namespace perseus::store

#endif  // PERSEUS_STORE_TABLES_H_
