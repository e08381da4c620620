// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "relay/plan_hub.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "relay/plan_answers.h"

namespace perseus::relay {
namespace {

// A question with after=-1 is answered at once; this is for a server that is not quick.
constexpr int kFetchWaitSeconds = 2;
constexpr std::chrono::seconds kWaiterGrace{1};

http::Response NoNews() {
  http::Response response;
  response.status = 204;
  response.content_type = "";
  return response;
}

}  // namespace

PlanHub::PlanHub(const ServerAddress* address, ServerHealth* health, Forwarder* forwarder,
                 LogSink log, PlanHubOptions options)
    : address_(address),
      health_(health),
      forwarder_(forwarder),
      log_(std::move(log)),
      options_(options) {}

PlanHub::~PlanHub() { Stop(); }

void PlanHub::Ask(const PlanQuestion& question, const http::Responder& responder) {
  JoinEnded();
  Answers answers;
  const MutexLock lock(mutex_);
  if (stopped_) return answers.Add(responder, http::TryAgainResponse("The relay stops."));
  const auto found = jobs_.find(question.job);
  if (found == jobs_.end() && jobs_.size() >= options_.max_jobs) {
    return answers.Add(responder, http::TryAgainResponse(fmt::format(
                                      "The relay serves {} jobs already.", options_.max_jobs)));
  }
  const JobPointer job =
      found != jobs_.end()
          ? found->second
          : jobs_.emplace(question.job, std::make_shared<Job>(question.job, address_, health_))
                .first->second;
  if (job->ranks.size() >= options_.max_ranks && !job->ranks.contains(question.rank)) {
    return answers.Add(responder, http::TryAgainResponse(fmt::format(
                                      "The relay serves {} ranks already.", options_.max_ranks)));
  }
  Rank& rank = job->ranks[question.rank];
  const Clock::time_point now = Clock::now();
  rank.seen = now;
  std::erase_if(rank.waiters, [now](const Waiter& waiter) { return waiter.until < now; });

  const bool is_known = rank.plans != nullptr && rank.plans->version() >= job->version;
  const bool is_away = health_->is_away();
  if ((is_known || is_away) && rank.plans != nullptr && rank.plans->version() > question.after) {
    return answers.Add(responder, rank.plans, question.rank);
  }
  if (is_known && is_away) {
    return answers.Add(
        responder, http::TryAgainResponse(fmt::format("The relay has the last plan, but the server "
                                                      "does not answer: {}",
                                                      health_->why())));
  }
  const bool is_ahead = rank.plans != nullptr && question.after > rank.plans->version();
  if (is_known && !is_ahead && question.wait_seconds <= 0) return answers.Add(responder, NoNews());
  Park(job, &rank, question, responder);
  if (is_known && !is_ahead) return;
  rank.wants_fetch = true;
  // A server that knows of that version keeps silent, one that lost it says so.
  rank.fetch_after = is_ahead ? question.after : -1;
  StartFetch(job, &answers);
}

void PlanHub::Park(const JobPointer& job, Rank* rank, const PlanQuestion& question,
                   const http::Responder& responder) {
  const double seconds = rank->plans != nullptr
                             ? question.wait_seconds
                             : std::max(question.wait_seconds, options_.fetch_seconds);
  const std::int64_t ticket = ++last_ticket_;
  const auto wait =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  responder.AnswerAfter(seconds, NoNews());
  rank->waiters.push_back({question.after, ticket, Clock::now() + wait + kWaiterGrace, responder});
  responder.OnGone([this, weak = std::weak_ptr(job), number = question.rank, ticket] {
    Withdraw(weak, number, ticket);
  });
}

void PlanHub::Withdraw(const std::weak_ptr<Job>& job, int rank, std::int64_t ticket) {
  const JobPointer known = job.lock();
  if (known == nullptr) return;
  const MutexLock lock(mutex_);
  const auto found = known->ranks.find(rank);
  if (found == known->ranks.end()) return;
  std::erase_if(found->second.waiters,
                [ticket](const Waiter& waiter) { return waiter.ticket == ticket; });
}

// One at a time of a job. Those that want the same go together.
void PlanHub::StartFetch(const JobPointer& job, Answers* answers) {
  if (job->is_fetching || stopped_) return;
  std::vector<int> ranks;
  std::int64_t after = -1;
  for (auto& [number, rank] : job->ranks) {
    if (!rank.wants_fetch) continue;
    if (!ranks.empty() && (rank.fetch_alone || rank.fetch_after != after)) continue;
    ranks.push_back(number);
    after = rank.fetch_after;
    rank.wants_fetch = false;
    if (std::exchange(rank.fetch_alone, false)) break;
  }
  if (ranks.empty()) return;
  Forwarder::Request request = {"GET", PlansTarget(job->id, ranks, after, kFetchWaitSeconds), ""};
  if (after >= 0) request.target = PlansTarget(job->id, ranks, after, 0);
  job->is_fetching = forwarder_->Send(
      std::move(request), [this, job, ranks, after](const Result<http::Response>& result) {
        TakeFetched(job, ranks, after, result);
      });
  if (job->is_fetching) {
    ++fetches_;
    return;
  }
  RefuseWaiting(job.get(), TooManyRequests(), answers);
  std::erase_if(job->ranks, [](const auto& entry) { return entry.second.plans == nullptr; });
  EraseIfIdle(job);
}

void PlanHub::EraseIfIdle(const JobPointer& job) {
  if (job->ranks.empty() && !job->thread.joinable() && !job->is_fetching) jobs_.erase(job->id);
}

void PlanHub::TakeFetched(const JobPointer& job, const std::vector<int>& ranks, std::int64_t after,
                          const Result<http::Response>& result) {
  Result<std::shared_ptr<const PlanSet>> plans = MakeError(ErrorCode::kIo, "");
  if (result && result->status == 200) {
    plans = PlanSet::Parse(result->body);
    if (!plans && log_) log_(true, "bad_answer", plans.error().message);
  }
  Answers answers;
  const MutexLock lock(mutex_);
  job->is_fetching = false;
  if (stopped_) return;
  const auto refuse = [&](int number, const http::Response& response) {
    const auto found = job->ranks.find(number);
    if (found == job->ranks.end()) return;
    for (const Waiter& waiter : found->second.waiters) answers.Add(waiter.responder, response);
    found->second.waiters.clear();
    if (found->second.plans == nullptr || response.status < 500) job->ranks.erase(found);
  };
  const bool is_refused = result && result->status / 100 == 4 && !IsUnavailable(result->status);
  if (plans) {
    Accept(job, *plans, after, &answers);
    for (const int number : ranks) {
      if (!(*plans)->Has(number)) {
        refuse(number, http::TryAgainResponse("The server's answer lacks this rank's plan."));
      }
    }
  } else if (is_refused && ranks.size() > 1) {
    // One that the server does not know must not keep the others from theirs.
    for (const int number : ranks) {
      const auto found = job->ranks.find(number);
      if (found != job->ranks.end()) {
        found->second.wants_fetch = found->second.fetch_alone = true;
        found->second.fetch_after = after;
      }
    }
  } else if (!result || result->status != 204) {
    // A rank's own answer; where there is none, why.
    const http::Response response = !result                 ? UnavailableResponse(result.error())
                                    : result->status == 200 ? UnavailableResponse(plans.error())
                                                            : *result;
    for (const int number : ranks) refuse(number, response);
  } else if (after < 0) {
    for (const int number : ranks) refuse(number, NoNews());
  }
  StartFetch(job, &answers);
  EraseIfIdle(job);
}

void PlanHub::Accept(const JobPointer& job, const std::shared_ptr<const PlanSet>& plans,
                     std::int64_t asked_after, Answers* answers) {
  const std::int64_t version = plans->version();
  if (version > job->version || asked_after >= job->version) job->version = version;
  for (auto& [number, rank] : job->ranks) {
    if (plans->Has(number)) {
      const std::int64_t known = rank.plans != nullptr ? rank.plans->version() : -1;
      if (version >= known || asked_after >= known) rank.plans = plans;
      std::erase_if(rank.waiters, [&, number = number](const Waiter& waiter) {
        const bool is_news =
            version > waiter.after || (version < waiter.after && asked_after >= waiter.after);
        if (is_news) answers->Add(waiter.responder, plans, number);
        return is_news;
      });
    } else if (!rank.waiters.empty() && rank.plans != nullptr &&
               rank.plans->version() != job->version) {
      rank.wants_fetch = true;  // It came after the poll had begun.
      rank.fetch_after = -1;
    }
  }
  StartThread(job, answers);
}

void PlanHub::RefuseWaiting(Job* job, const http::Response& response, Answers* answers) {
  for (auto& [number, rank] : job->ranks) {
    for (const Waiter& waiter : rank.waiters) answers->Add(waiter.responder, response);
    rank.waiters.clear();
  }
}

PlanHub::Counts PlanHub::counts() const {
  const MutexLock lock(mutex_);
  Counts counts;
  counts.jobs = jobs_.size();
  for (const auto& [id, job] : jobs_) {
    counts.ranks += job->ranks.size();
    for (const auto& [number, rank] : job->ranks) counts.waiting += rank.waiters.size();
  }
  counts.polls = polls_;
  counts.fetches = fetches_;
  return counts;
}

}  // namespace perseus::relay
