// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "relay/relay.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "common/numbers.h"
#include "http/client.h"
#include "http/target.h"

namespace perseus::relay {
namespace {

using http::Request;
using http::Responder;
using http::Role;
using Parameters = std::vector<std::string>;

// As the server takes them.
constexpr std::size_t kMostJobBytes = std::size_t{32} << 20;
constexpr std::size_t kMostMeasurementBytes = std::size_t{8} << 20;
constexpr std::size_t kMostBodiesBytes = std::size_t{48} << 20;
constexpr double kMostWaitSeconds = 60;
constexpr double kStopSeconds = 1;
constexpr int kMostRank = 2'000'000'000;

constexpr const char* kJobs = "/api/v1/jobs";
constexpr const char* kJob = "/api/v1/jobs/{id}";
constexpr const char* kStragglers = "/api/v1/jobs/{id}/stragglers";

http::Response BadQuery(const char* name, std::string_view what) {
  return http::ErrorResponse(400, "invalid", fmt::format("'{}' must be {}", name, what), name);
}

// The parameter in the query, or `missing`; nullopt where it is no number.
template <typename T, typename Parse>
std::optional<T> QueryNumber(const Request& request, const char* name, T missing,
                             const Parse& parse) {
  const auto found = request.query.find(name);
  if (found == request.query.end()) return missing;
  return parse(found->second);
}

void AskForPlan(PlanHub* hub, const Request& request, const Parameters& parameters,
                const Responder& responder) {
  const auto rank = QueryNumber<int>(request, "rank", -1, ParseInteger<int>);
  if (!rank || *rank < 0 || *rank > kMostRank) {
    responder.Send(BadQuery("rank", "the number of a rank"));
    return;
  }
  // Without it, the first version is waited for, which is not 0.
  const auto after = QueryNumber<std::int64_t>(request, "after", 0, ParseInteger<std::int64_t>);
  if (!after) {
    responder.Send(BadQuery("after", "the version that the rank has, or -1"));
    return;
  }
  const auto wait = QueryNumber<double>(request, "wait", 0, ParseFinite);
  if (!wait || *wait < 0) {
    responder.Send(BadQuery("wait", "seconds, 0 to 60"));
    return;
  }
  hub->Ask({parameters[0], *rank, *after, std::min(*wait, kMostWaitSeconds)}, responder);
}

// Where the server has it: the same method, the same path.
std::string TargetOf(const std::string& pattern, const Parameters& parameters) {
  std::string target;
  std::size_t next = 0;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '{') {
      target += pattern[i];
      continue;
    }
    target += http::PercentEncoded(parameters[next++]);
    i = pattern.find('}', i);
  }
  return target;
}

http::Route Forwarded(Forwarder* forwarder, const char* method, std::string pattern,
                      std::optional<std::size_t> max_body_bytes = {}) {
  http::Route route;
  route.method = method;
  route.pattern = pattern;
  route.at_least = Role::kTrain;
  route.max_body_bytes = max_body_bytes;
  route.handle = [forwarder, method, pattern = std::move(pattern)](const Request& request,
                                                                   const Parameters& parameters,
                                                                   const Responder& responder) {
    Forward(forwarder, {method, TargetOf(pattern, parameters), request.body}, responder);
  };
  return route;
}

Result<void> CheckAddress(const ServerAddress& address) {
  http::ClientOptions options;
  options.url = address.url;
  options.ca_file = address.ca_file;
  Result<std::string> token = http::ReadTokenFile(address.token_file);
  if (!token) return tl::unexpected(token.error());
  options.token = *std::move(token);
  const Result<http::Client> client = http::Client::Create(std::move(options));
  if (!client) return tl::unexpected(client.error());
  return {};
}

}  // namespace

Relay::Relay(RelayOptions options)
    : options_(std::move(options)),
      health_(options_.log),
      places_(options_.may_use, options_.max_connections_per_user) {}

Result<std::unique_ptr<Relay>> Relay::Start(RelayOptions options) {
  if (const Result<void> good = CheckAddress(options.server); !good) {
    return tl::unexpected(good.error());
  }
  try {
    std::unique_ptr<Relay> relay(new Relay(std::move(options)));
    if (const Result<void> opened = relay->Open(); !opened) return tl::unexpected(opened.error());
    return relay;
  } catch (const std::exception& error) {  // No thread, no memory.
    return MakeError(ErrorCode::kIo, fmt::format("The relay cannot start: {}.", error.what()));
  }
}

