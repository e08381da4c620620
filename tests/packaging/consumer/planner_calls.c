/* Copyright 2026 The Perseus Authors
 * SPDX-License-Identifier: Apache-2.0 */

/* perseus/planner_c.h from plain C: a plan of a small job, and a graph of operations. */

#include <stdio.h>
#include <string.h>

#include "perseus/planner_c.h"

static const char kProfile[] =
    "stage,instruction,frequency,time,energy\n"
    "0,forward,1410,0.010,4.0\n0,forward,1005,0.012,3.3\n"
    "0,backward,1410,0.020,8.0\n0,backward,1005,0.024,6.6\n"
    "1,forward,1410,0.014,5.6\n1,forward,1005,0.017,4.6\n"
    "1,backward,1410,0.028,11.2\n1,backward,1005,0.034,9.2\n";
static const char kSettings[] =
    "{\"schedule\": \"1f1b\", \"microbatches\": 4, \"blocking_power\": 70}";

static int Fail(const char* what, char* message) {
  fprintf(stderr, "not as expected: %s: %s\n", what, message == NULL ? "" : message);
  perseus_planner_free_text(message);
  return 1;
}

static int Plan(void) {
  perseus_planner_input input;
  perseus_planner* planner = NULL;
  perseus_plan* plan = NULL;
  perseus_plan_figures figures;
  char* text = NULL;
  char* message = NULL;
  const char at[] = "{\"at\": \"1.05x\"}";

  perseus_planner_input_init(&input, sizeof(input));
  if (perseus_planner_create(&input, &planner, &message) != PERSEUS_INVALID || message == NULL) {
    return Fail("an input with no profile is refused", message);
  }
  perseus_planner_free_text(message);

  input.profile_csv = kProfile;
  input.profile_csv_size = strlen(kProfile);
  input.settings_json = kSettings;
  input.settings_json_size = strlen(kSettings);
  if (perseus_planner_create(&input, &planner, &message) != PERSEUS_OK) {
    return Fail("a planner", message);
  }
  if (perseus_planner_plan(planner, at, strlen(at), NULL, NULL, &plan, &message) != PERSEUS_OK) {
    return Fail("a plan", message);
  }
  perseus_planner_free(planner);
  memset(&figures, 0, sizeof(figures));
  figures.struct_size = sizeof(figures);
  if (perseus_plan_get_figures(plan, &figures, NULL) != PERSEUS_OK) return Fail("figures", NULL);
  if (!(figures.saving_percent > 0)) return Fail("a saving", NULL);
  if (perseus_plan_json(plan, &text, NULL) != PERSEUS_OK) return Fail("its JSON", NULL);
  if (strstr(text, "\"saving_percent\"") == NULL) return Fail("plan.json", NULL);
  perseus_planner_free_text(text);
  perseus_plan_free(plan);
  return 0;
}

static int Graph(void) {
  const int32_t curve_of[] = {0, 1, 1};
  const int32_t first_option[] = {0, 2, 4};
  const double time[] = {2, 4, 3, 6};
  const double cost[] = {90, 40, 50, 20};
  const int32_t from[] = {0, 0};
  const int32_t to[] = {1, 2};
  int32_t options[3];
  perseus_dag dag;
  perseus_dag_choice choice;
  perseus_dag_solution* solution = NULL;
  char* message = NULL;

  memset(&dag, 0, sizeof(dag));
  dag.struct_size = sizeof(dag);
  dag.num_operations = 3;
  dag.num_curves = 2;
  dag.curve_of = curve_of;
  dag.first_option = first_option;
  dag.option_time = time;
  dag.option_cost = cost;
  dag.num_precedences = 2;
  dag.from = from;
  dag.to = to;
  if (perseus_dag_solve(&dag, NULL, NULL, &solution, &message) != PERSEUS_OK) {
    return Fail("a solution", message);
  }
  memset(&choice, 0, sizeof(choice));
  choice.struct_size = sizeof(choice);
  if (perseus_dag_choose(solution, 8, 1, NULL, NULL, options, &choice, &message) != PERSEUS_OK) {
    return Fail("a choice", message);
  }
  if (choice.time > 8 || choice.cost != 130) return Fail("the best choice", NULL);
  perseus_dag_free(solution);
  return 0;
}

int main(void) {
  if (perseus_planner_abi_version() != PERSEUS_PLANNER_ABI_VERSION) return Fail("version", NULL);
  if (Plan() != 0 || Graph() != 0) return 1;
  puts("planner: as expected");
  return 0;
}
