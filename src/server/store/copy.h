// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_STORE_COPY_H_
#define PERSEUS_SERVER_STORE_COPY_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "perseus/result.h"

namespace perseus::store {

struct CopiedTable {
  std::string name;
  std::int64_t rows = 0;
};

// The result of CopyStore().
struct StoreCopy {
  std::string from;  // For messages: without a password.
  std::string to;
  std::vector<CopiedTable> tables;
  std::vector<std::string> left_out;  // Tables of others in the source.
};

// Copies all tables of the store `from` into the empty store `to`; both are as Store::Open() takes
// them. All is written in one transaction, read back and compared with the source before it is
// committed: on an error, `to` holds nothing. The source is not changed; one of an older version is
// migrated on the way. `on_table` gets the name of each table before it is copied.
// Errors: no store at `from`; `to` holds any row, or another program's tables; both name
// one store; a server uses one of them; and those of Store::Open().
Result<StoreCopy> CopyStore(const std::string& from, const std::string& to,
                            const std::function<void(const std::string& table)>& on_table = {});

}  // namespace perseus::store

#endif  // PERSEUS_SERVER_STORE_COPY_H_
