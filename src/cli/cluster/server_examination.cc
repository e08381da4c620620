// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/cluster/server_examination.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "cli/cluster/json_values.h"
#include "cli/cluster/server_client.h"
#include "cli/command_line.h"
#include "cli/framework/table.h"
#include "common/json_text.h"
#include "common/printable.h"

namespace perseus::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kSecondsPerDay = 86400;
constexpr double kShortDays = 14;   // Of a certificate.
constexpr double kFullShare = 0.9;  // Of a limit.
// A write that waits for longer holds up whoever asked for it.
constexpr double kLateSeconds = 1;
constexpr double kLittleBytes = 1 << 30;  // Free on a disk.
constexpr int kMostFindings = 20;         // Of jobs.

// The case of the runbook.
std::string Case(std::string_view anchor, std::string_view what) {
  return fmt::format("{} (docs/how-to/runbook.md#{})", what, anchor);
}

// The value of a metric without labels.
std::optional<double> MetricOf(std::string_view text, std::string_view name) {
  for (std::size_t at = text.find(name); at != std::string_view::npos;
       at = text.find(name, at + 1)) {
    const bool is_line = at == 0 || text[at - 1] == '\n';
    const std::size_t end = at + name.size();
    if (is_line && end < text.size() && text[end] == ' ') {
      return std::strtod(std::string(text.substr(end, 40)).c_str(), nullptr);
    }
  }
  return std::nullopt;
}

class ServerExaminer {
 public:
  explicit ServerExaminer(ServerClient client, std::string server) : client_(std::move(client)) {
    found_.server = std::move(server);
  }

  ServerExamination Run() {
    if (!Answers()) return found_;
    LookAtVersion();
    LookAtStore();
    LookAtToken();
    Json jobs = Json::array();
    for (const char* const state : kUnfinishedStates) {
      const auto found = client_.Jobs(ServerClient::Filter("state", state));
      if (!found) {
        Add(FindingLevel::kFault, "token", found.error().message,
            "give a token of the role read or higher with --token-file "
            "(docs/how-to/cluster.md#2-the-server)");
        return found_;
      }
      jobs.insert(jobs.end(), found->at("jobs").begin(), found->at("jobs").end());
    }
    LookAtMetrics();
    for (const Json& job : jobs) LookAtJob(job);
    if (skipped_ > 0) {
      Add(FindingLevel::kWarning, "jobs",
          fmt::format("{} more like these are not shown", CountOf(skipped_, "finding")),
          "'perseus job list' shows all jobs");
    }
    Add(FindingLevel::kOk, "jobs",
        fmt::format("{} looked at", CountOf(found_.jobs, "unfinished job")));
    return found_;
  }

 private:
  void Add(FindingLevel level, std::string about, std::string message, std::string fix = "") {
    found_.findings.push_back({level, std::move(about), std::move(message), std::move(fix)});
  }

  // Of a job; only the first of many.
  void AddOfJob(FindingLevel level, const Json& job, const std::string& message, std::string fix) {
    if (job_findings_++ >= kMostFindings) {
      ++skipped_;
      return;
    }
    std::string name = job.value("name", "");
    if (name.empty()) name = job.value("id", "");
    Add(level, "job", fmt::format("{}: {}", Printable(name), Printable(message)), std::move(fix));
  }

  bool Answers() {
    const Result<http::Response> response = client_.http().Call("GET", "/healthz", "");
    const std::string fix = Case("the-server-does-not-answer-perseusserverdown",
                                 "see what systemd and the server's log say");
    if (!response) {
      Add(FindingLevel::kFault, "server", response.error().message, fix);
      return false;
    }
    const Json json = ServerClient::Parsed(response->body == nullptr ? "" : *response->body);
    const std::string status = json.value("status", "");
    if (response->status == 200 && status == "ok") return true;
    if (status == "starting") {
      Add(FindingLevel::kWarning, "server", "it starts: " + json.value("message", ""),
          "ask again in a while");
    } else if (status == "standby") {
      Add(FindingLevel::kWarning, "server", json.value("message", ""),
          "ask the active server, or name all: http://HOST1:PORT,http://HOST2:PORT");
    } else {
      Add(FindingLevel::kFault, "server",
          fmt::format("something answers with {}, and is no Perseus server", response->status),
          "correct the address: http://HOST:PORT, https://HOST:PORT or unix:PATH");
    }
    return false;
  }

