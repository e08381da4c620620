// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/demo/demo.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/demo/modelled_profile.h"
#include "cli/demo/trainer.h"
#include "common/clocks.h"
#include "common/file.h"
#include "common/file_descriptor.h"
#include "common/json_text.h"
#include "common/unix_socket.h"
#include "device/simulated/simulated_gpu.h"
#include "http/client.h"
#include "http/target.h"
#include "perseus/result.h"

namespace perseus::demo {
namespace {

constexpr std::size_t kMaxLogBytes = std::size_t{64} << 20;
constexpr long kStopLookNs = 10'000'000;

double NowSeconds() { return 1e-9 * static_cast<double>(MonotonicNs()); }

// In the child, between fork and exec: async-signal-safe calls only.
[[noreturn]] void Become(char* const* arguments, int output, int log, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (getppid() != parent) _exit(127);  // It died before that.
  setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(signal, SIG_DFL);
  dup2(output, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  execv(arguments[0], arguments);
  _exit(127);
}

// A process that this one started. The kernel kills it when the thread that
// started it ends in any way; a terminal's Ctrl-C does not reach it. One thread.
class ChildProcess {
 public:
  // Runs `arguments` (the first is the program). What it writes goes into the
  // file `log`; with `pipe` its standard output goes to ReadLine() instead.
  static Result<ChildProcess> Start(std::string name, const std::vector<std::string>& arguments,
                                    const std::string& log, bool pipe) {
    const auto fail = [&](const std::string& what) {
      return MakeError(ErrorCode::kIo, fmt::format("{}: {}: {}", name, what, SystemMessage(errno)));
    };
    const FileDescriptor log_file = OpenFile(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (!log_file.valid()) return fail(log);
    FileDescriptor read_end;
    FileDescriptor write_end;
    if (pipe) {
      std::array<int, 2> ends = {};
      if (pipe2(ends.data(), O_CLOEXEC) != 0) return fail("no pipe");
      read_end = FileDescriptor(ends[0]);
      write_end = FileDescriptor(ends[1]);
    }
    std::vector<char*> pointers;
    pointers.reserve(arguments.size() + 1);
    for (const std::string& argument : arguments)
      pointers.push_back(const_cast<char*>(argument.c_str()));
    pointers.push_back(nullptr);
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) return fail("it cannot be started");
    if (pid == 0) {
      Become(pointers.data(), pipe ? write_end.get() : log_file.get(), log_file.get(), parent);
    }
    return ChildProcess(std::move(name), log, pid, std::move(read_end));
  }

  ChildProcess(ChildProcess&& other) noexcept
      : name_(std::move(other.name_)),
        log_(std::move(other.log_)),
        pid_(std::exchange(other.pid_, -1)),
        output_(std::move(other.output_)) {}
  ChildProcess& operator=(ChildProcess&& other) noexcept {
    std::swap(name_, other.name_);
    std::swap(log_, other.log_);
    std::swap(pid_, other.pid_);
    std::swap(buffer_, other.buffer_);
    std::swap(end_, other.end_);
    std::swap(ended_well_, other.ended_well_);
    output_ = std::move(other.output_);
    return *this;
  }

  ~ChildProcess() { Stop(0); }

  const std::string& name() const { return name_; }
  // A line of its output; none: it ended, or the deadline passed.
  std::optional<std::string> ReadLine(double seconds) {
    const double deadline = NowSeconds() + seconds;
    while (true) {
      if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
        std::string line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return line;
      }
      const double left = deadline - NowSeconds();
      pollfd ready = {.fd = output_.get(), .events = POLLIN, .revents = 0};
      const int count = left > 0 ? ::poll(&ready, 1, static_cast<int>(left * 1e3) + 1) : 0;
      if (count < 0 && errno == EINTR) return std::nullopt;
      if (count <= 0) return std::nullopt;
      std::array<char, 1024> chunk = {};
      const ssize_t got = ::read(output_.get(), chunk.data(), chunk.size());
      if (got <= 0) return std::nullopt;
      buffer_.append(chunk.data(), static_cast<std::size_t>(got));
    }
  }

  // How it ended, in words ("exited with 2"); none: it runs.
  std::optional<std::string> Ended() {
    if (pid_ <= 0) return end_;
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
    pid_ = -1;
    ended_well_ = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    end_ = WIFSIGNALED(status) ? fmt::format("was killed by signal {}", WTERMSIG(status))
                               : fmt::format("exited with {}", WEXITSTATUS(status));
    return end_;
  }

  bool ended_well() const { return ended_well_; }
  // Asks it to end, and kills it when it has not after so long.
  void Stop(double seconds) {
    if (pid_ <= 0) return;
    kill(pid_, SIGTERM);
    const double deadline = NowSeconds() + seconds;
    while (!Ended() && NowSeconds() < deadline) {
      const timespec look = {.tv_sec = 0, .tv_nsec = kStopLookNs};
      nanosleep(&look, nullptr);
    }
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

  // "the server exited with 2: ", and the last line of its log.
  Error Failure(const std::string& how) const {
    std::string last;
    if (const Result<std::string> log = ReadWholeFile(log_, kMaxLogBytes)) {
      const std::size_t end = log->find_last_not_of('\n');
      if (end != std::string::npos) {
        const std::size_t begin = log->rfind('\n', end);
        last = log->substr(begin == std::string::npos ? 0 : begin + 1,
                           end - (begin == std::string::npos ? 0 : begin + 1) + 1);
      }
    }
    return {ErrorCode::kIo, fmt::format("{} {}{}{}", name_, how, last.empty() ? "" : ": ", last)};
  }

 private:
  ChildProcess(std::string name, std::string log, pid_t pid, FileDescriptor output)
      : name_(std::move(name)), log_(std::move(log)), pid_(pid), output_(std::move(output)) {}

  std::string name_;
  std::string log_;
  pid_t pid_ = -1;
  FileDescriptor output_;
  std::string buffer_;
  std::optional<std::string> end_;
  bool ended_well_ = false;
};

constexpr double kReadySeconds = 20;
constexpr double kReadSeconds = 0.1;
constexpr double kLeaveSeconds = 3;
constexpr long kLookNs = 20'000'000;
constexpr int kWaitingRoundsMost = 60;
constexpr double kThreshold = 0.08;  // Of detection.
constexpr int kWindow = 6;
constexpr double kBlockingWatts = 83.64;  // Of the profile's A100, docs/evidence/evidence.md.

// A folder that is removed with all that is in it, unless it is to be kept.
class Folder {
 public:
  static Result<Folder> Make(const std::string& keep) {
    if (!keep.empty()) {
      std::error_code error;
      std::filesystem::create_directories(keep, error);
      if (error) return MakeError(ErrorCode::kIo, keep + ": " + error.message());
      if (!std::filesystem::is_empty(keep, error)) {
        return InvalidInput(keep + " is not empty; name a new folder");
      }
      return Folder(std::filesystem::absolute(keep).string(), true);
    }
    std::error_code error;
    std::string name =
        (std::filesystem::temp_directory_path(error) / "perseus-demo-XXXXXX").string();
    if (error || mkdtemp(name.data()) == nullptr) {
      return MakeError(ErrorCode::kIo, "no temporary folder: " + SystemMessage(errno));
    }
    return Folder(name, false);
  }
  Folder(Folder&& other) noexcept : path_(std::exchange(other.path_, {})), keep_(other.keep_) {}
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  Folder& operator=(Folder&&) = delete;
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty() && !keep_) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  Folder(std::string path, bool keep) : path_(std::move(path)), keep_(keep) {}
  std::string path_;
  bool keep_;
};

std::string GpuConfig(const DemoSpec& spec) {
  // Clocks and powers of the modelled kernels come from the profile; these are
  // the card's own.
  return fmt::format(
      "[[gpus]]\ncount = {}\nname = \"NVIDIA A100-SXM4-80GB (simulated)\"\n"
      "min_clock_mhz = 855\nmax_clock_mhz = 1410\nclock_step_mhz = 15\n"
      "idle_watts = {}\ncall_ms = {:g}\nsettle_ms = 0\n",
      kRanks, kBlockingWatts, 1e3 * spec.switch_latency_seconds);
}

std::string JobJson(const std::string& profile, const DemoSpec& spec) {
  nlohmann::ordered_json job = {{"client_key", "perseus-demo"},
                                {"name", "demo: GPT-3 1.3B, 2 pipelines x 4 stages"},
                                {"job",
                                 {{"schedule", "1f1b"},
                                  {"stages", kStages},
                                  {"microbatches", kMicrobatches},
                                  {"data_parallel", kPipelines},
                                  {"blocking_power", kBlockingWatts}}},
                                {"profile_csv", profile}};
  if (spec.max_changes) {
    job["job"]["conditions"] = {{"switch_latency", spec.switch_latency_seconds},
                                {"call_ahead", spec.plan.ahead ? "predicted" : "none"},
                                {"max_changes", *spec.max_changes}};
  }
  return FormatCompact(job);
}

bool AnswersAt(const std::string& socket) {
  return ConnectUnixSocket(socket, std::chrono::nanoseconds(0), SocketMode::kBlocking).has_value();
}

void Look() {
  const timespec time = {.tv_sec = 0, .tv_nsec = kLookNs};
  nanosleep(&time, nullptr);
}

// Server, agent and trainers, and what they share.
class Demonstration {
 public:
  Demonstration(const DemoSpec& spec, const DemoWatcher& watcher, const std::function<bool()>& stop,
                std::string folder)
      : spec_(spec), watcher_(watcher), stop_(stop), files_{std::move(folder)} {}

