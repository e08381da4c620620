// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/ops/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/belief.h"
#include "metrics/families.h"
#include "server/store/facts.h"

namespace perseus::server {
namespace {

using metrics::AddValue;
using metrics::Counter;
using metrics::Families;
using metrics::Gauge;
using prometheus::MetricFamily;

// Not "job": Prometheus uses that for the scraped target.
constexpr const char* kJob = "job_id";

// Seconds; the longest are long polls.
const prometheus::Histogram::BucketBoundaries kSeconds = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                                          0.05,   0.1,   0.25,   0.5,   1,    60};

// Clients may send any token as a method, without a token of ours; each label of its own
// would cost memory for ever.
std::string MethodLabel(std::string_view method) {
  constexpr std::array<std::string_view, 7> kMethods = {"GET",    "HEAD",  "POST",   "PUT",
                                                        "DELETE", "PATCH", "OPTIONS"};
  const bool is_known = std::find(kMethods.begin(), kMethods.end(), method) != kMethods.end();
  return is_known ? std::string(method) : "other";
}

// Families from the watches of jobs.
class WatchFamilies {
 public:
  void Add(const JobView& view) {
    const WatchView& watch = view.watch;
    const std::string& job = view.record.id;
    AddIterations(job, watch, view.has_ended);
    AddSaved(job, watch, AreBelievable(view.notes));
    for (const auto& [kind, count] : watch.counts) {
      AddValue(&findings_, static_cast<double>(count), {{kJob, job}, {"kind", kind}});
    }
    if (watch.settings.mode != DetectionMode::kOff) {
      AddValue(&watched_, static_cast<double>(watch.watched_ranks), {{kJob, job}});
      AddValue(&slow_, static_cast<double>(watch.slow.size()), {{kJob, job}});
      AddValue(&drift_, watch.drift_factor - 1, {{kJob, job}});
      if (watch.knows_iterations) AddValue(&longer_, watch.slow_factor - 1, {{kJob, job}});
    }
    if (watch.measured_savings.empty()) return;
    const MeasuredSaving& newest = watch.measured_savings.back();
    AddValue(&pairs_, static_cast<double>(newest.pairs), {{kJob, job}});
    AddValue(&compared_, static_cast<double>(newest.plan_version), {{kJob, job}});
    AddEstimate(&saving_, job, newest.saving);
    AddEstimate(&time_, job, newest.slowdown);
  }

  void Append(Families* families) {
    for (MetricFamily* const family :
         {&iterations_, &measured_, &joules_, &predicted_, &measured_saved_, &lost_,
          &iteration_time_, &power_, &last_, &findings_, &watched_, &slow_, &drift_, &longer_,
          &pairs_, &compared_, &saving_, &time_}) {
      families->push_back(std::move(*family));
    }
  }

 private:
  void AddIterations(const std::string& job, const WatchView& watch, bool has_ended) {
    if (!watch.recent) return;
    AddValue(&iterations_, static_cast<double>(watch.totals.iterations), {{kJob, job}});
    AddValue(&measured_, static_cast<double>(watch.totals.with_energy), {{kJob, job}});
    AddValue(&joules_, watch.totals.joules, {{kJob, job}});
    AddValue(&last_, watch.recent->at_seconds, {{kJob, job}});
    if (has_ended) return;
    AddValue(&iteration_time_, watch.recent->iteration_seconds, {{kJob, job}});
    if (watch.recent->watts) AddValue(&power_, *watch.recent->watts, {{kJob, job}});
  }

  // Leaves out savings that were not measured, rather than 0.
  void AddSaved(const std::string& job, const WatchView& watch, bool is_believable) {
    const IterationTotals& totals = watch.totals;
    if (totals.with_energy == 0) return;
    if (is_believable) AddValue(&predicted_, totals.predicted_joules, {{kJob, job}});
    if (totals.measured_saved_joules == 0 && totals.measured_lost_joules == 0) return;
    AddValue(&measured_saved_, totals.measured_saved_joules, {{kJob, job}});
    AddValue(&lost_, totals.measured_lost_joules, {{kJob, job}});
  }

  static void AddEstimate(MetricFamily* family, const std::string& job,
                          const std::optional<ShareEstimate>& estimate) {
    if (!estimate) return;
    AddValue(family, estimate->share, {{kJob, job}, {"bound", "mean"}});
    AddValue(family, estimate->least, {{kJob, job}, {"bound", "least"}});
    AddValue(family, estimate->most, {{kJob, job}, {"bound", "most"}});
  }

