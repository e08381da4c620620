// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "relay/plan_hub.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "common/numbers.h"
#include "http/server.h"
#include "http/target.h"

namespace perseus::relay {

namespace {

constexpr std::string_view kSpace = " \t\r\n";

// Reads a text that is JSON. At the end of one that is not, Peek() is '\0'.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) { SkipSpace(); }

  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  // Whether `c` is next; then it and the space behind it are passed.
  bool Take(char c) {
    if (Peek() != c) return false;
    ++at_;
    SkipSpace();
    return true;
  }

  // The next value, and the space behind it is passed.
  std::string_view Value() {
    const std::size_t begin = at_;
    int depth = 0;
    do {
      const char c = Peek();
      if (c == '"') {
        SkipString();
      } else if (c == '{' || c == '[') {
        ++depth;
        ++at_;
      } else if (c == '}' || c == ']') {
        --depth;
        ++at_;
      } else if (depth > 0 && (c == ',' || c == ':' || kSpace.find(c) != std::string_view::npos)) {
        ++at_;
      } else {
        at_ = std::min(text_.find_first_of(",:]} \t\r\n", at_), text_.size());
      }
    } while (depth > 0 && at_ < text_.size());
    const std::string_view value = text_.substr(begin, at_ - begin);
    SkipSpace();
    return value;
  }

 private:
  void SkipSpace() { at_ = std::min(text_.find_first_not_of(kSpace, at_), text_.size()); }

  void SkipString() {
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\') ++at_;
    }
    at_ = std::min(at_ + 1, text_.size());
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

bool IsJson(std::string_view text) { return nlohmann::json::accept(text); }

std::optional<std::vector<JsonMember>> MembersOf(std::string_view object) {
  Scanner scanner(object);
  if (!scanner.Take('{')) return std::nullopt;
  std::vector<JsonMember> members;
  if (scanner.Take('}')) return members;
  do {
    const std::string_view quoted = scanner.Value();
    if (quoted.size() < 2 || !scanner.Take(':')) return std::nullopt;
    members.push_back({quoted.substr(1, quoted.size() - 2), scanner.Value()});
  } while (scanner.Take(','));
  return members;
}

std::optional<std::vector<std::string_view>> ElementsOf(std::string_view array) {
  Scanner scanner(array);
  if (!scanner.Take('[')) return std::nullopt;
  std::vector<std::string_view> elements;
  if (scanner.Take(']')) return elements;
  do {
    elements.push_back(scanner.Value());
  } while (scanner.Take(','));
  return elements;
}

namespace {

// More than any node asks for.
constexpr std::size_t kMostPlans = 4096;

tl::unexpected<Error> NoPlans(std::string_view why) {
  return MakeError(ErrorCode::kIo, fmt::format("the server's plans cannot be read: {}", why));
}

const JsonMember* FindMember(const std::vector<JsonMember>& members, std::string_view key) {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [key](const JsonMember& member) { return member.key == key; });
  return found == members.end() ? nullptr : &*found;
}

}  // namespace

Result<std::shared_ptr<const PlanSet>> PlanSet::Parse(std::shared_ptr<const std::string> text) {
  if (text == nullptr || !IsJson(*text)) return NoPlans("they are not JSON");
  const auto members = MembersOf(*text);
  if (!members) return NoPlans("they are not a JSON object");
  const JsonMember* const version = FindMember(*members, "version");
  const auto number =
      version != nullptr ? ParseInteger<std::int64_t>(version->value) : std::nullopt;
  if (!number || *number < 0) return NoPlans("they have no version");
  const JsonMember* const list = FindMember(*members, "plans");
  const auto plans = list != nullptr ? ElementsOf(list->value) : std::nullopt;
  if (!plans || plans->size() > kMostPlans) return NoPlans("they have no list of plans");

  auto set = std::make_shared<PlanSet>();
  set->version_ = *number;
  const auto offset = [&](const char* place) {
    return static_cast<std::size_t>(place - text->data());
  };
  for (const std::string_view plan : *plans) {
    const auto parts = MembersOf(plan);
    const JsonMember* const ranks = parts ? FindMember(*parts, "ranks") : nullptr;
    const auto numbers = ranks != nullptr ? ElementsOf(ranks->value) : std::nullopt;
    if (!numbers) return NoPlans("one does not say whose it is");
    Place place;
    place.begin = offset(plan.data());
    place.end = place.begin + plan.size();
    place.ranks_begin = offset(ranks->key.data()) - 1;  // The quote.
    place.ranks_end = offset(ranks->value.data()) + ranks->value.size();
    for (const std::string_view rank : *numbers) {
      const auto value = ParseInteger<int>(rank);
      if (!value || *value < 0 || set->places_.size() >= kMostPlans) {
        return NoPlans("one does not say whose it is");
      }
      set->places_[*value] = place;
    }
  }
  set->text_ = std::move(text);
  return set;
}

std::shared_ptr<const std::string> PlanSet::BodyOf(int rank) const {
  const Place& place = places_.at(rank);
  const std::string_view text = *text_;
  return std::make_shared<const std::string>(
      fmt::format("{}\"rank\":{}{}", text.substr(place.begin, place.ranks_begin - place.begin),
                  rank, text.substr(place.ranks_end, place.end - place.ranks_end)));
}

namespace {

http::Response PlanResponse(const PlanSet& plans, int rank) {
  http::Response response;
  response.body = plans.BodyOf(rank);
  return response;
}

// "0-7,12".
std::string RankList(const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += last == i ? fmt::format("{}", ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[last]);
    i = last + 1;
  }
  return text;
}

// Whether the status means that the server cannot answer now, so that the request can be tried
// again.
bool IsUnavailable(int status) { return status == 408 || status == 429 || status >= 500; }

// The target of GET plans for ranks in ascending order.
std::string PlansTarget(const std::string& job, const std::vector<int>& ranks, std::int64_t after,
                        int wait_seconds) {
  return fmt::format("/api/v1/jobs/{}/plans?ranks={}&after={}&wait={}", http::PercentEncoded(job),
                     RankList(ranks), after, wait_seconds);
}

}  // namespace

