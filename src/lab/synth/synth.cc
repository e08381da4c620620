// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/synth.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/nearest_name.h"
#include "synth/synth_gpu.h"
#include "synth/synth_shape.h"
#include "synth/synth_text.h"

namespace perseus {
inline namespace v0 {
namespace {

using synth::CommandThatMakes;
using synth::FindGpu;
using synth::GpuDirection;
using synth::GpuModel;
using synth::GpuModels;
using synth::JobFileText;
using synth::ModelShape;
using synth::PartitionLayers;
using synth::ResolveShape;

constexpr std::int64_t kMaxCount = 1'000'000;

// Time and energy of one computation on one GPU.
struct Cost {
  double seconds = 0;
  double joules = 0;
};

// What runs on a stage, in operations per GPU.
struct StageWork {
  double layer_flops = 0;
  double head_flops = 0;
  bool has_head = false;
};

Result<void> CheckRange(const char* field, std::int64_t value, std::int64_t least,
                        std::int64_t most) {
  if (value >= least && value <= most) return {};
  return InvalidInput(
      fmt::format("{} {} is out of range: expected {} to {}", field, value, least, most));
}

const std::string& ModelName(const ModelShape& shape) {
  return std::visit([](const auto& model) -> const std::string& { return model.name; }, shape);
}

std::int64_t CountLayers(const ModelShape& shape) {
  if (const auto* transformer = std::get_if<TransformerShape>(&shape)) return transformer->layers;
  const auto& blocks = std::get<WideResNetShape>(shape).blocks;
  return std::accumulate(blocks.begin(), blocks.end(), std::int64_t{0});
}

Result<void> CheckTensorParallel(const SynthSpec& spec, const ModelShape& shape) {
  const auto* transformer = std::get_if<TransformerShape>(&shape);
  if (transformer != nullptr && transformer->heads % spec.tensor_parallel != 0) {
    return InvalidInput(
        fmt::format("'tensor_parallel' {} does not divide the model's {} attention heads",
                    spec.tensor_parallel, transformer->heads));
  }
  if (transformer == nullptr && spec.tensor_parallel != 1) {
    return InvalidInput(fmt::format(
        "'tensor_parallel' {}: tensor parallelism splits transformers, and {} is a convolutional "
        "network: leave it out",
        spec.tensor_parallel, ModelName(shape)));
  }
  return {};
}

Result<void> CheckLayout(const SynthSpec& spec, const ModelShape& shape) {
  for (const auto& [field, value] : {std::pair<const char*, std::int64_t>{"'stages'", spec.stages},
                                     {"'virtual_stages'", spec.virtual_stages},
                                     {"'tensor_parallel'", spec.tensor_parallel},
                                     {"'microbatch_size'", spec.microbatch_size}}) {
    if (Result<void> valid = CheckRange(field, value, 1, kMaxCount); !valid) return valid;
  }
  if (Result<void> valid = CheckRange("'microbatches'", spec.microbatches, 0, kMaxCount); !valid) {
    return valid;
  }
  if (spec.stages > CountLayers(shape)) {
    return InvalidInput(
        fmt::format("'stages' {} is more than the model's {} {}: every stage needs at least one",
                    spec.stages, CountLayers(shape),
                    std::holds_alternative<WideResNetShape>(shape) ? "residual blocks" : "layers"));
  }
  if (spec.stages % spec.virtual_stages != 0) {
    return InvalidInput(fmt::format(
        "'virtual_stages' {} does not divide 'stages' {}: 'stages' counts the model's stages, "
        "ranks x virtual stages",
        spec.virtual_stages, spec.stages));
  }
  if (Result<void> valid = CheckTensorParallel(spec, shape); !valid) return valid;
  if (!(spec.efficiency == 0 || (spec.efficiency > 0 && spec.efficiency <= 1))) {
    return InvalidInput(
        fmt::format("'efficiency' {:.9g}: expected a share of the peak rate, above 0 and at most 1",
                    spec.efficiency));
  }
  // It goes into the job file as it is; `perseus plan` knows the names.
  const bool plain_name =
      std::all_of(spec.schedule.begin(), spec.schedule.end(), [](unsigned char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-' || c == '_';
      });
  if (!plain_name) {
    return InvalidInput(fmt::format("'schedule' {}: expected the name of a schedule, such as 1f1b",
                                    Shown(spec.schedule)));
  }
  return {};
}

// Highest first.
Result<std::vector<std::int64_t>> Clocks(const SynthSpec& spec, const GpuModel& gpu) {
  const std::int64_t low = spec.min_clock_mhz == 0 ? gpu.lowest_modelled_mhz : spec.min_clock_mhz;
  const std::int64_t high = spec.max_clock_mhz == 0 ? gpu.max_mhz : spec.max_clock_mhz;
  const std::int64_t step = spec.clock_step_mhz == 0 ? gpu.step_mhz : spec.clock_step_mhz;
  if (low < gpu.lowest_modelled_mhz || high > gpu.max_mhz || low > high) {
    return InvalidInput(
        fmt::format("'min_clock_mhz' {} 'max_clock_mhz' {}: {} is modelled from {} to {} MHz, "
                    "where measured tables "
                    "reach; give a range within",
                    low, high, gpu.title, gpu.lowest_modelled_mhz, gpu.max_mhz));
  }
  if ((gpu.max_mhz - high) % gpu.step_mhz != 0) {
    return InvalidInput(
        fmt::format("'max_clock_mhz' {}: the clocks of {} are {} MHz and every {} MHz below", high,
                    gpu.title, gpu.max_mhz, gpu.step_mhz));
  }
  if (step < 1 || step % gpu.step_mhz != 0) {
    return InvalidInput(
        fmt::format("'clock_step_mhz' {}: expected a multiple of {} MHz, the step of {}", step,
                    gpu.step_mhz, gpu.title));
  }
  std::vector<std::int64_t> clocks;
  for (std::int64_t mhz = high; mhz >= low; mhz -= step) clocks.push_back(mhz);
  return clocks;
}

Cost DirectionCost(const GpuModel& gpu, const GpuDirection& direction, const StageWork& work,
                   double flops_factor, std::int64_t mhz) {
  const double slowdown =
      static_cast<double>(gpu.max_mhz) / gpu.EffectiveMhz(static_cast<double>(mhz));
  const double stretch = (1 - direction.clock_share) + direction.clock_share * slowdown;
  const double watts = gpu.PowerWatts(static_cast<double>(mhz));
  const double peak = gpu.peak_flops_per_second;
  const double computing = (flops_factor * work.layer_flops / (direction.efficiency * peak) +
                            flops_factor * work.head_flops / (direction.head_efficiency * peak)) *
                           stretch;
  const double overhead = work.has_head ? direction.head_overhead_seconds * stretch : 0.0;
  return {computing + overhead, (computing + overhead * gpu.head_overhead_power_share) * watts};
}

Cost ForwardCost(const GpuModel& gpu, const StageWork& work, std::int64_t mhz) {
  return DirectionCost(gpu, gpu.forward, work, 1, mhz);
}

Cost BackwardCost(const GpuModel& gpu, const StageWork& work, bool recompute, std::int64_t mhz) {
  Cost cost = DirectionCost(gpu, gpu.backward, work, 2, mhz);
  if (recompute) {
    // The layers run forward once more; the head keeps its activations.
    const Cost again = ForwardCost(gpu, {.layer_flops = work.layer_flops}, mhz);
    cost.seconds += again.seconds;
    cost.joules += again.joules;
  }
  return cost;
}

double IterationShare(const GpuModel& gpu, const StageWork& work, bool recompute,
                      std::int64_t mhz) {
  return ForwardCost(gpu, work, mhz).seconds + BackwardCost(gpu, work, recompute, mhz).seconds;
}

std::string ProfileText(const SynthSpec& spec, const GpuModel& gpu, const std::string& command,
                        std::string_view layers, const std::vector<StageWork>& stages,
                        const std::vector<std::int64_t>& clocks) {
  std::string text = fmt::format(
      "# MODELLED, not measured: an analytic model of {}.\n"
      "# Made by: {}\n"
      "# {}\n"
      "# Seconds and joules of one GPU; the model and its error: docs/evidence/synth.md.\n"
      "stage,instruction,frequency,time,energy\n",
      gpu.title, command, layers);
  // Nine digits: the same text whatever the last bits of a machine's doubles.
  const auto row = [&text](std::size_t stage, const char* type, std::int64_t mhz,
                           const Cost& cost) {
    fmt::format_to(std::back_inserter(text), "{},{},{},{:.9g},{:.9g}\n", stage, type, mhz,
                   cost.seconds, cost.joules);
  };
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    for (const std::int64_t mhz : clocks) {
      row(stage, "forward", mhz, ForwardCost(gpu, stages[stage], mhz));
    }
    for (const std::int64_t mhz : clocks) {
      row(stage, "backward", mhz, BackwardCost(gpu, stages[stage], spec.recompute, mhz));
    }
  }
  return text;
}

// Lets the GPU run convolutions, and weighs the blocks by their efficiency.
Result<void> UseConvolutions(const WideResNetShape& shape, GpuModel& gpu, ModelFlops& flops) {
  if (!gpu.convolutions) {
    std::vector<std::string_view> able;
    for (const GpuModel& other : GpuModels()) {
      if (other.convolutions) able.push_back(other.name);
    }
    return InvalidInput(fmt::format(
        "'model' {} on 'gpu' {}: no measured table gives the efficiency of convolutions on this "
        "card and the share of their time that follows the clock, so they are not modelled there "
        "(nothing is guessed); sweep its clocks and plan from the measured profile, or model one "
        "of: {}",
        shape.name, gpu.name, fmt::join(able, ", ")));
  }
  gpu.forward = gpu.convolutions->forward;
  gpu.backward = gpu.convolutions->backward;
  auto block = flops.layers.begin();
  for (std::size_t group = 0; group < shape.blocks.size(); ++group) {
    for (std::int64_t i = 0; i < shape.blocks[group]; ++i) {
      *block++ /= gpu.convolutions->group_efficiency[group];
    }
  }
  return {};
}

// What the head of the profile says about the stages.
std::string DescribeLayers(const ModelShape& shape, const std::vector<std::int64_t>& partition) {
  if (std::holds_alternative<WideResNetShape>(shape)) {
    return fmt::format(
        "Residual blocks per stage: {}; the first stage also has the stem, the last the "
        "classifier.",
        fmt::join(partition, ","));
  }
  return fmt::format("Layers per stage: {}; the last stage also has the vocabulary head.",
                     fmt::join(partition, ","));
}

void ScaleEfficiency(GpuModel& gpu, double efficiency) {
  if (efficiency == 0) return;
  const double factor = efficiency / gpu.forward.efficiency;
  for (GpuDirection* direction : {&gpu.forward, &gpu.backward}) {
    direction->efficiency = std::min(1.0, direction->efficiency * factor);
    direction->head_efficiency = std::min(1.0, direction->head_efficiency * factor);
    direction->head_overhead_seconds /= factor;
  }
}

}  // namespace

std::vector<std::string> SynthGpuNames() {
  std::vector<std::string> names;
  for (const GpuModel& gpu : GpuModels()) names.emplace_back(gpu.name);
  return names;
}

Result<SynthResult> Synthesize(const SynthSpec& spec) {
  Result<ModelShape> shape = ResolveShape(spec);
  if (!shape) return tl::unexpected<Error>(shape.error());
  Result<GpuModel> gpu = FindGpu(spec.gpu);
  if (!gpu) return tl::unexpected<Error>(gpu.error());
  if (Result<void> valid = CheckLayout(spec, *shape); !valid) {
    return tl::unexpected<Error>(valid.error());
  }
  const Result<std::vector<std::int64_t>> clocks = Clocks(spec, *gpu);
  if (!clocks) return tl::unexpected<Error>(clocks.error());

  ModelFlops flops = std::visit(
      [&spec](const auto& model) { return CountFlops(model, spec.microbatch_size); }, *shape);
  const double flops_per_microbatch =
      3 * (std::accumulate(flops.layers.begin(), flops.layers.end(), 0.0) + flops.mtp + flops.head);
  if (const auto* convolutional = std::get_if<WideResNetShape>(&*shape)) {
    if (Result<void> able = UseConvolutions(*convolutional, *gpu, flops); !able) {
      return tl::unexpected<Error>(able.error());
    }
  }
  ScaleEfficiency(*gpu, spec.efficiency);

  SynthSpec canonical = spec;  // Names as they are spelled here.
  canonical.gpu = gpu->name;
  if (!spec.model.empty()) canonical.model = ModelName(*shape);

  const auto per_gpu = [&spec](double total) {
    return total / static_cast<double>(spec.tensor_parallel);
  };
  const std::int64_t top_mhz = clocks->front();
  std::vector<double> layer_seconds;
  for (const double layer : flops.layers) {
    layer_seconds.push_back(
        IterationShare(*gpu, {.layer_flops = per_gpu(layer)}, spec.recompute, top_mhz));
  }
  const StageWork tail = {
      .layer_flops = per_gpu(flops.mtp), .head_flops = per_gpu(flops.head), .has_head = true};
  const Result<std::vector<std::int64_t>> partition =
      PartitionLayers(spec, layer_seconds, IterationShare(*gpu, tail, spec.recompute, top_mhz));
  if (!partition) return tl::unexpected<Error>(partition.error());

  std::vector<StageWork> works;
  std::size_t layer = 0;
  for (const std::int64_t count : *partition) {
    StageWork work = works.size() + 1 == partition->size() ? tail : StageWork{};
    for (std::int64_t i = 0; i < count; ++i) work.layer_flops += per_gpu(flops.layers[layer++]);
    works.push_back(work);
  }

  SynthResult result;
  double slowest = 0;
  double sum = 0;
  for (std::size_t stage = 0; stage < works.size(); ++stage) {
    const double forward = ForwardCost(*gpu, works[stage], top_mhz).seconds;
    const double backward = BackwardCost(*gpu, works[stage], spec.recompute, top_mhz).seconds;
    result.stages.push_back({(*partition)[stage], forward, backward});
    slowest = std::max(slowest, forward + backward);
    sum += forward + backward;
  }
  result.imbalance = slowest / (sum / static_cast<double>(works.size()));
  result.flops_per_microbatch = flops_per_microbatch;
  result.command = CommandThatMakes(canonical);
  result.profile_csv =
      ProfileText(spec, *gpu, result.command, DescribeLayers(*shape, *partition), works, *clocks);
  result.job_toml = JobFileText(spec, *gpu, result.command);
  return result;
}

}  // namespace v0
}  // namespace perseus
