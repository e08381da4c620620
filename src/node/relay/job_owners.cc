// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "relay/job_owners.h"

namespace perseus::relay {

bool JobOwners::MayUse(const std::string& job, std::optional<std::uint32_t> user) {
  if (!user) return false;
  const MutexLock lock(mutex_);
  const auto known = owners_.find(job);
  if (known != owners_.end()) {
    const bool is_owner = known->second.user == *user;
    if (is_owner) known->second.used = ++uses_;
    return is_owner || *user == 0;
  }
  // Of one user: his jobs are forgotten for his own, never those of others.
  if (counts_[*user] >= most_of_a_user_) ForgetOldest(*user);
  ++counts_[*user];
  owners_[job] = {*user, ++uses_};
  return true;
}

void JobOwners::ForgetOldest(std::uint32_t user) {
  auto oldest = owners_.end();
  for (auto each = owners_.begin(); each != owners_.end(); ++each) {
    if (each->second.user != user) continue;
    if (oldest == owners_.end() || each->second.used < oldest->second.used) oldest = each;
  }
  if (oldest == owners_.end()) return;
  owners_.erase(oldest);
  --counts_[user];
}

}  // namespace perseus::relay