  ~Demonstration() {
    if (memory_) memory_->stop.store(1);
    for (ChildProcess& trainer : trainers_) trainer.Stop(kLeaveSeconds);
    if (server_) server_->Stop(kLeaveSeconds);
    if (agent_) agent_->Stop(kLeaveSeconds);
  }
  Demonstration(const Demonstration&) = delete;
  Demonstration& operator=(const Demonstration&) = delete;

  Result<DemoResult> Run() {
    for (const auto step : {&Demonstration::Prepare, &Demonstration::StartAgent,
                            &Demonstration::StartServer, &Demonstration::StartTrainers}) {
      if (stop_()) return Cancelled();
      if (const Result<void> done = (this->*step)(); !done) return tl::unexpected(done.error());
    }
    if (const Result<void> watched = Watch(); !watched) return tl::unexpected(watched.error());
    if (spec_.plan.detect) ReadFindings();
    if (!spec_.keep_folder.empty()) {
      if (const Result<void> kept = Keep(); !kept) return tl::unexpected(kept.error());
    }
    for (int rank = 0; rank < kRanks; ++rank) {
      result_.stats[static_cast<std::size_t>(rank)] = memory_->stats[rank];
    }
    if (watcher_.stays) {
      watcher_.stays(result_);
      while (!stop_() && !server_->Ended()) Look();
    }
    return std::move(result_);
  }

