// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_DEMO_TRAINER_H_
#define PERSEUS_CLI_DEMO_TRAINER_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "perseus/client.h"
#include "perseus/result.h"

namespace perseus::demo {

// The files of a demonstration, in its folder.
struct DemoFiles {
  std::string folder;

  std::string gpus() const { return folder + "/gpus.state"; }
  std::string socket() const { return folder + "/agent.sock"; }
  std::string journal() const { return folder + "/agent.journal"; }
  std::string store() const { return folder + "/store.db"; }
  std::string memory() const { return folder + "/trainers.state"; }
  std::string profile() const { return folder + "/profile.csv"; }
  std::string job() const { return folder + "/job.json"; }       // Body of POST /api/v1/jobs.
  std::string plan() const { return folder + "/plan.json"; }     // Of pipeline 0, at the end.
  std::string rounds() const { return folder + "/rounds.csv"; }  // What each iteration took.
  std::string server() const { return folder + "/server"; }      // Its address.
  std::string log(const std::string& of) const { return folder + "/" + of + ".log"; }
};

inline constexpr int kPipelines = 2;
inline constexpr int kStages = 4;
inline constexpr int kRanks = kPipelines * kStages;  // rank = pipeline * kStages + stage
inline constexpr int kMicrobatches = 8;
inline constexpr int kMaxRounds = 1024;

// The parts of the demonstration, iteration after iteration ("rounds").
enum class Part : std::uint32_t {
  kBaseline,           // No client: clocks are the driver's.
  kBaselineStraggler,  // Likewise, with the straggler.
  kWaiting,            // Clients are open; until every rank has a plan.
  kPlanned,            // The iterations that count.
  kOver,
};

struct DemoPlan {
  int baseline_rounds = 4;
  int iterations = 30;
  bool straggler = true;
  int straggler_from = 10;
  int straggler_until = 20;
  double straggler_factor = 1.2;
  bool detect = false;  // The server finds the straggler; else a rank says so.
  bool ahead = true;    // False: clocks are called for when their computation begins.
};

// The state that the trainers of a demonstration share: a file in memory. It
// stands for the network of a real job: activations and gradients between
// stages, the all-reduce between pipelines. Only atomics and plain numbers.
struct SharedMemory {
  DemoPlan plan;

  std::atomic<std::uint32_t> stop;  // Everybody leaves.

  // Computations that have ended, ever: [pipeline][stage][forward, backward].
  std::atomic<std::uint32_t> ended[kPipelines][kStages][2];

  // When, on the GPUs' time: of each computation of this round. A machine that wakes
  // its processes late so does not distort what the GPUs would have done.
  std::atomic<double> end_seconds[kPipelines][kStages][2][kMicrobatches];
  std::atomic<double> last_end_seconds[kRanks];

  // The barrier at the end of each round.
  std::atomic<std::uint32_t> arrived;
  std::atomic<std::uint32_t> rounds;        // That are over.
  std::atomic<std::uint32_t> with_plan;     // Ranks that follow a plan.
  std::atomic<std::int32_t> first_planned;  // Round; -1: not known yet.

  // A rank's measurements at the end of a round, complete for rounds below `sampled`.
  struct Sample {
    double seconds;  // When the last rank had ended.
    double joules;
    std::int32_t clock_mhz;
    std::int32_t part;
    std::int64_t plan_version;
  };
  std::array<Sample, kMaxRounds> samples[kRanks];
  std::atomic<std::uint32_t> sampled[kRanks];
  Sample begin[kRanks];  // Before the first round.

  perseus_client_stats stats[kRanks];  // At the end.
  char job_id[128];
};

struct UnmapShared {
  void operator()(SharedMemory* memory) const;
};
using SharedMemoryPointer = std::unique_ptr<SharedMemory, UnmapShared>;

// Makes (zeroed, with `plan`) or opens the file.
Result<SharedMemoryPointer> CreateSharedMemory(const std::string& path, const DemoPlan& plan);
Result<SharedMemoryPointer> OpenSharedMemory(const std::string& path);

// Wait until `word` reaches `value`; false: `stop` was set meanwhile. Sleeps in
// the kernel, across processes.
bool WaitFor(const SharedMemory& memory, const std::atomic<std::uint32_t>& word,
             std::uint32_t value);
void Raise(std::atomic<std::uint32_t>* word);  // One more, and wakes who waits.

// The first argument of a process that is a trainer; the second is the folder
// of the demonstration, the third its rank.
inline constexpr const char* kTrainerArgument = "--demo-trainer";

// One rank of the modelled job, to its end: runs its computations in the order
// of its schedule on its simulated GPU, waits for its neighbours, and tells the
// client what it does, as a real trainer would.
Result<void> RunTrainer(const std::string& folder, int rank);

}  // namespace perseus::demo

#endif  // PERSEUS_CLI_DEMO_TRAINER_H_
