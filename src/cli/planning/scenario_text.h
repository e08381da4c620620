// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_PLANNING_SCENARIO_TEXT_H_
#define PERSEUS_CLI_PLANNING_SCENARIO_TEXT_H_

#include <string>
#include <string_view>

#include "cli/framework/terminal.h"
#include "perseus/emulator.h"
#include "perseus/plan_document.h"

namespace perseus::cli {

// "15 ms", "2 s", "1.5 h", "30 d".
std::string SpanOfTime(double seconds);

// Whether stragglers are named or come by chance.
bool HasStragglers(const EmulationSpec& spec);

// "noise of 1 % a computation; clocks in effect ...", with what is accepted.
std::string ConditionsInWords(const Conditions& conditions);

// "saving 12.35 %, slowdown +0.083 %, 280 clock calls an iteration".
std::string ExpectedInWords(const ExpectedFigures& figures);

// Clock calls of a run and its energy without their price.
struct CalledRun {
  double clock_calls = 0;
  double joules = 0;
};

// What the price of a change makes of the clock calls, those at maximum clocks included: two
// sentences. `name` is the flag or the key that states it; `of_what` follows the calls' number
// (" an iteration of a pipeline").
std::string PriceOfChangesText(double change_joules, std::string_view name,
                               const CalledRun& baseline, const CalledRun& run,
                               std::string_view of_what);

// What disturbs the job, in words: one sentence.
std::string ScenarioInWords(const EmulationSpec& spec);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_PLANNING_SCENARIO_TEXT_H_
