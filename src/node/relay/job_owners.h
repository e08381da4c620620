// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_RELAY_JOB_OWNERS_H_
#define PERSEUS_RELAY_JOB_OWNERS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/mutex.h"

namespace perseus::relay {

// The local user to whom a job belongs: the first who created it through this relay or named it in
// a request. The relay must know this because the server cannot distinguish its users: all of them
// use the relay's token. Thread-safe.
class JobOwners {
 public:
  explicit JobOwners(std::size_t most_of_a_user = 256) : most_of_a_user_(most_of_a_user) {}

  // Whether the user may name the job in requests. If it had no owner, it belongs to this user from
  // now on. Root always may. `user` none: the user is not known, and may not.
  bool MayUse(const std::string& job, std::optional<std::uint32_t> user);

 private:
  struct Owner {
    std::uint32_t user = 0;
    std::uint64_t used = 0;  // Value of `uses_` at its last use.
  };
  void ForgetOldest(std::uint32_t user) PERSEUS_REQUIRES(mutex_);

  const std::size_t most_of_a_user_;
  Mutex mutex_;
  std::uint64_t uses_ PERSEUS_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Owner> owners_ PERSEUS_GUARDED_BY(mutex_);          // By job.
  std::map<std::uint32_t, std::size_t> counts_ PERSEUS_GUARDED_BY(mutex_);  // Of jobs, by user.
};

}  // namespace perseus::relay

#endif  // PERSEUS_RELAY_JOB_OWNERS_H_
