// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "evaluation/sosp24_artifact.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <tuple>
#include <vector>

namespace perseus {
namespace {

// Three iterations, of which the first two warm up: two ranks, the second
// slower by 0.5 s.
std::string Measurement(double seconds, double joules) {
  return fmt::format(
      R"([{{"rank": 0, "iter_time": [9, 9, {0}], "iter_energy": [7, 7, {2}],
           "time_breakdown": {{}}}},
          {{"rank": 1, "iter_time": [9, 9, {1}], "iter_energy": [7, 7, {2}]}}])",
      seconds - 0.5, seconds, joules / 2);
}

// Instructions of two microbatches: load, forward, transfer, load, forward,
// transfer, backward, transfer, backward, end; of the last stage transfer, load,
// forward, backward, transfer, load, forward, backward, transfer, end. Other
// instructions have a clock that the profile lacks.
constexpr std::string_view kClocks =
    R"([{"rank": 0, "power_states": [1, 1000, 1, 1, 800, 1, 1000, 1, 800, 1, 1, 1]},
        {"rank": 1, "power_states": [1, 1, 800, 1000, 1, 1, 1000, 1000, 1, 1, 1, 1]}])";

}  // namespace

TinyArtifact::TinyArtifact() {
  Put("sosp24_data/emulation/stage_profile/gpt3-175b+a40_bf16.csv",
      "stage,instruction,frequency,time,energy\n"
      "0,forward,1000,0.1,30\n0,forward,800,0.12,24\n"
      "0,backward,1000,0.2,60\n0,backward,800,0.24,48\n"
      "1,forward,1000,0.1,30\n1,forward,800,0.12,24\n"
      "1,backward,1000,0.2,60\n1,backward,800,0.24,48\n");
  Put("sosp24_data/emulation/iteration_time_energy/a40/gpt3-175b_bf16_mb12.csv",
      "time,energy\n4.6,2100\n4.0,2150\n3.95,2200\n4.4,2080\n");
  Put("sosp24_data/emulation/envpipe_result.csv",
      "model,precision,device,num_microbatches,num_pipelines,iteration_time,energy\n"
      "gpt3-175b,bf16,a40,12,128,40,175000\n");
  Put("sosp24_data/workloads/dp1+pp2+tp1/models_A40.csv",
      "model,partition_method,dp,tp,pp,microbatch_size,num_microbatches\n"
      "tiny,\"custom:0,1,2\",1,1,2,4,2\nabsent,uniform,1,1,2,4,2\n");
  const std::string header =
      "model_name,partition_method,batch_size,dp,tp,pp,microbatch_size,num_microbatches,"
      "power_limit_0,power_limit_1,time,energy\n";
  Put("sosp24_data/zeus/csv/A40/zeus_global.csv",
      header +
          "tiny,\"custom:0,1,2\",8,1,1,2,4,2,275,275,10.5,990\n"
          "tiny,\"custom:0,1,2\",8,1,1,2,4,2,300.0,300.0,10,1000\n"
          "tiny,\"custom:0,1,2\",8,1,1,2,8,2,300,300,1,1\n");
  Put("sosp24_data/zeus/csv/A40/zeus_local.csv",
      header + "tiny,\"custom:0,1,2\",8,1,1,2,4,2,300,200,11,950\n");
  for (const auto& [plan, seconds, joules] : std::vector<std::tuple<int, double, double>>{
           {0, 9.0, 5.0}, {1, 9.0, 5.0}, {2, 12.0, 700.0}, {3, 11.0, 750.0}, {10, 10.2, 900.0}}) {
    Put(RunFile("perseus", fmt::format("{}.prof.json", plan)), Measurement(seconds, joules));
    Put(RunFile("perseus", fmt::format("{}.sched.json", plan)), kClocks);
  }
  Put(RunFile("envpipe", "2.prof.json"), Measurement(9.9, 920.0));
  Put("derived/A40_tiny_dp1_tp1_pp2_mbs4_nmb2.csv",
      "stage,instruction,frequency,time,energy\n"
      "0,forward,1000,1,100\n0,forward,800,1.2,80\n"
      "0,backward,1000,2,200\n0,backward,800,2.4,160\n"
      "1,forward,1000,1,100\n1,forward,800,1.2,80\n"
      "1,backward,1000,2,200\n1,backward,800,2.4,160\n");
}

void TinyArtifact::Put(const std::string& name, std::string_view bytes) const {
  const std::filesystem::path path = directory_.Path(name);
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

void TinyArtifact::Remove(const std::string& name) const {
  std::filesystem::remove_all(directory_.Path(name));
}

std::string TinyArtifact::RunFile(std::string_view system, std::string_view file) {
  return fmt::format("sosp24_data/{}/A40/dp1+pp2+tp1/{}/{}", system, kRunName, file);
}

std::filesystem::path SharedSosp24() {
  const char* shared = std::getenv("PERSEUS_SHARED_DATA");
  const std::filesystem::path root =
      std::filesystem::path(shared != nullptr ? shared : "../shared/data") / "sosp24";
  return std::filesystem::exists(root / "sosp24_data") ? root : std::filesystem::path();
}

}  // namespace perseus