 private:
  static tl::unexpected<Error> Cancelled() {
    return MakeError(ErrorCode::kCancelled, "stopped; everything it started is gone");
  }

  Result<void> Prepare() {
    const std::string profile(cli::ModelledProfileCsv());
    const std::pair<std::string, std::string> files[] = {{files_.profile(), profile},
                                                         {files_.job(), JobJson(profile, spec_)}};
    for (const auto& [path, bytes] : files) {
      if (Result<void> written = WriteFileAtomically(path, bytes); !written) return written;
    }
    if (auto made = device::CreateSimulatedGpus(files_.gpus(), GpuConfig(spec_), "the demo");
        !made) {
      return made;
    }
    Result<SharedMemoryPointer> memory = CreateSharedMemory(files_.memory(), spec_.plan);
    if (!memory) return tl::unexpected(memory.error());
    memory_ = std::move(*memory);
    return {};
  }

  Result<void> Start(std::optional<ChildProcess>* child, const std::string& name,
                     std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), spec_.program);
    Result<ChildProcess> started =
        ChildProcess::Start("the " + name, arguments, files_.log(name), child == &server_);
    if (!started) return tl::unexpected(started.error());
    child->emplace(std::move(*started));
    return {};
  }

  Result<void> StartAgent() {
    Result<void> started = Start(&agent_, "agent",
                                 {"agent", "run", "--driver", "simulated:" + files_.gpus(),
                                  "--socket", files_.socket(), "--journal", files_.journal()});
    if (!started) return started;
    for (double waited = 0; !AnswersAt(files_.socket()); waited += kLookNs * 1e-9) {
      if (const auto end = agent_->Ended()) return tl::unexpected(agent_->Failure(*end));
      if (stop_()) return Cancelled();
      if (waited > kReadySeconds) {
        return tl::unexpected(agent_->Failure("does not answer on its socket"));
      }
      Look();
    }
    watcher_.says(fmt::format("agent    on {} simulated GPUs, clock calls take {:g} ms", kRanks,
                              1e3 * spec_.switch_latency_seconds));
    return {};
  }