  void LookAtVersion() {
    const Result<std::string> text = client_.Text("GET", "/openapi.json");
    if (text) {
      const Json json = ServerClient::Parsed(*text);
      found_.version = json.value("info", Json::object()).value("version", "");
    }
    if (found_.version.empty()) {
      Add(FindingLevel::kNote, "server", "answers, and does not say which version it is");
    } else if (found_.version == Version()) {
      Add(FindingLevel::kOk, "server", fmt::format("answers; version {}", found_.version));
    } else {
      Add(FindingLevel::kNote, "server",
          fmt::format("answers; its version is {}, that of this program {}",
                      Printable(found_.version), Version()),
          "versions may differ while a cluster is upgraded (docs/how-to/install.md)");
    }
  }

  void LookAtStore() {
    const Result<http::Response> response = client_.http().Call("GET", "/readyz", "");
    if (!response) {
      Add(FindingLevel::kFault, "store", response.error().message);
    } else if (response->status == 200) {
      Add(FindingLevel::kOk, "store", "takes writes");
    } else {
      Add(FindingLevel::kFault, "store",
          "takes no writes: requests that change a job are refused; ranks keep their plans",
          Case("the-store-takes-no-writes-perseusstoreaway", "the server's log says why"));
    }
  }

  void LookAtToken() {
    const Result<std::string> text = client_.Text("GET", "/api/v1/token");
    if (!text) return;  // The list of jobs says why; an older server has no such page.
    const Json json = ServerClient::Parsed(*text);
    const std::string name = json.value("name", "");
    std::string message = fmt::format("the role is {}", Printable(json.value("role", "")));
    message += name.empty() ? "; the server has no tokens: whoever reaches it may change jobs"
                            : fmt::format(", as {}", Printable(name));
    if (json.value("is_bound", false)) message += "; it is bound to some jobs, and sees no others";
    Add(json.value("is_bound", false) ? FindingLevel::kNote : FindingLevel::kOk, "token", message);
  }

  // `text`: its metrics.
  void LookAtStoreFigures(std::string_view text) {
    const double seconds = MetricOf(text, "perseus_store_waiting_seconds").value_or(0);
    if (seconds > kLateSeconds) {
      Add(FindingLevel::kWarning, "store",
          fmt::format("is behind: {:.0f} writes wait, the oldest for {:.0f} s",
                      MetricOf(text, "perseus_store_waiting_requests").value_or(0), seconds),
          Case("the-store-is-behind", "see whether its disk or database is slow"));
    }
    if (const auto free = MetricOf(text, "perseus_store_free_bytes")) {
      const std::string message = fmt::format("{:.1f} GiB are free on its disk", *free / (1 << 30));
      if (*free < kLittleBytes) {
        Add(FindingLevel::kWarning, "store", message,
            Case("the-store-takes-no-writes-perseusstoreaway", "make room before it is full"));
      } else {
        Add(FindingLevel::kOk, "store", message);
      }
    }
    if (const auto version = MetricOf(text, "perseus_store_schema_version")) {
      Add(FindingLevel::kOk, "store", fmt::format("its tables have version {:.0f}", *version));
    }
  }

  void LookAtMetrics() {
    const Result<std::string> text = client_.Text("GET", "/metrics");
    if (!text) {
      Add(FindingLevel::kWarning, "metrics", text.error().message);
      return;
    }
    if (const auto expiry = MetricOf(*text, "perseus_certificate_expiry_timestamp_seconds")) {
      const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
      const double days = (*expiry - now.count()) / kSecondsPerDay;
      const std::string message = fmt::format("the certificate expires in {:.0f} days", days);
      if (days < kShortDays) {
        Add(FindingLevel::kWarning, "TLS", message,
            Case("the-certificate-expires-perseuscertificateexpires-or-has-expired", "replace it"));
      } else {
        Add(FindingLevel::kOk, "TLS", message);
      }
    }
    LookAtStoreFigures(*text);
    const auto limit = [&](std::string_view of, std::string_view metric, std::string_view most,
                           const std::string& fix) {
      const auto value = MetricOf(*text, metric);
      const auto limit = MetricOf(*text, most);
      if (!value || !limit || *value < kFullShare * *limit) return;
      Add(FindingLevel::kWarning, "limits",
          fmt::format("{:.0f} of at most {:.0f} {}", *value, *limit, of), fix);
    };
    limit("connections are open", "perseus_http_connections", "perseus_http_connections_limit",
          "start the server with more (--max-connections), or relays on the nodes");
    if (MetricOf(*text, "perseus_jobs_damaged").value_or(0) > 0) {
      Add(FindingLevel::kWarning, "store",
          fmt::format("{:.0f} jobs cannot be read; the log names each",
                      *MetricOf(*text, "perseus_jobs_damaged")),
          Case("backup-and-restore", "restore a copy, or delete them"));
    }
  }

