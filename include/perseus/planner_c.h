/* Copyright 2026 The Perseus Authors
 * SPDX-License-Identifier: Apache-2.0 */

#ifndef PERSEUS_PLANNER_C_H_
#define PERSEUS_PLANNER_C_H_

/* Link perseus::planner (pkg-config: perseus-planner). */

/* The planner of Perseus in plain C, for every language: libperseus_planner. (In C++,
 * perseus/job.h and perseus/planner.h say more.) docs/reference/python.md has examples.
 *
 * Two things can be planned: a pipeline of a training job (perseus_planner_create, then
 * perseus_planner_plan) and any graph of operations that wait for each other, each with some
 * options of time and cost (perseus_dag_solve, then perseus_dag_choose). perseus/frontier.h calls
 * the operations of a graph activities. A "rank" here is the rank in a pipeline, from 0.
 *
 * Units: seconds, joules, watts, MHz. Of a graph, times and costs have the caller's units.
 * Deterministic: the same input gives the same bytes, those that `perseus plan` writes.
 *
 * Errors, messages and structs: perseus/status.h. Texts are freed with perseus_planner_free_text().
 *
 * Ownership: the library copies all it is given before it returns. What ..._create(), _plan(),
 * _baseline() and _solve() make belongs to the caller until its ..._free(); NULL may be freed. A
 * plan stays good after its planner is freed. Pointers in perseus_frontier and perseus_plan_columns
 * are good until the object that they are from is freed.
 *
 * Threads: any number of threads may use one object at the same time, but for freeing it. There is
 * no global state. Nothing is written anywhere; the only files read are those that the input
 * names. */

#include <stddef.h> /* NOLINT(modernize-deprecated-headers): C reads this, too. */
#include <stdint.h> /* NOLINT(modernize-deprecated-headers) */

#include "perseus/status.h"

#if defined(__GNUC__)
#define PERSEUS_PLANNER_API __attribute__((visibility("default")))
#else
#define PERSEUS_PLANNER_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* NOLINTBEGIN(readability-identifier-naming,modernize-use-using,modernize-redundant-void-arg):
 * names of C. */

/* The version of this interface. */
#define PERSEUS_PLANNER_ABI_VERSION 2

/* Called now and then, from the thread that called Perseus, with the share of the work that is done
 * (0 to 1). Return 0 to go on, anything else to stop: then the call ends with PERSEUS_CANCELLED.
 * Must not throw or long-jump. (The callbacks of the C++ headers return a bool: true goes on.) */
typedef int (*perseus_planner_progress)(void* user, double share);

typedef struct perseus_planner perseus_planner; /* A job with its frontier. */
typedef struct perseus_plan perseus_plan;       /* One option for each computation. */
typedef struct perseus_dag_solution perseus_dag_solution;

/* The rows of a profile as arrays of `rows` elements each (docs/reference/profile-format.md). */
typedef struct perseus_profile_arrays {
  uint32_t struct_size; /* PERSEUS_INIT() */
  uint32_t reserved;    /* 0 */
  size_t rows;
  const int32_t* stage;
  const char* const* instruction; /* "forward", "backward", ... */
  const double* clock_mhz;        /* One of these two, */
  const char* const* knob;        /* the other NULL. */
  const double* time_seconds;
  const double* energy_joules;
  const double* time_std_seconds; /* NULL: not known. */
  const double* energy_std_joules;
} perseus_profile_arrays;

/* What to plan for. Fill with perseus_planner_input_init(), then set what differs. Give exactly one
 * of `path`, `profile_csv`, `profile_arrays` and a "profile" in the settings. A text needs no zero
 * at its end. If it has one, its size may be PERSEUS_TO_ZERO. */
typedef struct perseus_planner_input {
  uint32_t struct_size; /* Set by perseus_planner_input_init(). */
  uint32_t reserved;    /* 0 */
  const char* path;     /* A job file (.toml, .json), else a profile. */
  const char* profile_csv;
  size_t profile_csv_size;
  const perseus_profile_arrays* profile_arrays;
  const char* profile_name; /* Of a profile in memory, for messages and plans; NULL: "profile". */
  /* A JSON object with the keys of a job file (docs/reference/files.md); what it says wins over a
   * job file. NULL: none. Paths in it are as they stand. */
  const char* settings_json;
  size_t settings_json_size;
  const char* schedule_csv; /* A schedule in PyTorch's CSV, instead of "schedule". NULL: none. */
  size_t schedule_csv_size;
  const char* schedule_name; /* Of schedule_csv, for messages and plans; NULL: "schedule". */
  perseus_planner_progress progress; /* Of perseus_planner_create(). NULL: none. */
  void* user;
} perseus_planner_input;

