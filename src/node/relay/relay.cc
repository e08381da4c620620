// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "relay/relay.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "common/json_text.h"
#include "common/numbers.h"
#include "http/client.h"
#include "http/target.h"
#include "wire/routes.h"

namespace perseus::relay {
namespace {

using http::Request;
using http::Responder;
using Parameters = std::vector<std::string>;

constexpr std::size_t kMostBodiesBytes = std::size_t{48} << 20;
constexpr double kMostWaitSeconds = 60;
constexpr double kStopSeconds = 1;

http::Response NotTheirs(const std::string& id) {
  return http::ErrorResponse(404, http::ErrorCodeOf(404),
                             "there is no job " + id + " of yours at this relay");
}

void AskForPlan(PlanHub* hub, const Request& request, const Parameters& parameters,
                const Responder& responder) {
  const auto text = [&](const char* name) {
    const auto found = request.query.find(name);
    return found == request.query.end() ? std::string() : found->second;
  };
  const int rank = ParseInteger<int>(text("rank")).value_or(0);
  // Without it, the first version is waited for, which is not 0.
  const std::int64_t after = ParseInteger<std::int64_t>(text("after")).value_or(0);
  const double wait = ParseFinite(text("wait")).value_or(0);
  hub->Ask({parameters[0], rank, after, std::min(wait, kMostWaitSeconds)}, responder);
}

// Where the server has it: the same method, the same path.
std::string TargetOf(std::string_view pattern, const Parameters& parameters) {
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

// A route of the server's list, with an answer of the relay's. What the server would refuse at
// first sight it does not hear of.
http::Route RouteOf(const wire::RouteRow& row, http::Handler handle) {
  http::Route route;
  route.method = row.method;
  route.pattern = row.path;
  route.at_least = row.role;
  if (row.max_body_bytes > 0) route.max_body_bytes = row.max_body_bytes;
  route.long_poll = row.waits;
  route.handle = [&row, handle = std::move(handle)](const Request& request,
                                                    const Parameters& parameters,
                                                    const Responder& responder) {
    if (auto refusal = wire::CheckQuery(row, request)) {
      responder.Send(*std::move(refusal));
    } else {
      handle(request, parameters, responder);
    }
  };
  return route;
}

http::Route InstantRoute(const wire::RouteRow& row, http::Handler handle) {
  http::Route route = RouteOf(row, std::move(handle));
  route.is_instant = true;
  return route;
}

// The condition goes with the request, or the server would do it unconditionally.
http::Headers HeadersFor(const Request& request) {
  const std::string* const condition = http::FindHeader(request.headers, "If-Match");
  if (condition == nullptr) return {};
  return {{"If-Match", *condition}};
}

// Of the answer to a new job; empty: it is none.
std::string JobIdOf(const Result<http::Response>& answer) {
  if (!answer || answer->status >= 300 || answer->body == nullptr) return "";
  const auto job = ParseObject(*answer->body);
  const auto id = job.find("id");
  return id != job.end() && id->is_string() ? id->get<std::string>() : "";
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

// What is not its user's does not exist for it.
http::Handler Relay::OfOwner(http::Handler handle) {
  return [this, handle = std::move(handle)](const Request& request, const Parameters& parameters,
                                            const Responder& responder) {
    if (owners_.MayUse(parameters[0], request.peer_uid)) {
      handle(request, parameters, responder);
    } else {
      responder.Send(NotTheirs(parameters[0]));
    }
  };
}

void Relay::CreateJob(const Request& request, const Responder& responder) {
  Forwarder::Request forwarded = {"POST", std::string(wire::RowOf("createJob").path), request.body,
                                  HeadersFor(request)};
  const bool is_sent = forwarder_->Send(
      std::move(forwarded),
      [this, user = request.peer_uid, responder](const Result<http::Response>& answer) {
        const std::string id = JobIdOf(answer);
        if (!answer) {
          responder.Send(UnavailableResponse(answer.error()));
        } else if (!id.empty() && !owners_.MayUse(id, user)) {
          responder.Send(NotTheirs(id));
        } else {
          responder.Send(*answer);
        }
      });
  if (!is_sent) responder.Send(TooManyRequests());
}

std::vector<http::Route> Relay::Routes() {
  std::vector<http::Route> routes;
  for (const wire::RouteRow& row : wire::kRoutes) {
    if (row.relaying != wire::Relaying::kForwarded) continue;
    if (row.id == wire::RowOf("createJob").id) {
      routes.push_back(
          RouteOf(row, [this](const Request& request, const Parameters&,
                              const Responder& responder) { CreateJob(request, responder); }));
      continue;
    }
    routes.push_back(
        RouteOf(row, OfOwner([this, &row](const Request& request, const Parameters& parameters,
                                          const Responder& responder) {
                  Forward(forwarder_.get(),
                          {std::string(row.method), TargetOf(row.path, parameters), request.body,
                           HeadersFor(request)},
                          responder);
                })));
  }
  constexpr const wire::RouteRow& kIterations = wire::RowOf("reportIterations");
  routes.push_back(
      RouteOf(kIterations, OfOwner([this](const Request& request, const Parameters& parameters,
                                          const Responder& responder) {
                reports_->Add(TargetOf(kIterations.path, parameters), request.body, responder);
              })));
  routes.push_back(RouteOf(wire::RowOf("getPlan"),
                           OfOwner([this](const Request& request, const Parameters& parameters,
                                          const Responder& responder) {
                             AskForPlan(hub_.get(), request, parameters, responder);
                           })));
  routes.push_back(InstantRoute(wire::RowOf("healthz"),
                                [](const Request&, const Parameters&, const Responder& responder) {
                                  responder.Send(http::JsonResponse(200, "{\"status\":\"ok\"}"));
                                }));
  routes.push_back(InstantRoute(
      wire::RowOf("readyz"), [this](const Request&, const Parameters&, const Responder& responder) {
        responder.Send(health_.is_away() ? UnavailableResponse({ErrorCode::kIo, health_.why()})
                                         : http::JsonResponse(200, "{\"status\":\"ready\"}"));
      }));
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
