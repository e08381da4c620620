// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "job/job_fields.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/input_limits.h"
#include "common/located_error.h"
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

constexpr NumberRange kCorrelation = {.least = 0, .most = 1, .below_most = true};
constexpr NumberRange kConfidence = {.least = 0.5, .most = 1, .below_most = true};

constexpr NumberRange kWorkFactors = {.least = kLeastWork, .most = kMostWork};
constexpr NumberRange kTokens = {.least = 0, .most = kMostTokens, .above_least = true};
constexpr NumberRange kEffort = {.least = kMinEffort, .most = kMaxEffort};
constexpr NumberRange kChanges = {.least = 0, .most = kMaxChanges};

const Field kFields[] = {
    {"profile", &JobFile::profile, Unit::kPath, kAnyNumber, Group::kNone, false, "", "",
     "The profile; on the command line the first argument."},
    {"strict", &JobFile::strict, Unit::kNone, kAnyNumber, Group::kNone, false, "--strict", "",
     "Refuse a profile or a job with anything odd, too, instead of printing a note."},
    {"accept_implausible", &JobFile::accept_implausible, Unit::kNone, kAnyNumber, Group::kNone,
     false, "--accept-implausible", "",
     "Compute with what is implausible (a wrong unit, most likely), instead of refusing it: it is "
     "meant so."},
    {"output", &JobFile::output, Unit::kPath, kAnyNumber, Group::kNone, false, "--output", "DIR",
     "Folder for the plan, its frontier and its report."},
    {"baseline", &JobFile::baseline, Unit::kLabel, kAnyNumber, Group::kGeneral, false, "--baseline",
     "LABEL",
     "For profiles with labels instead of clocks: the label that savings are measured against "
     "(default: the fastest)."},
    {"schedule", &JobFile::schedule, Unit::kScheduleName, kAnyNumber, Group::kPipeline, false,
     "--schedule", "NAME", "The pipeline schedule: "},
    {"schedule_file", &JobFile::schedule_file, Unit::kPath, kAnyNumber, Group::kPipeline, false,
     "--schedule-file", "FILE",
     "A schedule as a CSV file of PyTorch, instead of a name: a row for each rank, a cell for each "
     "action."},
    {"schedule_csv", &JobFile::schedule_csv, Unit::kText, kAnyNumber, Group::kNone, false, "", "",
     "The text of such a file, instead of its path: what a server takes."},
    {"stages", &JobFile::stages, Unit::kNone, kStages, Group::kPipeline, false, "--stages", "N",
     "Stages of the model: ranks x virtual stages. There must be as many as in the profile "
     "(default)."},
    {"virtual_stages", &JobFile::virtual_stages, Unit::kNone, kStages, Group::kPipeline, false,
     "--virtual-stages", "N",
     "Stages that each rank holds (default 1; zbv-zero-bubble and dualpipev need 2)."},
    {"microbatches", &JobFile::microbatches, Unit::kNone, kMicrobatches, Group::kPipeline, false,
     "--microbatches", "N", "Microbatches of one iteration."},
    {"microbatch_group_size", &JobFile::microbatch_group_size, Unit::kNone, kMicrobatches,
     Group::kPipeline, false, "", "",
     "megatron-interleaved only: microbatches of a group (default: the number of ranks)."},
    {"blocking_power", &JobFile::blocking_power_watts, Unit::kWatts, kWatts, Group::kCosts, false,
     "--blocking-power", "WATTS[,WATTS...]",
     "Power that one GPU draws while it waits (83.64 or 83.64W): one number, or one for "
     "each rank."},
    {"tp", &JobFile::tensor_parallel, Unit::kNone, kGpus, Group::kCosts, false, "--tp", "N",
     "Tensor-parallel GPUs of one rank (default 1). If the profile has no tp_rank column, its "
     "energies are multiplied by this number."},
    {"dp", &JobFile::data_parallel, Unit::kNone, kGpus, Group::kCosts, false, "--dp", "N",
     "Data-parallel pipelines of the job (default 1)."},
    {"split_ratio", &JobFile::split_ratio, Unit::kNone, kInnerShare, Group::kCosts, false, "", "",
     "For schedules that split backwards, if the profile has only whole ones: the share of a "
     "backward that is backward_input (default 0.5)."},
    {"work", &JobFile::work, Unit::kPath, kWorkFactors, Group::kCosts, false, "--work", "FILE.csv",
     "If microbatches differ: a work table with the columns microbatch,factor or "
     "microbatch,stage,type,factor (1 is the profile's work), or microbatch,tokens."},
    {"work_fit", &JobFile::work_fit, Unit::kPath, kAnyNumber, Group::kCosts, false, "", "",
     "For a work table in tokens: how the time at the highest clock grows with tokens, as a table "
     "stage,type,time,time_per_token. Default: in proportion."},
    {"work_tokens", &JobFile::work_tokens, Unit::kNone, kTokens, Group::kCosts, false, "", "",
     "For a work table in tokens without work_fit: how many tokens a microbatch had when the "
     "profile was measured (default: the table's mean)."},
    {"time_margin", &JobFile::time_margin, Unit::kNone, kAnyNumber, Group::kCosts, true,
     "--time-margin", "P%|Nsigma",
     "Plan as if computations at lowered clocks took longer than measured: by a share (1%), by "
     "standard deviations of the profile's time_std (2sigma), or by the larger of both "
     "(2sigma,1%)."},
    {"comm_delay", &JobFile::comm_delay_seconds, Unit::kSeconds, kSeconds, Group::kCosts, false,
     "--comm-delay", "TIME[,TIME...]",
     "Time of a transfer between neighbouring stages on different ranks: one for all boundaries, "
     "or one for each."},
    {"data_loading", &JobFile::data_loading_seconds, Unit::kSeconds, kSeconds, Group::kCosts, false,
     "", "", "Time to read a microbatch, before each forward of stage 0."},
    {"iteration_overhead", &JobFile::iteration_overhead_seconds, Unit::kSeconds, kSeconds,
     Group::kCosts, false, "", "",
     "Time of all-reduce and optimizer, after the last computation of an iteration."},
    {"at", &JobFile::at, Unit::kNone, kAnyNumber, Group::kPlan, true, "--at", "POINT",
     "The iteration time to plan for: 1.02x (times the time at maximum clocks), a time (5.3s), "
     "min-energy (the time of least energy), fastest, or tstar (the longest time worth planning "
     "for). Default 1.0x: no slowdown."},
    {"granularity", &JobFile::granularity, Unit::kNone, kAnyNumber, Group::kPlan, true,
     "--granularity", "KIND",
     "Which computations share a clock: computation (default: none do), phase (those of a stage, "
     "type and phase: warm-up, steady, cool-down), stage-type (those of a stage and type), or "
     "stage (all of a stage)."},
    {"effort", &JobFile::effort, Unit::kNone, kEffort, Group::kPlan, true, "--effort", "FACTOR",
     "How much work to search for a plan: 1 is the usual amount."},
    {"coarse_watts", &JobFile::coarse_watts, Unit::kWatts, kWatts, Group::kSolver, false, "", "",
     "For very large pipelines: compute the frontier in steps of this many watts. Larger steps are "
     "faster and less exact; the output says how exact. 0 is exact; auto (default) is exact unless "
     "the pipeline is very large."},
    {"exponential_fit", &JobFile::exponential_fit, Unit::kNone, kAnyNumber, Group::kSolver, false,
     "", "",
     "Interpolate costs between clocks by the paper's fit a exp(b t) + c, for comparison, instead "
     "of exactly (default false)."},
    {"noise", &JobFile::noise, Unit::kShare, kNoise, Group::kConditions, false, "--noise",
     "P%[-P%]",
     "How much the time of a computation varies from one iteration to the next: a standard "
     "deviation, 1% or 0.01. Or a range, 0.5-1.5%: the plan then holds at both ends."},
    {"stage_noise", &JobFile::stage_noise, Unit::kShare, kNoise, Group::kConditions, false, "", "",
     "The same, but drawn once for each stage of a job: how far the profile is off."},
    {"gpu_noise", &JobFile::gpu_noise, Unit::kShare, kNoise, Group::kConditions, false, "", "",
     "The same, but drawn once for each GPU of a job. A rank is as slow as its slowest GPU."},
    {"rank_noise", &JobFile::rank_noise, Unit::kShare, kNoise, Group::kConditions, false, "", "",
     "The same, but drawn for each rank in each iteration: all its computations are slower or "
     "faster together. Or a range."},
    {"noise_correlation", &JobFile::noise_correlation, Unit::kShare, kCorrelation,
     Group::kConditions, false, "", "",
     "With --noise: how much the noise of a computation follows that of the one before it on the "
     "rank, from 0 (default) to below 1 (0.9). Each iteration begins anew."},
    {"rare_noise", &JobFile::rare_noise, Unit::kShare, kNoise, Group::kConditions, false, "", "",
     "With rare_noise_share: some computations take much longer, by this much of their time in "
     "the mean."},
    {"rare_noise_share", &JobFile::rare_noise_share, Unit::kShare, kNoise, Group::kConditions,
     false, "", "", "With rare_noise: how many of all computations these are."},
    {"switch_latency", &JobFile::switch_latency_seconds, Unit::kSeconds, kSeconds,
     Group::kConditions, false, "--switch-latency", "TIME[-TIME]",
     "How long after the call a new clock is in effect, for example 15ms. Until then, work goes on "
     "at the old clock. Or a range, 10ms-30ms: the plan then holds at both ends."},
    {"switch_latency_at", &JobFile::switch_latency_at, Unit::kSeconds, kSeconds, Group::kConditions,
     false, "", "",
     "With --switch-latency: clocks that take another time, for example 1410=9ms,600=30ms."},
    {"switch_latency_spread", &JobFile::switch_latency_spread_seconds, Unit::kSeconds, kSeconds,
     Group::kConditions, false, "", "",
     "Standard deviation of the latency, drawn anew for each change; at most the latency."},
    {"switch_stall", &JobFile::switch_stall_seconds, Unit::kSeconds, kSeconds, Group::kConditions,
     false, "--switch-stall", "TIME",
     "How long a rank pauses at each change of clock, for example 2ms."},
    {"call_ahead", &JobFile::call_ahead, Unit::kNone, kAnyNumber, Group::kConditions, false,
     "--call-ahead", "WHEN",
     "When a rank asks for the clock of a computation: none (default: when the computation "
     "starts), end (when the computation before it has ended), or predicted (early enough that the "
     "clock is in effect when the computation starts, as Perseus' client does)."},
    {"max_early_loss", &JobFile::max_early_loss, Unit::kShare, kShare, Group::kConditions, false,
     "", "",
     "With --call-ahead predicted: how much longer a computation may take because a lower clock "
     "comes before it has ended (default 5%)."},
    {"min_call_interval", &JobFile::min_call_interval_seconds, Unit::kSeconds, kSeconds,
     Group::kConditions, false, "", "",
     "A rank changes its clock at most once in this time, for example 10ms."},
    {"change_price", &JobFile::change_price_joules, Unit::kJoules, kJoules, Group::kHolding, false,
     "", "",
     "Energy that one change of clock costs, in joules. The search then makes fewer changes. The "
     "saving with this price has a line of its own; energies in tables are without it."},
    {"max_slowdown", &JobFile::max_slowdown, Unit::kShare, kShare, Group::kHolding, false,
     "--max-slowdown", "P%",
     "The slowdown that you accept beyond --at: how much longer an iteration may take on average "
     "than at maximum clocks under the same conditions (default 0.1%)."},
    {"confidence", &JobFile::confidence, Unit::kShare, kConfidence, Group::kHolding, false, "", "",
     "Probability that --max-slowdown holds (default 95%)."},
    {"max_changes", &JobFile::max_changes, Unit::kNone, kChanges, Group::kHolding, false,
     "--max-changes", "N",
     "Most changes of clock in one iteration of one pipeline, all ranks together. A change between "
     "a rank's last computation and its first one of the next iteration counts, too."},
    {"profile_errors", &JobFile::profile_errors, Unit::kNone, kAnyNumber, Group::kHolding, false,
     "", "",
     "Whether the plan also holds if times at lowered clocks are off by the standard errors of the "
     "profile, where it states them (default true)."},
};

