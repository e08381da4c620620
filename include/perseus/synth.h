// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SYNTH_H_
#define PERSEUS_SYNTH_H_

// Link perseus::core (pkg-config: perseus-core).

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "perseus/export.h"
#include "perseus/result.h"

// Profiles without a GPU: the time and energy of every pipeline stage at every clock, from a
// model's numbers and an analytic model of the GPU. Such a profile is modelled, not measured, and
// says so. docs/evidence/synth.md states the model, the source of every constant and the error
// against measured tables. The same arguments give the same bytes on every machine.
PERSEUS_EXPORT_BEGIN
namespace perseus {
inline namespace v0 {

// The numbers of a transformer. In a SynthSpec, 0 and an empty name mean "as in the named model";
// without a named model they mean the default that is stated here.
struct TransformerShape {
  std::string name = {};
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;      // Default: heads.
  std::int64_t head_dim = 0;      // Default: hidden / heads.
  std::int64_t ffn = 0;           // Inner size of the feed-forward block. Default: 4 x hidden.
  std::int64_t ffn_matrices = 0;  // 2, or 3 where the feed-forward block is gated. Default: 2.
  std::int64_t vocabulary = 0;
  std::int64_t sequence = 0;  // Tokens of one sample.
  // Encoder-decoder models: this many of the first layers are encoder layers. The others also
  // attend to the encoder's output.
  std::int64_t encoder_layers = 0;
  // Mixture of experts. 0 experts: dense.
  std::int64_t experts = 0;
  std::int64_t active_experts = 0;  // Routed experts that see a token.
  std::int64_t shared_experts = 0;  // Experts that see every token.
  std::int64_t expert_ffn = 0;      // Inner size of one expert. Default: ffn.
  std::int64_t dense_layers = 0;    // This many of the first layers have no experts.
  // Multi-head latent attention (DeepSeek). 0 kv_lora_rank: ordinary attention.
  std::int64_t q_lora_rank = 0;
  std::int64_t kv_lora_rank = 0;
  std::int64_t rope_head_dim = 0;
  std::int64_t mtp_layers = 0;  // Multi-token prediction modules, on the last stage.

  friend bool operator==(const TransformerShape&, const TransformerShape&) = default;
};

// A Wide-ResNet: bottleneck blocks in four groups, each group after the first
// with half the height and width and twice the channels of the one before; the
// width factor widens the inner convolution (Zagoruyko and Komodakis 2016).
struct WideResNetShape {
  std::string name = {};
  std::array<std::int64_t, 4> blocks = {};  // Of each group.
  std::int64_t width_factor = 1;
  std::int64_t image_size = 224;  // Pixels, height and width.
  std::int64_t classes = 1000;
};

// The floating-point operations of one microbatch's forward, on all tensor-parallel GPUs together.
// A backward has twice as many, and three times as many if it recomputes activations.
struct ModelFlops {
  // One entry per transformer layer, or per residual block (the first with the
  // convolution before it).
  std::vector<double> layers = {};
  double head = 0;  // Final projection, onto the vocabulary or the classes.
  double mtp = 0;   // Multi-token prediction, its projection included.
};

// What to model.
struct SynthSpec {
  std::string model = {};           // See SynthModelNames(); empty: all from `shape`.
  TransformerShape shape = {};      // Overrides, field by field. Of transformers only.
  std::string gpu = {};             // See SynthGpuNames().
  std::int64_t stages = 0;          // Of the model: ranks x virtual stages.
  std::int64_t virtual_stages = 1;  // Per rank.
  std::int64_t tensor_parallel = 1;
  std::int64_t microbatch_size = 1;  // Samples, or images.
  std::int64_t microbatches = 0;     // Of one iteration. 0: four per rank.
  // "uniform", "balanced" (least slowest stage), or layers per stage: "7,7,6,4".
  std::string partition = "balanced";
  std::string schedule = {};  // Of the job file. Empty: 1f1b, or interleaved-1f1b.
  bool recompute = false;     // Full activation recomputation in the backward.
  // Share of the peak rate that a forward reaches at the highest clock. The backward's share
  // changes by the same factor. 0: the constant that was fitted for the GPU.
  double efficiency = 0;
  // Clocks of the profile in MHz. 0: the GPU's lowest modelled, its highest, its step.
  std::int64_t min_clock_mhz = 0;
  std::int64_t max_clock_mhz = 0;
  std::int64_t clock_step_mhz = 0;
  // File name of the profile, as the job file refers to it.
  std::string profile_path = "profile.csv";
};

// One stage of the modelled pipeline at the highest clock of the profile.
struct SynthStage {
  std::int64_t layers = 0;
  double forward_seconds = 0;
  double backward_seconds = 0;
};

struct SynthResult {
  std::string profile_csv =
      {};  // stage,instruction,frequency,time,energy: seconds, joules of one GPU.
  std::string job_toml = {};  // A job file for `perseus plan`.
  std::string command = {};   // The command line that makes the same again.
  std::vector<SynthStage> stages = {};
  double flops_per_microbatch = 0;  // Forward and backward, recomputation left out.
  double imbalance = 0;             // Slowest stage over the mean stage, forward + backward.
};

// Models a profile. Errors are sentences that name the field, in quotes
// ('microbatch_size'; those of the shape by their own names), what was expected,
// and what there is instead.
Result<SynthResult> Synthesize(const SynthSpec& spec);

// Names of the built-in models and of the GPUs that can be modelled, in the
// order of docs/evidence/synth.md.
std::vector<std::string> SynthModelNames();
std::vector<std::string> SynthGpuNames();

// The shape of a built-in model, every default filled in. Errors: no such model.
Result<TransformerShape> FindTransformer(std::string_view name);
Result<WideResNetShape> FindWideResNet(std::string_view name);

// Counts the operations of one microbatch of `microbatch_size` samples. The shape must be complete,
// as FindTransformer() returns it. Counts matrix products, with attention scores as if there were
// no causal mask (Narayanan et al. 2021, appendix), and nothing else.
ModelFlops CountFlops(const TransformerShape& shape, std::int64_t microbatch_size);

// Counts the operations of the convolutions and the classifier for `microbatch_size` images,
// without normalization, activations and pooling.
ModelFlops CountFlops(const WideResNetShape& shape, std::int64_t microbatch_size);

}  // namespace v0
}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_SYNTH_H_
