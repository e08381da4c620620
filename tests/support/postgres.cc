// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "support/postgres.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace perseus {
namespace {

namespace fs = std::filesystem;

constexpr int kPort = 5432;  // Part of the socket's name only.
constexpr std::chrono::seconds kPatience{60};

// Of the newest version.
fs::path PostgresPrograms() {
  fs::path best;
  double best_version = 0;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/usr/lib/postgresql", ignored)) {
    const double version = std::atof(entry.path().filename().c_str());
    if (version > best_version && fs::exists(entry.path() / "bin" / "initdb")) {
      best = entry.path() / "bin";
      best_version = version;
    }
  }
  return best;
}

// PostgreSQL refuses to run as the superuser.
const passwd* ServerUser() {
  if (::geteuid() != 0) return nullptr;
  const passwd* user = ::getpwnam("postgres");
  return user != nullptr ? user : ::getpwnam("nobody");
}

// Dies with the thread that starts it.
pid_t Spawn(const std::vector<std::string>& arguments, const std::string& log) {
  const passwd* const user = ServerUser();
  const uid_t uid = user == nullptr ? 0 : user->pw_uid;
  const gid_t gid = user == nullptr ? 0 : user->pw_gid;
  std::vector<char*> words;
  for (const std::string& argument : arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child > 0) return child;
  const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  const int in = ::open("/dev/null", O_RDONLY);
  if (out < 0 || ::dup2(in, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(out, 2) < 0) ::_exit(126);
  ::setenv("LC_ALL", "C", 1);
  if (user != nullptr && (::setgid(gid) != 0 || ::setuid(uid) != 0)) ::_exit(126);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::execv(words.front(), words.data());
  ::_exit(127);
}

std::string Text(const std::string& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void RunProgram(const std::vector<std::string>& arguments, const std::string& log) {
  int status = 0;
  ::waitpid(Spawn(arguments, log), &status, 0);
  if (status != 0) throw std::runtime_error(arguments.front() + " failed: " + Text(log));
}

void WaitUntilItAnswers(const std::string& uri, pid_t process, const std::string& log) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (PQping(uri.c_str()) != PQPING_OK) {
    const bool is_dead = ::waitpid(process, nullptr, WNOHANG) == process;
    if (is_dead || std::chrono::steady_clock::now() > until) {
      throw std::runtime_error("the server did not start: " + Text(log));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

pid_t ParentOf(pid_t process) {
  const std::string stat = Text(fmt::format("/proc/{}/stat", process));
  const std::size_t end = stat.rfind(')');
  // After the name: state and parent.
  return end == std::string::npos ? -1 : std::atoi(stat.c_str() + std::min(end + 4, stat.size()));
}

std::vector<pid_t> ChildrenOf(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const pid_t process = std::atoi(entry.path().filename().c_str());
    if (process > 0 && ParentOf(process) == parent) children.push_back(process);
  }
  return children;
}

}  // namespace

ServerFolder::ServerFolder() {
  // Short: a socket's name has 107 letters at most.
  std::string name = "/tmp/perseus-server-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  path_ = name;
  const passwd* const user = ServerUser();
  if (user != nullptr && ::chown(path_.c_str(), user->pw_uid, user->pw_gid) != 0) {
    throw std::runtime_error("chown failed");
  }
  ::chmod(path_.c_str(), 0755);
}

ServerFolder::~ServerFolder() {
  // A killed process may write until the kernel has ended it.
  constexpr int kTries = 50;
  std::error_code fault;
  for (int i = 0; i < kTries && fs::exists(path_, fault); ++i) {
    if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    fs::remove_all(path_, fault);
  }
}

std::string PostgresServer::WhyMissing() {
  if (PostgresPrograms().empty()) {
    return "PostgreSQL is not installed (scripts/install-deps --dev installs it)";
  }
  return ::geteuid() == 0 && ServerUser() == nullptr
             ? "PostgreSQL does not run as root, and there is no user postgres or nobody"
             : "";
}

PostgresServer::PostgresServer(bool durable) : durable_(durable) {
  RunProgram({PostgresPrograms() / "initdb", "-D", folder_.path() + "/data", "-N", "-A", "trust",
              "-U", "postgres", "-E", "UTF8", "--locale=C"},
             folder_.path() + "/initdb.log");
  Start();
  Run("CREATE DATABASE perseus", "postgres");
}

std::unique_ptr<PostgresServer> PostgresServer::MakeStandby(const PostgresServer& primary) {
  std::unique_ptr<PostgresServer> standby(new PostgresServer(Empty()));
  const std::string& folder = standby->folder_.path();
  RunProgram(
      {PostgresPrograms() / "pg_basebackup", "-D", folder + "/data", "-R", "-X", "stream", "-c",
       "fast", "-N", "-h", primary.sockets(), "-p", std::to_string(kPort), "-U", "postgres"},
      folder + "/backup.log");
  standby->Start();
  primary.Run("ALTER SYSTEM SET synchronous_standby_names = '*'");
  primary.Run("SELECT pg_reload_conf()");
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (primary.Ask("SELECT COUNT(*) FROM pg_stat_replication WHERE sync_state = 'sync'") != "1") {
    if (std::chrono::steady_clock::now() > until) throw std::runtime_error("no replication");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return standby;
}

void PostgresServer::Promote() const {
  Run("ALTER SYSTEM SET synchronous_standby_names = ''", "postgres");
  Run("SELECT pg_promote()", "postgres");
}

PostgresServer::~PostgresServer() {
  if (postmaster_ > 0) Kill();
}

void PostgresServer::Start() {
  const std::string log = folder_.path() + "/server.log";
  std::vector<std::string> arguments = {PostgresPrograms() / "postgres",
                                        "-D",
                                        folder_.path() + "/data",
                                        "-k",
                                        folder_.path(),
                                        "-p",
                                        std::to_string(kPort),
                                        "-c",
                                        "listen_addresses=",
                                        "-c",
                                        "shared_buffers=16MB"};
  if (!durable_) arguments.insert(arguments.end(), {"-c", "fsync=off"});
  postmaster_ = Spawn(arguments, log);
  WaitUntilItAnswers(Uri("postgres"), postmaster_, log);
}

std::vector<pid_t> PostgresServer::Processes() const {
  std::vector<pid_t> processes = ChildrenOf(postmaster_);
  processes.push_back(postmaster_);
  return processes;
}

void PostgresServer::Kill() {
  // First the one that would start others.
  ::kill(postmaster_, SIGSTOP);
  const std::vector<pid_t> processes = Processes();
  for (const pid_t process : processes) ::kill(process, SIGKILL);
  ::waitpid(postmaster_, nullptr, 0);
  postmaster_ = -1;
  // Shared memory is in use until the last of them is gone.
  const auto until = std::chrono::steady_clock::now() + kPatience;
  for (const pid_t process : processes) {
    while (::kill(process, 0) == 0 && std::chrono::steady_clock::now() < until) {
      if (Text(fmt::format("/proc/{}/stat", process)).find(") Z") != std::string::npos) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

void PostgresServer::KillABackend() {
  const std::string backend =
      Ask("SELECT pid FROM pg_stat_activity WHERE datname = 'perseus' AND pid <> "
          "pg_backend_pid() LIMIT 1");
  if (!backend.empty()) ::kill(std::stoi(backend), SIGKILL);
}

void PostgresServer::Restart() {
  ::kill(postmaster_, SIGINT);  // "Fast".
  ::waitpid(postmaster_, nullptr, 0);
  Start();
}

void PostgresServer::Signal(int signal) const {
  for (const pid_t process : Processes()) ::kill(process, signal);
}

std::string PostgresServer::Uri(const std::string& database, const std::string& role) const {
  return fmt::format("postgresql://{}@/{}?host={}&port={}", role, database, folder_.path(), kPort);
}

void PostgresServer::Run(const std::string& sql, const std::string& database) const {
  Ask(sql, database);
}

std::string PostgresServer::Ask(const std::string& sql, const std::string& database) const {
  const std::unique_ptr<PGconn, decltype(&PQfinish)> connection(PQconnectdb(Uri(database).c_str()),
                                                                &PQfinish);
  const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQexec(connection.get(), sql.c_str()),
                                                             &PQclear);
  const ExecStatusType status = PQresultStatus(result.get());
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
    throw std::runtime_error(sql + ": " + PQerrorMessage(connection.get()));
  }
  return PQntuples(result.get()) > 0 ? PQgetvalue(result.get(), 0, 0) : "";
}

std::string PgBouncer::WhyMissing() {
  return fs::exists("/usr/sbin/pgbouncer")
             ? ""
             : "PgBouncer is not installed (scripts/install-deps --dev installs it)";
}

PgBouncer::PgBouncer(const PostgresServer& server, int pool_size) {
  const std::string configuration = folder_.path() + "/pgbouncer.ini";
  std::ofstream(folder_.path() + "/users.txt") << "\"postgres\" \"\"\n";
  std::ofstream(configuration) << fmt::format(
      "[databases]\n* = host={0} port={1}\n"
      "[pgbouncer]\nlisten_addr=\nlisten_port={1}\nunix_socket_dir={2}\nauth_type=trust\n"
      "auth_file={2}/users.txt\npool_mode=transaction\ndefault_pool_size={3}\n"
      "query_wait_timeout=5\nserver_login_retry=1\n",
      server.sockets(), kPort, folder_.path(), pool_size);
  const std::string log = folder_.path() + "/pgbouncer.log";
  process_ = Spawn({"/usr/sbin/pgbouncer", configuration}, log);
  WaitUntilItAnswers(Uri(), process_, log);
}

PgBouncer::~PgBouncer() {
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

std::string PgBouncer::Uri(const std::string& database) const {
  return fmt::format("postgresql://postgres@/{}?host={}&port={}", database, folder_.path(), kPort);
}

}  // namespace perseus
