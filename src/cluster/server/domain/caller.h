// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DOMAIN_CALLER_H_
#define PERSEUS_SERVER_DOMAIN_CALLER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace perseus::server {

// Who asks for a change, and under which condition.
struct Caller {
  std::string token_name = {};                   // Empty: the server has no tokens.
  std::string peer = {};                         // "127.0.0.1:40112", "unix".
  std::optional<std::int64_t> if_revision = {};  // Only if the job is still at this revision.
  std::function<bool()> is_wanted = {};          // False: nobody waits for the answer any more.
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DOMAIN_CALLER_H_
