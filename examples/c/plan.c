/* Copyright 2026 The Perseus Authors
 * SPDX-License-Identifier: Apache-2.0 */
/* A plan in C: plan PROFILE.CSV */
#include <stdio.h>

#include "perseus/planner_c.h"

int main(int argc, char** argv) {
  perseus_planner_input input;
  perseus_planner* planner = NULL;
  perseus_plan* plan = NULL;
  perseus_plan_figures figures;
  char* message = NULL;
  PERSEUS_INIT(&figures);
  perseus_planner_input_init(&input, sizeof(input));
  input.path = argc > 1 ? argv[1] : "profile.csv";
  input.settings_json = "{\"schedule\": \"1f1b\", \"microbatches\": 16, \"blocking_power\": 83.64}";
  input.settings_json_size = PERSEUS_TO_ZERO;
  if (perseus_planner_create(&input, &planner, &message) == PERSEUS_OK &&
      perseus_planner_plan(planner, NULL, 0, NULL, NULL, &plan, &message) == PERSEUS_OK &&
      perseus_plan_get_figures(plan, &figures, &message) == PERSEUS_OK) {
    printf("%.2f %% saved\n", figures.saving_percent);
  }
  if (message != NULL) fprintf(stderr, "%s\n", message);
  perseus_planner_free_text(message);
  perseus_plan_free(plan);
  perseus_planner_free(planner);
  return figures.iteration_time_seconds > 0 ? 0 : 1;
}
