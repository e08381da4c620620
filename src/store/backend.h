// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_STORE_BACKEND_H_
#define PERSEUS_STORE_BACKEND_H_

#include <soci/soci.h>

#include <memory>
#include <string>

#include "common/file_descriptor.h"
#include "perseus/result.h"

// All that differs between databases. The SQL of the other files is what SQLite
// and PostgreSQL have in common: BIGINT, DOUBLE PRECISION, TEXT, ON CONFLICT.
namespace perseus::store {

// An open database, and what keeps other processes from it.
struct Database {
  std::string name;     // For messages: the file.
  FileDescriptor lock;  // Of FILE.lock; given back by the kernel, however we end.
  std::unique_ptr<soci::session> session;
};

// Opens what `spec` names, with durability and constraints switched on. Does
// not look at what is in it.
Result<Database> OpenDatabase(const std::string& spec);

// The sentence for what SOCI threw.
Error DatabaseError(const std::string& name, const std::exception& exception);

// Whether the tables refused what was written, and the database itself is well.
bool IsRefusedFact(const std::exception& exception);

}  // namespace perseus::store

#endif  // PERSEUS_STORE_BACKEND_H_
