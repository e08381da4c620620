/* Copyright 2026 The Perseus Authors
 * SPDX-License-Identifier: Apache-2.0 */

#ifndef PERSEUS_CLIENT_H_
#define PERSEUS_CLIENT_H_

/* Link perseus::client (pkg-config: perseus-client). */

/* The client of Perseus, for the process that trains: libperseus_client. Plain C, so that every
 * language can call it; docs/reference/client.md has examples in C and Python.
 *
 * Nothing here may slow, hang or crash training. Once a client is open, trouble around it (server
 * away, clock calls refused, another order than the plan's) never comes back as an error. The
 * client gives the clocks back to the driver and counts the trouble, and
 * perseus_client_last_error() has a sentence. A wrong argument is refused. A function that returns
 * a status returns PERSEUS_INVALID and a sentence. A function that returns nothing then does
 * nothing, and perseus_client_last_error() has the sentence.
 *
 * Errors, messages and structs: perseus/status.h. Texts are freed with perseus_client_free_text().
 *
 * Units: seconds, joules, MHz. Ownership: the library copies all it is given before it returns; a
 * client belongs to the caller until perseus_client_close(). Threads: the functions of one client
 * may be called from any thread, those of its hot path (step and instruction) also at the same
 * time; perseus_client_close() must be the last. NULL for a client is allowed everywhere and does
 * nothing.
 *
 * fork(): a client belongs to the process that opened it. In a child every function does nothing
 * (its copy of the memory stays until it exits or executes another program): the child opens its
 * own client. exec(): nothing is inherited. */

#include <stddef.h> /* NOLINT(modernize-deprecated-headers): C reads this, too. */
#include <stdint.h> /* NOLINT(modernize-deprecated-headers) */

#include "perseus/status.h"

#if defined(__GNUC__)
#define PERSEUS_CLIENT_API __attribute__((visibility("default")))
#else
#define PERSEUS_CLIENT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* NOLINTBEGIN(readability-identifier-naming,modernize-use-using,modernize-redundant-void-arg):
 * names of C. */

/* The version of this interface. */
#define PERSEUS_CLIENT_ABI_VERSION 2

typedef struct perseus_client perseus_client;

/* The type of a computation. "Instruction" here is another word for computation. The letters are
 * PyTorch's. */
typedef enum perseus_instruction PERSEUS_ENUM {
  PERSEUS_FORWARD = 0,         /* F */
  PERSEUS_BACKWARD = 1,        /* B: gradients of input and weight in one */
  PERSEUS_BACKWARD_INPUT = 2,  /* I */
  PERSEUS_BACKWARD_WEIGHT = 3, /* W */
  PERSEUS_RECOMPUTE = 4,       /* R, not PyTorch's: a forward again, before its backward */
} perseus_instruction;

/* What a client is doing now. */
typedef enum perseus_state PERSEUS_ENUM {
  PERSEUS_STATE_CONNECTING = 0, /* The server has not answered yet; clocks are the driver's. */
  PERSEUS_STATE_PROFILING = 1,  /* Sweeps the clocks of the first iterations. */
  PERSEUS_STATE_WAITING =
      2, /* Registered, or without a server; there is no plan for this rank yet. */
  PERSEUS_STATE_FOLLOWING = 3, /* Sets clocks as the plan says. */
  PERSEUS_STATE_RELEASED =
      4, /* Something is wrong (last error): clocks given back, training goes on. */
  PERSEUS_STATE_CLOSED = 5,
} perseus_state;

/* How finely clocks follow the plan. A client takes a coarser level by itself if calls cost
 * training time. */
typedef enum perseus_level PERSEUS_ENUM {
  PERSEUS_LEVEL_COMPUTATION = 0, /* As planned. */
  PERSEUS_LEVEL_PHASE =
      1, /* One clock for each warm-up, steady phase and cool-down: the highest planned in it. */
  PERSEUS_LEVEL_STAGE = 2, /* One clock for the iteration: the highest planned. */
  PERSEUS_LEVEL_OFF = 3,   /* No calls. */
} perseus_level;

/* Bits of perseus_client_options.flags. */
enum {
  /* Everything runs, no clock is ever set. */
  PERSEUS_SHADOW = 1u << 0,
  /* Sweep clocks during the first iterations and report what they cost. */
  PERSEUS_PROFILE = 1u << 1,
  /* perseus_client_open() waits for the server and the device, and fails without them. */
  PERSEUS_STRICT = 1u << 2,
  /* Clocks are set when their computation begins, not ahead of time. For comparisons. */
  PERSEUS_NO_AHEAD = 1u << 3,
};

