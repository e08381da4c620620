// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "evaluation/artifact.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <tuple>
#include <utility>

#include "common/numbers.h"
#include "evaluation/csv_table.h"

namespace perseus::sosp24 {
namespace {

// The names in a folder, sorted; empty if it cannot be read.
std::vector<std::string> NamesIn(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 5> kFolders = {"emulation", "perseus", "envpipe", "zeus",
                                                      "workloads"};
// What was published, in the order of Table 6.
constexpr std::array<std::string_view, 2> kModels = {"gpt3-175b", "bloom"};
constexpr std::array<std::string_view, 2> kDevices = {"a100_sxm", "a40"};
constexpr std::array<int, 4> kMicrobatches = {12, 24, 48, 96};

constexpr int kMaxCount = 1'000'000;

// The number behind a prefix: 4 of "pp4".
std::optional<int> Numbered(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  text.remove_prefix(prefix.size());
  const std::optional<int> value = ParseInteger<int>(text);
  return value && *value >= 1 && *value <= kMaxCount ? value : std::nullopt;
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

template <typename Names>
std::size_t RankIn(const Names& names, std::string_view name) {
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

// "gpt3-175b_bf16_mb96.csv": the model and the number of microbatches.
std::optional<std::pair<std::string, int>> ParseFrontierName(std::string_view name) {
  constexpr std::string_view kMiddle = "_bf16_mb";
  if (!name.ends_with(".csv")) return std::nullopt;
  name.remove_suffix(4);
  const std::size_t at = name.rfind(kMiddle);
  if (at == std::string_view::npos || at == 0) return std::nullopt;
  const auto microbatches = Numbered(name.substr(at), kMiddle);
  if (!microbatches) return std::nullopt;
  return std::pair(std::string(name.substr(0, at)), *microbatches);
}

std::string ProfileName(std::string_view model, std::string_view device) {
  return fmt::format("emulation/stage_profile/{}+{}_bf16.csv", model, device);
}

std::string FrontierName(std::string_view model, std::string_view device, int microbatches) {
  return fmt::format("emulation/iteration_time_energy/{}/{}_bf16_mb{}.csv", device, model,
                     microbatches);
}

void NameAbsentCases(const fs::path& root, std::vector<std::string>* missing) {
  for (const std::string_view model : kModels) {
    for (const std::string_view device : kDevices) {
      std::vector<std::string> absent;
      for (const int microbatches : kMicrobatches) {
        const std::string name = FrontierName(model, device, microbatches);
        if (!IsFile(root / name)) absent.push_back(std::to_string(microbatches));
      }
      if (absent.empty()) continue;
      missing->push_back(
          fmt::format("Emulation of {} on {}: no published frontier for {} microbatches ({}), so "
                      "these cells of "
                      "Table 6 and Figures 7 and 8 are left out.",
                      model, device, fmt::join(absent, ", "),
                      FrontierName(model, device, std::stoi(absent.front()))));
    }
  }
}

// "merak+MODEL+PARTITION+dp1+pp4+tp1+mbs8+nmb32+PointSolution".
std::optional<Workload> ParseRunName(const std::string& gpu, std::string_view name) {
  const std::vector<std::string_view> parts = Split(name, '+');
  if (parts.size() < 9 || !parts.back().starts_with("PointSolution")) return std::nullopt;
  const std::string_view* part = &parts[parts.size() - 8];
  const auto dp = Numbered(part[2], "dp");
  const auto pp = Numbered(part[3], "pp");
  const auto tp = Numbered(part[4], "tp");
  const auto mbs = Numbered(part[5], "mbs");
  const auto nmb = Numbered(part[6], "nmb");
  if (!dp || !pp || !tp || !mbs || !nmb) return std::nullopt;
  return Workload{gpu, std::string(part[0]), std::string(part[1]), *dp, *pp, *tp, *mbs, *nmb};
}

Result<void> AddListed(const fs::path& file, const std::string& gpu,
                       std::vector<Workload>* workloads) {
  const auto table = CsvTable::Read(file.string(), {"model", "partition_method", "dp", "tp", "pp",
                                                    "microbatch_size", "num_microbatches"});
  if (!table) return tl::unexpected(table.error());
  for (int row = 0; row < table->rows(); ++row) {
    Workload workload = {
        .gpu = gpu, .model = table->Text(row, 0), .partition = table->Text(row, 1)};
    for (const auto& [column, value] :
         {std::pair(2, &workload.data_parallel), std::pair(3, &workload.tensor_parallel),
          std::pair(4, &workload.stages), std::pair(5, &workload.microbatch_size),
          std::pair(6, &workload.microbatches)}) {
      const Result<int> count = table->Count(row, column);
      if (!count) return tl::unexpected(count.error());
      *value = *count;
    }
    if (std::find(workloads->begin(), workloads->end(), workload) == workloads->end()) {
      workloads->push_back(std::move(workload));
    }
  }
  return {};
}

}  // namespace

Result<fs::path> FindArtifact(const std::string& directory) {
  std::error_code ignored;
  if (!fs::is_directory(directory, ignored)) {
    return InvalidInput(fmt::format(
        "{}: is no folder; give sosp24_data of the paper's artifact (repository ml-energy/zeus, "
        "branch kronos)",
        directory));
  }
  for (const fs::path& root : {fs::path(directory), fs::path(directory) / "sosp24_data"}) {
    for (const std::string_view folder : kFolders) {
      if (fs::is_directory(root / folder, ignored)) return root;
    }
  }
  return InvalidInput(fmt::format(
      "{}: holds nothing of the paper's artifact (none of {}/); give sosp24_data of the repository "
      "ml-energy/zeus, branch kronos",
      directory, fmt::join(kFolders, "/, ")));
}

std::optional<double> BlockingPowerWatts(std::string_view gpu) {
  if (gpu == "A100" || gpu == "a100_sxm") return 83.64;
  if (gpu == "A40" || gpu == "a40") return 70.38;
  return std::nullopt;
}

bool IsFile(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

std::vector<EmulationCase> ListEmulations(const fs::path& root, std::vector<std::string>* missing) {
  std::vector<EmulationCase> cases;
  const fs::path frontiers = root / "emulation" / "iteration_time_energy";
  for (const std::string& device : NamesIn(frontiers)) {
    for (const std::string& name : NamesIn(frontiers / device)) {
      const auto parsed = ParseFrontierName(name);
      if (!parsed) continue;
      const auto& [model, microbatches] = *parsed;
      const std::string profile = ProfileName(model, device);
      const std::string what =
          fmt::format("Emulation of {} on {}, {} microbatches", model, device, microbatches);
      if (!IsFile(root / profile)) {
        missing->push_back(fmt::format("{}: {} is absent, so it is left out.", what, profile));
      } else if (!BlockingPowerWatts(device)) {
        missing->push_back(fmt::format(
            "{}: the paper states no blocking power for this GPU, so it is left out.", what));
      } else {
        cases.push_back({model, device, microbatches, root / profile, frontiers / device / name});
      }
    }
  }
  const auto place = [](const EmulationCase& one) {
    return std::tuple(RankIn(kModels, one.model), one.model, RankIn(kDevices, one.device),
                      one.device, one.microbatches);
  };
  std::sort(cases.begin(), cases.end(),
            [&](const EmulationCase& a, const EmulationCase& b) { return place(a) < place(b); });
  NameAbsentCases(root, missing);
  return cases;
}

std::string Workload::Layout() const {
  return fmt::format("dp{}+pp{}+tp{}", data_parallel, stages, tensor_parallel);
}

std::string Workload::FileName() const {
  return fmt::format("{}_{}_dp{}_tp{}_pp{}_mbs{}_nmb{}.csv", gpu, model, data_parallel,
                     tensor_parallel, stages, microbatch_size, microbatches);
}

Result<std::vector<Workload>> ListWorkloads(const fs::path& root) {
  std::vector<Workload> workloads;
  for (const std::string& layout : NamesIn(root / "workloads")) {
    for (const std::string& name : NamesIn(root / "workloads" / layout)) {
      if (!name.starts_with("models_") || !name.ends_with(".csv")) continue;
      const std::string gpu = name.substr(7, name.size() - 11);
      const auto added = AddListed(root / "workloads" / layout / name, gpu, &workloads);
      if (!added) return tl::unexpected(added.error());
    }
  }
  for (const std::string_view system : {"perseus", "envpipe"}) {
    for (const std::string& gpu : NamesIn(root / system)) {
      for (const std::string& layout : NamesIn(root / system / gpu)) {
        for (const std::string& name : NamesIn(root / system / gpu / layout)) {
          const auto workload = ParseRunName(gpu, name);
          if (!workload) continue;
          if (std::find(workloads.begin(), workloads.end(), *workload) == workloads.end()) {
            workloads.push_back(*workload);
          }
        }
      }
    }
  }
  return workloads;
}

std::optional<RunFolder> FindRunFolder(const fs::path& root, std::string_view system,
                                       const Workload& workload) {
  const fs::path folder = root / system / workload.gpu / workload.Layout();
  std::optional<RunFolder> found;
  for (const std::string& name : NamesIn(folder)) {
    if (ParseRunName(workload.gpu, name) != workload) continue;
    found = RunFolder{folder / name, name.ends_with("PointSolution3D") ? 0 : 2};
  }
  return found;
}

}  // namespace perseus::sosp24
