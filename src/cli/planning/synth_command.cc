// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/framework/table.h"
#include "common/file.h"
#include "common/nearest_name.h"
#include "perseus/job_file.h"
#include "perseus/schedule.h"
#include "perseus/synth.h"

namespace perseus::cli {

namespace {

// Whose flags have the same names.
constexpr std::array kFields = {"model",
                                "gpu",
                                "stages",
                                "virtual_stages",
                                "microbatch_size",
                                "microbatches",
                                "partition",
                                "schedule",
                                "efficiency",
                                "layers",
                                "hidden",
                                "heads",
                                "kv_heads",
                                "head_dim",
                                "ffn",
                                "ffn_matrices",
                                "vocabulary",
                                "sequence",
                                "encoder_layers",
                                "experts",
                                "active_experts",
                                "shared_experts",
                                "expert_ffn",
                                "dense_layers",
                                "q_lora_rank",
                                "kv_lora_rank",
                                "rope_head_dim",
                                "mtp_layers"};

// An error of the library in words of the command line: fields are named as flags.
tl::unexpected<Error> InFlags(Error error) {
  const auto replace = [&error](const std::string& field, const std::string& flag) {
    const std::string quoted = fmt::format("'{}'", field);
    for (std::size_t at = 0; (at = error.message.find(quoted, at)) != std::string::npos;) {
      error.message.replace(at, quoted.size(), flag);
    }
  };
  for (const std::string field : kFields) {
    std::string flag = "--" + field;
    std::replace(flag.begin(), flag.end(), '_', '-');
    replace(field, flag);
  }
  replace("tensor_parallel", "--tp");
  replace("min_clock_mhz", "--min-clock");
  replace("max_clock_mhz", "--max-clock");
  replace("clock_step_mhz", "--clock-step");
  return tl::unexpected<Error>(std::move(error));
}

Result<void> CheckComplete(const SynthSpec& spec) {
  std::vector<std::string> missing;
  // A shape that is not complete has a sentence of its own.
  if (spec.model.empty() && spec.shape == TransformerShape{}) missing.emplace_back("--model");
  if (spec.gpu.empty()) missing.emplace_back("--gpu");
  if (spec.stages == 0) missing.emplace_back("--stages");
  if (missing.empty()) return {};
  return InvalidInput(fmt::format(
      "{} {} missing, as in 'perseus synth --model gpt3-1.3b --gpu a100-sxm --stages 4' ('perseus "
      "synth --help' lists models and GPUs)",
      fmt::join(missing, ", "), missing.size() == 1 ? "is" : "are"));
}

Result<void> CheckScheduleName(const std::string& name) {
  if (name.empty() || CanonicalScheduleName(name)) return {};
  const std::string nearest = NearestName(name, ScheduleNames());
  return InvalidInput(
      fmt::format("--schedule: there is no schedule '{}'{}; the names are {}", name,
                  nearest.empty() ? "" : fmt::format(", did you mean '{}'?", nearest),
                  fmt::join(ScheduleNames(), ", ")));
}

// Whether `perseus plan` would take the job's schedule.
Result<void> CheckJob(const std::string& job_toml) {
  const Result<JobFile> job = ParseJobFile(job_toml, "job.toml", JobFileFormat::kToml);
  if (!job) return tl::unexpected(job.error());
  ScheduleSpec spec;
  spec.name = job->schedule.value_or("");
  spec.num_stages = job->stages.value_or(0);
  spec.virtual_stages = job->virtual_stages.value_or(1);
  spec.num_microbatches = job->microbatches.value_or(0);
  const Result<Schedule> schedule = BuildSchedule(spec);
  if (schedule) return {};
  return MakeError(schedule.error().code,
                   fmt::format("--schedule: {}; with -o the job must be one that 'perseus plan' "
                               "takes",
                               schedule.error().message));
}

// Nothing measured is replaced: only what this command wrote.
Result<void> CheckOutputs(const std::string& directory) {
  constexpr std::size_t kMostBytes = std::size_t{256} << 20;
  if (directory.empty()) return {};
  for (const std::string name : {"profile.csv", "job.toml"}) {
    const std::string path = (std::filesystem::path(directory) / name).string();
    const Result<std::string> there = ReadWholeFile(path, kMostBytes);
    if (!there || there->starts_with("# MODELLED") || there->starts_with("# A modelled")) continue;
    return InvalidInput(fmt::format(
        "{}: --output would replace a file that 'perseus synth' did not write; choose another "
        "place",
        path));
  }
  return CheckWritable(directory, {"profile.csv", "job.toml"});
}

}  // namespace

Result<Printout> RunSynth(const SynthFlags& flags, const Style& style) {
  if (auto complete = CheckComplete(flags.spec); !complete) {
    return tl::unexpected(complete.error());
  }
  if (auto known = CheckScheduleName(flags.spec.schedule); !known) {
    return tl::unexpected(known.error());
  }
  if (auto kept = CheckOutputs(flags.output_directory); !kept) return tl::unexpected(kept.error());
  const Result<SynthResult> synth = Synthesize(flags.spec);
  if (!synth) return InFlags(synth.error());
  if (flags.output_directory.empty()) return synth->profile_csv;
  if (auto job = CheckJob(synth->job_toml); !job) return tl::unexpected(job.error());
  const std::string& directory = flags.output_directory;
  const Result<void> written = WriteFilesAtomically(
      directory, {{"profile.csv", synth->profile_csv}, {"job.toml", synth->job_toml}});
  if (!written) return tl::unexpected(written.error());
  Table table({"stage", "layers", "forward ms", "backward ms"}, {});
  for (std::size_t stage = 0; stage < synth->stages.size(); ++stage) {
    const SynthStage& each = synth->stages[stage];
    table.AddRow({fmt::format("{}", stage), fmt::format("{}", each.layers),
                  WithThousands(1e3 * each.forward_seconds, 3),
                  WithThousands(1e3 * each.backward_seconds, 3)});
  }
  return Printout(fmt::format("{}\n{}\nModelled, not measured. The slowest stage takes {:.3f} "
                              "times the mean.\nWritten  "
                              "{}: profile.csv, job.toml.\nNext     perseus plan {}/job.toml\n",
                              style.Bold("One microbatch at the highest clock"),
                              table.Format(style.rule()), synth->imbalance, directory, directory),
                  directory);
}

}  // namespace perseus::cli