/* The exact lower bound of the energy (of a graph: the cost) at each time: corners of a convex,
 * piecewise linear curve, times ascending. Beyond the last nothing is saved. */
typedef struct perseus_frontier {
  uint32_t struct_size; /* PERSEUS_INIT() */
  int32_t fitted;       /* 1: from an exponential fit, which is no lower bound. */
  size_t count;
  const double* time_seconds;
  const double* energy_joules;
  const double* slope_watts; /* The price of a second to the right; 0 in the last. */
  double fastest_seconds;    /* T_min */
  double min_energy_seconds; /* Of least energy. */
  double tstar_seconds;      /* T* */
  double certified_error;    /* Relative; 0: exact. */
  double total_blocking_power_watts;
  double baseline_time_seconds;  /* Every computation at its highest clock: */
  double baseline_energy_joules; /* what savings are measured against. Of a graph: all at their
                                    fastest options. */
} perseus_frontier;

/* Of one iteration of one pipeline, as replayed from the measured options. */
typedef struct perseus_plan_figures {
  uint32_t struct_size; /* PERSEUS_INIT() */
  int32_t distinct_knobs;
  int32_t knob_changes;
  int32_t has_shared_knob_bound; /* Whether shared_knob_*, proven_best are known. */
  double requested_time_seconds;
  double iteration_time_seconds; /* At most the requested, unless conditions accept a slowdown. */
  double energy_joules;
  double lower_bound_joules; /* No plan that takes iteration_time_seconds can use less. */
  double gap_percent;        /* Of the energy above that bound. */
  double saving_percent;     /* Against the baseline. */
  double average_power_watts;
  double shared_knob_bound_joules; /* A lower bound for plans whose computations share knobs. */
  double shared_knob_gap_percent;
  int32_t proven_best; /* No plan within the constraints is better. */
  /* 1: the plan was made under conditions. Then the rest are means of an emulation under them,
   * compared with maximum clocks under the same conditions. The figures above know no conditions.
   */
  int32_t has_expected;
  double expected_iteration_time_seconds;
  double expected_energy_joules; /* Of one pipeline. */
  double expected_slowdown_percent;
  double expected_saving_percent;
  double expected_clock_calls; /* Of one pipeline in one iteration. */
} perseus_plan_figures;

/* One figure of a plan under its name in plan.json (docs/reference/files.md has all). The texts are
 * good as long as the library is loaded. */
typedef struct perseus_figure {
  uint32_t struct_size; /* PERSEUS_INIT() */
  int32_t known;        /* 0: this plan has no such figure, and the value is 0. */
  int32_t whole;        /* 1: a whole number, or 0 and 1 for "no" and "yes". */
  int32_t reserved;
  const char* group; /* "": of the plan itself; else its object in plan.json, as "expected". */
  const char* name;  /* "iteration_time_s" */
  const char* unit;  /* "seconds", "joules", "watts", "percent" or "". */
  const char* text;  /* What it is, as a sentence. */
  double value;
} perseus_figure;

/* What each computation does: rank by rank, in execution order. Each array has `count` elements. */
typedef struct perseus_plan_columns {
  uint32_t struct_size; /* PERSEUS_INIT() */
  int32_t num_ranks;
  size_t count;
  const int32_t* rank;
  const int32_t*
      type; /* 0 forward, 1 backward, 2 backward_input, 3 backward_weight, 4 recompute. */
  const int32_t* stage;
  const int32_t* microbatch;
  const int32_t* fused_type;       /* -1, or of the computation that runs with it. */
  const int32_t* fused_stage;      /* -1 */
  const int32_t* fused_microbatch; /* -1 */
  const double* clock_mhz;         /* NaN where knobs are labels. */
  const char* const* knob;         /* As the profile spells it. */
  const double* start_seconds;     /* From the start of the iteration. */
  const double* duration_seconds;
  const double* energy_joules; /* All GPUs of the rank. */
} perseus_plan_columns;

/* What a check of the profile or of the job has found. Texts are good until the object that it is
 * from is freed. */
