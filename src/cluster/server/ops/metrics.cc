// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/ops/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

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
#include "perseus/version.h"
#include "store/facts.h"

namespace perseus::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

// Not "job": in Prometheus that is what was scraped.
constexpr const char* kJob = "job_id";

// Seconds; the longest are long polls.
const prometheus::Histogram::BucketBoundaries kSeconds = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                                          0.05,   0.1,   0.25,   0.5,   1,    60};

MetricFamily Family(const char* name, const char* help, MetricType type) {
  MetricFamily family;
  family.name = name;
  family.help = help;
  family.type = type;
  return family;
}

void AddValue(MetricFamily* family, double value, std::vector<ClientMetric::Label> labels = {}) {
  ClientMetric metric;
  metric.label = std::move(labels);
  metric.counter.value = value;
  metric.gauge.value = value;
  family->metric.push_back(std::move(metric));
}

MetricFamily Single(const char* name, const char* help, MetricType type, double value) {
  MetricFamily family = Family(name, help, type);
  AddValue(&family, value);
  return family;
}

// Clients may send any token as a method, without a token of ours; each label of its own
// would cost memory for ever.
std::string MethodLabel(std::string_view method) {
  constexpr std::array<std::string_view, 7> kMethods = {"GET",    "HEAD",  "POST",   "PUT",
                                                        "DELETE", "PATCH", "OPTIONS"};
  const bool is_known = std::find(kMethods.begin(), kMethods.end(), method) != kMethods.end();
  return is_known ? std::string(method) : "other";
}

// What jobs find out by themselves. A family without values is not shown.
class WatchFamilies {
 public:
  void Add(const JobView& view) {
    const WatchView& watch = view.watch;
    const std::string& job = view.record.id;
    AddIterations(job, watch);
    for (const auto& [kind, count] : watch.counts) {
      AddValue(&findings_, static_cast<double>(count), {{kJob, job}, {"kind", kind}});
    }
    if (watch.settings.mode != DetectionMode::kOff) {
      AddValue(&watched_, static_cast<double>(watch.watched_ranks), {{kJob, job}});
      AddValue(&slow_, static_cast<double>(watch.slow.size()), {{kJob, job}});
      AddValue(&drift_, watch.drift_factor - 1, {{kJob, job}});
      AddValue(&longer_, watch.slow_factor - 1, {{kJob, job}});
    }
    if (watch.realised.empty()) return;
    const Realised& newest = watch.realised.back();
    AddValue(&pairs_, static_cast<double>(newest.pairs), {{kJob, job}});
    AddValue(&compared_, static_cast<double>(newest.plan_version), {{kJob, job}});
    AddEstimate(&saving_, job, newest.saving);
    AddEstimate(&time_, job, newest.slowdown);
  }

  void Append(std::vector<MetricFamily>* families) {
    for (MetricFamily* const family :
         {&iterations_, &measured_, &joules_, &iteration_time_, &power_, &last_, &findings_,
          &watched_, &slow_, &drift_, &longer_, &pairs_, &compared_, &saving_, &time_}) {
      if (!family->metric.empty()) families->push_back(std::move(*family));
    }
  }

 private:
  void AddIterations(const std::string& job, const WatchView& watch) {
    if (!watch.recent) return;
    AddValue(&iterations_, static_cast<double>(watch.totals.iterations), {{kJob, job}});
    AddValue(&measured_, static_cast<double>(watch.totals.with_energy), {{kJob, job}});
    AddValue(&joules_, watch.totals.joules, {{kJob, job}});
    AddValue(&iteration_time_, watch.recent->iteration_seconds, {{kJob, job}});
    if (watch.recent->watts) AddValue(&power_, *watch.recent->watts, {{kJob, job}});
    AddValue(&last_, watch.recent->at_seconds, {{kJob, job}});
  }

  static void AddEstimate(MetricFamily* family, const std::string& job,
                          const std::optional<ShareEstimate>& estimate) {
    if (!estimate) return;
    AddValue(family, estimate->share, {{kJob, job}, {"bound", "mean"}});
    AddValue(family, estimate->least, {{kJob, job}, {"bound", "least"}});
    AddValue(family, estimate->most, {{kJob, job}, {"bound", "most"}});
  }

