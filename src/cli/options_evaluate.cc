// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <string_view>

#include "cli/command_options.h"
#include "cli/value_parsers.h"

namespace perseus::cli {

void AddEvaluateCommand(CommandParser* parser, Invocation* invocation) {
  EvaluateFlags* flags = &invocation->evaluate;
  parser->AddCommand(
      Command::kEvaluate, "evaluate",
      "Recompute a paper's tables from its public data, with our plans beside them.\n\n"
      "sosp24 is the evaluation of the Perseus paper (Chung et al., SOSP 2024). Its data is the "
      "folder sosp24_data of github.com/ml-energy/zeus, branch kronos; parts that are missing are "
      "named and left out. Prints Markdown. Without -o nothing is written.",
      {{"the tables of the paper", "perseus evaluate sosp24 sosp24_data"},
       {"also the real jobs, as Markdown and as HTML with plots",
        "perseus evaluate sosp24 sosp24_data --derived derived -o evaluation"}});
  parser->AddInput(&flags->name, "sosp24", "Which evaluation.", {ValueKind::kChoice, {"sosp24"}});
  parser->AddInput(&flags->directory, "DIR", "The folder with its data.",
                   {ValueKind::kDirectory, {}});
  parser->SetGroup("Evaluation");
  parser->AddText("--derived", "DIR",
                  "A folder with profiles of the paper's real jobs, in the profile format: adds "
                  "our plans for them.",
                  [flags](const std::string& text) -> Result<void> {
                    flags->derived_directory = text;
                    if (text.empty()) return InvalidInput("the name of the folder is empty");
                    return {};
                  },
                  {ValueKind::kDirectory, {}});
  parser->AddText("--measured", "DIR",
                  "A folder with summaries of the real jobs' measurements, for those whose raw "
                  "runs are absent (default: a folder measured beside DIR or beside --derived).",
                  [flags](const std::string& text) -> Result<void> {
                    flags->measured_directory = text;
                    if (text.empty()) return InvalidInput("the name of the folder is empty");
                    return {};
                  },
                  {ValueKind::kDirectory, {}});
  parser->AddValue<double>(&flags->effort, "--effort", "FACTOR",
                           "How much work to search for each plan (default 0.2); see 'perseus "
                           "plan'.",
                           [](std::string_view text) {
                             return ParseQuantity(text, {0.001, 1000});
                           });
  parser->AddFlag(&flags->no_times, "--no-times",
                  "Leave out the planner's run time: then the same data gives the same bytes.");
  parser->SetGroup("Output");
  parser->AddOutput(&flags->output_directory, ValueKind::kDirectory,
                    "Write evaluation.md, evaluation.html and evaluation.json into this folder: "
                    "all of them or none.");
  parser->AddFlag(&flags->json, "--json", "Print one JSON document instead of Markdown.");
}

}  // namespace perseus::cli
