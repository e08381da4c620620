// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "synth/synth_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "synth/synth_shape.h"

namespace perseus::synth {
namespace {

// The command line's name for a field of the shape.
std::string FlagOf(std::string_view field) {
  std::string flag = fmt::format("--{}", field);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

std::string TomlString(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') {
      quoted += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

// A list without the spaces around its commas, which a shell would part.
std::string OneWord(std::string list) {
  std::erase_if(list, [](char c) { return c == ' ' || c == '\t'; });
  return list;
}

}  // namespace

std::string CommandThatMakes(const SynthSpec& spec) {
  std::string command = "perseus synth";
  const auto add = [&command](std::string_view option, const auto& value) {
    fmt::format_to(std::back_inserter(command), " {} {}", option, value);
  };
  if (!spec.model.empty()) add("--model", spec.model);
  for (const ShapeField& each : ShapeFields()) {
    if (spec.shape.*each.field > 0) add(FlagOf(each.name), spec.shape.*each.field);
  }
  add("--gpu", spec.gpu);
  add("--stages", spec.stages);
  if (spec.virtual_stages != 1) add("--virtual-stages", spec.virtual_stages);
  if (spec.tensor_parallel != 1) add("--tp", spec.tensor_parallel);
  if (spec.microbatch_size != 1) add("--microbatch-size", spec.microbatch_size);
  if (spec.microbatches != 0) add("--microbatches", spec.microbatches);
  if (spec.partition != "balanced") add("--partition", OneWord(spec.partition));
  if (!spec.schedule.empty()) add("--schedule", spec.schedule);
  if (spec.recompute) command += " --recompute";
  if (spec.efficiency != 0) add("--efficiency", fmt::format("{:.9g}", spec.efficiency));
  if (spec.min_clock_mhz != 0) add("--min-clock", spec.min_clock_mhz);
  if (spec.max_clock_mhz != 0) add("--max-clock", spec.max_clock_mhz);
  if (spec.clock_step_mhz != 0) add("--clock-step", spec.clock_step_mhz);
  return command;
}

std::string JobFileText(const SynthSpec& spec, const GpuModel& gpu, const std::string& command) {
  const std::int64_t ranks = spec.stages / spec.virtual_stages;
  const std::string schedule = !spec.schedule.empty()
                                   ? spec.schedule
                                   : (spec.virtual_stages > 1 ? "interleaved-1f1b" : "1f1b");
  return fmt::format(
      "# A modelled training job, made by: {}\n"
      "# Plan it with: perseus plan JOB.toml\n"
      "profile = {}\n"
      "schedule = {}\n"
      "stages = {}\n"
      "virtual_stages = {}\n"
      "microbatches = {}\n"
      "tp = {}\n"
      "# Watts of one GPU that waits for its neighbour.\n"
      "blocking_power = {:.9g}\n",
      command, TomlString(spec.profile_path), TomlString(schedule), spec.stages,
      spec.virtual_stages, spec.microbatches == 0 ? 4 * ranks : spec.microbatches,
      spec.tensor_parallel, gpu.blocking_power_watts);
}

}  // namespace perseus::synth
