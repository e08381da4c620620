// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "relay/report_batches.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "perseus/version.h"
#include "relay/json_slices.h"
#include "relay/server_line.h"
#include "wire/routes.h"

namespace perseus::relay {
namespace {

// Well below the server's longest body, 1 MiB.
constexpr std::size_t kMostBatchBytes = std::size_t{256} << 10;
constexpr std::size_t kMostBatchReports = 64;

// What stands between the brackets of an array.
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

ReportBatches::ReportBatches(Forwarder* forwarder, After after, double linger_seconds)
    : forwarder_(forwarder), after_(std::move(after)), linger_seconds_(linger_seconds) {}

// Whether it is a report that can be joined with others.
bool ReportBatches::Read(Report* report) {
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

void ReportBatches::Add(const std::string& target, const std::string& body,
                        const http::Responder& responder) {
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

void ReportBatches::FlushJob(const std::string& target, const std::shared_ptr<Batch>& batch) {
  {
    const MutexLock lock(mutex_);
    const auto found = pending_.find(target);
    if (found == pending_.end() || found->second.batch != batch) return;  // It was full before.
    pending_.erase(found);
  }
  Send(target, batch);
}

void ReportBatches::Flush() {
  std::map<std::string, Pending> pending;
  {
    const MutexLock lock(mutex_);
    pending.swap(pending_);
  }
  for (const auto& [target, each] : pending) Send(target, each.batch);
}

void ReportBatches::Send(const std::string& target, const std::shared_ptr<Batch>& batch) {
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

void ReportBatches::Answer(const std::string& target, const Batch& batch,
                           const Result<http::Response>& result) {
  const bool is_refused =
      result && result->status / 100 == 4 && result->status != 408 && result->status != 429;
  for (const Report& report : batch) {
    if (is_refused) {
      SendAlone(target, report);
    } else if (result && result->status / 100 == 2) {
      report.responder.Send(http::JsonResponse(result->status, AnswerOfOne(report.count, *result)));
    } else {
      report.responder.Send(result ? *result : UnavailableResponse(result.error()));
    }
  }
}

void ReportBatches::SendAlone(const std::string& target, const Report& report) {
  Forward(forwarder_, {"POST", target, report.body, RelayHeaders()}, report.responder);
}

}  // namespace perseus::relay
