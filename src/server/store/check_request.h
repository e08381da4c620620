// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_STORE_CHECK_REQUEST_H_
#define PERSEUS_SERVER_STORE_CHECK_REQUEST_H_

#include "perseus/result.h"
#include "server/store/backend.h"
#include "server/store/tables.h"

namespace perseus::store {

// Checks whether a request can be written at all. kInvalidInput: it has no facts, is about several
// jobs, expects a revision of a job that it creates, or has text that the database cannot store.
Result<void> CheckRequest(const Backend& backend, const Request& request);

}  // namespace perseus::store

#endif  // PERSEUS_SERVER_STORE_CHECK_REQUEST_H_
