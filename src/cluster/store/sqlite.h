// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_STORE_SQLITE_H_
#define PERSEUS_STORE_SQLITE_H_

#include <memory>
#include <string>

#include "perseus/result.h"
#include "store/backend.h"

namespace perseus::store {

// A store in one file, which one process owns. Errors: kInvalidInput for a name
// that cannot be one, kIo for a file that is in use, cannot be opened, or is
// another program's; such a file is left as it is.
Result<std::shared_ptr<const Backend>> OpenSqlite(const std::string& file);

}  // namespace perseus::store

#endif  // PERSEUS_STORE_SQLITE_H_
