// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EVALUATION_ARTIFACT_H_
#define PERSEUS_EVALUATION_ARTIFACT_H_

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perseus/result.h"

// What the artifact of the paper holds and where (folder sosp24_data). Names
// of files say what was run; nothing here reads numbers out of them but the
// list of workloads.
namespace perseus::sosp24 {

// The folder that was given, if it has the artifact's folders, or sosp24_data
// in it.
Result<std::filesystem::path> FindArtifact(const std::string& directory);

// The power of a waiting GPU as the paper states it ("A100", "a40", "a100_sxm").
std::optional<double> BlockingPowerWatts(std::string_view gpu);

bool IsFile(const std::filesystem::path& path);

// One pipeline of the emulation, as file names tell.
struct EmulationCase {
  std::string model;
  std::string device;
  int microbatches = 0;
  std::filesystem::path profile;   // Of one transformer stage each, unscaled.
  std::filesystem::path frontier;  // The published planner's.
};

// In the order of the paper's Table 6. What is not complete, or absent of what
// was published, is named in `missing`.
std::vector<EmulationCase> ListEmulations(const std::filesystem::path& root,
                                          std::vector<std::string>* missing);

// One real job.
struct Workload {
  std::string gpu;
  std::string model;
  std::string partition;
  int data_parallel = 1;
  int stages = 1;
  int tensor_parallel = 1;
  int microbatch_size = 1;
  int microbatches = 1;

  std::string Layout() const;  // "dp1+pp4+tp1"
  int Gpus() const { return data_parallel * stages * tensor_parallel; }
  // As derived profiles and summaries of measurements are called.
  std::string FileName() const;
  friend bool operator==(const Workload&, const Workload&) = default;
};

// Those that workloads/ lists, then those that were run without being listed.
Result<std::vector<Workload>> ListWorkloads(const std::filesystem::path& root);

// Where a system's plans of a job were measured.
struct RunFolder {
  std::filesystem::path path;
  // Runs at maximum clocks before the first plan: none with 3D parallelism,
  // whose runs the artifact takes whole.
  int warm_up_plans = 0;
};
// `system` is "perseus" or "envpipe". Of several folders the last counts, by name.
std::optional<RunFolder> FindRunFolder(const std::filesystem::path& root, std::string_view system,
                                       const Workload& workload);

}  // namespace perseus::sosp24

#endif  // PERSEUS_EVALUATION_ARTIFACT_H_
