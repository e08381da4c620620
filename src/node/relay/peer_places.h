// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_RELAY_PEER_PLACES_H_
#define PERSEUS_RELAY_PEER_PLACES_H_

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>

#include "common/mutex.h"
#include "common/unix_socket.h"
#include "perseus/result.h"

namespace perseus::relay {

// Decides who may connect, and limits the connections of each user, so that no user can use up the
// places of the others. Thread-safe.
class PeerPlaces {
 public:
  // Null: only root and the relay's own user may connect.
  using MayUse = std::function<bool(const UnixPeer&)>;

  PeerPlaces(MayUse may_use, int most_of_a_user);

  // For http::ServerOptions::admit_peer. The place is free again when the last copy of the returned
  // pointer is destroyed, which may be after this object.
  Result<std::shared_ptr<void>> Admit(int socket);

 private:
  struct Taken {
    Mutex mutex;
    std::map<uid_t, int> connections PERSEUS_GUARDED_BY(mutex);
  };

  const MayUse may_use_;
  const int most_of_a_user_;
  const std::shared_ptr<Taken> taken_ = std::make_shared<Taken>();
};

}  // namespace perseus::relay

#endif  // PERSEUS_RELAY_PEER_PLACES_H_
