// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/ops/serve.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "common/file_descriptor.h"
#include "common/json_text.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/signal_hold.h"
#include "http/client.h"
#include "http/server.h"
#include "perseus/result.h"
#include "server/api/api.h"
#include "server/api/api_handlers.h"
#include "server/api/messages.h"
#include "server/base/without_throwing.h"
#include "server/ops/metrics.h"
#include "server/ops/store_watch.h"
#include "server/page/docs_routes.h"
#include "server/page/page_routes.h"
#include "server/runtime/job_service.h"
#include "server/store/store.h"

namespace perseus::server {

namespace {

using http::Request;
using http::Responder;
using http::Response;
using http::Role;
using std::chrono::milliseconds;

// Runs the slow part of a start (recovery of a database, migration) on a thread of its own, so that
// the program answers requests and obeys signals meanwhile. Thread-safe.
class Opening {
 public:
  Opening() : ended_event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  // Waits for the thread.
  ~Opening() {
    if (thread_.joinable()) thread_.join();
  }
  Opening(const Opening&) = delete;
  Opening& operator=(const Opening&) = delete;

  // Starts `work`, once.
  void Start(std::function<Result<void>()> work) {
    thread_ = std::thread([this, work = std::move(work)] {
      Result<void> result = WithoutThrowing("start", work);
      {
        const MutexLock lock(mutex_);
        outcome_ = std::move(result);
      }
      changed_.NotifyAll();
      ::eventfd_write(ended_event_.get(), 1);
    });
  }

  // A step of the server before it can answer.
  struct Step {
    std::string sentence;
    std::optional<std::string> active = {};  // The server that this one stands by for.
  };
  // To be called by `work`.
  void Say(Step step) {
    const MutexLock lock(mutex_);
    step_ = std::move(step);
  }
  Step step() const {
    const MutexLock lock(mutex_);
    return step_;
  }
  bool keeps_going() const {
    const MutexLock lock(mutex_);
    return !cancelled_;
  }

  void Cancel() {
    {
      const MutexLock lock(mutex_);
      cancelled_ = true;
    }
    changed_.NotifyAll();
  }
  // A file descriptor that becomes readable when `work` has ended.
  int descriptor() const { return ended_event_.get(); }
  // The result of `work`; nullopt: it still runs.
  std::optional<Result<void>> outcome() const {
    const MutexLock lock(mutex_);
    return outcome_;
  }
  bool WaitForEnd(milliseconds patience) {
    const auto until = std::chrono::steady_clock::now() + patience;
    const MutexLock lock(mutex_);
    while (!outcome_ && changed_.WaitUntil(mutex_, until)) {
    }
    return outcome_.has_value();
  }