/* Fill with perseus_client_options_init(), then set what differs. */
typedef struct perseus_client_options {
  uint32_t struct_size; /* Set by perseus_client_options_init(). */
  uint32_t flags;       /* PERSEUS_SHADOW, ... */

  const char* server;  /* "http://127.0.0.1:7787" or "https://..."; NULL: no server, only what is
                          measured. */
  const char* token;   /* Bearer token; NULL: none. */
  const char* ca_file; /* Certificates that https trusts; NULL: the system's. */

  const char* job_id;   /* Joins this job, or */
  const char* job_json; /* the body of POST /api/v1/jobs: all ranks may send it, its client_key
                           makes it one job. */

  int32_t rank;    /* In the world: of all processes of the job. */
  int32_t dp_rank; /* Which of the data-parallel pipelines. */
  int32_t pp_rank; /* In its pipeline. What the C++ headers and plans call "rank". */
  int32_t tp_rank; /* Among the tensor-parallel GPUs of a pipeline's rank. */

  const char*
      device; /* "agent:SOCKET", "nvml", "zeusd:SOCKET", "simulated:FILE"; NULL: no device. */
  const char* gpu_uuid;       /* "GPU-...", or "cuda:N" in the order of CUDA; NULL: by gpu_index. */
  int32_t gpu_index;          /* As the driver counts; CUDA's own order may differ. */
  int32_t profile_iterations; /* Iterations at each clock of a sweep. Default: 5. */
  const char* node;           /* NULL: the host's name. */
  double min_interval_seconds; /* Between two clock calls. Default: 0.010; 0: none. */
  double max_early_loss; /* A call ahead of time may slow this share of the running computation.
                            Default: 0.05; 0: none. */
  double max_overhead;   /* Share of the iteration that calls may cost before plans get coarser.
                            Default: 0.01. */
  double report_interval_seconds; /* Between two reports to the server. Default: 5. */
  double open_timeout_seconds;    /* strict only. Default: 30. */
  double close_timeout_seconds;   /* What closing waits for at most. Default: 2; 0: for nothing. */
  int32_t min_profile_mhz;        /* The sweep ends at this clock at the latest. Default: 0, the
                                     lowest. */
  int32_t profile_stride;         /* Every n-th clock is measured. Default: 1. */
  int32_t profile_coarse;         /* Not 0: every 4th clock, then where the curve bends; the others
                                     are read off the curve. Half of the iterations or fewer. */
  int32_t profile_settling;       /* Iterations left out after each change of clock. Default: 1. */
  int64_t profile_seed;           /* Not 0: the clocks of each pass in random order. */
} perseus_client_options;

#define PERSEUS_LATENCY_BUCKETS 24

/* Counters since the client was opened, and what they come to. */
typedef struct perseus_client_stats {
  uint32_t struct_size; /* PERSEUS_INIT() */
  int32_t state;        /* perseus_state */
  int32_t level;        /* perseus_level */
  int32_t clock_mhz;    /* Last one set; 0: the driver's own; -1: a call failed. */
  int64_t plan_version; /* -1: none. */
  uint64_t iterations;
  uint64_t instructions;     /* Begins that were seen. */
  uint64_t lost_events;      /* Not read in time by the background thread. */
  uint64_t calls;            /* Clock calls made; in shadow mode, that would have been made. */
  uint64_t coalesced;        /* Planned changes that were left out, as a newer one came. */
  uint64_t refused;          /* Calls that the device refused. */
  uint64_t early;            /* Changes in effect before their computation began, */
  uint64_t on_time;          /* within a millisecond of it, */
  uint64_t late;             /* while it ran, or */
  uint64_t missed;           /* when it was over. */
  uint64_t order_mismatches; /* Iterations in another order than the plan's. */
  uint64_t server_errors;    /* Requests without a good answer. */
  uint64_t reports_dropped;  /* Iterations that never reached the server. */
  double call_seconds;       /* Time in clock calls, all on the background thread. */
  double latency_seconds;    /* From a clock call until it is in effect; median of the newest. */
  double overhead_share;     /* What calls seem to cost, as a share of the last iterations. */
  double last_iteration_seconds;
  /* Latencies of clock calls: bucket i counts those under 2^i * 10 microseconds that are not in a
   * lower one; the last also all above. */
  uint64_t latency[PERSEUS_LATENCY_BUCKETS];
  uint64_t step_plans;         /* Iterations that began with a plan of their own, */
  uint64_t step_plans_late;    /* and such plans that were not used: too late, or four waited. */
  double joules;               /* Of this rank's GPU, in all iterations so far; 0: not known. */
  double saving_percent;       /* What the plan that is followed predicts. NaN: not known. */
  double saving_least_percent; /* With a probability of 95 % the saving is between these, as far */
  double saving_most_percent;  /* as the errors of the measured profile go. NaN: not known. */
} perseus_client_stats;

