// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "client/server_messages.h"
#include "client/shared_state.h"
#include "common/printable.h"
#include "http/client.h"
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

constexpr double kReportDeadlineSeconds = 10;
constexpr double kLastReportSeconds = 1;
constexpr double kAgainSeconds = 1;
constexpr double kWaitForJobSeconds = 0.2;
constexpr double kHangingSeconds = 2;
constexpr double kReportsPerAgentWord = 6;

// The background thread that gets plans: it creates or joins the job, registers the rank, and waits
// for plans by long polls. If the server fails in any way (away, slow, invalid answers, unknown
// job), it tries again with growing pauses and reports each problem once.
class PlanPoller {
 public:
  // Both must outlive the poller.
  PlanPoller(SharedState* state, http::Client* http) : state_(state), http_(http) {}

  // Runs until the client ends.
  void Run() {
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

 private:
  enum class Step : std::uint8_t { kDone, kAgain, kRegister };

  Step Try(Step step) {
    try {
      return step == Step::kRegister ? Register() : Poll();
    } catch (const std::exception& exception) {  // No memory, or no thread to look a name up.
      state_->ComplainOf("asking the server", exception);
      return step;
    }
  }

  Step Register() {
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

  Step Poll() {
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

  // Goes on with a sweep that this rank began before it was restarted. A server that
  // does not tell what it has gets all.
  void AskForProfile() {
    profile_wanted_ = true;
    ReportedRows reported;
    const std::string target =
        fmt::format("{}/measurements?rank={}", job_, state_->settings().rank);
    const auto answer = Call("GET", target, {}, kDeadlineSeconds);
    if (answer && answer->status == 200) {
      if (auto rows = ParseReportedRows(BodyOf(*answer))) reported = std::move(*rows);
    }
    if (!reported.done) state_->AskForProfile(reported.CompleteClocks());
  }

  // A server that begins to want a profile wants all of it.
  void NoteProfileWanted(bool wanted) {
    if (!state_->settings().profile) return;
    if (wanted && !profile_wanted_) state_->AskForProfile({});
    profile_wanted_ = wanted;
  }

  Step Fail(const std::string& what, Step next) {
    if (state_->stopping()) return next;
    state_->CountServerError();
    const std::string& server = state_->settings().server;
    // Name the server unless the sentence does already.
    state_->Complain(what.find(server) != std::string::npos
                         ? what
                         : fmt::format("the server {}: {}", server, what),
                     SharedState::About::kServer);
    return next;
  }

  Result<http::Response> Call(std::string_view method, const std::string& target,
                              std::string_view body, double deadline_seconds) {
    http::CallOptions options;
    options.deadline_seconds = deadline_seconds;
    return http_->Call(method, target, body, options);
  }

  SharedState* state_;
  http::Client* http_;
  std::string job_;  // Percent-encoded.
  std::int64_t version_ = -1;
  bool profile_wanted_ = false;  // From the server's last answer.
  double pause_seconds_ = 0;
};

// The background thread that reports to the server: iterations in batches, measurements and
// stragglers at once. If the server is not available, it keeps reports (up to the Outbox's limit)
// and sends them again. It drops reports that the server refuses, and complains once. It also
// detects a clock call that does not return, and asks the agent what it has to say.
class Reporter {
 public:
  // Both must outlive the reporter.
  Reporter(SharedState* state, http::Client* http) : state_(state), http_(http) {}

  // Runs until the client ends, and then tries once to send the remaining reports.
  void Run() {
    while (!state_->stopping()) {
      try {
        Step();
      } catch (const std::exception& exception) {  // No memory, or no thread to look a name up.
        state_->ComplainOf("telling the server", exception);
        state_->Pause(kAgainSeconds);
      }
    }
    // The last word of a client that was registered: its state is "closed".
    if (state_->registered()) SendAll(state_->outbox().Wait(0));
  }

 private:
  enum class Sent : std::uint8_t { kYes, kRefused, kNotNow };

  void Step() {
    if (!state_->registered()) {
      WatchDriver();
      state_->Pause(kWaitForJobSeconds);
      return;
    }
    Outbox::Contents contents = state_->outbox().Wait(state_->settings().report_interval_seconds);
    if (state_->stopping()) return state_->outbox().PutBack(std::move(contents));
    WatchDriver();
    SendAll(std::move(contents));
  }

  void SendAll(Outbox::Contents contents) {
    job_ = "/api/v1/jobs/" + http::PercentEncoded(state_->job_id());
    Outbox::Contents left;
    bool later = false;
    for (const StragglerNotice& notice : contents.notices) {
      if (later || SendStraggler(notice) == Sent::kNotNow) {
        later = true;
        left.notices.push_back(notice);
      }
    }
    const int rank = state_->settings().rank;
    if (contents.profile &&
        (later || Send("POST", job_ + "/measurements",
                       FormatMeasurements(rank, *contents.profile)) == Sent::kNotNow)) {
      later = true;
      left.profile = std::move(contents.profile);
    }
    if (!contents.iterations.empty()) AskAgentNow();
    // The server refuses a longer one, and with it the iterations.
    constexpr std::size_t kMostErrorCharacters = 480;
    const std::string error = CutTo(kMostErrorCharacters, state_->last_error(), "...");
    if (!contents.iterations.empty() || state_->stopping()) {
      std::string answer;
      const Sent sent = later ? Sent::kNotNow
                              : Send("POST", job_ + "/iterations",
                                     FormatIterations(state_->settings(), contents.iterations,
                                                      state_->stats(), error, agent_),
                                     &answer);
      if (sent == Sent::kYes) HearTrouble(ParseTrouble(answer, state_->settings().client_id));
      if (sent == Sent::kNotNow) {
        later = true;
        left.iterations = std::move(contents.iterations);
      }
    }
    if (!later) return;
    state_->outbox().PutBack(std::move(left));
    state_->Pause(kAgainSeconds);
  }

  void HearTrouble(std::string sentence) {
    if (sentence == trouble_) return;
    trouble_ = std::move(sentence);
    if (trouble_.empty()) {
      state_->Recovered(SharedState::About::kJob);
    } else {
      state_->Complain(trouble_, SharedState::About::kJob);
    }
  }

  Sent Send(std::string_view method, const std::string& target, const std::string& body,
            std::string* answer = nullptr) {
    http::CallOptions options;
    options.deadline_seconds = state_->stopping() ? kLastReportSeconds : kReportDeadlineSeconds;
    const Result<http::Response> response = http_->Call(method, target, body, options);
    if (!response) {
      if (!state_->stopping()) state_->CountServerError();
      return Sent::kNotNow;  // The poller says why.
    }
    const std::string_view text = response->body ? std::string_view(*response->body) : "";
    if (response->status / 100 == 2) {
      if (answer != nullptr) *answer = text;
      return Sent::kYes;
    }
    state_->CountServerError();
    const int status = response->status;
    if (status / 100 == 5 || status == 429 || status == 408) return Sent::kNotNow;
    state_->Complain(fmt::format("the server refused what was reported to {}: {}", target,
                                 ErrorSentence(status, text)));
    return Sent::kRefused;
  }

  // The newest word on a rank replaces those before it.
  Sent SendStraggler(const StragglerNotice& notice) {
    std::string text;
    const std::string stragglers = job_ + "/stragglers";
    if (const Sent listed = Send("GET", stragglers, {}, &text); listed != Sent::kYes) return listed;
    const auto ids = ParseStragglerIds(text, notice.rank);
    if (!ids) {
      state_->Complain(ids.error().message);
      return Sent::kRefused;
    }
    if (notice.degree > 1) {
      const Sent said = Send("POST", stragglers, FormatStraggler(notice));
      if (said != Sent::kYes) return said;
    }
    for (const std::string& id : *ids) {
      const Sent gone = Send("DELETE", stragglers + "/" + http::PercentEncoded(id), {});
      if (gone == Sent::kNotNow) return gone;
    }
    return Sent::kYes;
  }

  void WatchDriver() {
    const std::int64_t begin_ns = state_->call_begin_ns().load(std::memory_order_relaxed);
    if (begin_ns == 0) return;
    const double seconds = static_cast<double>(MonotonicNs() - begin_ns) * 1e-9;
    if (seconds < kHangingSeconds) return;
    state_->Complain(
        "a clock call has been in the driver for seconds; no other is made until it comes back");
  }

  void AskAgentNow() {
    const ClientSettings& settings = state_->settings();
    const std::optional<std::string> socket = AgentSocketOf(settings.device);
    const std::int64_t now_ns = MonotonicNs();
    if (!socket || now_ns < next_agent_ns_ || state_->stopping()) return;
    const std::optional<device::GpuInfo> gpu = state_->WaitForDevice(0);
    if (!gpu) return;
    Result<AgentWord> word = AskAgent(*socket, NameOfRank(settings), gpu->uuid);
    agent_ = word ? std::optional(*std::move(word)) : std::nullopt;
    next_agent_ns_ = now_ns + static_cast<std::int64_t>(kReportsPerAgentWord *
                                                        settings.report_interval_seconds * 1e9);
  }

  SharedState* state_;
  http::Client* http_;
  std::string job_;
  std::string trouble_;             // What the server says is wrong with this rank.
  std::optional<AgentWord> agent_;  // None: there is no agent, or it does not answer.
  std::int64_t next_agent_ns_ = 0;  // When it is asked again.
};

}  // namespace

void RunPlanPoller(SharedState* state, http::Client* http) { PlanPoller(state, http).Run(); }

void RunReporter(SharedState* state, http::Client* http) { Reporter(state, http).Run(); }

}  // namespace perseus::client
