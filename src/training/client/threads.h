// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLIENT_THREADS_H_
#define PERSEUS_CLIENT_THREADS_H_

#include "client/shared_state.h"
#include "http/client.h"

namespace perseus::client {

// The background threads of a client. Each runs until the client ends; what they are given must
// outlive them. The first sets clocks, and in the end gives them back. The second gets plans from
// the server, the third reports to it.
void RunClockThread(SharedState* state);
void RunPlanPoller(SharedState* state, http::Client* http);
void RunReporter(SharedState* state, http::Client* http);

}  // namespace perseus::client

#endif  // PERSEUS_CLIENT_THREADS_H_