typedef struct perseus_note {
  uint32_t struct_size; /* PERSEUS_INIT() */
  int32_t severity;   /* 0 odd: perhaps not what was meant; 1 implausible: a wrong unit, likely. */
  const char* text;   /* One sentence, without a full stop. */
  const char* source; /* The file that it is about; "": none. */
  int32_t line;       /* 0: the file as a whole. */
  int32_t column;
} perseus_note;

/* Operations on a directed graph without cycles. Operations may share a curve. */
typedef struct perseus_dag {
  uint32_t struct_size; /* PERSEUS_INIT() */
  int32_t num_operations;
  int32_t num_curves;
  uint32_t reserved;           /* 0 */
  const int32_t* curve_of;     /* [operation] */
  const int32_t* first_option; /* [curve], and one more: where its options begin in these two. */
  const double* option_time;   /* >= 0, finite */
  const double* option_cost;   /* finite */
  size_t num_precedences;
  const int32_t* from; /* `to` starts no earlier than `delay` after `from` ends. */
  const int32_t* to;
  const double* delay; /* NULL: all 0. */
  /* [operation], 0 to num_operations - 1: what runs on one device, one after the other. The search
   * looks at neighbours there together, which decides no bound. NULL: found from the edges. */
  const int32_t* rank;
  const double* begin; /* [operation] It starts no earlier. NULL: all 0. */
} perseus_dag;

typedef struct perseus_dag_choice {
  uint32_t struct_size; /* PERSEUS_INIT() */
  uint32_t reserved;
  double time; /* Of the chosen options, replayed; never above the deadline. */
  double cost;
  double lower_bound; /* No choice that ends by `time` costs less. */
} perseus_dag_choice;

/* The version that the library was built with: compare with PERSEUS_PLANNER_ABI_VERSION. */
PERSEUS_PLANNER_API int perseus_planner_abi_version(void);

/* Frees a text or message of this library. */
PERSEUS_PLANNER_API void perseus_planner_free_text(char* text);

/* The defaults. `struct_size` is sizeof(perseus_planner_input) as the caller knows it. */
PERSEUS_PLANNER_API void perseus_planner_input_init(perseus_planner_input* input,
                                                    size_t struct_size);

/* Reads the input and computes its whole frontier. */
PERSEUS_PLANNER_API perseus_status perseus_planner_create(const perseus_planner_input* input,
                                                          perseus_planner** planner,
                                                          char** message);
PERSEUS_PLANNER_API void perseus_planner_free(perseus_planner* planner);

PERSEUS_PLANNER_API perseus_status perseus_planner_frontier(const perseus_planner* planner,
                                                            perseus_frontier* frontier,
                                                            char** message);

/* The bytes of frontier.csv (docs/reference/files.md). */
PERSEUS_PLANNER_API perseus_status perseus_planner_frontier_csv(const perseus_planner* planner,
                                                                char** text, char** message);

/* The profile as it was read, in the CSV of a profile: seconds and joules, ranks aggregated. */
PERSEUS_PLANNER_API perseus_status perseus_planner_profile_csv(const perseus_planner* planner,
                                                               char** text, char** message);

/* How many notes there are on the input, and each of them, from 0. */
PERSEUS_PLANNER_API size_t perseus_planner_note_count(const perseus_planner* planner);
PERSEUS_PLANNER_API perseus_status perseus_planner_get_note(const perseus_planner* planner,
                                                            size_t index, perseus_note* note,
                                                            char** message);

/* The plan that `perseus plan` makes. `settings_json` (NULL: none) is a JSON object that wins over
 * the job's own settings. Of the keys of a job file it may have "at", those that constrain a plan,
 * "effort" and "conditions" (docs/reference/files.md, "Job files"). Others are refused. */
PERSEUS_PLANNER_API perseus_status perseus_planner_plan(
    const perseus_planner* planner, const char* settings_json, size_t settings_json_size,
    perseus_planner_progress progress, void* user, perseus_plan** plan, char** message);
/* The plan of one iteration whose microbatches differ, with a frontier of its own. `work` has one
 * factor for each microbatch: its computations last this many times as long as in the profile. The
 * same factors give the same plan, whatever was planned before, so every rank that plans for itself
 * gets the same one. Takes about 30 ms of CPU for 4 stages x 16 microbatches and 0.15 s for 8 x 32;
 * an "effort" in the settings (as in perseus_planner_plan()) changes that. The job's conditions do
 * not count; settings with conditions are refused. */