// Collects answers while the hub's lock is held and sends them after it is released. Construct it
// before taking the lock.
class PlanHub::Answers {
 public:
  Answers() = default;
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;
  ~Answers() {
    try {
      Send();
    } catch (const std::exception&) {  // No memory: who is left is answered by the engine.
    }
  }

  void Add(http::Responder responder, http::Response response) {
    responses_.emplace_back(std::move(responder), std::move(response));
  }
  void Add(http::Responder responder, std::shared_ptr<const PlanSet> plans, int rank) {
    plans_.push_back({std::move(responder), std::move(plans), rank});
  }

 private:
  struct PlanAnswer {
    http::Responder responder;
    std::shared_ptr<const PlanSet> plans;
    int rank;
  };

  void Send() {
    for (auto& [responder, response] : responses_) responder.Send(std::move(response));
    http::Response last;  // Several may ask for the same.
    const PlanAnswer* of = nullptr;
    for (const PlanAnswer& answer : plans_) {
      if (of == nullptr || of->rank != answer.rank || of->plans != answer.plans) {
        last = PlanResponse(*answer.plans, answer.rank);
        of = &answer;
      }
      answer.responder.Send(last);
    }
  }

  std::vector<std::pair<http::Responder, http::Response>> responses_;
  std::vector<PlanAnswer> plans_;
};

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

Result<std::shared_ptr<const PlanSet>> PlanHub::ReadPlans(
    const Result<http::Response>& result) const {
  if (!result || result->status != 200) return MakeError(ErrorCode::kIo, "");
  Result<std::shared_ptr<const PlanSet>> plans = PlanSet::Parse(result->body);
  if (!plans && log_) log_(true, "bad_answer", plans.error().message);
  return plans;
}

