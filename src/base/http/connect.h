// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_HTTP_CONNECT_H_
#define PERSEUS_HTTP_CONNECT_H_

#include "common/file_descriptor.h"
#include "http/client_wire.h"
#include "perseus/result.h"

namespace perseus::http {

// Opens a non-blocking socket to an endpoint, trying each address of its name in turn.
// A name is looked up by a thread that may outlive a deadline, as the system's resolver
// cannot be interrupted; numbers and Unix sockets need none.
Result<FileDescriptor> ConnectSocket(const Endpoint& endpoint, Deadline deadline,
                                     const CancelSignal& cancel);

}  // namespace perseus::http

#endif  // PERSEUS_HTTP_CONNECT_H_