  void LookAtJob(const Json& job) {
    ++found_.jobs;
    const std::string id = job.value("id", "");
    const std::string show = fmt::format("'perseus job show {}' says more", id);
    if (job.value("state", "") == "failed") {
      AddOfJob(FindingLevel::kWarning, job, "failed: " + job.value("reason", ""), show);
    }
    if (job.contains("believable") && !job.value("believable", true)) {
      AddOfJob(FindingLevel::kWarning, job,
               "its profile or its settings are implausible, so its planned figures are no result",
               show);
    }
    if (const auto ranks = job.value("complaining", 0LL); ranks > 0) {
      AddOfJob(FindingLevel::kWarning, job, CountOf(ranks, "rank") + " complain",
               Case("a-rank-has-no-plan-perseusrankscomplain", show));
    }
    const bool has_plan = job.contains("plan") && job["plan"].is_object();
    const bool runs = job.contains("measured") && job["measured"].is_object();
    const bool has_ended = job.value("ended", false);
    if (has_plan && runs && !has_ended && job.contains("following") &&
        job.value("following", 0LL) == 0) {
      AddOfJob(FindingLevel::kWarning, job, "it trains, and no rank follows its plan",
               Case("a-rank-has-no-plan-perseusrankscomplain", show));
    }
    if (const long long slow = SlowPipelines(job); slow > 0) {
      AddOfJob(FindingLevel::kNote, job, CountOf(slow, "slow pipeline") + " recorded",
               fmt::format("'perseus job straggler clear {}', where that is over", id));
    }
    // As the alarm PerseusSavesLessThanPredicted: of the same plan, by a point at least.
    const bool is_compared =
        has_plan && job.contains("measured_saving") && job["measured_saving"].is_object() &&
        job["measured_saving"].value("plan_version", 0LL) == job["plan"].value("version", 0LL);
    if (is_compared) {
      constexpr double kMarginPoints = 1;
      const double predicted = job["plan"].value("saving_percent", 0.0);
      const double most = job["measured_saving"].value("most", predicted);
      if (most + kMarginPoints < predicted) {
        AddOfJob(FindingLevel::kWarning, job,
                 fmt::format("saves {:.2f} % (at most {:.2f} %), and {:.2f} % were predicted",
                             job["measured_saving"].value("mean", 0.0), most, predicted),
                 Case("a-job-saves-less-than-predicted-perseussaveslessthanpredicted",
                      "look for the cause"));
      }
    }
  }

  ServerClient client_;
  ServerExamination found_;
  int job_findings_ = 0;
  int skipped_ = 0;
};

}  // namespace

Result<ServerExamination> ExamineServer(const ServerFlags& flags) {
  Result<ServerClient> client = ServerClient::Connect(flags);
  if (!client) return tl::unexpected(client.error());
  return ServerExaminer(*std::move(client), flags.server).Run();
}

std::string FormatServerExamination(const ServerExamination& examination, const Style& style) {
  std::string text = FormatFindings(examination.findings, style) + "\n";
  if (!examination.is_well()) {
    return text + style.Bold("This server is not well") +
           fmt::format(": see {} above.\n",
                       CountOf(CountOfLevel(examination.findings, FindingLevel::kFault), "fault"));
  }
  const long long warnings = CountOfLevel(examination.findings, FindingLevel::kWarning);
  return text + style.Bold("This server is well") +
         (warnings == 0 ? ".\n" : fmt::format("; see {} above.\n", CountOf(warnings, "warning")));
}

std::string ServerExaminationJson(const ServerExamination& examination) {
  const Json json = {{"schema_version", 1},
                     {"is_well", examination.is_well()},
                     {"server", examination.server},
                     {"version", examination.version.empty() ? Json() : Json(examination.version)},
                     {"jobs", examination.jobs},
                     {"findings", FindingsJson(examination.findings)}};
  return FormatByLine(json);
}

}  // namespace perseus::cli
