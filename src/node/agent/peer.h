// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_AGENT_PEER_H_
#define PERSEUS_AGENT_PEER_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "common/file_descriptor.h"
#include "common/unix_socket.h"
#include "perseus/result.h"

// Who is at the other end of a Unix socket, as the kernel says it.
namespace perseus::agent {

struct Peer : UnixPeer {
  FileDescriptor pidfd;  // Readable once the process has ended.
};

// Errors (kIo): the process is gone already, or cannot be seen from here (it
// runs in a PID namespace beside the agent's).
Result<Peer> PeerOf(int socket);

// Who may use the agent. Root and the agent's own user always may, and always
// may operate it.
struct AccessList {
  std::vector<uid_t> users;
  std::vector<gid_t> groups;
  std::vector<uid_t> operators;  // May also give back the clocks of others.

  bool MayUse(const UnixPeer& peer) const;
  bool MayOperate(const UnixPeer& peer) const;
};

// Of a name or a number, asking the system's name services: at start only, as
// those may take seconds. Errors: kInvalidInput.
Result<uid_t> UserId(const std::string& name_or_number);
Result<gid_t> GroupId(const std::string& name_or_number);

// "alice (uid 1000)", from /etc/passwd alone: no network is asked. "uid 1000"
// where the user is not there.
std::string DescribeUser(uid_t uid);

}  // namespace perseus::agent

#endif  // PERSEUS_AGENT_PEER_H_
