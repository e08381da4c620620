// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "http/server.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <utility>

#include "http/listener.h"
#include "http/router.h"
#include "http/server_core.h"

namespace perseus::http {
namespace {

// For everything but connections: a database, libraries, a log.
constexpr std::size_t kOtherFiles = 256;

Result<void> CheckLimits(const ServerOptions& options) {
  struct Limit {
    const char* name;
    double value, least, most;
  };
  const std::array limits = {
      Limit{"max_connections", static_cast<double>(options.max_connections), 1, 1e6},
      Limit{"max_header_bytes", static_cast<double>(options.max_header_bytes), 1024, 1 << 20},
      Limit{"idle_seconds", options.idle_seconds, 0.01, 1e6},
      Limit{"header_seconds", options.header_seconds, 0.01, 1e6},
      Limit{"body_seconds", options.body_seconds, 0.01, 1e6},
      Limit{"write_seconds", options.write_seconds, 0.01, 1e6},
      Limit{"min_write_bytes_per_second", options.min_write_bytes_per_second, 1, 1e12},
      Limit{"heartbeat_seconds", options.heartbeat_seconds, 0.01, 1e6},
      Limit{"io_threads", static_cast<double>(options.io_threads), 1, 64},
      Limit{"worker_threads", static_cast<double>(options.worker_threads), 1, 256},
  };
  for (const Limit& limit : limits) {
    if (limit.value >= limit.least && limit.value <= limit.most) continue;
    return InvalidInput(fmt::format("The server's {} is {}, but has to be {} to {}.", limit.name,
                                    limit.value, limit.least, limit.most));
  }
  return {};
}

Result<void> CheckSafety(const ServerOptions& options, const ListenAddress& address) {
  if (options.tls_certificate_file.empty() != options.tls_key_file.empty()) {
    return InvalidInput(fmt::format(
        "TLS needs both files, but there is no {}.",
        options.tls_key_file.empty() ? "key: set --tls-key" : "certificate: set --tls-cert"));
  }
  constexpr int kOthers = 077;
  if (!address.unix_path.empty() && (options.unix_mode & kOthers) != 0 && !options.admit_peer &&
      options.token_file.empty()) {
    return InvalidInput(fmt::format(
        "Others than their owner may open {}, so it needs tokens or a list of who may connect.",
        address.unix_path));
  }
  if (address.is_local) return {};
  const bool lacks_tls = options.tls_certificate_file.empty();
  const bool lacks_tokens = options.token_file.empty();
  if (!lacks_tls && !lacks_tokens) return {};
  return InvalidInput(fmt::format(
      "Others than this machine can reach {}, so it needs TLS and tokens: set {}, or listen on "
      "127.0.0.1.",
      options.listen,
      lacks_tls && lacks_tokens ? "--tls-cert, --tls-key and --token-file"
      : lacks_tls               ? "--tls-cert and --tls-key"
                                : "--token-file"));
}

// Raises the limit of open files for that many connections; how many there is room for.
std::size_t MakeRoomFor(std::size_t connections) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return connections;
  const rlim_t wanted = connections + kRefusalSlots + kOtherFiles;
  if (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < wanted) {
    limit.rlim_cur =
        limit.rlim_max == RLIM_INFINITY ? wanted : std::min<rlim_t>(wanted, limit.rlim_max);
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) ::getrlimit(RLIMIT_NOFILE, &limit);
  }
  if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= wanted) return connections;
  const rlim_t others = std::min<rlim_t>(kRefusalSlots + kOtherFiles, limit.rlim_cur / 2);
  return std::max<std::size_t>(1, limit.rlim_cur - others);
}

}  // namespace

Server::Server(std::shared_ptr<ServerCore> core) : core_(std::move(core)) {}
Server::~Server() { core_->Stop(0); }

Result<std::unique_ptr<Server>> Server::Open(ServerOptions options, std::vector<Route> routes) {
  Result<ListenAddress> address = ParseListenAddress(options.listen);
  if (!address) return tl::unexpected(address.error());
  Result<void> checked = CheckLimits(options);
  if (checked) checked = CheckSafety(options, *address);
  if (!checked) return tl::unexpected(checked.error());
  Result<Router> router = Router::Make(std::move(routes));
  if (!router) return tl::unexpected(router.error());
  Result<Listener> listener = Listener::Open(*address, options.unix_mode);
  if (!listener) return tl::unexpected(listener.error());
  address->port = listener->port();
  options.max_connections = MakeRoomFor(options.max_connections);
  auto core = std::make_shared<ServerCore>(std::move(options), *std::move(router),
                                           *std::move(listener), *std::move(address));
  const Result<void> loaded = core->Load();
  if (!loaded) return tl::unexpected(loaded.error());
  return std::unique_ptr<Server>(new Server(std::move(core)));
}

void Server::Serve() { core_->Serve(); }
Result<void> Server::SetRoutes(std::vector<Route> routes) {
  Result<Router> router = Router::Make(std::move(routes));
  if (!router) return tl::unexpected(router.error());
  core_->SetRouter(*std::move(router));
  return {};
}
int Server::port() const { return core_->address.port; }
std::string Server::url() const {
  const ListenAddress& address = core_->address;
  if (!address.unix_path.empty()) return "unix:" + address.unix_path;
  const bool is_v6 = address.host.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}:{}", core_->tls() ? "https" : "http", is_v6 ? "[" : "",
                     address.host, is_v6 ? "]" : "", address.port);
}
std::size_t Server::max_connections() const { return core_->options.max_connections; }
Result<void> Server::Reload() { return core_->Load(); }
void Server::StopAccepting() { core_->StopAccepting(); }
void Server::Stop(double grace_seconds) { core_->Stop(grace_seconds); }
void Server::Post(std::function<void()> f) { core_->workers.Post(std::move(f)); }
void Server::After(double seconds, std::function<void()> f) { core_->After(seconds, std::move(f)); }
Counters Server::counters() const { return core_->Snapshot(); }

std::optional<double> Server::certificate_expires_at_seconds() const {
  const std::optional<TlsContext> tls = core_->tls();
  if (!tls) return std::nullopt;
  return tls->expires_at_seconds();
}

}  // namespace perseus::http
