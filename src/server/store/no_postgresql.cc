// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// In the place of postgresql.cc in a program that is built with -DPERSEUS_POSTGRESQL=OFF.

#include <memory>
#include <string>

#include "server/store/backend.h"

namespace perseus::store {

Result<std::shared_ptr<const Backend>> OpenPostgresql(const std::string& /*uri*/) {
  return InvalidInput(
      "this perseus was built without PostgreSQL, as that of the Python wheel is; write "
      "sqlite:FILE, or install perseus from source (docs/how-to/install.md)");
}

}  // namespace perseus::store
