// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/cluster/job_client_flags.h"
#include "cli/command_options.h"
#include "cli/framework/value_parsers.h"

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

void AddPipelineOption(CommandParser* parser, JobClientFlags* flags, const std::string& help) {
  parser->AddCount(&flags->pipeline, "--pipeline", help, 0, kMostPlaces);
}

void AddCreateAction(CommandParser* parser, JobClientFlags* flags) {
  parser->AddAction(&flags->action, "create", "Make a job for ranks to join.",
                    {{"from a job file", "perseus job create job.toml --name llama-7"}});
  parser->AddInput(&flags->file, "JOB.toml", "A job file.");
  AddName(parser, &flags->name, "--name", "TEXT", "A name for people.", ValueKind::kText);
  AddName(parser, &flags->client_key, "--client-key", "KEY",
          "The same key always means the same job.", ValueKind::kText);
  AddName(parser, &flags->model, "--model", "LABEL",
          "Names the model: the profile of an earlier job with this label, layout and GPUs is "
          "taken over.",
          ValueKind::kText);
  parser->AddFlag(&flags->no_reuse, "--no-reuse", "Measure all the same.");
}

void AddStragglerActions(CommandParser* parser, JobClientFlags* flags) {
  const auto add_job = [=] {
    parser->AddInput(&flags->job, "JOB", "An id, or the name or the client key of one job.",
                     {ValueKind::kJob, {}});
  };
  parser->AddAction(
      &flags->action, "straggler set",
      "Say that a pipeline, a rank or a node is slow: the plans of the others wait for it.",
      {{"pipeline 1 is slow for an hour",
        "perseus job straggler set llama-7 --pipeline 1 --factor 1.2 --expires 1h"}});
  add_job();
  parser->SetGroup("Where, and how slow");
  AddPipelineOption(parser, flags, "A pipeline (dp_rank).");
  parser->AddCount(&flags->rank, "--rank", "A rank.", 0, kMostPlaces);
  AddName(parser, &flags->node, "--node", "NAME", "All ranks of a node.", ValueKind::kText);
  parser->AddValue<double>(&flags->factor, "--factor", "X", "Takes X times as long (1.2).",
                           [](std::string_view text) {
                             return ParseQuantity(text, {1, kMostFactor}, job::kInTimes);
                           });
  parser->AddValue<double>(&flags->delay_seconds, "--delay", "TIME",
                           "Each iteration takes this much longer (400ms).", ParseLongDuration);
  parser->AddValue<double>(&flags->starts_seconds, "--starts", "TIME",
                           "Starts after this time (default: now).", ParseLongDuration);
  parser->AddValue<double>(&flags->expires_seconds, "--expires", "TIME",
                           "Ends after this time (default: when it is cleared).",
                           ParseLongDuration);
  parser->SetGroup("Output");
  parser->AddFlag(&flags->json, "--json", "Print the server's JSON.");
  AddServerOptions(parser, &flags->server);
  parser->AddAction(&flags->action, "straggler clear",
                    "Say that a straggler is slow no more; without an ID, all of the job.");
  add_job();
  parser->AddInput(&flags->straggler, "[ID]", "The straggler's number.", {ValueKind::kText, {}});
  AddServerOptions(parser, &flags->server);
}

