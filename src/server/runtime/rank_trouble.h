// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_RUNTIME_RANK_TROUBLE_H_
#define PERSEUS_SERVER_RUNTIME_RANK_TROUBLE_H_

#include <string>

#include "server/detect/reports.h"
#include "server/runtime/job_service.h"

namespace perseus::server {

// The trouble of the rank whose client has reported, in a sentence for this client; "": none.
// Missing ranks are told to the first rank alone. Locks one job after the other.
std::string TroubleOf(const JobService& service, const ManagedJob& job, const ClientReport& client);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_RUNTIME_RANK_TROUBLE_H_