  MetricFamily iterations_ =
      Counter("perseus_job_iterations_total",
              "Iterations that ranks reported to this server since it began.");
  MetricFamily measured_ = Counter("perseus_job_measured_iterations_total",
                                   "Of these, those of which all ranks reported their energy.");
  MetricFamily joules_ = Counter("perseus_job_energy_joules_total",
                                 "Energy of all GPUs in these, as their counters measured it.");
  MetricFamily predicted_ =
      Counter("perseus_job_predicted_saved_joules_total",
              "What these saved against maximum clocks, if their plan's prediction is right.");
  MetricFamily measured_saved_ = Counter(
      "perseus_job_measured_saved_joules_total",
      "What those of them saved whose plan was compared with default clocks, by that comparison.");
  MetricFamily lost_ =
      Counter("perseus_job_measured_lost_joules_total",
              "What those of them used beyond maximum clocks whose plan was measured to use more.");
  MetricFamily iteration_time_ =
      Gauge("perseus_job_iteration_time_seconds",
            "Median of the last 16 iterations; of each the slowest rank, measured.");
  MetricFamily power_ =
      Gauge("perseus_job_power_watts", "Power of all GPUs in the last 16 iterations, measured.");
  MetricFamily last_ = Gauge("perseus_job_last_iteration_timestamp_seconds",
                             "When the last iteration was over, seconds since 1970.");
  MetricFamily findings_ = Counter("perseus_job_findings_total",
                                   "Findings of straggler detection and comparison, by kind.");
  MetricFamily watched_ = Gauge("perseus_job_watched_ranks", "Ranks whose normal pace is known.");
  MetricFamily slow_ = Gauge("perseus_job_slow_ranks", "Ranks that are slow now.");
  MetricFamily drift_ =
      Gauge("perseus_job_drift_ratio", "By how much nearly all ranks are slow together.");
  MetricFamily longer_ = Gauge("perseus_job_iteration_excess_ratio",
                               "By how much iterations are longer than planned.");
  MetricFamily pairs_ = Gauge("perseus_job_compared_pairs",
                              "Phases with the plan and at default clocks that were compared.");
  MetricFamily compared_ = Gauge("perseus_job_compared_plan_version",
                                 "Version of the plan that the measured saving is of.");
  MetricFamily saving_ =
      Gauge("perseus_job_measured_saving_ratio",
            "Energy that the plan was measured to save, with its 95 % confidence interval.");
  MetricFamily time_ =
      Gauge("perseus_job_measured_time_ratio",
            "Time that the plan was measured to cost, with its 95 % confidence interval.");
};

// Of the jobs, as they are now.
Families JobFamilies(const JobService& service) {
  MetricFamily states = Gauge("perseus_jobs", "Jobs by state.");
  MetricFamily infos = Gauge("perseus_job_info", "1, with the id and the name of a job.");
  MetricFamily job_labels = Gauge("perseus_job_label", "1, for each label of a job.");
  MetricFamily complaining = Gauge("perseus_job_complaining_ranks", "Ranks that report an error.");
  MetricFamily versions = Gauge("perseus_job_plan_version", "Version of a job's plan.");
  MetricFamily savings = Gauge("perseus_job_planned_saving_ratio",
                               "Share of the energy at maximum clocks that the plan saves.");
  MetricFamily ranks = Gauge("perseus_job_ranks", "Ranks that joined a job.");
  MetricFamily stragglers =
      Gauge("perseus_job_stragglers", "Pipelines of a job that recorded stragglers slow.");
  MetricFamily waiting = Gauge("perseus_job_waiting", "Requests that wait for a job's plan.");
  MetricFamily clients =
      Gauge("perseus_job_client_events", "Counts of a job's clients since they started, by kind.");
  WatchFamilies watch;
  std::array<int, store::kJobStateNames.size()> counts = {};
  for (const auto& job : service.Jobs()) {
    const JobView view = job->View();
    ++counts[static_cast<std::size_t>(view.record.state)];
    if (view.record.state == store::JobState::kFinished) continue;
    const metrics::Labels labels = {{kJob, view.record.id}};
    AddValue(&infos, 1, {{kJob, view.record.id}, {"job_name", view.record.name}});
    for (const auto& [name, value] : view.record.labels) {
      AddValue(&job_labels, 1, {{kJob, view.record.id}, {"label", name}, {"value", value}});
    }
    AddValue(&complaining, static_cast<double>(view.complaining_clients), labels);
    AddValue(&ranks, static_cast<double>(view.ranks_registered), labels);
    AddValue(&stragglers, static_cast<double>(view.slow_pipelines), labels);
    watch.Add(view);
    AddValue(&waiting, static_cast<double>(job->board().waiting()), labels);
    for (const auto& [kind, count] : view.client_counts) {
      AddValue(&clients, count, {{kJob, view.record.id}, {"kind", kind}});
    }
    if (view.plan == nullptr) continue;
    AddValue(&versions, static_cast<double>(view.plan->version.version), labels);
    if (view.plan->curve == nullptr || !AreBelievable(view.notes)) continue;
    if (const CurvePlan* const plan = view.plan->curve->Find(view.plan->version.plan)) {
      AddValue(&savings, plan->saving_percent / 100, labels);
    }
  }
  for (std::size_t i = 0; i < counts.size(); ++i) {
    AddValue(&states, counts[i], {{"state", std::string(store::kJobStateNames[i])}});
  }
  Families families = {states, infos,      job_labels, versions, savings,
                       ranks,  stragglers, waiting,    clients,  complaining};
  watch.Append(&families);
  return families;
}

}  // namespace

