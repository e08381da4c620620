// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "relay/relay.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "common/json_text.h"
#include "common/numbers.h"
#include "http/client.h"
#include "http/target.h"
#include "perseus/version.h"
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

// The path at the server: the same as here.
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

// Well below the server's longest body, 1 MiB.
constexpr std::size_t kMostBatchBytes = std::size_t{256} << 10;
constexpr std::size_t kMostBatchReports = 64;

// The text between the brackets of an array.
std::string_view InsideOf(std::string_view array) { return array.substr(1, array.size() - 2); }

// The server's answer to one of those whose reports were joined: what is wrong with any of them is
// told to all, and each finds its own.
std::string AnswerOfOne(std::size_t count, const http::Response& response) {
  std::string troubles;
  const std::string_view body = response.body ? std::string_view(*response.body) : "";
  if (const auto members = IsJson(body) ? MembersOf(body) : std::nullopt) {
    for (const JsonMember& member : *members) {
      if (member.key == "troubles") troubles = fmt::format(",\"troubles\":{}", member.value);
    }
  }
  return fmt::format("{{\"reports\":{}{}}}", count, troubles);
}

// So that the server knows which ranks have a relay, and of which version.
http::Headers RelayHeaders() { return {{wire::kRelayHeader, PERSEUS_VERSION_STRING}}; }

void Join(std::string_view elements, std::string* list) {
  if (elements.find_first_not_of(" \t\r\n") == std::string_view::npos) return;
  if (!list->empty()) *list += ',';
  *list += elements;
}

}  // namespace

// Decides who may connect, and limits the connections of each user, so that no user can use up the
// places of the others. Thread-safe.
class PeerPlaces {
 public:
  // Null: only root and the relay's own user may connect.
  using MayUse = std::function<bool(const UnixPeer&)>;

  PeerPlaces(MayUse may_use, int most_of_a_user)
      : may_use_(std::move(may_use)), most_of_a_user_(most_of_a_user) {}

  // For http::ServerOptions::admit_peer. The place is free again when the last copy of the returned
  // pointer is destroyed, which may be after this object.
  Result<std::shared_ptr<void>> Admit(int socket) {
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
      return MakeError(ErrorCode::kIo,
                       fmt::format("User {} has {} connections already, which is the limit.", user,
                                   connections));
    }
    std::shared_ptr<void> place(this, [taken = taken_, user](void*) {
      const MutexLock guard(taken->mutex);
      const auto found = taken->connections.find(user);
      if (--found->second == 0) taken->connections.erase(found);
    });
    ++connections;
    return place;
  }

 private:
  struct Taken {
    Mutex mutex;
    std::map<uid_t, int> connections PERSEUS_GUARDED_BY(mutex);
  };

  const MayUse may_use_;
  const int most_of_a_user_;
  const std::shared_ptr<Taken> taken_ = std::make_shared<Taken>();
};

// Combines the iteration reports of a node's ranks, which come at about the same time, into one
// request per job. Each rank gets its own answer: if the server refuses a combined request, the
// reports are sent one by one, so that an invalid report affects only its own rank. Thread-safe.
class ReportBatches {
 public:
  // Runs a function after a number of seconds.
  using After = std::function<void(double, std::function<void()>)>;

  // `forwarder` must outlive this object.
  ReportBatches(Forwarder* forwarder, After after, double linger_seconds)
      : forwarder_(forwarder), after_(std::move(after)), linger_seconds_(linger_seconds) {}

