// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_DEVICE_ZEUSD_UNIX_HTTP_H_
#define PERSEUS_DEVICE_ZEUSD_UNIX_HTTP_H_

#include <string>

#include "perseus/result.h"

namespace perseus::device {

struct HttpAnswer {
  int status = 0;
  std::string body;
};

// One request to a server behind a Unix socket, on a connection of its own, and
// in HTTP/1.0: so the answer ends with the connection and needs no more of a
// parser than this. `method_and_target`: "GET /discover". `bearer` may be empty. An
// answer of more than 64 KiB, or one that is not complete `deadline_seconds` after
// the call, is an error (kIo; kDenied: no permission for the socket). Thread-safe.
Result<HttpAnswer> AskUnixHttp(const std::string& socket_path, const std::string& method_and_target,
                               const std::string& bearer, double deadline_seconds);

}  // namespace perseus::device

#endif  // PERSEUS_DEVICE_ZEUSD_UNIX_HTTP_H_
