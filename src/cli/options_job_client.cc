// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <string_view>

#include "cli/command_options.h"
#include "cli/job_client_flags.h"
#include "cli/value_parsers.h"

namespace perseus::cli {
namespace {

constexpr int kMostPlaces = 1'000'000;
constexpr double kMostFactor = 1000;
// As the server takes them.
constexpr double kMostThreshold = 2;
constexpr int kLeastWindow = 4;
constexpr int kMostWindow = 256;

void AddName(CommandParser* parser, std::string* target, const std::string& names,
             const std::string& value, const std::string& help, ValueKind kind) {
  parser->AddText(names, value, help,
                  [target](const std::string& text) -> Result<void> {
                    if (text.empty()) return InvalidInput("the value is empty");
                    *target = text;
                    return {};
                  },
                  {kind, {}});
}

}  // namespace

void AddServerOptions(CommandParser* parser, ServerFlags* flags) {
  parser->SetGroup("Server");
  AddName(parser, &flags->server, "--server", "URL",
          "http://HOST:PORT, https://HOST:PORT or unix:PATH.", ValueKind::kText);
  AddName(parser, &flags->token_file, "--token-file", "FILE", "A file with one token.",
          ValueKind::kFile);
  AddName(parser, &flags->ca_file, "--ca-file", "FILE",
          "Certificates to trust, PEM, instead of the system's.", ValueKind::kFile);
}

void AddJobCommand(CommandParser* parser, Invocation* invocation) {
  parser->AddCommand(
      Command::kJob, "job",
      "Look after the jobs of a server.\n\n"
      "list; show JOB; watch [JOB]; create JOB.toml; point JOB AT; straggler set JOB; straggler "
      "clear JOB; detection JOB; compare JOB; reprofile JOB; export JOB; finish JOB; delete JOB. "
      "JOB is an id, or "
      "the name of one job. Which "
      "server: --server, else PERSEUS_SERVER, else http://127.0.0.1:7787; a token: --token-file, "
      "else PERSEUS_TOKEN_FILE.",
      {{"what runs", "perseus job list"},
       {"a job whose ranks are to follow", "perseus job create job.toml --name llama-7"},
       {"save more, at 5 % more time", "perseus job point llama-7 1.05x"},
       {"pipeline 1 is slow for an hour",
        "perseus job straggler set llama-7 --pipeline 1 --factor 1.2 --expires 1h"},
       {"have stragglers found, and answered",
        "perseus job detection llama-7 --mode act --threshold 5%"},
       {"measure what the plan saves", "perseus job compare llama-7 --every 100 --iterations 10"},
       {"measure all computations anew", "perseus job reprofile llama-7"}});
  JobClientFlags* flags = &invocation->job_client;
  parser->AddInput(&flags->words[0], "ACTION", "What to do.",
                   {ValueKind::kChoice,
                    {"list", "show", "watch", "create", "point", "straggler", "detection",
                     "compare", "reprofile", "export", "finish", "delete"}});
  parser->AddInput(&flags->words[1], "JOB|FILE|set|clear", "What to do it with.");
  parser->AddInput(&flags->words[2], "AT|JOB", "Where, or to which job.", {ValueKind::kText, {}});
  parser->AddInput(&flags->words[3], "NUMBER", "straggler clear: only this one.",
                   {ValueKind::kText, {}});
  AddServerOptions(parser, &flags->server);
  parser->SetGroup("create");
  AddName(parser, &flags->name, "--name", "TEXT", "A name for people.", ValueKind::kText);
  AddName(parser, &flags->client_key, "--client-key", "KEY",
          "The same key always means the same job.", ValueKind::kText);
  AddName(parser, &flags->model, "--model", "LABEL",
          "Names the model: the profile of an earlier job with this label, layout and GPUs is "
          "taken over.",
          ValueKind::kText);
  parser->AddFlag(&flags->no_reuse, "--no-reuse", "Measure all the same.");
  parser->SetGroup("straggler set: where, and how slow");
  parser->AddCount(&flags->pipeline, "--pipeline", "A pipeline (dp_rank).", 0, kMostPlaces);
  parser->AddCount(&flags->rank, "--rank", "A rank.", 0, kMostPlaces);
  AddName(parser, &flags->node, "--node", "NAME", "All ranks of a node.", ValueKind::kText);
  parser->AddValue<double>(&flags->factor, "--factor", "X", "Takes X times as long (1.2).",
                           [](std::string_view text) {
                             return ParseQuantity(text, {1, kMostFactor}, job::kInTimes);
                           });
  parser->AddValue<double>(&flags->delay_seconds, "--delay", "TIME",
                           "Takes so much longer an iteration (400ms).", ParseLongDuration);
  parser->AddValue<double>(&flags->starts_seconds, "--starts", "TIME", "From so long from now on.",
                           ParseLongDuration);
  parser->AddValue<double>(&flags->expires_seconds, "--expires", "TIME", "Until so long from now.",
                           ParseLongDuration);
  parser->SetGroup("detection: stragglers that the server finds by itself");
  parser->AddText("--mode", "MODE", "off, advisory (says so) or act (the plans answer).",
                  [flags](const std::string& text) -> Result<void> {
                    flags->mode = text;  // The server knows which there are.
                    return {};
                  },
                  {ValueKind::kChoice, {"off", "advisory", "act"}});
  parser->AddValue<double>(&flags->threshold, "--threshold", "SHARE",
                           "A rank that is slower by less is no straggler (5%).",
                           [](std::string_view text) { return ParseShare(text, kMostThreshold); });
  parser->AddCount(&flags->window, "--window", "Iterations that are looked at together (16).",
                   kLeastWindow, kMostWindow);
  parser->SetGroup("compare: the plan with maximum clocks");
  parser->AddCount(&flags->every, "--every", "Of so many iterations, ...", 4, kMostPlaces);
  parser->AddCount(&flags->iterations, "--iterations", "... so many run at maximum clocks.", 2,
                   kMostPlaces);
  parser->AddFlag(&flags->off, "--off",
                  "Compare no more; reprofile: measure no more, the old profile stays.");
  parser->SetGroup("delete");
  parser->AddFlag(&flags->yes, "--yes",
                  "Delete without a question; one is asked only on a terminal.");
  parser->SetGroup("Output");
  parser->AddFlag(&flags->json, "--json", "Print the server's JSON.");
  parser->AddFlag(&flags->frontier, "--frontier",
                  "export: the frontier as CSV instead of plan.json (of --pipeline, default 0).");
  parser->AddOutput(&flags->output_file, ValueKind::kFile,
                    "export: write to this file instead of standard output.");
}

}  // namespace perseus::cli
