/* Copyright 2026 The Perseus Authors
 * SPDX-License-Identifier: Apache-2.0 */

#ifndef PERSEUS_SIMULATE_H_
#define PERSEUS_SIMULATE_H_

/* Link perseus::client (pkg-config: perseus-client). */

/* Simulated GPUs, to try a trainer and Perseus on any machine. They are in a file that every
 * process maps; "simulated:FILE" names them to clients and agents. docs/how-to/simulated-gpus.md
 * describes them and the configuration.
 *
 * Units: seconds (of simulated time, as perseus_simulated_now() has it), joules, MHz. Ownership:
 * what is given is copied before a function returns. Threads: every function may be called from any
 * thread, perseus_simulated_close() last. Errors, messages and structs: perseus/status.h, texts are
 * freed with perseus_client_free_text(); PERSEUS_INVALID (an argument, the configuration, no file
 * of simulated GPUs), PERSEUS_UNAVAILABLE (the system refused), PERSEUS_NO_MEMORY. */

#include "perseus/client.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NOLINTBEGIN(readability-identifier-naming,modernize-use-using,modernize-redundant-void-arg):
 * names of C. */

typedef struct perseus_simulated perseus_simulated;

/* What a whole computation takes at one clock. Between two clocks of a table: on the line between
 * them; beyond its ends: as at the end. */
typedef struct perseus_simulated_cost {
  double mhz;
  double seconds;
  double joules;
} perseus_simulated_cost;

/* A computation that was begun; one that ended also has its time and energy. */
typedef struct perseus_simulated_kernel {
  uint32_t struct_size; /* PERSEUS_INIT() */
  int32_t gpu;
  uint64_t id;
  int32_t start_mhz; /* The clock in effect when it began. */
  uint32_t reserved; /* 0 */
  double seconds;
  double joules;
  double begin_seconds;
  double end_seconds;
} perseus_simulated_kernel;

/* A GPU as it is now. */
typedef struct perseus_simulated_snapshot {
  uint32_t struct_size; /* PERSEUS_INIT() */
  uint32_t reserved;    /* 0 */
  double at_seconds;
  int32_t clock_mhz;  /* In effect. */
  int32_t locked_mhz; /* The last that was asked for; 0: none. */
  double joules;      /* Exact, not as its counter shows it. */
  double watts;
  uint64_t set_calls; /* So far. */
} perseus_simulated_snapshot;

/* Makes the file `path`, or replaces it, from a configuration in TOML. */
PERSEUS_CLIENT_API perseus_status perseus_simulated_create(const char* path, const char* toml,
                                                           char** message);

PERSEUS_CLIENT_API perseus_status perseus_simulated_open(const char* path, perseus_simulated** gpus,
                                                         char** message);
/* NULL is allowed. */
PERSEUS_CLIENT_API void perseus_simulated_close(perseus_simulated* gpus);

PERSEUS_CLIENT_API int32_t perseus_simulated_count(const perseus_simulated* gpus);
PERSEUS_CLIENT_API double perseus_simulated_now(const perseus_simulated* gpus);
/* Returns the full length, as snprintf does; 0: no such GPU. */
PERSEUS_CLIENT_API size_t perseus_simulated_uuid(const perseus_simulated* gpus, int32_t gpu,
                                                 char* text, size_t size);

PERSEUS_CLIENT_API perseus_status perseus_simulated_read(perseus_simulated* gpus, int32_t gpu,
                                                         perseus_simulated_snapshot* snapshot,
                                                         char** message);

/* Begins a computation and returns. If one runs already, it waits for that one first.
 * `ready_seconds` is when everything that the computation needs was there; 0: now. The computation
 * begins then, however late this process woke up. While a client in this process measures a profile
 * and gets no device times, give 0: the computation would seem shorter than it is. `row_size` is
 * sizeof(perseus_simulated_cost). Call perseus_simulated_wait() before 16 others were begun on this
 * GPU. */
PERSEUS_CLIENT_API perseus_status perseus_simulated_launch(
    perseus_simulated* gpus, int32_t gpu, const perseus_simulated_cost* table, size_t row_size,
    size_t rows, double ready_seconds, perseus_simulated_kernel* kernel, char** message);
/* Sleeps until the computation has ended, and fills in the rest of `kernel`. */
PERSEUS_CLIENT_API perseus_status perseus_simulated_wait(perseus_simulated* gpus,
                                                         perseus_simulated_kernel* kernel,
                                                         char** message);

/* From now on, computations take `times` as long as in their table (at least 1e-3; 1: normal). */
PERSEUS_CLIENT_API perseus_status perseus_simulated_set_slowdown(perseus_simulated* gpus,
                                                                 int32_t gpu, double times,
                                                                 char** message);
/* From now on, calls that set a clock are refused (1) or allowed (0). */
PERSEUS_CLIENT_API perseus_status perseus_simulated_set_refuse(perseus_simulated* gpus, int32_t gpu,
                                                               int refuse, char** message);

/* NOLINTEND(readability-identifier-naming,modernize-use-using,modernize-redundant-void-arg) */

#ifdef __cplusplus
}
#endif

#endif /* PERSEUS_SIMULATE_H_ */
