// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_AGENT_PEER_H_
#define PERSEUS_AGENT_PEER_H_

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "common/file_descriptor.h"
#include "common/unix_socket.h"
#include "perseus/result.h"

// The agent's socket, and the processes at its other end, as the kernel reports them.
namespace perseus::agent {

// A non-blocking listening socket in the file system. Its file is removed when it is destroyed.
// Every user may connect; the agent then checks the user and refuses with a sentence.
class ListeningSocket {
 public:
  // Makes the directory if it is missing. Replaces a socket on which no process listens. Errors
  // (kIo, kInvalidInput): another agent listens, no permission, the path is too long.
  static Result<ListeningSocket> Listen(const std::string& path);

  ListeningSocket(ListeningSocket&&) noexcept = default;
  ListeningSocket& operator=(ListeningSocket&&) = delete;
  ~ListeningSocket();

  int descriptor() const { return socket_.get(); }

 private:
  ListeningSocket(std::string path, FileDescriptor socket)
      : path_(std::move(path)), socket_(std::move(socket)) {}

  std::string path_;
  FileDescriptor socket_;
};

struct Peer : UnixPeer {
  FileDescriptor pidfd;  // Readable once the process has ended.
};

// kIo: the process has ended already, or is in a PID namespace that the agent cannot see.
Result<Peer> PeerOf(int socket);

// Users who may use the agent. Root and the agent's own user always may, and are always operators.
struct AccessList {
  std::vector<uid_t> users;
  std::vector<gid_t> groups;
  std::vector<uid_t> operators;  // These may also give back the clocks of others.

  bool MayUse(const UnixPeer& peer) const;
  bool MayOperate(const UnixPeer& peer) const;
};

// Looks up a user by name or number. Asks the system's name services, which may take seconds, so
// call it only at the start. Errors: kInvalidInput.
Result<uid_t> UserId(const std::string& name_or_number);
Result<gid_t> GroupId(const std::string& name_or_number);

// "alice (uid 1000)", or "uid 1000" if /etc/passwd does not have the user. Makes no network
// request.
std::string DescribeUser(uid_t uid);

}  // namespace perseus::agent

#endif  // PERSEUS_AGENT_PEER_H_
