// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_PLANNER_C_PLANNER_TESTING_H_
#define PERSEUS_TESTS_PLANNER_C_PLANNER_TESTING_H_

#include <memory>
#include <string>
#include <string_view>

#include "perseus/planner_c.h"

namespace perseus::planner_c {

struct Free {
  void operator()(perseus_planner* planner) const { perseus_planner_free(planner); }
  void operator()(perseus_plan* plan) const { perseus_plan_free(plan); }
  void operator()(perseus_dag_solution* solution) const { perseus_dag_free(solution); }
};
using PlannerHandle = std::unique_ptr<perseus_planner, Free>;
using PlanHandle = std::unique_ptr<perseus_plan, Free>;
using DagHandle = std::unique_ptr<perseus_dag_solution, Free>;

// A text of the library, which is freed.
inline std::string Take(char* text) {
  std::string copy = text == nullptr ? "" : text;
  perseus_planner_free_text(text);
  return copy;
}

// Two stages, three clocks.
inline constexpr std::string_view kProfile =
    "stage,instruction,frequency,time,energy\n"
    "0,forward,1400,0.010,4.0\n0,forward,1200,0.011,3.5\n0,forward,1000,0.013,3.3\n"
    "0,backward,1400,0.020,8.0\n0,backward,1200,0.022,7.0\n0,backward,1000,0.026,6.6\n"
    "1,forward,1400,0.014,5.6\n1,forward,1200,0.0155,4.9\n1,forward,1000,0.018,4.6\n"
    "1,backward,1400,0.028,11.2\n1,backward,1200,0.031,9.8\n1,backward,1000,0.036,9.2\n";
inline constexpr std::string_view kSettings =
    R"({"schedule": "1f1b", "microbatches": 4, "blocking_power": 70})";

// What a call came to.
struct Made {
  perseus_status status = PERSEUS_OK;
  std::string message;
  PlannerHandle planner;
};

inline perseus_planner_input InputOf(std::string_view profile, std::string_view settings) {
  perseus_planner_input input;
  perseus_planner_input_init(&input, sizeof(input));
  input.profile_csv = profile.data();
  input.profile_csv_size = profile.size();
  input.settings_json = settings.empty() ? nullptr : settings.data();
  input.settings_json_size = settings.size();
  return input;
}

inline Made Create(const perseus_planner_input& input) {
  perseus_planner* planner = nullptr;
  char* message = nullptr;
  Made made;
  made.status = perseus_planner_create(&input, &planner, &message);
  made.planner.reset(planner);
  made.message = Take(message);
  return made;
}

}  // namespace perseus::planner_c

#endif  // PERSEUS_TESTS_PLANNER_C_PLANNER_TESTING_H_
