// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_STORE_SQLITE_H_
#define PERSEUS_SERVER_STORE_SQLITE_H_

#include <memory>
#include <string>

#include "perseus/result.h"
#include "server/store/backend.h"

namespace perseus::store {

// A store in one file, which one process owns. kInvalidInput: the name cannot be a file's. kIo: the
// file is in use, cannot be opened, or belongs to another program; it is then left unchanged.
Result<std::shared_ptr<const Backend>> OpenSqlite(const std::string& file);
// The same errors, as far as they show without opening the database or making a file.
Result<void> CheckSqliteFile(const std::string& file);

}  // namespace perseus::store

#endif  // PERSEUS_SERVER_STORE_SQLITE_H_