  Result<void> StartServer() {
    Result<void> started =
        Start(&server_, "server",
              {"serve", "--listen", "127.0.0.1:0", "--store", "sqlite:" + files_.store()});
    if (!started) return started;
    std::optional<std::string> line;
    for (double waited = 0; !line && waited < kReadySeconds; waited += kReadSeconds) {
      line = server_->ReadLine(kReadSeconds);
      if (stop_()) return Cancelled();
      if (!line && server_->Ended()) break;
    }
    const std::size_t begin = line ? line->find("http://") : std::string::npos;
    if (begin == std::string::npos) {
      const auto end = server_->Ended();
      return tl::unexpected(server_->Failure(end ? *end : "did not say that it is ready"));
    }
    const std::string address = line->substr(begin, line->find_first_of(" ,;\t", begin) - begin);
    address_ = address;
    watcher_.says("server   at " + address);
    if (watcher_.stays) watcher_.says("page     at " + address + "/ (open it in a browser)");
    return WriteFileAtomically(files_.server(), address);
  }

  Result<void> StartTrainers() {
    for (int rank = 0; rank < kRanks; ++rank) {
      const std::string name = fmt::format("trainer-{}", rank);
      Result<ChildProcess> trainer = ChildProcess::Start(
          "the " + name, {spec_.program, kTrainerArgument, files_.folder, fmt::format("{}", rank)},
          files_.log(name), false);
      if (!trainer) return tl::unexpected(trainer.error());
      trainers_.push_back(std::move(*trainer));
    }
    watcher_.says(fmt::format("trainers {} processes: {} pipelines x {} stages, {} microbatches",
                              kRanks, kPipelines, kStages, kMicrobatches));
    return {};
  }

  // The figures of a round, once every rank has written its sample.
  DemoRound RoundAt(std::uint32_t round) const {
    DemoRound seen;
    const SharedMemory& memory = *memory_;
    seen.part = static_cast<Part>(memory.samples[0][round].part);
    const int first = memory.first_planned.load(std::memory_order_acquire);
    const int now = static_cast<int>(round);
    const int baseline = memory.plan.baseline_rounds;
    if (seen.part == Part::kPlanned) {
      seen.number = now - first;
      seen.straggler = memory.plan.straggler && seen.number >= memory.plan.straggler_from &&
                       seen.number < memory.plan.straggler_until;
    } else {
      seen.straggler = seen.part == Part::kBaselineStraggler;
      seen.number = now - (seen.straggler ? baseline : 0);
    }
    for (int rank = 0; rank < kRanks; ++rank) {
      const SharedMemory::Sample& end = memory.samples[rank][round];
      const SharedMemory::Sample& begin =
          round == 0 ? memory.begin[rank] : memory.samples[rank][round - 1];
      seen.seconds = std::max(seen.seconds, end.seconds - begin.seconds);
      seen.joules += end.joules - begin.joules;
      seen.plan_version = std::max(seen.plan_version, end.plan_version);
      // Version 0 is the server's word that there is none yet.
      seen.ranks_with_plan += end.plan_version > 0 ? 1 : 0;
      seen.clocks_mhz[static_cast<std::size_t>(rank)] = end.clock_mhz;
    }
    return seen;
  }

  Result<void> Watch() {
    std::uint32_t next = 0;
    int waiting = 0;
    while (true) {
      if (stop_()) return Cancelled();
      if (spec_.plan.detect && !is_detecting_) is_detecting_ = Detect();
      std::uint32_t sampled = kMaxRounds;
      for (const auto& of_rank : memory_->sampled) {
        sampled = std::min(sampled, of_rank.load(std::memory_order_acquire));
      }
      for (; next < sampled; ++next) {
        result_.rounds.push_back(RoundAt(next));
        watcher_.sees(result_.rounds.back());
        waiting += result_.rounds.back().part == Part::kWaiting ? 1 : 0;
      }
      if (waiting > kWaitingRoundsMost) {
        return MakeError(ErrorCode::kIo, "the ranks got no plan; see the logs with --keep");
      }
      bool all_ended = true;
      for (ChildProcess& trainer : trainers_) {
        const auto end = trainer.Ended();
        if (end && !trainer.ended_well()) return tl::unexpected(trainer.Failure(*end));
        all_ended = all_ended && end;
      }
      for (std::optional<ChildProcess>* child : {&server_, &agent_}) {
        if (const auto end = (*child)->Ended()) return tl::unexpected((*child)->Failure(*end));
      }
      if (all_ended && next == sampled) return {};
      Look();
    }
  }