Result<void> Relay::Open() {
  std::error_code error;
  if (const auto folder = std::filesystem::path(options_.socket_path).parent_path();
      !folder.empty()) {
    std::filesystem::create_directories(folder, error);
    if (error) {
      return MakeError(ErrorCode::kIo, fmt::format("{}: {}", folder.string(), error.message()));
    }
  }
  forwarder_ = std::make_unique<Forwarder>(&options_.server, &health_, options_.forwarder);
  hub_ = std::make_unique<PlanHub>(&options_.server, &health_, forwarder_.get(), options_.log,
                                   options_.plans);
  reports_ = std::make_unique<ReportBatches>(
      forwarder_.get(),
      [this](double seconds, std::function<void()> f) { server_->After(seconds, std::move(f)); },
      options_.linger_seconds);
  http::ServerOptions http;
  http.listen = "unix:" + options_.socket_path;
  http.unix_mode = 0666;
  http.admit_peer = [this](int socket) { return places_.Admit(socket); };
  http.max_connections = static_cast<std::size_t>(options_.max_connections);
  http.max_bodies_bytes = kMostBodiesBytes;
  http.worker_threads = 1;
  if (options_.log) {
    http.on_problem = [log = options_.log](const std::string& sentence) {
      log(true, "problem", sentence);
    };
  }
  auto server = http::Server::Open(std::move(http), Routes());
  if (!server) return tl::unexpected(server.error());
  server_ = *std::move(server);
  server_->Serve();
  server_->Post([this] { Probe(); });
  return {};
}

// What comes of it is for ServerHealth, and for the log, alone.
void Relay::Probe() {
  if (health_.wants_probe()) {
    forwarder_->Send({"GET", "/healthz", ""}, [](const Result<http::Response>&) {});
  }
  server_->After(options_.probe_seconds, [this] { Probe(); });
}

std::vector<http::Route> Relay::Routes() {
  Forwarder* const forwarder = forwarder_.get();
  std::vector<http::Route> routes = {
      Forwarded(forwarder, "POST", kJobs, kMostJobBytes),
      Forwarded(forwarder, "GET", kJob),
      Forwarded(forwarder, "POST", std::string(kJob) + "/ranks"),
      Forwarded(forwarder, "POST", std::string(kJob) + "/measurements", kMostMeasurementBytes),
      Forwarded(forwarder, "GET", kStragglers),
      Forwarded(forwarder, "POST", kStragglers),
      Forwarded(forwarder, "DELETE", kStragglers),
      Forwarded(forwarder, "DELETE", std::string(kStragglers) + "/{straggler_id}"),
  };
  const std::string iterations = std::string(kJob) + "/iterations";
  routes.push_back({"POST",
                    iterations,
                    Role::kTrain,
                    {},
                    false,
                    [this, iterations](const Request& request, const Parameters& parameters,
                                       const Responder& responder) {
                      reports_->Add(TargetOf(iterations, parameters), request.body, responder);
                    }});
  routes.push_back(
      {"GET",
       std::string(kJob) + "/plan",
       Role::kRead,
       {},
       true,
       [this](const Request& request, const Parameters& parameters, const Responder& responder) {
         AskForPlan(hub_.get(), request, parameters, responder);
       }});
  routes.push_back({"GET",
                    "/healthz",
                    Role::kNone,
                    {},
                    false,
                    [](const Request&, const Parameters&, const Responder& responder) {
                      responder.Send(http::JsonResponse(200, "{\"status\":\"ok\"}"));
                    },
                    true});
  routes.push_back({"GET",
                    "/readyz",
                    Role::kNone,
                    {},
                    false,
                    [this](const Request&, const Parameters&, const Responder& responder) {
                      responder.Send(health_.is_away()
                                         ? UnavailableResponse({ErrorCode::kIo, health_.why()})
                                         : http::JsonResponse(200, "{\"status\":\"ready\"}"));
                    },
                    true});
  return routes;
}

Relay::~Relay() { Stop(); }

void Relay::Stop() {
  if (server_ == nullptr) return;
  server_->StopAccepting();
  reports_->Flush();
  forwarder_->Stop();
  hub_->Stop();
  server_->Stop(kStopSeconds);
}

}  // namespace perseus::relay
