// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EVALUATION_SOSP24_H_
#define PERSEUS_EVALUATION_SOSP24_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "perseus/effort.h"
#include "perseus/plan.h"
#include "perseus/planner.h"
#include "perseus/result.h"

// The evaluation of the Perseus paper (Chung et al., SOSP'24), recomputed from
// its public artifact (ml-energy/zeus, branch kronos, folder sosp24_data), with
// our plans on the same data beside it. docs/evidence/evaluation.md is made from this.
namespace perseus::sosp24 {

struct Sosp24Options {
  std::string directory;          // sosp24_data, or the folder that holds it.
  std::string derived_directory;  // Job profiles in our format; empty: none.
  // Summaries of measurements, read where raw runs are absent. Empty: a folder
  // `measured` beside one of the two others, where there is one.
  std::string measured_directory;
  double effort = kTableEffort;  // Of each plan.
  // Seconds of CPU used so far; empty: run times are not reported.
  std::function<double()> cpu_seconds;
  // Called with what is done next ("Table 6: gpt3-175b, A100 SXM, 96 microbatches").
  std::function<void(const std::string&)> progress;
};

// One pipeline of the emulation (section 6.3): a model on a GPU with a number
// of microbatches. Whole-pipeline seconds and joules.
struct Sosp24Emulation {
  std::string model;
  std::string device;
  int microbatches = 0;
  int pipelines = 0;  // 1,536 microbatches in all.
  int gpus = 0;       // Of all pipelines.

  // As published: the protocol's T is the least time of the published frontier.
  double published_seconds = 0;          // T
  double published_baseline_joules = 0;  // All-maximum clocks, waiting until T.
  double published_joules = 0;
  double published_saving_percent = 0;  // Table 6.
  // The published plans at our all-maximum-clock time: the best within it, and
  // waiting until then, against the baseline of that time.
  double published_at_max_clock_saving_percent = 0;

  // Ours.
  double max_clock_seconds = 0;      // All-maximum-clock time, replayed.
  double fastest_seconds = 0;        // T_min: what any plan can realise.
  std::optional<Plan> at_published;  // At T, where T >= T_min.
  double at_published_saving_percent = 0;
  Plan at_max_clock;  // At the all-maximum-clock time.
  double at_max_clock_saving_percent = 0;
  double bound_saving_percent = 0;               // Of the lower bound at that time.
  double bound_at_published_saving_percent = 0;  // At T; 0 where T < T_min.

  // EnvPipe, where the artifact has it (0 where not): published, and the policy.
  double envpipe_published_seconds = 0;
  double envpipe_published_joules = 0;
  double envpipe_seconds = 0;
  double envpipe_joules = 0;

  // Planner's run time; negative where not measured.
  double frontier_cpu_seconds = -1;
  double plan_cpu_seconds = -1;
  int breakpoints = 0;
};

// What one system saves when one pipeline is slower by `slowdown` (Figures 7
// and 8). Percent of the baseline's energy in the same situation.
struct Sosp24Straggler {
  std::string model;
  std::string device;
  int microbatches = 0;
  double slowdown = 1;
  double published_pipeline_percent = 0;  // One healthy pipeline, rule of the paper.
  double published_job_percent = 0;       // The whole job.
  double published_time_over_t = 0;       // Where the rule of the paper goes.
  // The same frontier with the rule of least *effective* energy.
  double effective_job_percent = 0;
  double effective_time_over_t = 0;
  bool rules_are_brute_force_best = false;  // Both, against all points.
  double ours_pipeline_percent = 0;
  double ours_job_percent = 0;
  double bound_job_percent = 0;  // Of the lower bound.
  // The same where T is the all-maximum-clock time, which plans can realise; at
  // the slowdown of Figure 7 alone.
  std::optional<double> ours_max_clock_job_percent;
  std::optional<double> bound_max_clock_job_percent;
  // EnvPipe counted as the artifact does and as the protocol says (0 where absent).
  double envpipe_artifact_job_percent = 0;
  double envpipe_artifact_pipeline_percent = 0;
  double envpipe_job_percent = 0;
};

// One measured or predicted point of a real job (Figure 9).
struct Sosp24Point {
  double iteration_time_seconds = 0;
  double energy_joules = 0;
};

// One real job (section 6.2). Percentages are of the measured baseline: the
// ZeusGlobal run of the highest power limit.
struct Sosp24Job {
  std::string gpu;
  std::string model;
  std::string layout;  // "dp1+pp4+tp1"
  int stages = 0;
  int microbatch_size = 0;
  int microbatches = 0;
  Sosp24Point baseline;
  std::vector<Sosp24Point> perseus;  // Plans without the two of warm-up, as numbered.
  bool summarised = false;           // `perseus` comes from a summary, not from raw runs.
  std::optional<Sosp24Point> envpipe;
  std::vector<Sosp24Point> zeus_global;
  std::vector<Sosp24Point> zeus_per_stage;
  // Table 3; unset where the data lacks it. A slowdown below 0 counts as 0, as
  // in the paper.
  std::optional<double> perseus_saving_percent;
  std::optional<double> perseus_slowdown_percent;
  std::optional<double> envpipe_saving_percent;
  std::optional<double> envpipe_slowdown_percent;

  // Ours, on the derived profile (its energies are fitted, not measured):
  // predicted, against the same profile's all-maximum clocks.
  bool has_derived = false;
  double derived_baseline_seconds = 0;
  double derived_baseline_joules = 0;      // Of the whole job.
  Plan ours;                               // At the all-maximum-clock time; of one pipeline.
  double ours_bound_percent = 0;           // What the lower bound at its time would save.
  std::vector<Sosp24Point> ours_frontier;  // Real plans, of the whole job.

  // The published plans, replayed on the derived profile, against the
  // iteration times and energies that were measured: below 0 where the replay
  // is faster, or takes less. One for each of `perseus` whose clocks are there
  // and fit; empty without raw runs or profile.
  std::vector<double> replay_error_percent;
  std::vector<double> replay_energy_error_percent;
  // What the published plan of Table 3 is predicted to save, as `ours` is.
  std::optional<double> replay_saving_percent;
  std::optional<double> replay_slowdown_percent;
};

// Table 4: a real job with a straggler.
struct Sosp24JobStraggler {
  std::string gpu;
  std::string model;
  double slowdown = 1;
  std::optional<double> perseus_percent;
  std::optional<double> envpipe_percent;
  std::optional<double> ours_percent;  // Predicted, derived profile.
};

struct Sosp24Evaluation {
  std::vector<Sosp24Emulation> emulations;
  std::vector<Sosp24Straggler> stragglers;
  std::vector<Sosp24Job> jobs;
  std::vector<Sosp24JobStraggler> job_stragglers;
  std::vector<std::string> missing;  // What the folder lacks, a sentence each.
  // Folders that were read without having been named.
  std::vector<std::string> read_beside;
};

// Errors: a folder that holds nothing of the artifact, or a file in it that
// cannot be read; sentences name the file. Deterministic but for run times.
Result<Sosp24Evaluation> EvaluateSosp24(const Sosp24Options& options);

}  // namespace perseus::sosp24

#endif  // PERSEUS_EVALUATION_SOSP24_H_