class Metrics::Impl {
 public:
  void Count(const http::AccessRecord& record) {
    // The route's pattern, which is ours, and not the path: as many series as there are routes.
    const std::string route(record.pattern.empty() ? "none" : record.pattern);
    const std::string status = std::to_string(record.status / 100) + "xx";
    requests_.Add({{"route", route}, {"method", MethodLabel(record.method)}, {"status", status}})
        .Increment();
    seconds_.Add({{"route", route}}, kSeconds).Observe(record.seconds);
  }

  Families Collect() const { return registry_.Collect(); }

 private:
  prometheus::Registry registry_;
  prometheus::Family<prometheus::Counter>& requests_ = prometheus::BuildCounter()
                                                           .Name("perseus_http_requests_total")
                                                           .Help("Answered requests.")
                                                           .Register(registry_);
  prometheus::Family<prometheus::Histogram>& seconds_ =
      prometheus::BuildHistogram()
          .Name("perseus_http_request_seconds")
          .Help(
              "From the last byte of a request to the last byte of its answer, including waits of "
              "long polls.")
          .Register(registry_);
};

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {}
Metrics::~Metrics() = default;

void Metrics::Count(const http::AccessRecord& record) { impl_->Count(record); }

std::string Metrics::Text(const JobService& service, const http::Counters& http,
                          const ServerFigures& figures) const {
  Families families = impl_->Collect();
  for (MetricFamily& family : JobFamilies(service)) families.push_back(std::move(family));
  const store::StoreCounters store = service.store_counters();
  const auto counter = [&](const char* name, const char* help, auto value) {
    families.push_back(Counter(name, help, static_cast<double>(value)));
  };
  const auto gauge = [&](const char* name, const char* help, auto value) {
    families.push_back(Gauge(name, help, static_cast<double>(value)));
  };
  counter("perseus_store_facts_total", "Facts made durable.", store.facts);
  counter("perseus_store_commits_total", "Commits; one commit writes all waiting facts.",
          store.commits);
  counter("perseus_store_failures_total", "Requests that the store refused.", store.failures);
  gauge("perseus_store_waiting_requests", "Requests that are not durable yet.", store.waiting);
  gauge("perseus_store_waiting_seconds", "For how long the oldest of them has waited.",
        store.waiting_seconds);
  gauge("perseus_store_schema_version", "Version of the store's tables.", store.schema_version);
  if (store.free_bytes) {
    gauge("perseus_store_free_bytes", "Free on the disk of the store's file.", *store.free_bytes);
  }
  families.push_back(metrics::BuildInfo("perseus_build_info"));
  if (figures.certificate_expires_at_seconds) {
    gauge("perseus_certificate_expiry_timestamp_seconds",
          "When the server's certificate expires, seconds since 1970.",
          *figures.certificate_expires_at_seconds);
  }
  gauge("perseus_store_up", "1: the store takes writes; 0: the last write failed.",
        figures.is_store_up ? 1 : 0);
  gauge("perseus_jobs_limit", "Jobs that may be unfinished at once (--max-jobs).",
        service.max_jobs());
  gauge("perseus_jobs_damaged",
        "Jobs that cannot be read from the store, or were set aside after a bug.",
        service.damaged_jobs());
  gauge("perseus_characterizations_waiting",
        "Jobs that wait for plans or whose plans are being computed.",
        service.jobs_that_want_work());
  gauge("perseus_http_connections", "Open connections.", http.connections_now);
  gauge("perseus_http_connections_limit", "Connections that may be open (--max-connections).",
        figures.max_connections);
  gauge("perseus_http_parked", "Long polls that wait.", http.parked_now);
  gauge("perseus_http_streams", "Open streams of events.", http.streams_now);
  gauge("perseus_http_body_bytes", "Bodies of requests in memory.", http.body_bytes_now);
  gauge("perseus_http_body_bytes_limit", "Beyond it, requests are refused.",
        http::ServerOptions().max_bodies_bytes);
  counter("perseus_http_connections_total", "Connections that were taken.", http.accepted);
  counter("perseus_http_refused_connections_total", "Connections beyond the limit.",
          http.refused_connections);
  counter("perseus_http_outdated_requests_total",
          "Changes that were refused because the server was stopped after they were sent.",
          http.outdated);
  counter("perseus_http_dropped_streams_total",
          "Streams of events closed because the client read too slowly.", http.dropped_streams);
  counter("perseus_http_failed_handshakes_total", "Connections that ended before TLS was set up.",
          http.failed_handshakes);
  counter("perseus_http_timed_out_total", "Connections closed because the client was too slow.",
          http.timed_out);
  for (MetricFamily& family : metrics::ProcessFamilies()) families.push_back(std::move(family));
  return metrics::Text(std::move(families));
}

}  // namespace perseus::server
