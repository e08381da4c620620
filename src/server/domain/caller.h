// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DOMAIN_CALLER_H_
#define PERSEUS_SERVER_DOMAIN_CALLER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace perseus::server {

// Who asks for a change.
struct Caller {
  std::string token_name = {};                   // Empty: no token was asked for.
  std::string peer = {};                         // The address.
  std::optional<std::int64_t> if_revision = {};  // Only if the job still has this revision.
  // Whether somebody still waits for the answer. Empty: always. A change that nobody waits for any
  // more is not made: its client may have asked another server since.
  std::function<bool()> is_wanted = {};
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DOMAIN_CALLER_H_
