// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command_options.h"
#include "cli/framework/value_parsers.h"
#include "common/nearest_name.h"
#include "common/numbers.h"
#include "perseus/schedule.h"
#include "perseus/synth.h"

namespace perseus::cli {

void AddSynthCommand(CommandParser* parser, Invocation* invocation) {
  parser->AddCommand(
      Command::kSynth, "synth",
      "Make a modelled profile, without measuring anything.\n\nComputes time and energy of every "
      "stage at every clock from the shape of a transformer or Wide-ResNet and an analytic model "
      "of the GPU. The result is modelled, not measured. Use it to learn what can be saved, and "
      "measure your own job before you rely on a figure. Without -o the profile is printed.",
      {{"a profile and a job file to plan from",
        "perseus synth --model gpt3-1.3b --gpu a100-sxm --stages 4 --microbatches 16 -o sample/"},
       {"then plan", "perseus plan sample/job.toml"}});
  SynthSpec* spec = &invocation->synth.spec;
  const auto add_number = [&](std::int64_t* target, const std::string& name,
                              const std::string& help) {
    parser->AddValue<int>(target, name, "N", help,
                          [](std::string_view text) { return ParseCount(text, 1, 1 << 30); });
  };
  const auto add_clock = [&](std::int64_t* target, const std::string& name,
                             const std::string& help) {
    parser->AddValue<int>(target, name, "MHZ", help, [](std::string_view text) {
      std::string_view digits = text;
      TakeUnit(&digits, "MHz");
      constexpr int kMostMhz = 1 << 30;
      Result<int> clock = ParseCount(digits, 1, kMostMhz);
      if (clock) return clock;
      return Result<int>(InvalidInput(
          fmt::format("expected a whole number of MHz from 1 to {} (1410 or 1410MHz), got {}",
                      kMostMhz, Shown(text))));
    });
  };
  const auto add_name = [&](std::string* target, const std::string& name, const std::string& value,
                            const std::string& help, std::vector<std::string> choices) {
    CommandParser::Details details{choices.empty() ? ValueKind::kText : ValueKind::kChoice,
                                   std::move(choices)};
    parser->AddText(
        name, value, help,
        [target](const std::string& text) -> Result<void> {
          *target = text;
          return {};
        },
        std::move(details));
  };
  parser->SetGroup("What to model");
  add_name(&spec->model, "--model", "NAME",
           fmt::format("A built-in model: {}.", fmt::join(SynthModelNames(), ", ")),
           SynthModelNames());
  add_name(&spec->gpu, "--gpu", "NAME",
           fmt::format("The GPU: {}.", fmt::join(SynthGpuNames(), ", ")), SynthGpuNames());
  add_number(&spec->stages, "--stages", "Stages of the model = ranks x virtual stages.");
  add_number(&spec->virtual_stages, "--virtual-stages", "Stages that each rank holds (default 1).");
  add_number(&spec->tensor_parallel, "--tp", "GPUs of one rank (default 1).");
  add_number(&spec->microbatch_size, "--microbatch-size", "Samples of a microbatch (default 1).");
  add_number(&spec->microbatches, "--microbatches",
             "Microbatches of one iteration, for the job file (default: four per rank).");
  add_name(&spec->partition, "--partition", "uniform|balanced|N,N,...",
           "Layers of each stage: balanced (default: the slowest stage is as fast as possible), "
           "uniform, or a list.",
           {});
  add_name(&spec->schedule, "--schedule", "NAME",
           "Schedule of the job file (default 1f1b, or interleaved-1f1b with virtual stages).",
           ScheduleNames());
  parser->AddFlag(&spec->recompute, "--recompute", "Recompute all activations in the backward.");
  parser->AddValue<double>(
      &spec->efficiency, "--efficiency", "SHARE",
      "Share of the GPU's peak FLOP rate that a forward reaches at the highest clock.",
      [](std::string_view text) {
        return ParseQuantity(text,
                             {.least = 0, .most = 1, .above_least = true, .below_most = true});
      });
  add_clock(&spec->min_clock_mhz, "--min-clock", "Lowest clock in MHz.");
  add_clock(&spec->max_clock_mhz, "--max-clock", "Highest clock in MHz.");
  add_clock(&spec->clock_step_mhz, "--clock-step", "Step between clocks in MHz.");
  parser->SetGroup("Shape of the transformer, instead of the model's");
  TransformerShape* shape = &spec->shape;
  add_number(&shape->layers, "--layers", "Layers.");
  add_number(&shape->hidden, "--hidden", "Hidden size.");
  add_number(&shape->heads, "--heads", "Attention heads.");
  add_number(&shape->kv_heads, "--kv-heads", "Key-value heads (default: heads).");
  add_number(&shape->head_dim, "--head-dim", "Size of a head (default: hidden / heads).");
  add_number(&shape->ffn, "--ffn", "Inner size of the feed-forward block (default: 4 x hidden).");
  add_number(&shape->ffn_matrices, "--ffn-matrices",
             "Matrices of the feed-forward block: 2, or 3 if it is gated.");
  add_number(&shape->vocabulary, "--vocabulary", "Tokens of the vocabulary.");
  add_number(&shape->sequence, "--sequence", "Tokens of a sample.");
  add_number(
      &shape->encoder_layers, "--encoder-layers",
      "Encoder-decoder models: how many of the layers, counted from the first, are the encoder's.");
  add_number(&shape->experts, "--experts", "Mixture of experts: experts in a layer.");
  add_number(&shape->active_experts, "--active-experts",
             "Mixture of experts: routed experts that a token goes to.");
  add_number(&shape->shared_experts, "--shared-experts",
             "Mixture of experts: experts that every token goes to.");
  add_number(&shape->expert_ffn, "--expert-ffn", "Inner size of one expert (default: --ffn).");
  add_number(&shape->dense_layers, "--dense-layers",
             "Mixture of experts: how many of the first layers have no experts.");
  add_number(&shape->q_lora_rank, "--q-lora-rank",
             "Latent attention: rank of the queries' projection.");
  add_number(&shape->kv_lora_rank, "--kv-lora-rank",
             "Latent attention: rank of the keys' and values' projection.");
  add_number(&shape->rope_head_dim, "--rope-head-dim",
             "Latent attention: size of a head's rotary part.");
  add_number(&shape->mtp_layers, "--mtp-layers",
             "Multi-token prediction modules, on the last stage.");
  parser->SetGroup("Output");
  parser->AddOutput(&invocation->synth.output_directory, ValueKind::kDirectory,
                    "Write profile.csv and job.toml into this folder.");
}

}  // namespace perseus::cli
