// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <string_view>

#include "cli/cluster/top_flags.h"
#include "cli/cluster/top_text.h"
#include "cli/command_options.h"
#include "cli/framework/value_parsers.h"

namespace perseus::cli {

void AddTopCommand(CommandParser* parser, Invocation* invocation) {
  TopFlags* flags = &invocation->top;
  parser->AddCommand(
      Command::kTop, "top",
      "Show all jobs of a server in one table: what they draw, and what they save.\n\nOn a "
      "terminal the table is drawn anew every two seconds, until Ctrl-C. Elsewhere it is printed "
      "once. Time and watts are those of the last iterations that the ranks reported; they are "
      "empty while nobody reports. \"saved\" is what a comparison with no clock set measured "
      "(perseus job compare), \"promised\" what the plan promises. The server is that of "
      "--server, else of PERSEUS_SERVER, else http://127.0.0.1:7787. The token is in the file of "
      "--token-file, else of PERSEUS_TOKEN_FILE.",
      {{"what draws most", "perseus top"},
       {"what is furthest from its plan, for a script", "perseus top --once --json --sort late"}});
  parser->SetGroup("Which, and in which order");
  parser->AddText(
      "--sort", "BY",
      "watts (default), late (time now against promised), saved, promised, stragglers, name or "
      "state. The greatest comes first; names and states are sorted by the alphabet.",
      [flags](const std::string& text) -> Result<void> {
        if (!IsTopOrder(text)) {
          return InvalidInput("expected watts, late, saved, promised, stragglers, name or state");
        }
        flags->sort = text;
        return {};
      },
      {ValueKind::kChoice, {"watts", "late", "saved", "promised", "stragglers", "name", "state"}});
  AddLabelOption(parser, &flags->labels, "Only jobs with this label, as team=vision.");
  parser->AddFlag(&flags->all, "--all", "Finished jobs, too.");
  parser->SetGroup("Output");
  parser->AddFlag(&flags->once, "--once", "Print the table once.");
  parser->AddValue<double>(
      &flags->every_seconds, "--every", "TIME",
      "Print it again after this time, from 200ms to an hour (default on a terminal: 2s).",
      [](std::string_view text) -> Result<double> {
        Result<double> seconds = ParseLongDuration(text);
        if (!seconds || (*seconds >= 0.2 && *seconds <= 3600)) return seconds;
        return InvalidInput("expected a time from 200ms to 1h");
      });
  parser->AddFlag(&flags->json, "--json",
                  "Print the jobs as the server lists them, in this order: a line of JSON.");
  AddServerOptions(parser, &flags->server);
}

}  // namespace perseus::cli