/* One computation of this rank in a plan that the trainer's process made itself. */
typedef struct perseus_step_row {
  int32_t type; /* perseus_instruction */
  int32_t stage;
  int32_t microbatch;
  int32_t fused_type;       /* -1, or of the computation that runs with it. */
  int32_t fused_stage;      /* -1 */
  int32_t fused_microbatch; /* -1 */
  int32_t clock_mhz;
  int32_t reserved;     /* 0 */
  double start_seconds; /* From the start of the iteration, as planned. */
  double duration_seconds;
} perseus_step_row;

/* The version that the library was built with: compare with PERSEUS_CLIENT_ABI_VERSION. */
PERSEUS_CLIENT_API int perseus_client_abi_version(void);

/* Frees a message of this library; NULL is allowed. */
PERSEUS_CLIENT_API void perseus_client_free_text(char* text);

/* The defaults, as stated above; what is not stated is 0 or NULL. `struct_size` is
 * sizeof(perseus_client_options) as the caller knows it. */
PERSEUS_CLIENT_API void perseus_client_options_init(perseus_client_options* options,
                                                    size_t struct_size);

/* Opens a client and returns at once: server and device are found by background threads, again and
 * again while they are away. (With PERSEUS_STRICT it waits and fails instead.) Errors:
 * PERSEUS_INVALID (also for a server or device that no address can be: "nvlm"), PERSEUS_NO_MEMORY,
 * and with PERSEUS_STRICT PERSEUS_UNAVAILABLE. */
PERSEUS_CLIENT_API perseus_status perseus_client_open(const perseus_client_options* options,
                                                      perseus_client** client, char** message);

/* Around each iteration. `iteration` is the trainer's own number, from 0. `tokens` are those of the
 * whole iteration on this rank, if lengths vary; else 0. perseus_step_begin() may wake the
 * background thread: one system call. A negative iteration is refused: the iteration is not
 * counted, and its computations are ignored until the next perseus_step_begin(). */
PERSEUS_CLIENT_API void perseus_step_begin(perseus_client* client, int64_t iteration);
PERSEUS_CLIENT_API void perseus_step_end(perseus_client* client, int64_t tokens);

/* A plan for one iteration, in order of execution, where microbatches differ and the trainer's
 * process plans for their lengths itself (perseus_planner_plan_work() of perseus/planner_c.h). It
 * is followed from perseus_step_begin() of that `iteration` on. A plan that comes later is not
 * used, but counted. Iterations without a plan of their own keep the last one, or take the server's
 * if a newer one came. At most four plans wait. Takes a lock and copies, so do not call it between
 * computations. `row_size` is sizeof(perseus_step_row). PERSEUS_INVALID: a row that makes no sense
 * (the sentence says which, from 0, and why), a computation that is there twice, no rows or more
 * than 65,536, a negative iteration. */
PERSEUS_CLIENT_API perseus_status perseus_step_plan(perseus_client* client, int64_t iteration,
                                                    const perseus_step_row* rows, size_t row_size,
                                                    size_t count, char** message);

/* Around each computation. `stage` of the model (virtual stages counted) and `microbatch` count
 * from 0. -1: not known; then the order tells which one it is. No lock, no allocation, no system
 * call, no CUDA synchronisation. */
PERSEUS_CLIENT_API void perseus_instruction_begin(perseus_client* client, perseus_instruction type,
                                                  int32_t stage, int32_t microbatch);
PERSEUS_CLIENT_API void perseus_instruction_end(perseus_client* client, perseus_instruction type,
                                                int32_t stage, int32_t microbatch);

/* For trainers whose begin and end say when computations were *queued*, not when they ran. Says how
 * long the device was busy with those of one type in this iteration, as the trainer measured it
 * (with CUDA events, for example). Call it between perseus_step_begin() and perseus_step_end(). The
 * last call for a type counts, and replaces the sum of its begins and ends. The server finds
 * stragglers by it. NaN and numbers below 0 are ignored. Costs as little as
 * perseus_instruction_begin(). */
