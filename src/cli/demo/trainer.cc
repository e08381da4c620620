// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/demo/trainer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "common/file.h"
#include "common/file_descriptor.h"
#include "device/simulated/simulated_gpu.h"
#include "perseus/client.h"
#include "perseus/profile.h"
#include "perseus/schedule.h"

namespace perseus::demo {

namespace {

// A waiter looks so often whether it shall stop.
constexpr timespec kLook = {.tv_sec = 0, .tv_nsec = 100'000'000};

Result<SharedMemoryPointer> Map(const std::string& path, int flags) {
  const auto fail = [&] { return MakeError(ErrorCode::kIo, path + ": " + SystemMessage(errno)); };
  const FileDescriptor fd = OpenFile(path, O_RDWR | flags, 0600);
  if (!fd.valid()) return fail();
  if (ftruncate(fd.get(), sizeof(SharedMemory)) != 0) return fail();
  void* memory =
      mmap(nullptr, sizeof(SharedMemory), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return fail();
  return SharedMemoryPointer(static_cast<SharedMemory*>(memory));
}

}  // namespace

void UnmapShared::operator()(SharedMemory* memory) const { munmap(memory, sizeof(SharedMemory)); }

Result<SharedMemoryPointer> CreateSharedMemory(const std::string& path, const DemoPlan& plan) {
  Result<SharedMemoryPointer> memory = Map(path, O_CREAT | O_EXCL);
  if (!memory) return memory;
  (*memory)->plan = plan;
  (*memory)->first_planned.store(-1);
  return memory;
}

Result<SharedMemoryPointer> OpenSharedMemory(const std::string& path) { return Map(path, 0); }

bool WaitFor(const SharedMemory& memory, const std::atomic<std::uint32_t>& word,
             std::uint32_t value) {
  while (true) {
    const std::uint32_t now = word.load(std::memory_order_acquire);
    // Counters only grow, and by far less than half of their range in a run.
    if (static_cast<std::int32_t>(now - value) >= 0) return true;
    if (memory.stop.load(std::memory_order_relaxed) != 0) return false;
    syscall(SYS_futex, &word, FUTEX_WAIT, now, &kLook, nullptr, 0);
  }
}

void Raise(std::atomic<std::uint32_t>* word) {
  word->fetch_add(1, std::memory_order_acq_rel);
  syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{8} << 20;

struct CloseClient {
  void operator()(perseus_client* client) const { perseus_client_close(client); }
};
using ClientPointer = std::unique_ptr<perseus_client, CloseClient>;

// The costs of a computation on the modelled GPU, from the profile.
device::Kernel KernelOf(const Profile& profile, const OptionTable& table) {
  device::Kernel kernel;
  for (const Option& option : table.options) {
    kernel.push_back(
        {.mhz = static_cast<int>(profile.knobs[static_cast<std::size_t>(option.knob)].number),
         .seconds = option.time_seconds,
         .joules = option.energy_joules});
  }
  return kernel;
}

class Trainer {
 public:
  Trainer(const DemoFiles& files, int rank)
      : files_(files), rank_(rank), pipeline_(rank / kStages), stage_(rank % kStages) {}

  Result<void> Open() {
    Result<SharedMemoryPointer> memory = OpenSharedMemory(files_.memory());
    if (!memory) return tl::unexpected(memory.error());
    memory_ = std::move(*memory);
    auto gpus = device::SimulatedGpus::Open(files_.gpus());
    if (!gpus) return tl::unexpected(gpus.error());
    gpus_ = std::move(*gpus);
    const Result<Profile> profile = ReadProfile(files_.profile());
    if (!profile) return tl::unexpected(profile.error());
    for (const ComputationType type : {ComputationType::kForward, ComputationType::kBackward}) {
      const OptionTable* table = profile->Find(stage_, type);
      if (table == nullptr) return InvalidInput("the profile lacks a stage");
      kernels_[type] = KernelOf(*profile, *table);
    }
    ScheduleSpec spec;
    spec.name = "1f1b";
    spec.num_stages = kStages;
    spec.num_microbatches = kMicrobatches;
    const Result<Schedule> schedule = BuildSchedule(spec);
    if (!schedule) return tl::unexpected(schedule.error());
    order_ = schedule->ranks[static_cast<std::size_t>(stage_)];
    return {};
  }

  Result<void> Run() {
    if (auto sampled = Record(&memory_->begin[rank_], Part::kBaseline); !sampled) {
      return sampled;
    }
    for (std::uint32_t round = 0; round < kMaxRounds; ++round) {
      const Part part = PartOf(round);
      if (part == Part::kOver) break;
      if (Result<void> slowed = SetStraggler(part, round); !slowed) return slowed;
      if (part >= Part::kWaiting && !client_) {
        if (Result<void> opened = OpenClient(); !opened) return opened;
      }
      const Result<bool> goes_on = Iterate(round);
      if (!goes_on) return tl::unexpected(goes_on.error());
      if (!*goes_on) break;
      SharedMemory::Sample& sample = memory_->samples[rank_][round];
      if (auto sampled = Record(&sample, part); !sampled) return sampled;
      memory_->sampled[rank_].store(round + 1, std::memory_order_release);
    }
    if (client_) {
      if (rank_ == 0) {
        perseus_client_job_id(client_.get(), memory_->job_id, sizeof(memory_->job_id));
      }
      memory_->stats[rank_].struct_size = sizeof(perseus_client_stats);
      perseus_client_get_stats(client_.get(), &memory_->stats[rank_], nullptr);
    }
    return {};
  }

 private:
  // The same on every rank: `first_planned` is set before the round begins.
  Part PartOf(std::uint32_t round) {
    const DemoPlan& plan = memory_->plan;
    const int now = static_cast<int>(round);
    if (now < plan.baseline_rounds) return Part::kBaseline;
    if (plan.straggler && now < 2 * plan.baseline_rounds) return Part::kBaselineStraggler;
    first_planned_ = memory_->first_planned.load(std::memory_order_acquire);
    if (first_planned_ < 0 || now < first_planned_) return Part::kWaiting;
    return now < first_planned_ + plan.iterations ? Part::kPlanned : Part::kOver;
  }

  // All GPUs of the last pipeline are slow, as if their room were too hot.
  Result<void> SetStraggler(Part part, std::uint32_t round) {
    const DemoPlan& plan = memory_->plan;
    bool slow = part == Part::kBaselineStraggler;
    if (part == Part::kPlanned && plan.straggler) {
      const int iteration = static_cast<int>(round) - first_planned_;
      slow = iteration >= plan.straggler_from && iteration < plan.straggler_until;
    }
    if (pipeline_ != kPipelines - 1 || slow == slow_) return {};
    slow_ = slow;
    // Each of its ranks says so, as each is slow: the paper's call.
    if (client_ && !plan.detect) {
      perseus_straggler_set(client_.get(), rank_, 0, slow ? plan.straggler_factor : 1, nullptr);
    }
    return gpus_->SetSlowdown(rank_, slow ? plan.straggler_factor : 1);
  }

  Result<void> OpenClient() {
    const Result<std::string> server = ReadWholeFile(files_.server(), kMaxFileBytes);
    if (!server) return tl::unexpected(server.error());
    const Result<std::string> job = ReadWholeFile(files_.job(), kMaxFileBytes);
    if (!job) return tl::unexpected(job.error());
    const std::string device = "agent:" + files_.socket();
    const std::string uuid = gpus_->info(rank_).uuid;
    perseus_client_options options;
    perseus_client_options_init(&options, sizeof(options));
    options.server = server->c_str();
    options.job_json = job->c_str();
    options.rank = rank_;
    options.dp_rank = pipeline_;
    options.pp_rank = stage_;
    options.device = device.c_str();
    options.gpu_uuid = uuid.c_str();
    options.node = "demo";
    if (!memory_->plan.ahead) options.flags |= PERSEUS_NO_AHEAD;
    options.report_interval_seconds = 1;
    perseus_client* client = nullptr;
    char* message = nullptr;
    if (perseus_client_open(&options, &client, &message) != PERSEUS_OK) {
      const std::string sentence = message == nullptr ? "there is not enough memory" : message;
      perseus_client_free_text(message);
      return MakeError(ErrorCode::kIo, sentence);
    }
    client_.reset(client);
    return {};
  }

  // One iteration and its barrier; false: told to stop.
  Result<bool> Iterate(std::uint32_t round) {
    perseus_step_begin(client_.get(), round);
    busy_seconds_.clear();
    for (const ScheduleStep& step : order_) {
      Result<bool> ran = Compute(step.id, round);
      if (!ran || !*ran) return ran;
    }
    // As a trainer with events of its device does: this machine wakes its processes late.
    for (const auto& [type, seconds] : busy_seconds_) {
      perseus_step_busy(client_.get(), static_cast<perseus_instruction>(type), seconds);
    }
    perseus_step_end(client_.get(), 0);
    // All-reduce: nobody goes on before all are here.
    if (!has_plan_ && perseus_client_plan_version(client_.get()) >= 0 &&
        perseus_client_get_state(client_.get()) == PERSEUS_STATE_FOLLOWING) {
      has_plan_ = true;
      memory_->with_plan.fetch_add(1, std::memory_order_acq_rel);
    }
    memory_->last_end_seconds[rank_].store(ready_seconds_, std::memory_order_relaxed);
    if (memory_->arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == kRanks) {
      if (memory_->with_plan.load(std::memory_order_acquire) == kRanks &&
          memory_->first_planned.load(std::memory_order_relaxed) < 0) {
        memory_->first_planned.store(static_cast<std::int32_t>(round) + 1,
                                     std::memory_order_release);
      }
      memory_->arrived.store(0, std::memory_order_release);
      Raise(&memory_->rounds);
    }
    if (!WaitFor(*memory_, memory_->rounds, round + 1)) return false;
    for (const std::atomic<double>& end : memory_->last_end_seconds) {
      ready_seconds_ = std::max(ready_seconds_, end.load(std::memory_order_relaxed));
    }
    return true;
  }

  Result<bool> Compute(const ComputationId& id, std::uint32_t round) {
    const bool forward = id.type == ComputationType::kForward;
    const int kind = forward ? 0 : 1;
    const int neighbour = forward ? stage_ - 1 : stage_ + 1;
    const std::uint32_t number =
        round * kMicrobatches + static_cast<std::uint32_t>(id.microbatch) + 1;
    double ready_seconds = ready_seconds_;
    if (neighbour >= 0 && neighbour < kStages) {
      if (!WaitFor(*memory_, memory_->ended[pipeline_][neighbour][kind], number)) return false;
      ready_seconds = std::max(ready_seconds,
                               memory_->end_seconds[pipeline_][neighbour][kind][id.microbatch].load(
                                   std::memory_order_relaxed));
    }
    const auto type = static_cast<perseus_instruction>(id.type);
    perseus_instruction_begin(client_.get(), type, stage_, id.microbatch);
    const auto ran = gpus_->RunKernel(rank_, kernels_[id.type], ready_seconds);
    perseus_instruction_end(client_.get(), type, stage_, id.microbatch);
    if (!ran) return tl::unexpected(ran.error());
    ready_seconds_ = ran->end_seconds;
    busy_seconds_[id.type] += ran->seconds;
    memory_->end_seconds[pipeline_][stage_][kind][id.microbatch].store(ran->end_seconds,
                                                                       std::memory_order_relaxed);
    Raise(&memory_->ended[pipeline_][stage_][kind]);
    return true;
  }

  Result<void> Record(SharedMemory::Sample* sample, Part part) {
    const auto snapshot = gpus_->Snapshot(rank_);
    if (!snapshot) return tl::unexpected(snapshot.error());
    if (ready_seconds_ == 0) ready_seconds_ = snapshot->at_seconds;
    sample->seconds = ready_seconds_;
    sample->joules = snapshot->joules;
    sample->clock_mhz = snapshot->clock_mhz;
    sample->part = static_cast<std::int32_t>(part);
    sample->plan_version = perseus_client_plan_version(client_.get());
    return {};
  }

  DemoFiles files_;
  int rank_;
  int pipeline_;
  int stage_;
  SharedMemoryPointer memory_;
  std::unique_ptr<device::SimulatedGpus> gpus_;
  std::map<ComputationType, device::Kernel> kernels_;
  std::vector<ScheduleStep> order_;
  std::map<ComputationType, double> busy_seconds_;  // Of this iteration.
  ClientPointer client_;
  double ready_seconds_ = 0;  // When what ran last ended; of a round: its last rank.
  int first_planned_ = -1;
  bool has_plan_ = false;
  bool slow_ = false;
};

}  // namespace

Result<void> RunTrainer(const std::string& folder, int rank) {
  if (rank < 0 || rank >= kRanks) return InvalidInput("no such rank");
  Trainer trainer(DemoFiles{folder}, rank);
  if (Result<void> opened = trainer.Open(); !opened) return opened;
  return trainer.Run();
}

}  // namespace perseus::demo
