// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/demo/demo.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "cli/demo/child_process.h"
#include "cli/demo/files.h"
#include "cli/demo/modelled_profile.h"
#include "cli/demo/trainer.h"
#include "common/file.h"
#include "common/json_text.h"
#include "common/unix_socket.h"
#include "device/simulated/simulated_gpu.h"
#include "http/client.h"
#include "http/target.h"

namespace perseus::demo {
namespace {

constexpr double kReadySeconds = 20;
constexpr double kReadSeconds = 0.1;
constexpr double kLeaveSeconds = 3;
constexpr long kLookNs = 20'000'000;
constexpr int kWaitingRoundsMost = 60;
constexpr double kThreshold = 0.08;  // Of detection.
constexpr int kWindow = 6;
constexpr double kBlockingWatts = 83.64;  // Of synth's A100, docs/evidence/synth.md.

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

  // What a round came to, once every rank has said what it saw.
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

  // What happened and the plan that was followed, for who wants to look closer.
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