PERSEUS_CLIENT_API void perseus_step_busy(perseus_client* client, perseus_instruction type,
                                          double seconds);

/* The amount of work of the computation that begins next, in tokens or any other unit. 0, NaN and
 * numbers below 0: unknown. A profile keeps it. If it varies, time and energy are fitted as a
 * constant plus a part per unit of work. Costs as little as perseus_instruction_begin(). */
PERSEUS_CLIENT_API void perseus_instruction_work(perseus_client* client, double work);

/* Ends the iteration that runs, like perseus_step_end(), but nothing of it is used, learned or
 * reported. For iterations that should not count: an exception, another number of microbatches. */
PERSEUS_CLIENT_API void perseus_step_abandon(perseus_client* client);

/* For trainers whose begin and end say when computations were *queued*, not when they ran. Says
 * when the device ran each computation of an iteration: its begin and its end, in the order in
 * which they were begun, in seconds since perseus_step_begin() of `iteration` on the host's clock.
 * (CUDA events give this, with one moment at which both clocks are known.) These times replace the
 * host's in busy times, predictions and profiles. Give them for each iteration, at the latest three
 * iterations after its end: the client waits that long once it was given some. Takes a lock and
 * copies, so do not call it between computations. Ignored, with one sentence in
 * perseus_client_last_error(): another number of times than of begins, times that run backwards. */
PERSEUS_CLIENT_API void perseus_step_times(perseus_client* client, int64_t iteration,
                                           const double* begin_seconds, const double* end_seconds,
                                           size_t count);

/* Tells the server that the pipeline of `rank` (in the world) will be slow in `delay_seconds`: its
 * iterations take `degree` times as long (1.2: 20 % longer). A `degree` of at most 1, or
 * perseus_straggler_clear(), says that it is well again. Returns at once; a background thread sends
 * it. PERSEUS_INVALID: NaN, or a negative rank. */
PERSEUS_CLIENT_API perseus_status perseus_straggler_set(perseus_client* client, int32_t rank,
                                                        double delay_seconds, double degree,
                                                        char** message);
PERSEUS_CLIENT_API perseus_status perseus_straggler_clear(perseus_client* client, int32_t rank,
                                                          char** message);

PERSEUS_CLIENT_API perseus_status perseus_client_get_stats(perseus_client* client,
                                                           perseus_client_stats* stats,
                                                           char** message);

PERSEUS_CLIENT_API perseus_state perseus_client_get_state(perseus_client* client);
PERSEUS_CLIENT_API int64_t perseus_client_plan_version(perseus_client* client); /* -1: none. */
/* 0: there is no plan and no sweep, so nobody needs the computations of an iteration. Then
 * perseus_step_begin() and perseus_step_end() are enough. If the answer changes during an
 * iteration, end that one with perseus_step_abandon(). */
PERSEUS_CLIENT_API int perseus_client_listens(perseus_client* client);

/* Changes when perseus_client_last_error() or perseus_client_job_id() may have: a text need not be
 * fetched to see that it is the same. As perseus_client_listens(), no lock and no system call. */
PERSEUS_CLIENT_API uint32_t perseus_client_problems(perseus_client* client);

/* The job's id, once the server gave one, else "". Return the full length, as snprintf does. */
PERSEUS_CLIENT_API size_t perseus_client_job_id(perseus_client* client, char* text, size_t size);
/* One sentence on the newest trouble that is not over, or on a wrong argument; "": none. */
PERSEUS_CLIENT_API size_t perseus_client_last_error(perseus_client* client, char* text,
                                                    size_t size);

/* Gives the clocks back and sends what is to be reported; waits for close_timeout_seconds at most
 * (a driver that hangs is left behind). From then on every function does nothing, from any thread,
 * until perseus_client_close() frees the client. May be called again. NULL is allowed. */
PERSEUS_CLIENT_API void perseus_client_stop(perseus_client* client);

/* perseus_client_stop(), and frees the client. NULL is allowed. */
PERSEUS_CLIENT_API void perseus_client_close(perseus_client* client);

/* NOLINTEND(readability-identifier-naming,modernize-use-using,modernize-redundant-void-arg) */

#ifdef __cplusplus
}
#endif

#endif /* PERSEUS_CLIENT_H_ */