template <typename T>
bool Has(const std::optional<T>& value) {
  return value.has_value();
}

template <typename T>
bool Has(const std::vector<T>& value) {
  return !value.empty();
}

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

bool GivesConditions(const JobFile& settings) {
  return std::any_of(std::begin(kFields), std::end(kFields), [&](const Field& field) {
    const bool is_one =
        field.key.find("noise") != std::string_view::npos || field.key.rfind("switch_", 0) == 0;
    return is_one && IsSet(field, settings);
  });
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
  // A schedule replaces another one, however each is given.
  if (overrides.schedule || overrides.schedule_file || overrides.schedule_csv) {
    settings->schedule.reset();
    settings->schedule_file.reset();
    settings->schedule_csv.reset();
  }
  if (overrides.switch_latency_seconds) settings->switch_latency_at.clear();  // It is for all.
  for (const Field& field : kFields) {
    if (!IsSet(field, overrides)) continue;
    std::visit([&](auto member) { settings->*member = overrides.*member; }, field.member);
    settings->places.erase(std::string(field.key));
  }
}

bool SamePipeline(const JobFile& a, const JobFile& b) {
  return std::all_of(std::begin(kFields), std::end(kFields), [&](const Field& field) {
    if (field.key == "dp" || field.key == "at" || field.key == "output") return true;
    return std::visit([&](auto member) { return a.*member == b.*member; }, field.member);
  });
}

}  // namespace perseus::job