  // `target`: the path of the job's iterations. Never blocks.
  void Add(const std::string& target, const std::string& body, const http::Responder& responder) {
    Report report = {body, responder};
    if (!Read(&report)) return SendAlone(target, report);
    std::vector<std::shared_ptr<Batch>> full;
    std::shared_ptr<Batch> begun;
    {
      const MutexLock lock(mutex_);
      Pending& pending = pending_[target];
      if (pending.bytes + body.size() > kMostBatchBytes) {
        full.push_back(std::exchange(pending, {}).batch);
      }
      if (pending.batch == nullptr) pending.batch = begun = std::make_shared<Batch>();
      pending.bytes += body.size();
      pending.batch->push_back(std::move(report));
      if (pending.batch->size() >= kMostBatchReports) {
        full.push_back(std::move(pending.batch));
        pending_.erase(target);
      }
    }
    for (const std::shared_ptr<Batch>& batch : full) Send(target, batch);
    if (begun != nullptr) {
      after_(linger_seconds_, [this, target, begun] { FlushJob(target, begun); });
    }
  }

  // Sends all waiting reports.
  void Flush() {
    std::map<std::string, Pending> pending;
    {
      const MutexLock lock(mutex_);
      pending.swap(pending_);
    }
    for (const auto& [target, each] : pending) Send(target, each.batch);
  }

 private:
  struct Report {
    std::string body;
    http::Responder responder;
    // Positions of both lists in the body, without their brackets.
    std::size_t reports_begin = 0, reports_size = 0;
    std::size_t clients_begin = 0, clients_size = 0;
    std::size_t count = 0;  // Number of reports.
  };
  using Batch = std::vector<Report>;
  struct Pending {
    std::shared_ptr<Batch> batch;
    std::size_t bytes = 0;
  };

  // Whether it is a report that can be joined with others.
  static bool Read(Report* report) {
    const std::string_view body = report->body;
    if (body.size() > kMostBatchBytes || !IsJson(body)) return false;
    const auto members = MembersOf(body);
    if (!members || members->size() > 2) return false;
    for (const JsonMember& member : *members) {
      const auto elements = ElementsOf(member.value);
      if (!elements) return false;
      const std::string_view inside = InsideOf(member.value);
      const auto begin = static_cast<std::size_t>(inside.data() - body.data());
      if (member.key == "reports" && report->reports_begin == 0) {
        report->reports_begin = begin;
        report->reports_size = inside.size();
        report->count = elements->size();
      } else if (member.key == "clients" && report->clients_begin == 0) {
        report->clients_begin = begin;
        report->clients_size = inside.size();
      } else {
        return false;
      }
    }
    return true;
  }

  void FlushJob(const std::string& target, const std::shared_ptr<Batch>& batch) {
    {
      const MutexLock lock(mutex_);
      const auto found = pending_.find(target);
      if (found == pending_.end() || found->second.batch != batch) return;  // It was full before.
      pending_.erase(found);
    }
    Send(target, batch);
  }

  void Send(const std::string& target, const std::shared_ptr<Batch>& batch) {
    if (batch->size() == 1) return SendAlone(target, batch->front());
    std::string reports;
    std::string clients;
    for (const Report& report : *batch) {
      const std::string_view body = report.body;
      Join(body.substr(report.reports_begin, report.reports_size), &reports);
      Join(body.substr(report.clients_begin, report.clients_size), &clients);
    }
    Forwarder::Request request = {
        "POST", target, fmt::format("{{\"reports\":[{}],\"clients\":[{}]}}", reports, clients),
        RelayHeaders()};
    const bool is_sent = forwarder_->Send(
        std::move(request), [this, target, batch](const Result<http::Response>& result) {
          Answer(target, *batch, result);
        });
    if (is_sent) return;
    for (const Report& report : *batch) report.responder.Send(TooManyRequests());
  }

  void SendAlone(const std::string& target, const Report& report) {
    Forward(forwarder_, {"POST", target, report.body, RelayHeaders()}, report.responder);
  }

  void Answer(const std::string& target, const Batch& batch, const Result<http::Response>& result) {
    const bool is_refused =
        result && result->status / 100 == 4 && result->status != 408 && result->status != 429;
    for (const Report& report : batch) {
      if (is_refused) {
        SendAlone(target, report);
      } else if (result && result->status / 100 == 2) {
        report.responder.Send(
            http::JsonResponse(result->status, AnswerOfOne(report.count, *result)));
      } else {
        report.responder.Send(result ? *result : UnavailableResponse(result.error()));
      }
    }
  }

