// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "job/job_fields.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/input_limits.h"
#include "common/located_error.h"
#include "job/limits.h"
#include "perseus/work.h"

namespace perseus::job {
namespace {

constexpr NumberRange UpTo(int most) { return {.least = 1, .most = static_cast<double>(most)}; }

constexpr double kMostTokens = 1e12;
constexpr NumberRange kStages = UpTo(kMaxStages);
constexpr NumberRange kMicrobatches = UpTo(kMaxMicrobatches);
constexpr NumberRange kGpus = UpTo(kMaxGpus);
constexpr NumberRange kWatts = {.least = 0, .most = kMaxWatts};
constexpr NumberRange kSeconds = {.least = 0, .most = kMaxSeconds};
constexpr NumberRange kNoise = {.least = 0, .most = kMostNoise};
constexpr NumberRange kShare = {.least = 0, .most = 1};
constexpr NumberRange kJoules = {.least = 0, .most = kMaxJoules};
constexpr NumberRange kInnerShare = {
    .least = 0, .most = 1, .above_least = true, .below_most = true};

constexpr NumberRange kConfidence = {.least = 0.5, .most = 1, .below_most = true};

constexpr NumberRange kWorkFactors = {.least = kLeastWork, .most = kMostWork};
constexpr NumberRange kTokens = {.least = 0, .most = kMostTokens, .above_least = true};
constexpr NumberRange kEffort = {.least = kMinEffort, .most = kMaxEffort};
constexpr NumberRange kChanges = {.least = 0, .most = kMaxChanges};

const Field kFields[] = {
    {"profile", &JobFile::profile, Unit::kPath, kAnyNumber, Group::kNone, false, "", "",
     "The profile; on the command line the first argument."},
    {"strict", &JobFile::strict, Unit::kNone, kAnyNumber, Group::kNone, false, "--strict", "",
     "Refuse a profile or a job with anything that is odd or implausible, instead of "
     "noting it."},
    {"output", &JobFile::output, Unit::kPath, kAnyNumber, Group::kNone, false, "--output", "DIR",
     "Folder for the plan, its frontier and its report."},
    {"baseline", &JobFile::baseline, Unit::kLabel, kAnyNumber, Group::kGeneral, false, "--baseline",
     "LABEL",
     "The knob that savings are measured against, where the profile's knobs are labels "
     "(default: the fastest)."},
    {"schedule", &JobFile::schedule, Unit::kScheduleName, kAnyNumber, Group::kPipeline, false,
     "--schedule", "NAME", "The pipeline schedule: "},
    {"schedule_file", &JobFile::schedule_file, Unit::kPath, kAnyNumber, Group::kPipeline, false,
     "--schedule-file", "FILE",
     "A schedule in PyTorch's CSV text instead of a name: a row per rank, a cell per action."},
    {"stages", &JobFile::stages, Unit::kNone, kStages, Group::kPipeline, false, "--stages", "N",
     "Stages of the model = ranks x virtual stages; they must be those of the profile. "
     "Default: the profile's."},
    {"virtual_stages", &JobFile::virtual_stages, Unit::kNone, kStages, Group::kPipeline, false,
     "--virtual-stages", "N",
     "Stages that each rank holds (default 1; zbv-zero-bubble and dualpipev need 2)."},
    {"microbatches", &JobFile::microbatches, Unit::kNone, kMicrobatches, Group::kPipeline, false,
     "--microbatches", "N", "Microbatches of one iteration."},
    {"microbatch_group_size", &JobFile::microbatch_group_size, Unit::kNone, kMicrobatches,
     Group::kPipeline, false, "--microbatch-group-size", "N",
     "megatron-interleaved only: microbatches of a group (default: the number of ranks)."},
    {"blocking_power", &JobFile::blocking_power_watts, Unit::kWatts, kWatts, Group::kCosts, false,
     "--blocking-power", "WATTS[,WATTS...]",
     "Power that one GPU draws while it waits (83.64 or 83.64W): one number, or one for "
     "each rank."},
    {"tp", &JobFile::tensor_parallel, Unit::kNone, kGpus, Group::kCosts, false, "--tp", "N",
     "GPUs of one rank; energies of a profile without tp_rank column are multiplied by it "
     "(default 1)."},
    {"dp", &JobFile::data_parallel, Unit::kNone, kGpus, Group::kCosts, false, "--dp", "N",
     "Pipelines of the job (default 1)."},
    {"split_ratio", &JobFile::split_ratio, Unit::kNone, kInnerShare, Group::kCosts, false,
     "--split-ratio", "SHARE",
     "Share of `backward` that is backward_input, where the schedule needs the two parts "
     "and the profile has only their sum (default 0.5)."},
    {"work", &JobFile::work, Unit::kPath, kWorkFactors, Group::kCosts, false, "--work", "FILE.csv",
     "Where microbatches differ: a work table, microbatch,factor or "
     "microbatch,stage,type,factor (times the profile's work), or microbatch,tokens."},
    {"work_fit", &JobFile::work_fit, Unit::kPath, kAnyNumber, Group::kCosts, false, "--work-fit",
     "FILE.csv",
     "For a work table in tokens: the time per token at the highest clock, as a table "
     "stage,type,time,time_per_token. Default: time in proportion to tokens."},
    {"work_tokens", &JobFile::work_tokens, Unit::kNone, kTokens, Group::kCosts, false,
     "--work-tokens", "N",
     "For a work table in tokens without a fit: tokens of a microbatch when the profile "
     "was measured (default: the table's mean)."},
    {"time_margin", &JobFile::time_margin, Unit::kNone, kAnyNumber, Group::kCosts, true,
     "--time-margin", "P%|Nsigma",
     "Plan with times longer than measured: by a share (1%), by standard deviations of the "
     "profile's time_std (2sigma), or by the larger of both (2sigma,1%)."},
    {"comm_delay", &JobFile::comm_delay_seconds, Unit::kSeconds, kSeconds, Group::kCosts, false,
     "--comm-delay", "TIME[,TIME...]",
     "Transfer between neighbouring stages on different ranks: one for all boundaries, or "
     "one for each."},
    {"data_loading", &JobFile::data_loading_seconds, Unit::kSeconds, kSeconds, Group::kCosts, false,
     "--data-loading", "TIME", "Reading a microbatch, before each forward of stage 0."},
    {"iteration_overhead", &JobFile::iteration_overhead_seconds, Unit::kSeconds, kSeconds,
     Group::kCosts, false, "--iteration-overhead", "TIME",
     "All-reduce and optimizer, after the last computation."},
    {"at", &JobFile::at, Unit::kNone, kAnyNumber, Group::kPlan, true, "--at", "POINT",
     "The point of the plan: 1.02x (times the all-maximum-clock time), a time (5.3s), "
     "economic (least energy), fastest, or tstar. Default 1.0x: no slowdown."},
    {"granularity", &JobFile::granularity, Unit::kNone, kAnyNumber, Group::kPlan, true,
     "--granularity", "KIND",
     "What shares one clock: computation (default: nothing), phase (stage, type and "
     "warm-up / steady / cool-down), stage-type, or stage."},
    {"min_dwell", &JobFile::min_dwell_seconds, Unit::kSeconds, kSeconds, Group::kPlan, true,
     "--min-dwell", "TIME",
     "A rank keeps a clock at least this long before the next change (20ms)."},
    {"max_clocks", &JobFile::max_clocks, Unit::kNone, UpTo(kMaxClocks), Group::kPlan, true,
     "--max-clocks", "N", "Most distinct clocks in the plan."},
    {"effort", &JobFile::effort, Unit::kNone, kEffort, Group::kPlan, true, "--effort", "FACTOR",
     "How much work to search for a plan: 1 is the usual amount."},
    {"coarse_watts", &JobFile::coarse_watts, Unit::kWatts, kWatts, Group::kSolver, false,
     "--coarse", "WATTS|auto",
     "For very large pipelines: a frontier with slopes rounded to multiples of this, with a "
     "certified error. 0 is exact; auto is exact unless the pipeline is very large (default)."},
    {"exponential_fit", &JobFile::exponential_fit, Unit::kNone, kAnyNumber, Group::kSolver, false,
     "--cost-curve", "hull|exponential",
     "How costs are interpolated between clocks: the exact lower hull (default), or the "
     "paper's fit a exp(b t) + c, for comparison."},
    {"noise", &JobFile::noise, Unit::kShare, kNoise, Group::kConditions, false, "--noise", "P%",
     "Standard deviation of the time of every computation, drawn anew each time: 1% or 0.01."},
    {"stage_noise", &JobFile::stage_noise, Unit::kShare, kNoise, Group::kConditions, false,
     "--stage-noise", "P%",
     "The same, drawn once for each stage of a job: how far the profile is off."},
    {"gpu_noise", &JobFile::gpu_noise, Unit::kShare, kNoise, Group::kConditions, false,
     "--gpu-noise", "P%",
     "The same, drawn once for each GPU of a job. A rank is as slow as its slowest GPU."},
    {"switch_latency", &JobFile::switch_latency_seconds, Unit::kSeconds, kSeconds,
     Group::kConditions, false, "--switch-latency", "TIME",
     "From asking for a clock until it is in effect, for example 15ms; work goes on at the "
     "old one."},
    {"switch_latency_spread", &JobFile::switch_latency_spread_seconds, Unit::kSeconds, kSeconds,
     Group::kConditions, false, "--switch-latency-spread", "TIME",
     "Standard deviation of the latency, drawn anew for each change; at most the latency."},
    {"switch_stall", &JobFile::switch_stall_seconds, Unit::kSeconds, kSeconds, Group::kConditions,
     false, "--switch-stall", "TIME",
     "How long a rank pauses at each change of clock, for example 2ms."},
    {"call_ahead", &JobFile::call_ahead, Unit::kNone, kAnyNumber, Group::kConditions, false,
     "--call-ahead", "WHEN",
     "When a clock is asked for: none (default; as its computation starts), end (when the "
     "one before has ended), or predicted (early enough that it is in effect when the "
     "computation starts; the client does so)."},
    {"max_early_loss", &JobFile::max_early_loss, Unit::kShare, kShare, Group::kConditions, false,
     "--max-early-loss", "P%",
     "With --call-ahead predicted: what a computation may lose of its time to a lower "
     "clock that comes before its end (default 5%)."},
    {"min_call_interval", &JobFile::min_call_interval_seconds, Unit::kSeconds, kSeconds,
     Group::kConditions, false, "--min-call-interval", "TIME",
     "A rank changes its clock at most once in this time, for example 10ms."},
    {"change_price", &JobFile::change_price_joules, Unit::kJoules, kJoules, Group::kHolding, false,
     "--change-price", "JOULES",
     "What one change of clock costs beside its latency and stall, in joules of the rank "
     "whose clock changes. The search counts this cost. It is printed on its own line, "
     "and is not in the energy figures."},
    {"max_slowdown", &JobFile::max_slowdown, Unit::kShare, kShare, Group::kHolding, false,
     "--max-slowdown", "P%",
     "How much longer than all clocks at maximum, under the same conditions, an iteration "
     "may be on average, beyond --at (default 0.1%)."},
    {"confidence", &JobFile::confidence, Unit::kShare, kConfidence, Group::kHolding, false,
     "--confidence", "P%", "Probability with which --max-slowdown must hold (default 95%)."},
    {"max_changes", &JobFile::max_changes, Unit::kNone, kChanges, Group::kHolding, false,
     "--max-changes", "N",
     "Most changes of clock in one iteration of one pipeline, all ranks together. If a "
     "rank's last computation and its first one of the next iteration have different "
     "clocks, that is a change, too."},
};

template <typename T>
bool Has(const std::optional<T>& value) {
  return value.has_value();
}

bool Has(const std::vector<double>& value) { return !value.empty(); }

}  // namespace

std::span<const Field> Fields() { return kFields; }

const Field* FindField(std::string_view key) {
  const auto found = std::find_if(std::begin(kFields), std::end(kFields),
                                  [&](const Field& field) { return field.key == key; });
  return found == std::end(kFields) ? nullptr : found;
}

Quantity QuantityOf(Unit unit) {
  if (unit == Unit::kWatts) return kInWatts;
  return unit == Unit::kJoules ? kInJoules : Quantity{};
}

bool IsSet(const Field& field, const JobFile& settings) {
  return std::visit([&](auto member) { return Has(settings.*member); }, field.member);
}

Error AboutField(const JobFile& settings, std::string_view key, Error error) {
  const auto place = settings.places.find(key);
  if (place != settings.places.end()) {
    const JobPlace& at = place->second;
    Error located = ErrorAt(at.file, at.line, at.column, error.message);
    located.code = error.code;
    error = std::move(located);
  }
  error.field = key;
  return error;
}

Error AboutFile(const JobFile& settings, std::string_view key, Error error) {
  return error.code == ErrorCode::kIo ? AboutField(settings, key, std::move(error)) : error;
}

void Merge(const JobFile& overrides, JobFile* settings) {
  // A schedule by name and one from a file replace each other.
  if (overrides.schedule) settings->schedule_file.reset();
  if (overrides.schedule_file) settings->schedule.reset();
  for (const Field& field : kFields) {
    if (!IsSet(field, overrides)) continue;
    std::visit([&](auto member) { settings->*member = overrides.*member; }, field.member);
    settings->places.erase(std::string(field.key));
  }
}

}  // namespace perseus::job
