// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/ops/serve.h"

#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigwait and pthread_sigmask.

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/json_text.h"
#include "http/server.h"
#include "server/api/api.h"
#include "server/api/api_text.h"
#include "server/ops/metrics.h"
#include "server/runtime/job_service.h"
#include "store/store.h"

namespace perseus::server {
namespace {

using http::Request;
using http::Responder;
using http::Response;
using http::Role;

// Requests that took this long for another reason than waiting for news.
constexpr double kSlowSeconds = 1;

// Blocked signals, which one thread waits for.
class Signals {
 public:
  Signals() {
    ::sigemptyset(&set_);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&set_, signal);
    ::pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  }
  int Wait() const {
    int signal = 0;
    while (::sigwait(&set_, &signal) != 0) {
    }
    return signal;
  }

 private:
  sigset_t set_ = {};
};

void AddHealthRoutes(JobService& service, std::vector<http::Route>* routes) {
  routes->push_back({"GET",
                     "/healthz",
                     Role::kNone,
                     {},
                     false,
                     [](const Request&, const auto&, const Responder& responder) {
                       responder.Send(JsonAnswer(200, {{"status", "ok"}}));
                     },
                     true});
  // Without a token: not why, which names files.
  routes->push_back(
      {"GET",
       "/readyz",
       Role::kNone,
       {},
       false,
       [&service](const Request&, const auto&, const Responder& responder) {
         responder.Send(service.store_counters().is_failing
                            ? JsonAnswer(503, {{"status", "store"},
                                               {"message",
                                                "the store did not take the last facts; requests "
                                                "that change a job are answered with the reason"}})
                            : JsonAnswer(200, {{"status", "ready"}}));
       },
       true});
}

// Metrics need the server's counters, which is made with its routes.
void AddMetricsRoute(JobService& service, const Metrics& metrics,
                     const std::unique_ptr<http::Server>& server,
                     std::vector<http::Route>* routes) {
  routes->push_back({"GET",
                     "/metrics",
                     Role::kRead,
                     {},
                     false,
                     [&](const Request&, const auto&, const Responder& responder) {
                       Response response;
                       response.content_type = "text/plain; version=0.0.4; charset=utf-8";
                       response.body = std::make_shared<const std::string>(
                           metrics.Text(service, server->counters()));
                       responder.Send(std::move(response));
                     }});
}

void LogAccess(ServerLog* log, const http::AccessRecord& record) {
  const bool is_wait = record.pattern == "/api/v1/jobs/{id}/plan" ||
                       record.pattern == "/api/v1/jobs/{id}/plans" ||
                       record.pattern == "/schedule/{id}" || record.pattern.ends_with("/events");
  const LogLevel level = record.status >= 500                        ? LogLevel::kWarning
                         : record.seconds > kSlowSeconds && !is_wait ? LogLevel::kInfo
                                                                     : LogLevel::kDebug;
  log->Write(level, "request",
             {{"peer", record.peer},
              {"token", record.token_name},
              {"method", record.method},
              {"path", record.path},
              {"status", record.status},
              {"bytes_in", record.request_bytes},
              {"bytes_out", record.response_bytes},
              {"seconds", record.seconds}});
}

void LogEvents(JobService& service, ServerLog* log) {
  service.events().Listen(
      "",
      [log](const Event* event) {
        if (event != nullptr) {
          log->Write(LogLevel::kInfo, event->name(),
                     nlohmann::ordered_json::parse(event->data, nullptr, false));
        }
        return true;
      },
      EventHub::Pace::kMayBlock);
}

http::ServerOptions HttpOptions(const ServeOptions& options) {
  http::ServerOptions http;
  http.listen = options.listen;
  http.token_file = options.token_file;
  http.tls_certificate_file = options.tls_certificate_file;
  http.tls_key_file = options.tls_key_file;
  http.max_connections = static_cast<std::size_t>(options.max_connections);
  http.worker_threads = options.workers;
  return http;
}

std::function<void(const std::string&)> LogProblem(ServerLog* log) {
  return [log](const std::string& sentence) {
    log->Write(LogLevel::kError, "problem", {{"message", sentence}});
  };
}

Result<std::unique_ptr<JobService>> StartService(const ServeOptions& options, ServerLog* log) {
  ServiceOptions service;
  service.on_problem = LogProblem(log);
  service.max_jobs = static_cast<std::size_t>(options.max_jobs);
  if (!options.zeus_plan_file.empty()) {
    Result<GivenPlan> plan = GivenPlan::Read(options.zeus_plan_file);
    if (!plan) return tl::unexpected(plan.error());
    service.given_plan = *std::move(plan);
  }
  Result<std::unique_ptr<store::Store>> store = store::Store::Open(options.store, LogProblem(log));
  if (!store) return tl::unexpected(store.error());
  return JobService::Start(*std::move(store), std::move(service));
}

}  // namespace

Result<void> Serve(const ServeOptions& options,
                   const std::function<void(const std::string&)>& ready) {
  const Signals signals;
  ServerLog log(options.log_format, options.log_level);
  Metrics metrics;
  Result<std::unique_ptr<JobService>> service = StartService(options, &log);
  if (!service) return tl::unexpected(service.error());
  LogEvents(**service, &log);

  // Before the service, whose jobs its handlers use, it is stopped; after it, as
  // listeners hold its streams, it is destroyed.
  std::unique_ptr<http::Server> server;
  std::vector<http::Route> routes = ApiRoutes(**service);
  AddHealthRoutes(**service, &routes);
  AddMetricsRoute(**service, metrics, server, &routes);
  http::ServerOptions http = HttpOptions(options);
  http.on_access = [&](const http::AccessRecord& record) {
    metrics.Count(record);
    LogAccess(&log, record);
  };
  http.on_problem = LogProblem(&log);
  Result<std::unique_ptr<http::Server>> opened = http::Server::Open(http, std::move(routes));
  if (!opened) return tl::unexpected(opened.error());
  server = *std::move(opened);
  server->Serve();
  log.Write(LogLevel::kInfo, "ready",
            {{"url", server->url()},
             // Not the address of a database, which may hold a password.
             {"store", (*service)->is_shared() ? "postgresql" : options.store},
             {"jobs", (*service)->Jobs().size()},
             {"max_connections", server->max_connections()}});
  ready(server->url());

  int signal = 0;
  while ((signal = signals.Wait()) == SIGHUP) {
    const Result<void> reloaded = server->Reload();
    log.Write(
        reloaded ? LogLevel::kInfo : LogLevel::kError, "reload",
        {{"message", reloaded ? "tokens and certificate were read" : reloaded.error().message}});
  }
  log.Write(LogLevel::kInfo, "stopping", {{"signal", signal == SIGTERM ? "SIGTERM" : "SIGINT"}});
  (*service)->StopWork();
  server->Stop(options.grace_seconds);
  service->reset();
  log.Write(LogLevel::kInfo, "stopped", nlohmann::ordered_json::object());
  return {};
}

}  // namespace perseus::server
