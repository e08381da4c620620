// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "client/plan_poller.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <utility>

#include "client/server_messages.h"
#include "client/ticks.h"
#include "http/target.h"

namespace perseus::client {
namespace {

constexpr double kDeadlineSeconds = 10;
constexpr int kPollSeconds = 30;
constexpr std::int64_t kHastyNs = kSecondNs;  // Sooner than any poll should end.
constexpr double kFirstPauseSeconds = 0.2;
constexpr double kLongestPauseSeconds = 5;
constexpr double kDeviceSeconds = 5;  // The server wants to know the GPU's clocks.

std::string_view BodyOf(const http::Response& response) {
  return response.body ? std::string_view(*response.body) : std::string_view();
}

}  // namespace

void PlanPoller::Run() {
  Step step = Step::kRegister;
  while (!state_->stopping()) {
    const Step next = Try(step);
    if (next == Step::kDone) {
      pause_seconds_ = 0;
      state_->SetAnswered(MonotonicNs());
      state_->Recovered(SharedState::About::kServer);
      step = Step::kAgain;
      continue;
    }
    step = next;
    pause_seconds_ = std::clamp(2 * pause_seconds_, kFirstPauseSeconds, kLongestPauseSeconds);
    // Ranks that lost the same server come back at different times.
    const double spread = 0.75 + 0.05 * (state_->settings().rank % 11);
    if (!state_->Pause(pause_seconds_ * spread)) return;
  }
}

PlanPoller::Step PlanPoller::Try(Step step) {
  try {
    return step == Step::kRegister ? Register() : Poll();
  } catch (const std::exception& exception) {  // No memory, or no thread to look a name up.
    state_->ComplainOf("asking the server", exception);
    return step;
  }
}

PlanPoller::Step PlanPoller::Fail(const std::string& what, Step next) {
  if (state_->stopping()) return next;
  state_->CountServerError();
  const std::string& server = state_->settings().server;
  // Where it cannot be reached, the sentence names it already.
  state_->Complain(what.find(server) != std::string::npos
                       ? what
                       : fmt::format("the server {}: {}", server, what),
                   SharedState::About::kServer);
  return next;
}

Result<http::Response> PlanPoller::Call(std::string_view method, const std::string& target,
                                        std::string_view body, double deadline_seconds) {
  http::CallOptions options;
  options.deadline_seconds = deadline_seconds;
  return http_->Call(method, target, body, options);
}

PlanPoller::Step PlanPoller::Register() {
  const ClientSettings& settings = state_->settings();
  std::string id = settings.job_id;
  std::string job_state;
  if (id.empty()) {
    const auto made = Call("POST", "/api/v1/jobs", settings.job_json, kDeadlineSeconds);
    if (!made) return Fail(made.error().message, Step::kRegister);
    if (made->status != 200 && made->status != 201) {
      const std::string sentence =
          "it did not take the job: " + ErrorSentence(made->status, BodyOf(*made));
      if (made->status / 100 == 4) state_->SetRegistrationFailed(sentence);
      return Fail(sentence, Step::kRegister);
    }
    const Result<JobAnswer> job = ParseJob(BodyOf(*made));
    if (!job) return Fail(job.error().message, Step::kRegister);
    id = job->id;
    job_state = job->state;
  }
  job_ = "/api/v1/jobs/" + http::PercentEncoded(id);

  std::optional<device::GpuInfo> gpu;
  if (!settings.device.empty()) gpu = state_->WaitForDevice(kDeviceSeconds);
  const auto joined = Call("POST", job_ + "/ranks", FormatRank(settings, gpu), kDeadlineSeconds);
  if (!joined) return Fail(joined.error().message, Step::kRegister);
  if (joined->status != 200 && joined->status != 201) {
    const std::string sentence = fmt::format("it did not take rank {}: {}", settings.rank,
                                             ErrorSentence(joined->status, BodyOf(*joined)));
    if (joined->status / 100 == 4) state_->SetRegistrationFailed(sentence);
    return Fail(sentence, Step::kRegister);
  }
  if (settings.profile) {
    if (job_state.empty()) {
      const auto shown = Call("GET", job_, {}, kDeadlineSeconds);
      if (!shown) return Fail(shown.error().message, Step::kRegister);
      if (const Result<JobAnswer> job = ParseJob(BodyOf(*shown))) job_state = job->state;
    }
    if (job_state == "registering" || job_state == "profiling") AskForProfile();
  }
  version_ = -1;
  state_->SetRegistered(id);
  return Step::kDone;
}

// Goes on with a sweep that this rank began before it was restarted. A server that
// does not tell what it has gets all.
void PlanPoller::AskForProfile() {
  profile_wanted_ = true;
  ReportedRows reported;
  const std::string target = fmt::format("{}/measurements?rank={}", job_, state_->settings().rank);
  const auto answer = Call("GET", target, {}, kDeadlineSeconds);
  if (answer && answer->status == 200) {
    if (auto rows = ParseReportedRows(BodyOf(*answer))) reported = std::move(*rows);
  }
  if (!reported.done) state_->AskForProfile(reported.CompleteClocks());
}

// A server that begins to want a profile wants all of it.
void PlanPoller::NoteProfileWanted(bool wanted) {
  if (!state_->settings().profile) return;
  if (wanted && !profile_wanted_) state_->AskForProfile({});
  profile_wanted_ = wanted;
}

PlanPoller::Step PlanPoller::Poll() {
  const std::string target = fmt::format("{}/plan?rank={}&after={}&wait={}", job_,
                                         state_->settings().rank, version_, kPollSeconds);
  const std::int64_t begin_ns = MonotonicNs();
  const auto answer = Call("GET", target, {}, kPollSeconds + kDeadlineSeconds);
  if (!answer) return Fail(answer.error().message, Step::kAgain);
  if (answer->status == 204) {
    const std::int64_t now_ns = MonotonicNs();
    state_->SetAnswered(now_ns);
    // A server that does not wait would be asked without end.
    return now_ns - begin_ns < kHastyNs ? Step::kAgain : Step::kDone;
  }
  // It forgot the job or the rank, or another one has its place.
  const bool unknown = answer->status == 404 || answer->status == 409 || answer->status == 410;
  if (answer->status != 200) {
    if (unknown) {
      state_->OfferPlan(nullptr);
      version_ = -1;
    }
    return Fail(ErrorSentence(answer->status, BodyOf(*answer)),
                unknown ? Step::kRegister : Step::kAgain);
  }
  Result<RankPlan> plan = ParseRankPlan(BodyOf(*answer));
  if (!plan) return Fail(plan.error().message, Step::kAgain);
  NoteProfileWanted(plan->profile_wanted);
  // An answer at once that is not newer would be asked for without end. A lower
  // version: the server forgot, restored from a backup, say. It starts anew.
  if (plan->version <= version_) {
    return Fail(fmt::format("it sent plan version {} after {}", plan->version, version_),
                plan->version < version_ ? Step::kRegister : Step::kAgain);
  }
  version_ = plan->version;
  // Version 0: there is no plan yet, and nothing is wrong.
  if (plan->version > 0 && plan->rows.empty() && !plan->sentence.empty()) {
    state_->Complain(plan->sentence, SharedState::About::kPlan);
  } else {
    state_->Recovered(SharedState::About::kPlan);
  }
  state_->OfferPlan(std::make_shared<const RankPlan>(std::move(*plan)));
  return Step::kDone;
}

}  // namespace perseus::client