 private:
  const FileDescriptor ended_event_;
  mutable Mutex mutex_;
  ConditionVariable changed_;
  Step step_ PERSEUS_GUARDED_BY(mutex_) = {"the server is starting"};
  bool cancelled_ PERSEUS_GUARDED_BY(mutex_) = false;
  std::optional<Result<void>> outcome_ PERSEUS_GUARDED_BY(mutex_);
  std::thread thread_;
};

// /healthz and /readyz. They need no token, and are answered even if no worker thread is free.
http::Route HealthRoute(std::string path, std::function<http::Response()> answer) {
  http::Route route;
  route.method = "GET";
  route.pattern = std::move(path);
  route.at_least = http::Role::kNone;
  route.is_instant = true;
  route.handle = [answer = std::move(answer)](const http::Request&, const auto&,
                                              const http::Responder& responder) {
    responder.Send(answer());
  };
  return route;
}

http::Response Readiness(const JobService& service) {
  const store::StoreCounters counters = service.store_counters();
  // A server that was stopped may have lost the store a moment ago.
  if (counters.why_not_active) return JsonAnswer(503, kHealth, {"standby"});
  if (!counters.is_failing) return JsonAnswer(200, kHealth, {"ready"});
  // Without the reason: it names files, and the client has shown no token.
  return JsonAnswer(503, kHealth,
                    {"store",
                     "the store did not take the last facts; requests that change a job are "
                     "answered with the reason"});
}

// The routes while the server starts or stands by.
std::vector<http::Route> StartingRoutes(const Opening& opening) {
  const auto answer = [&opening](int status) {
    const Opening::Step step = opening.step();
    http::Response response =
        JsonAnswer(status, kHealth, {step.active ? "standby" : "starting", step.sentence});
    if (status == 503) response.headers.emplace_back("Retry-After", "1");
    return response;
  };
  return {HealthRoute("/healthz", [answer] { return answer(200); }),
          HealthRoute("/readyz", [answer] { return answer(503); })};
}

// Of all other paths meanwhile.
http::Response StartingAnswer(const Opening& opening) {
  const Opening::Step step = opening.step();
  http::Response response = http::TryAgainResponse(
      step.active ? step.sentence
                  : "The server is starting; try again soon. /healthz says what it does.");
  if (step.active) response.headers.emplace_back(http::kActiveHeader, *step.active);
  return response;
}

void AddHealthRoutes(const JobService& service, std::vector<http::Route>* routes) {
  routes->push_back(HealthRoute("/healthz", [] { return JsonAnswer(200, kHealth, {"ok"}); }));
  routes->push_back(HealthRoute("/readyz", [&service] { return Readiness(service); }));
}

// Requests that took this long for another reason than waiting for news.
constexpr double kSlowSeconds = 1;
constexpr milliseconds kLook{250};
// For an opening store to see that it must end, and then for the log.
constexpr milliseconds kOpeningPatience{400};
// For the last steps beyond the grace: with the default, SIGTERM is obeyed within a second.
constexpr milliseconds kEndPatience{50};
// For the log at the end.
constexpr milliseconds kLogPatience{200};

void LogAccess(Log* log, const http::AccessRecord& record) {
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

void LogEvents(JobService& service, Log* log) {
  service.events().Listen("", [log](const Event* event) {
    if (event == nullptr || event->kind == EventKind::kStore) return true;  // StoreWatch logs it.
    std::vector<LogField> fields;
    const auto data = ParseObject(event->data);
    for (const auto& [name, value] : data.items()) fields.push_back({name, value});
    log->Write(LogLevel::kInfo, event->name(), fields);
    return true;
  });
}

std::function<void(const std::string&)> LogProblem(Log* log) {
  return [log](const std::string& sentence) {
    log->Write(LogLevel::kError, "problem", {{"message", sentence}});
  };
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

// Waits for a database that is starting, and while another server has the store.
Result<std::unique_ptr<store::Store>> OpenStore(const std::string& spec, const std::string& address,
                                                Log* log, Opening* opening) {
  const Opening::Step first = {
      "the server opens the store, migrates it if an older version wrote it, and waits for a "
      "database that is starting"};
  opening->Say(first);
  const auto is_open = std::make_shared<std::atomic<bool>>(false);
  const auto on_problem = [log, opening, first, is_open](const std::string& sentence) {
    if (*is_open) return LogProblem(log)(sentence);
    opening->Say(first);
    log->Write(LogLevel::kWarning, "waiting_for_store", {{"message", sentence}});
  };
  const auto on_standby = [log, opening](const std::string& active) {
    if (opening->step().active == active) return;
    log->Write(
        LogLevel::kInfo, "standby",
        {{"active", active},
         {"message", "another server has the store; this one takes over when that one ends"}});
    opening->Say({"this server stands by; the active one is " + active, active});
  };
  auto store = store::Store::Open(spec, on_problem,
                                  {.keep_going = [opening] { return opening->keeps_going(); },
                                   .address = address,
                                   .on_standby = on_standby});
  *is_open = true;
  return store;
}

// The address that other hosts reach, where the server listens on all of its own.
std::string AddressForOthers(const std::string& url) {
  std::array<char, 256> host = {};
  if (::gethostname(host.data(), host.size() - 1) != 0) return url;
  for (const std::string_view any : {"://0.0.0.0:", "://[::]:"}) {
    const std::size_t at = url.find(any);
    if (at == std::string::npos) continue;
    return fmt::format("{}://{}:{}", url.substr(0, at), host.data(), url.substr(at + any.size()));
  }
  return url;
}

// One line for each change that a client asked for.
std::function<void(const AuditRecord&)> LogChange(Log* log) {
  return [log](const AuditRecord& record) {
    log->Write(LogLevel::kInfo, "change",
               {{"job", record.job},
                {"what", record.what},
                {"before", record.before},
                {"after", record.after},
                {"token", record.token_name},
                {"peer", record.peer}});
  };
}

// Ends the process, and logs the reports that are lost by that. Outlives the server.
class Ending {
 public:
  std::atomic<std::int64_t> unwritten_reports = 0;

  // Ends the process at once, unless Finish() came first. Waits for no store.
  void EndAtOnce(Log* log) {
    const MutexLock lock(mutex_);
    if (!is_finished_) Exit(log);
  }
  // The server has ended: only reports that the store refused are left.
  void Finish(Log* log) {
    const MutexLock lock(mutex_);
    is_finished_ = true;
    if (unwritten_reports != 0) Exit(log);
  }

 private:
  void Exit(Log* log) const {
    const std::int64_t reports = unwritten_reports;
    if (reports == 0) ::_exit(0);
    log->Write(LogLevel::kWarning, "reports_lost",
               {{"reports", reports},
                {"message", "the store did not take the sums of these iteration reports in time"}});
    log->Flush(kLogPatience);
    ::_exit(1);
  }

  Mutex mutex_;
  bool is_finished_ PERSEUS_GUARDED_BY(mutex_) = false;
};

// All parts of the server, in the order in which they depend on each other.
class Process {
 public:
  Process(const ServeOptions& options, std::optional<GivenPlan> given_plan,
          std::vector<http::Route> docs_routes,
          const std::function<void(const std::string&)>& ready)
      : options_(options),
        given_plan_(std::move(given_plan)),
        docs_routes_(std::move(docs_routes)),
        ready_(ready),
        log_(Log::WriteToStandardError,
             {.format = options.log_format, .least = options.log_level, .lines_per_second = 0}),
        store_watch_(&log_) {}

  // Takes the address before it touches a file, and answers at once.
  Result<void> Listen() {
    http::ServerOptions http = HttpOptions(options_);
    http.on_access = [this](const http::AccessRecord& record) {
      metrics_.Count(record);
      LogAccess(&log_, record);
    };
    http.on_problem = LogProblem(&log_);
    http.starting = [this] { return StartingAnswer(opening_); };
    std::vector<http::Route> routes = StartingRoutes(opening_);
    AddPageRoutes(&routes);
    Result<std::unique_ptr<http::Server>> opened = http::Server::Open(http, std::move(routes));
    if (!opened) return tl::unexpected(opened.error());
    server_ = *std::move(opened);
    server_->Serve();
    log_.Write(LogLevel::kInfo, "listening", {{"url", server_->url()}});
    opening_.Start([this] { return OpenService(); });
    return {};
  }

  // Until a signal says that it is enough, the opening failed, or this server is not active any
  // more: then the address at which it stands by again.
  Result<std::optional<std::string>> Run(const std::shared_ptr<const StopSignals>& signals) {
    int signal = 0;
    while (signal != SIGTERM && signal != SIGINT) {
      const std::optional<Result<void>> opened = opening_.outcome();
      if (opened && !*opened) return tl::unexpected(opened->error());
      signal = signals->Wait(kLook, opened ? -1 : opening_.descriptor());
      if (signal == SIGHUP) Reload();
      if (!opened) continue;
      const store::StoreCounters counters = service_->store_counters();
      if (counters.why_not_active) return StandBy(*counters.why_not_active);
      if (auto news = store_watch_.Look(counters)) service_->events().Emit(*std::move(news));
    }
    log_.Write(LogLevel::kInfo, "stopping", {{"signal", signal == SIGTERM ? "SIGTERM" : "SIGINT"}});
    EndInTime(signals);
    opening_.Cancel();
    if (!opening_.WaitForEnd(kOpeningPatience)) EndAtOnce();
    if (service_) service_->StopWork();
    server_->Stop(options_.grace_seconds);
    service_.reset();
    ending_->Finish(&log_);
    log_.Write(LogLevel::kInfo, "stopped", {});
    return std::nullopt;
  }

 private:
  // The jobs in memory may differ from those of the store.
  std::optional<std::string> StandBy(const std::string& why) {
    log_.Write(LogLevel::kWarning, "not_active",
               {{"message", why}, {"unwritten_reports", ending_->unwritten_reports.load()}});
    const std::string url = server_->url();
    service_->StopWork();
    server_->Stop(options_.grace_seconds);
    service_.reset();
    return url;
  }

  Result<void> OpenService() {
    Result<std::unique_ptr<store::Store>> store =
        OpenStore(options_.store, AddressForOthers(server_->url()), &log_, &opening_);
    if (!store) return tl::unexpected(store.error());
    opening_.Say({"the jobs of the store are being read"});
    ServiceOptions service;
    service.on_problem = LogProblem(&log_);
    service.on_change = LogChange(&log_);
    service.on_unwritten = [ending = ending_](std::int64_t change) {
      ending->unwritten_reports += change;
    };
    service.keep_finished_seconds = options_.keep_finished_seconds;
    service.finish_silent_seconds = options_.finish_silent_seconds;
    service.max_jobs = static_cast<std::size_t>(options_.max_jobs);
    service.given_plan = std::move(given_plan_);
    auto started = JobService::Start(*std::move(store), std::move(service));
    if (!started) return tl::unexpected(started.error());
    service_ = *std::move(started);
    LogEvents(*service_, &log_);
    std::vector<http::Route> routes = ApiRoutes(*service_);
    AddHealthRoutes(*service_, &routes);
    AddPageRoutes(&routes);
    AddMetricsRoute(&routes);
    Result<void> set = server_->SetRoutes(std::move(routes));
    if (!set) return set;
    log_.Write(LogLevel::kInfo, "ready",
               {{"url", server_->url()},
                // Not the address of a database, which may hold a password.
                {"store", store::IsRemote(options_.store) ? "postgresql" : options_.store},
                {"jobs", service_->unfinished_jobs()},
                {"max_connections", server_->max_connections()}});
    // On a thread of its own: the message may have no reader.
    std::thread([ready = ready_, url = server_->url()] { ready(url); }).detach();
    return {};
  }

  // The page is there before the jobs are, and says that the server is starting.
  void AddPageRoutes(std::vector<http::Route>* routes) const {
    for (http::Route& route : web::PageRoutes()) routes->push_back(std::move(route));
    routes->insert(routes->end(), docs_routes_.begin(), docs_routes_.end());
  }

  void AddMetricsRoute(std::vector<http::Route>* routes) {
    http::Route route;
    route.method = "GET";
    route.pattern = "/metrics";
    route.at_least = Role::kRead;
    route.handle = [this](const Request&, const auto&, const Responder& responder) {
      const ServerFigures figures = {
          .max_connections = server_->max_connections(),
          .is_store_up = store_watch_.is_up(),
          .certificate_expires_at_seconds = server_->certificate_expires_at_seconds()};
      Response response;
      response.content_type = "text/plain; version=0.0.4; charset=utf-8";
      response.body = std::make_shared<const std::string>(
          metrics_.Text(*service_, server_->counters(), figures));
      responder.Send(std::move(response));
    };
    routes->push_back(std::move(route));
  }

  void Reload() {
    const Result<void> reloaded = server_->Reload();
    log_.Write(
        reloaded ? LogLevel::kInfo : LogLevel::kError, "reload",
        {{"message", reloaded ? "tokens and certificate were read" : reloaded.error().message}});
  }

  // The store is still being opened, and does not answer. Nothing was acknowledged yet, and its
  // present step is one transaction.
  void EndAtOnce() {
    server_->Stop(0);
    log_.Write(LogLevel::kWarning, "stopped", {{"while", opening_.step().sentence}});
    log_.Flush(kOpeningPatience);
    ::_exit(0);
  }

  // On a second signal, or where something hangs, ends at once: acknowledged facts are durable, but
  // for sums of iterations, of which the last line of the log tells.
  void EndInTime(const std::shared_ptr<const StopSignals>& signals) {
    using Clock = std::chrono::steady_clock;
    using Seconds = std::chrono::duration<double>;
    const auto end = Clock::now() + kEndPatience + Seconds(options_.grace_seconds);
    std::thread([signals, end, ending = ending_, log = &log_] {
      int signal = 0;
      while (signal != SIGTERM && signal != SIGINT && Clock::now() < end) {
        const auto left = std::clamp<Seconds>(end - Clock::now(), Seconds(0), kLook);
        signal = signals->Wait(std::chrono::ceil<milliseconds>(left), -1);
      }
      ending->EndAtOnce(log);
    }).detach();
  }

  const ServeOptions& options_;
  std::optional<GivenPlan> given_plan_;
  const std::vector<http::Route> docs_routes_;
  const std::function<void(const std::string&)>& ready_;
  Log log_;
  const std::shared_ptr<Ending> ending_ = std::make_shared<Ending>();
  Metrics metrics_;
  StoreWatch store_watch_;
  Opening opening_;
  // Before the service, whose jobs its handlers use, it is stopped; after it, as listeners
  // hold its streams, it is destroyed.
  std::unique_ptr<http::Server> server_;
  std::unique_ptr<JobService> service_;
};

}  // namespace

Result<void> Serve(const ServeOptions& options,
                   const std::function<void(const std::string&)>& ready) {
  const auto signals = std::make_shared<const StopSignals>(/*ignored_too=*/true);
  std::optional<GivenPlan> given_plan;
  if (!options.zeus_plan_file.empty()) {
    Result<GivenPlan> plan = GivenPlan::Read(options.zeus_plan_file);
    if (!plan) return tl::unexpected(plan.error());
    given_plan = *std::move(plan);
  }
  Result<std::vector<http::Route>> docs_routes = web::DocsRoutes(options.docs_folder);
  if (!docs_routes) return tl::unexpected(docs_routes.error());
  if (auto good = store::Store::Check(options.store); !good) return good;
  // Each time that the server stands by again it knows nothing of before.
  ServeOptions again = options;
  while (true) {
    Process process(again, given_plan, *docs_routes, ready);
    if (auto listening = process.Listen(); !listening) return listening;
    const Result<std::optional<std::string>> ended = process.Run(signals);
    if (!ended) return tl::unexpected(ended.error());
    if (!ended->has_value()) return {};
    // With the port that was free at first.
    if (!again.listen.starts_with("unix:"))
      again.listen = (*ended)->substr((*ended)->find("://") + 3);
  }
}

}  // namespace perseus::server
