/* Copyright 2026 The Perseus Authors
 * SPDX-License-Identifier: Apache-2.0 */

/* perseus/client.h and perseus/simulate.h from plain C. */

#include <stdio.h>

#include "perseus/client.h"
#include "perseus/simulate.h"
#include "perseus/status.h"

static int Fail(const char* what) {
  fprintf(stderr, "not as expected: %s\n", what);
  return 1;
}

static int Simulate(void) {
  perseus_simulated* gpus = NULL;
  char* message = NULL;
  if (perseus_simulated_create("simulated_gpus", "[[gpus]]\n", &message) != PERSEUS_OK ||
      perseus_simulated_open("simulated_gpus", &gpus, &message) != PERSEUS_OK) {
    return Fail(message);
  }
  if (perseus_simulated_count(gpus) != 1) return Fail("one simulated GPU");
  perseus_simulated_close(gpus);
  remove("simulated_gpus");
  return 0;
}

int main(void) {
  perseus_client_options options;
  perseus_client* client = NULL;
  perseus_client_stats stats;
  char* message = NULL;

  if (perseus_client_abi_version() != PERSEUS_CLIENT_ABI_VERSION) return Fail("version");
  perseus_client_options_init(&options, sizeof(options));
  options.rank = -1;
  if (perseus_client_open(&options, &client, &message) != PERSEUS_INVALID) {
    return Fail("a rank below 0 is refused");
  }
  if (client != NULL || message == NULL) return Fail("why it was refused");
  perseus_client_free_text(message);

  options.rank = 0; /* No server, no device: only what is measured. */
  if (perseus_client_open(&options, &client, &message) != PERSEUS_OK) {
    return Fail(message);
  }
  perseus_step_begin(client, 0);
  perseus_instruction_begin(client, PERSEUS_FORWARD, 0, 0);
  perseus_instruction_end(client, PERSEUS_FORWARD, 0, 0);
  perseus_step_end(client, 0);
  PERSEUS_INIT(&stats);
  if (perseus_client_get_stats(client, &stats, NULL) != PERSEUS_OK) return Fail("statistics");
  perseus_client_close(client);
  return Simulate();
}
