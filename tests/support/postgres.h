// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_SUPPORT_POSTGRES_H_
#define PERSEUS_TESTS_SUPPORT_POSTGRES_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

namespace perseus {

// A folder that its server's user may write in, and that goes away with the object.
class ServerFolder {
 public:
  ServerFolder();
  ~ServerFolder();
  ServerFolder(const ServerFolder&) = delete;
  ServerFolder& operator=(const ServerFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A server of PostgreSQL for one test: in a temporary folder, on a Unix socket
// only, as the user postgres where this is the superuser. All failures are thrown.
// The files of a killed server were flushed to the operating system, so that it need not be
// flushed to the disk as well (`durable`: it is).
class PostgresServer {
 public:
  // Why there is none on this machine; empty: there is one.
  static std::string WhyMissing();

  explicit PostgresServer(bool durable = false);
  // A standby that `primary` waits for with every commit.
  static std::unique_ptr<PostgresServer> MakeStandby(const PostgresServer& primary);
  ~PostgresServer();
  PostgresServer(const PostgresServer&) = delete;
  PostgresServer& operator=(const PostgresServer&) = delete;

  // "postgresql://ROLE@/DATABASE?host=SOCKETS&port=5432"; more options go behind an &.
  std::string Uri(const std::string& database = "perseus",
                  const std::string& role = "postgres") const;
  const std::string& sockets() const { return folder_.path(); }
  // Runs SQL as its superuser.
  void Run(const std::string& sql, const std::string& database = "perseus") const;
  // The first cell of the answer.
  std::string Ask(const std::string& sql, const std::string& database = "perseus") const;

  void Start();
  void Kill();                    // kill -9 of all of it.
  void KillABackend();            // kill -9 of one that serves somebody: all start anew.
  void Restart();                 // In order; connections are closed at once.
  void Signal(int signal) const;  // To all of it: SIGSTOP, SIGCONT.

  // A standby becomes the primary.
  void Promote() const;

 private:
  struct Empty {};
  explicit PostgresServer(Empty /*tag*/) : durable_(false) {}
  std::vector<pid_t> Processes() const;

  ServerFolder folder_;
  const bool durable_;
  pid_t postmaster_ = -1;
};

// PgBouncer in transaction mode before a PostgresServer.
class PgBouncer {
 public:
  static std::string WhyMissing();

  explicit PgBouncer(const PostgresServer& server, int pool_size = 4);
  ~PgBouncer();
  PgBouncer(const PgBouncer&) = delete;
  PgBouncer& operator=(const PgBouncer&) = delete;

  std::string Uri(const std::string& database = "perseus") const;

 private:
  ServerFolder folder_;
  pid_t process_ = -1;
};

}  // namespace perseus

#endif  // PERSEUS_TESTS_SUPPORT_POSTGRES_H_