PERSEUS_PLANNER_API perseus_status perseus_planner_plan_work(
    const perseus_planner* planner, const double* work, size_t work_count,
    const char* settings_json, size_t settings_json_size, perseus_planner_progress progress,
    void* user, perseus_plan** plan, char** message);
/* The same where data-parallel pipelines wait for each other: `others` has the factors of each of
 * the `num_others` other pipelines: `work_count` numbers for the first one, then as many for the
 * next. The iteration lasts as long as that of the slowest pipeline at the target, so the others
 * may take as long. Every pipeline that knows all factors gets the same time. Messages count the
 * other pipelines from 0. */
PERSEUS_PLANNER_API perseus_status perseus_planner_plan_work_among(
    const perseus_planner* planner, const double* work, size_t work_count, const double* others,
    size_t num_others, const char* settings_json, size_t settings_json_size,
    perseus_planner_progress progress, void* user, perseus_plan** plan, char** message);
/* Every computation at its highest clock. */
PERSEUS_PLANNER_API perseus_status perseus_planner_baseline(const perseus_planner* planner,
                                                            perseus_plan** plan, char** message);
/* Reads a plan.json, named so in messages (NULL: "plan.json"). */
PERSEUS_PLANNER_API perseus_status perseus_plan_read(const char* json, size_t json_size,
                                                     const char* name, perseus_plan** plan,
                                                     char** message);
PERSEUS_PLANNER_API void perseus_plan_free(perseus_plan* plan);

PERSEUS_PLANNER_API perseus_status perseus_plan_get_figures(const perseus_plan* plan,
                                                            perseus_plan_figures* figures,
                                                            char** message);
/* All figures of plan.json, also those that perseus_plan_figures has not, counted from 0. */
PERSEUS_PLANNER_API size_t perseus_plan_figure_count(const perseus_plan* plan);
PERSEUS_PLANNER_API perseus_status perseus_plan_get_figure(const perseus_plan* plan, size_t index,
                                                           perseus_figure* figure, char** message);
PERSEUS_PLANNER_API perseus_status perseus_plan_get_columns(const perseus_plan* plan,
                                                            perseus_plan_columns* columns,
                                                            char** message);

/* The planner's notes, and one where the plan's target is odd. */
PERSEUS_PLANNER_API size_t perseus_plan_note_count(const perseus_plan* plan);
PERSEUS_PLANNER_API perseus_status perseus_plan_get_note(const perseus_plan* plan, size_t index,
                                                         perseus_note* note, char** message);

/* The bytes of plan.json, and of zeus_plan.py (PERSEUS_INFEASIBLE: Zeus has no way to say
 * this plan). */
PERSEUS_PLANNER_API perseus_status perseus_plan_json(const perseus_plan* plan, char** text,
                                                     char** message);
PERSEUS_PLANNER_API perseus_status perseus_plan_zeus(const perseus_plan* plan, char** text,
                                                     char** message);

/* The bytes of report.html, with the one row of this plan. Not of a plan that was read. */
PERSEUS_PLANNER_API perseus_status perseus_plan_report(const perseus_plan* plan, char** text,
                                                       char** message);

/* Computes the whole frontier of a graph: at most a million operations. */
PERSEUS_PLANNER_API perseus_status perseus_dag_solve(const perseus_dag* dag,
                                                     perseus_planner_progress progress, void* user,
                                                     perseus_dag_solution** solution,
                                                     char** message);
PERSEUS_PLANNER_API void perseus_dag_free(perseus_dag_solution* solution);

/* Fields named seconds and joules have the times and costs of the graph. */
PERSEUS_PLANNER_API perseus_status perseus_dag_frontier(const perseus_dag_solution* solution,
                                                        perseus_frontier* frontier, char** message);

/* One option for every operation, so that all end by `deadline`: `options` has one element for each
 * operation, an index into its curve's options. `effort` as in a job file: 1 for a choice that will
 * be used, less for a quick one. PERSEUS_INFEASIBLE: below the fastest time. */
PERSEUS_PLANNER_API perseus_status perseus_dag_choose(const perseus_dag_solution* solution,
                                                      double deadline, double effort,
                                                      perseus_planner_progress progress, void* user,
                                                      int32_t* options, perseus_dag_choice* choice,
                                                      char** message);

/* NOLINTEND(readability-identifier-naming,modernize-use-using,modernize-redundant-void-arg) */

#ifdef __cplusplus
}
#endif

#endif /* PERSEUS_PLANNER_C_H_ */