  MetricFamily iterations_ =
      Family("perseus_job_iterations_total",
             "Iterations that ranks reported to this server since it began.", MetricType::Counter);
  MetricFamily measured_ =
      Family("perseus_job_measured_iterations_total",
             "Of these, those of which all ranks reported their energy.", MetricType::Counter);
  MetricFamily joules_ =
      Family("perseus_job_energy_joules_total",
             "Energy of all GPUs in these, as their counters measured it.", MetricType::Counter);
  MetricFamily iteration_time_ = Family(
      "perseus_job_iteration_time_seconds",
      "Median of the last 16 iterations; of each the slowest rank, measured.", MetricType::Gauge);
  MetricFamily power_ =
      Family("perseus_job_power_watts", "Power of all GPUs in the last 16 iterations, measured.",
             MetricType::Gauge);
  MetricFamily last_ =
      Family("perseus_job_last_iteration_timestamp_seconds",
             "When the last iteration was over, seconds since 1970.", MetricType::Gauge);
  MetricFamily findings_ =
      Family("perseus_job_findings_total",
             "Findings of straggler detection and comparison, by kind.", MetricType::Counter);
  MetricFamily watched_ =
      Family("perseus_job_watched_ranks", "Ranks whose normal pace is known.", MetricType::Gauge);
  MetricFamily slow_ =
      Family("perseus_job_slow_ranks", "Ranks that are slow now.", MetricType::Gauge);
  MetricFamily drift_ =
      Family("perseus_job_drift_ratio", "By how much nearly all ranks are slow together.",
             MetricType::Gauge);
  MetricFamily longer_ =
      Family("perseus_job_iteration_excess_ratio",
             "By how much iterations are longer than planned.", MetricType::Gauge);
  MetricFamily pairs_ = Family("perseus_job_compared_pairs",
                               "Stretches with the plan and at maximum clocks that were compared.",
                               MetricType::Gauge);
  MetricFamily compared_ =
      Family("perseus_job_compared_plan_version",
             "Version of the plan that the realised saving is of.", MetricType::Gauge);
  MetricFamily saving_ =
      Family("perseus_job_realised_saving_ratio",
             "Energy that the plan was measured to save, with its 95 % confidence interval.",
             MetricType::Gauge);
  MetricFamily time_ =
      Family("perseus_job_realised_time_ratio",
             "Time that the plan was measured to cost, with its 95 % confidence interval.",
             MetricType::Gauge);
};

// Of the jobs, as they are now.
std::vector<MetricFamily> JobFamilies(const JobService& service) {
  MetricFamily states = Family("perseus_jobs", "Jobs by state.", MetricType::Gauge);
  MetricFamily infos =
      Family("perseus_job_info", "1, with the id and the name of a job.", MetricType::Gauge);
  MetricFamily complaining =
      Family("perseus_job_complaining_ranks", "Ranks that report an error.", MetricType::Gauge);
  MetricFamily versions =
      Family("perseus_job_plan_version", "Version of a job's plan.", MetricType::Gauge);
  MetricFamily savings =
      Family("perseus_job_planned_saving_ratio",
             "Share of the energy at maximum clocks that the plan saves.", MetricType::Gauge);
  MetricFamily ranks = Family("perseus_job_ranks", "Ranks that joined a job.", MetricType::Gauge);
  MetricFamily stragglers = Family("perseus_job_stragglers",
                                   "Stragglers that are recorded for a job.", MetricType::Gauge);
  MetricFamily waiting =
      Family("perseus_job_waiting", "Requests that wait for a job's plan.", MetricType::Gauge);
  MetricFamily clients =
      Family("perseus_job_client_events", "Counts of a job's clients since they started, by kind.",
             MetricType::Gauge);
  WatchFamilies watch;
  std::array<int, store::kJobStateNames.size()> counts = {};
  for (const auto& job : service.Jobs()) {
    const JobView view = job->View();
    ++counts[static_cast<std::size_t>(view.record.state)];
    if (view.record.state == store::JobState::kFinished) continue;
    const std::vector<ClientMetric::Label> labels = {{kJob, view.record.id}};
    AddValue(&infos, 1, {{kJob, view.record.id}, {"job_name", view.record.name}});
    AddValue(&complaining, static_cast<double>(view.complaining_clients), labels);
    AddValue(&ranks, static_cast<double>(view.ranks_registered), labels);
    AddValue(&stragglers, static_cast<double>(view.stragglers.size()), labels);
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
  std::vector<MetricFamily> families = {states,     infos,   versions, savings,    ranks,
                                        stragglers, waiting, clients,  complaining};
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

  std::vector<MetricFamily> Collect() const { return registry_.Collect(); }

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
  std::vector<MetricFamily> families = impl_->Collect();
  for (MetricFamily& family : JobFamilies(service)) families.push_back(std::move(family));
  const store::StoreCounters store = service.store_counters();
  const auto counter = [&](const char* name, const char* help, auto value) {
    families.push_back(Single(name, help, MetricType::Counter, static_cast<double>(value)));
  };
  const auto gauge = [&](const char* name, const char* help, auto value) {
    families.push_back(Single(name, help, MetricType::Gauge, static_cast<double>(value)));
  };
  counter("perseus_store_facts_total", "Facts made durable.", store.facts);
  counter("perseus_store_commits_total", "Commits; one commit writes all waiting facts.",
          store.commits);
  counter("perseus_store_failures_total", "Requests that the store refused.", store.failures);
  MetricFamily build = Family("perseus_build_info", "1, with the version.", MetricType::Gauge);
  AddValue(&build, 1, {{"version", PERSEUS_VERSION_STRING}});
  families.push_back(std::move(build));
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
  counter("perseus_http_connections_total", "Connections that were taken.", http.accepted);
  counter("perseus_http_refused_connections_total", "Connections beyond the limit.",
          http.refused_connections);
  counter("perseus_http_outdated_requests_total",
          "Changes that were refused because the server was stopped after they were sent.",
          http.outdated);
  counter("perseus_http_timed_out_total", "Connections closed because the client was too slow.",
          http.timed_out);
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace perseus::server
