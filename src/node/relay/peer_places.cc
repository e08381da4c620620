// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "relay/peer_places.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

namespace perseus::relay {

PeerPlaces::PeerPlaces(MayUse may_use, int most_of_a_user)
    : may_use_(std::move(may_use)), most_of_a_user_(most_of_a_user) {}

Result<std::shared_ptr<void>> PeerPlaces::Admit(int socket) {
  const auto peer = PeerOfUnixSocket(socket);
  if (!peer) {
    return MakeError(ErrorCode::kIo,
                     fmt::format("The relay cannot find out which process connected: {}.",
                                 SystemMessage(peer.error())));
  }
  const uid_t user = peer->uid;
  const bool is_allowed = may_use_ ? may_use_(*peer) : user == 0 || user == ::geteuid();
  if (!is_allowed) {
    return MakeError(ErrorCode::kDenied,
                     fmt::format("User {} may not use this relay; whoever runs it can allow that "
                                 "with --allow-user {} or --allow-group {}.",
                                 user, user, peer->gid));
  }
  const MutexLock lock(taken_->mutex);
  int& connections = taken_->connections[user];
  if (connections >= most_of_a_user_) {
    return MakeError(
        ErrorCode::kIo,
        fmt::format("User {} has {} connections already, which is the limit.", user, connections));
  }
  std::shared_ptr<void> place(this, [taken = taken_, user](void*) {
    const MutexLock guard(taken->mutex);
    const auto found = taken->connections.find(user);
    if (--found->second == 0) taken->connections.erase(found);
  });
  ++connections;
  return place;
}

}  // namespace perseus::relay
