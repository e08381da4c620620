// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DOMAIN_CALLER_H_
#define PERSEUS_SERVER_DOMAIN_CALLER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace perseus::server {

// The origin of a command, and the conditions on which it may change the job.
struct Caller {
  std::string token_name = {};                   // Empty: the server has no tokens.
  std::string peer = {};                         // "127.0.0.1:40112", "unix".
  std::optional<std::int64_t> if_revision = {};  // Change only if the job is at this revision.
  std::function<bool()> is_wanted = {};          // False: the client no longer waits. No change.
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DOMAIN_CALLER_H_