  Forwarder* const forwarder_;
  const After after_;
  const double linger_seconds_;
  Mutex mutex_;
  std::map<std::string, Pending> pending_ PERSEUS_GUARDED_BY(mutex_);  // By target.
};

class Relay::Impl {
 public:
  explicit Impl(RelayOptions options)
      : options_(std::move(options)),
        health_(options_.log),
        places_(options_.may_use, options_.max_connections_per_user) {}

  Result<void> Open() {
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

  ~Impl() { Stop(); }
  void Stop() {
    if (server_ == nullptr) return;
    server_->StopAccepting();
    reports_->Flush();
    forwarder_->Stop();
    hub_->Stop();
    server_->Stop(kStopSeconds);
  }

  std::string url() const { return server_->url(); }
  Counts counts() const {
    return {hub_->counts(), server_->counters(), forwarder_->counts(), health_.is_away(),
            health_.seconds_since_answer()};
  }

 private:
  std::vector<http::Route> Routes() {
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
    routes.push_back(InstantRoute(
        wire::RowOf("healthz"), [](const Request&, const Parameters&, const Responder& responder) {
          responder.Send(http::JsonResponse(200, "{\"status\":\"ok\"}"));
        }));
    routes.push_back(InstantRoute(wire::RowOf("readyz"), [this](const Request&, const Parameters&,
                                                                const Responder& responder) {
      responder.Send(health_.is_away() ? UnavailableResponse({ErrorCode::kIo, health_.why()})
                                       : http::JsonResponse(200, "{\"status\":\"ready\"}"));
    }));
    return routes;
  }

  // Refuses other users than the job's owner, as if there were no job.
  http::Handler OfOwner(http::Handler handle) {
    return [this, handle = std::move(handle)](const Request& request, const Parameters& parameters,
                                              const Responder& responder) {
      if (owners_.MayUse(parameters[0], request.peer_uid)) {
        handle(request, parameters, responder);
      } else {
        responder.Send(NotTheirs(parameters[0]));
      }
    };
  }

  void CreateJob(const Request& request, const Responder& responder) {
    Forwarder::Request forwarded = {"POST", std::string(wire::RowOf("createJob").path),
                                    request.body, HeadersFor(request)};
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

  // Probes the server; only ServerHealth and the log use the answer.
  void Probe() {
    if (health_.wants_probe()) {
      forwarder_->Send({"GET", "/healthz", ""}, [](const Result<http::Response>&) {});
    }
    server_->After(options_.probe_seconds, [this] { Probe(); });
  }

  const RelayOptions options_;
  ServerHealth health_;
  PeerPlaces places_;
  JobOwners owners_;
  std::unique_ptr<PlanHub> hub_;
  std::unique_ptr<Forwarder> forwarder_;
  std::unique_ptr<ReportBatches> reports_;
  std::unique_ptr<http::Server> server_;
};

Result<std::unique_ptr<Relay>> Relay::Start(RelayOptions options) {
  if (const Result<void> good = CheckAddress(options.server); !good) {
    return tl::unexpected(good.error());
  }
  try {
    auto impl = std::make_unique<Impl>(std::move(options));
    if (const Result<void> opened = impl->Open(); !opened) return tl::unexpected(opened.error());
    return std::unique_ptr<Relay>(new Relay(std::move(impl)));
  } catch (const std::exception& error) {  // No thread, no memory.
    return MakeError(ErrorCode::kIo, fmt::format("The relay cannot start: {}.", error.what()));
  }
}

Relay::Relay(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Relay::~Relay() = default;
void Relay::Stop() { impl_->Stop(); }
std::string Relay::url() const { return impl_->url(); }
Relay::Counts Relay::counts() const { return impl_->counts(); }

}  // namespace perseus::relay