  nlohmann::ordered_json Ask(const char* method, const std::string& target,
                             const std::string& body = "") {
    http::ClientOptions options;
    options.url = address_;
    Result<http::Client> server = http::Client::Create(std::move(options));
    if (!server) return {};
    const Result<http::Response> answer = server->Call(method, target, body);
    if (!answer || answer->status != 200 || !answer->body) return {};
    return ParseObject(*answer->body);
  }

  // As an operator would with `perseus job detection`, once a rank has made the job.
  bool Detect() {
    const auto jobs = Ask("GET", "/api/v1/jobs").value("jobs", nlohmann::ordered_json::array());
    if (jobs.empty()) return false;
    detection_ = fmt::format("/api/v1/jobs/{}/detection", jobs[0].value("id", ""));
    const bool is_set =
        !Ask("PUT", detection_,
             fmt::format(R"({{"mode":"act","threshold":{},"window":{}}})", kThreshold, kWindow))
             .empty();
    if (is_set) {
      watcher_.says(fmt::format("detection on: ranks that are slower by {:.0f} % in {} iterations",
                                100 * kThreshold, kWindow));
    }
    return is_set;
  }

  void ReadFindings() {
    const int first = memory_->first_planned.load(std::memory_order_acquire);
    for (const auto& finding :
         Ask("GET", detection_).value("findings", nlohmann::ordered_json::array())) {
      result_.findings.push_back({.kind = finding.value("kind", ""),
                                  .iteration = finding.value("iteration", 0) - first,
                                  .sentence = finding.value("sentence", "")});
    }
  }

  // Keeps the rounds and the followed plan in files, for a closer look.
  Result<void> Keep() {
    std::string csv = "part,number,straggler,plan_version,time,energy\n";
    for (const DemoRound& round : result_.rounds) {
      constexpr std::array kParts = {"baseline", "baseline", "waiting", "planned", "over"};
      csv += fmt::format("{},{},{},{},{},{}\n", kParts.at(static_cast<std::size_t>(round.part)),
                         round.number, round.straggler ? 1 : 0, round.plan_version, round.seconds,
                         round.joules);
    }
    if (auto written = WriteFileAtomically(files_.rounds(), csv); !written) return written;
    http::ClientOptions options;
    options.url = address_;
    Result<http::Client> server = http::Client::Create(std::move(options));
    if (!server) return tl::unexpected(server.error());
    const Result<http::Response> plan = server->Call(
        "GET",
        fmt::format("/api/v1/jobs/{}/plan.json?pipeline=0", http::PercentEncoded(memory_->job_id)));
    if (!plan) return tl::unexpected(plan.error());
    if (plan->status != 200 || !plan->body) {
      return MakeError(ErrorCode::kIo,
                       fmt::format("the server gave no plan: status {}", plan->status));
    }
    return WriteFileAtomically(files_.plan(), *plan->body);
  }

  const DemoSpec& spec_;
  const DemoWatcher& watcher_;
  const std::function<bool()>& stop_;
  DemoFiles files_;
  SharedMemoryPointer memory_;
  std::optional<ChildProcess> agent_;
  std::optional<ChildProcess> server_;
  std::vector<ChildProcess> trainers_;
  std::string address_;    // Of the server.
  std::string detection_;  // Of the job, there.
  bool is_detecting_ = false;
  DemoResult result_;
};

}  // namespace

Result<DemoResult> RunDemo(const DemoSpec& spec, const DemoWatcher& watcher,
                           const std::function<bool()>& stop) {
  Result<Folder> folder = Folder::Make(spec.keep_folder);
  if (!folder) return tl::unexpected(folder.error());
  Demonstration demonstration(spec, watcher, stop, folder->path());
  return demonstration.Run();
}

}  // namespace perseus::demo