void AddDetectionOptions(CommandParser* parser, JobClientFlags* flags) {
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
  JobClientFlags* flags = &invocation->job_client;
  parser->AddCommand(Command::kJob, "job",
                     "Look after the jobs of a server.\n\n"
                     "JOB is an id, or the name or the client key of one job. Which server: "
                     "--server, else PERSEUS_SERVER, else http://127.0.0.1:7787; a token: "
                     "--token-file, else PERSEUS_TOKEN_FILE.",
                     {{"what runs", "perseus job list"},
                      {"a job whose ranks are to follow", "perseus job create job.toml --name a"},
                      {"pipeline 1 is slow for an hour",
                       "perseus job straggler set a --pipeline 1 --factor 1.2 --expires 1h"}});
  const auto add = [=](const std::string& name, const std::string& description,
                       std::vector<ExampleData> examples = {}) {
    parser->AddAction(&flags->action, name, description, std::move(examples));
  };
  const auto add_job = [=](const std::string& value = "JOB") {
    parser->AddInput(&flags->job, value, "An id, or the name or the client key of one job.",
                     {ValueKind::kJob, {}});
  };
  // Last, as what an action is about comes first.
  const auto add_json = [=] {
    parser->SetGroup("Output");
    parser->AddFlag(&flags->json, "--json", "Print the server's JSON.");
  };
  const auto add_server = [=] { AddServerOptions(parser, &flags->server); };

  add("list", "Show jobs, a line each, in the order in which they were made.",
      {{"what goes on", "perseus job list --state running"}});
  parser->SetGroup("Which");
  AddName(parser, &flags->state, "--state", "STATE",
          "Only jobs in this state: registering, profiling, characterizing, running, failed or "
          "finished.",
          ValueKind::kText);
  AddName(parser, &flags->name, "--name", "TEXT", "Only jobs of this name.", ValueKind::kText);
  AddName(parser, &flags->client_key, "--client-key", "KEY", "Only the job of this client key.",
          ValueKind::kText);
  parser->AddCount(&flags->limit, "--limit", "At most so many jobs.", 1, kMostPlaces);
  add_json();
  parser->AddHiddenFlag(&flags->names, "--names");
  add_server();
  add("show", "Show how a job is: its plan, its ranks, what was found.");
  add_job();
  add_json();
  add_server();
  add("watch",
      "Show what happens to a job, or to all, until it is deleted.\n\n"
      "On a terminal the state anew each time, elsewhere a line for each event.");
  add_job("[JOB]");
  add_json();
  add_server();
  AddCreateAction(parser, flags);
  add_json();
  add_server();
  add("point", "Choose the iteration time that a job aims for.",
      {{"save more, with a slowdown of 5 %", "perseus job point llama-7 1.05x"}});
  add_job();
  parser->AddInput(&flags->at, "AT", "As --at of perseus plan: 1.05x, 5.3s, economic, fastest.",
                   {ValueKind::kText, {}});
  add_json();
  add_server();
  add("straggler", "Say which pipeline or rank is slow, or is so no more.");
  AddStragglerActions(parser, flags);
  add("detection", "Show what stragglers the server finds by itself, or change how.",
      {{"have stragglers found, and answered",
        "perseus job detection llama-7 --mode act --threshold 5%"}});
  add_job();
  AddDetectionOptions(parser, flags);
  add_json();
  add_server();
  add("compare", "Show what the plan saves, measured; or begin and end to measure it.",
      {{"of every 100 iterations 10 run at maximum clocks",
        "perseus job compare llama-7 --every 100 --iterations 10"}});
  add_job();
  parser->AddCount(&flags->every, "--every", "Length of one cycle, in iterations.", 4, kMostPlaces);
  parser->AddCount(&flags->iterations, "--iterations", "How many of a cycle run at maximum clocks.",
                   2, kMostPlaces);
  parser->AddFlag(&flags->off, "--off", "Compare no more.");
  add_json();
  add_server();
  add("reprofile", "Have the ranks measure all computations anew, while they train.");
  add_job();
  parser->AddFlag(&flags->off, "--off", "Measure no more; the old profile stays.");
  add_json();
  add_server();
  add("export", "Print a job's plan.json, or its frontier.");
  add_job();
  parser->AddFlag(&flags->frontier, "--frontier", "The frontier as CSV instead.");
  AddPipelineOption(parser, flags, "Of this pipeline (default 0).");
  parser->AddOutput(&flags->output_file, ValueKind::kFile,
                    "Write to this file instead of standard output.");
  add_server();
  add("finish", "Say that a job has ended; it stays readable.");
  add_job();
  add_json();
  add_server();
  add("delete", "Delete a job, with its plans and all that was measured.");
  add_job();
  parser->AddFlag(&flags->yes, "--yes", "Without a question; one is asked only on a terminal.");
  add_server();
}

}  // namespace perseus::cli