void PlanHub::TakeFetched(const JobPointer& job, const std::vector<int>& ranks, std::int64_t after,
                          const Result<http::Response>& result) {
  const Result<std::shared_ptr<const PlanSet>> plans = ReadPlans(result);
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

// The one long poll of a job, on a thread of its own.

namespace {

// Beyond the long poll itself.
constexpr double kPollGraceSeconds = 5;
// A poll that ends sooner, without news, is not asked again at once.
constexpr double kHastySeconds = 1;
constexpr double kFirstPauseSeconds = 0.1;
constexpr double kLongestPauseSeconds = 2;

// Relays that lost the same server come back at different times.
double Spread(double seconds) {
  thread_local std::minstd_rand random{std::random_device{}()};
  return seconds * std::uniform_real_distribution<double>(0.5, 1)(random);
}

}  // namespace

void PlanHub::StartThread(const JobPointer& job, Answers* answers) {
  if (job->thread.joinable() || job->ranks.empty()) return;
  try {
    job->thread = std::thread([this, job] { Poll(job); });
  } catch (const std::system_error& error) {
    RefuseWaiting(job.get(), UnavailableResponse({ErrorCode::kIo, error.what()}), answers);
    jobs_.erase(job->id);
  }
}

void PlanHub::ForgetTheDead(Job* job) {
  const Clock::time_point now = Clock::now();
  for (auto& [number, rank] : job->ranks) {
    std::erase_if(rank.waiters, [now](const Waiter& waiter) { return waiter.until < now; });
  }
  std::erase_if(job->ranks, [&](const auto& entry) {
    return entry.second.waiters.empty() && now - entry.second.seen > options_.live;
  });
}

void PlanHub::Poll(const JobPointer& job) {
  Pace pace;
  for (;;) {
    try {
      if (!PollOnce(job, &pace)) return;
    } catch (const std::exception&) {  // No memory.
      pace.pause_seconds = kHastySeconds;
    }
  }
}

// False: this thread has nothing more to do.
bool PlanHub::PollOnce(const JobPointer& job, Pace* pace) {
  std::vector<int> ranks;
  std::int64_t after = 0;
  {
    const auto until = Clock::now() + std::chrono::duration<double>(
                                          std::exchange(pace->pause_seconds, kHastySeconds));
    const MutexLock lock(mutex_);
    while (!stopped_ && job->wake.WaitUntil(mutex_, until)) {
    }
    if (stopped_) return false;
    ForgetTheDead(job.get());
    if (job->ranks.empty() && !job->is_fetching) {
      ended_.push_back(std::move(job->thread));
      jobs_.erase(job->id);
      return false;
    }
    for (const auto& [number, rank] : job->ranks) {
      if (rank.plans != nullptr) ranks.push_back(number);
    }
    if (ranks.empty()) return true;  // All are being fetched.
    after = job->version;
    ++polls_;
  }
  const Clock::time_point begin = Clock::now();
  Result<http::Response> result = MakeError(ErrorCode::kIo, "");
  try {
    result = job->line.Call("GET", PlansTarget(job->id, ranks, after, options_.poll_seconds), {},
                            options_.poll_seconds + kPollGraceSeconds);
  } catch (const std::exception& exception) {  // No memory, or no thread to look a name up.
    result = MakeError(ErrorCode::kIo, exception.what());
    health_->Failed(exception.what());
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  pace->pause_seconds = TakePolled(job, ranks, after, result, seconds, &pace->failures);
  return true;
}

double PlanHub::TakePolled(const JobPointer& job, const std::vector<int>& ranks, std::int64_t after,
                           const Result<http::Response>& result, double seconds, int* failures) {
  const Result<std::shared_ptr<const PlanSet>> plans = ReadPlans(result);
  Answers answers;
  const MutexLock lock(mutex_);
  if (stopped_) return 0;
  if (plans) {
    *failures = 0;
    Accept(job, *plans, after, &answers);
    StartFetch(job, &answers);
    return (*plans)->version() == after ? kHastySeconds : 0;
  }
  if (result && result->status == 204) {
    *failures = 0;
    return seconds < kHastySeconds ? kHastySeconds : 0;
  }
  if (result && result->status / 100 == 4 && !IsUnavailable(result->status)) {
    // Which of them is it? Each rank gets its own answer.
    for (const int number : ranks) {
      const auto found = job->ranks.find(number);
      if (found == job->ranks.end()) continue;
      found->second.wants_fetch = found->second.fetch_alone = true;
      found->second.fetch_after = -1;
    }
    StartFetch(job, &answers);
    return kHastySeconds;
  }
  if (result) {
    health_->Failed(result->status == 200
                        ? plans.error().message
                        : fmt::format("The server answers with status {}.", result->status));
  }
  if (health_->is_away()) {
    RefuseWaiting(job.get(), UnavailableResponse({ErrorCode::kIo, health_->why()}), &answers);
  }
  const double pause = kFirstPauseSeconds * static_cast<double>(1 << std::min((*failures)++, 5));
  return Spread(std::min(pause, kLongestPauseSeconds));
}

void PlanHub::JoinEnded() {
  std::vector<std::thread> ended;
  {
    const MutexLock lock(mutex_);
    ended.swap(ended_);
  }
  for (std::thread& thread : ended) thread.join();
}

void PlanHub::Stop() {
  std::vector<JobPointer> jobs;
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    for (const auto& [id, job] : jobs_) {
      jobs.push_back(job);
      job->wake.NotifyAll();
    }
  }
  for (const JobPointer& job : jobs) job->line.Cancel();
  for (const JobPointer& job : jobs) {
    if (job->thread.joinable()) job->thread.join();
  }
  JoinEnded();
}

}  // namespace perseus::relay
