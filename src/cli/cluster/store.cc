// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <utility>

#include "cli/cluster/flags.h"
#include "cli/commands.h"
#include "cli/framework/table.h"
#include "cli/framework/terminal.h"
#include "common/printable.h"
#include "server/store/copy.h"

namespace perseus::cli {

void AddStoreCommand(CommandParser* parser, Invocation* invocation) {
  StoreFlags* flags = &invocation->store;
  parser->AddCommand(
      "store",
      "Copy what a server stores.\n\nA store is named as 'perseus serve --store' names it: "
      "sqlite:FILE or postgresql://USER@HOST/DATABASE.",
      {{"move from a file to PostgreSQL",
        "perseus store copy --from sqlite:/var/lib/perseus-server/perseus.db --to "
        "postgresql://perseus@db.example/perseus"}});
  parser->AddAction(
      &flags->action, "copy",
      "Copy a store into an empty one.\n\nAll servers on both stores must be stopped. The copy is "
      "written in one transaction, read back and compared: after an error, the new store is as "
      "empty as before. The old store is not changed. A password belongs into ~/.pgpass: "
      "everybody on this machine can see it in an address.",
      {{"and back to a file",
        "perseus store copy --from postgresql://perseus@db.example/perseus --to sqlite:back.db"}});
  const auto add = [&](std::string* target, const std::string& name, const std::string& help) {
    parser->AddText(name, "STORE", help,
                    CommandParser::NotEmpty(target, "the name of the store is empty"),
                    {ValueKind::kText, {}});
  };
  parser->SetGroup("Stores");
  add(&flags->from, "--from", "The store to copy.");
  add(&flags->to, "--to", "The empty store: an empty database, or a file that is not there.");
}

Result<Printout> RunStore(const StoreFlags& flags, const Style& style) {
  for (const auto& [name, store] : {std::pair("--from", flags.from), std::pair("--to", flags.to)}) {
    if (!store.empty()) continue;
    return InvalidInput(fmt::format(
        "{} is missing; name the store: sqlite:FILE or postgresql://USER@HOST/DATABASE", name));
  }
  ProgressLine progress("copying");
  const Result<store::StoreCopy> copy =
      store::CopyStore(flags.from, flags.to, [&](const std::string& table) {
        progress.Announce(fmt::format("copying the table {}", table));
      });
  if (!copy) return tl::unexpected(copy.error());
  Table table({"table", "rows"}, {Align::kLeft, Align::kRight});
  for (const store::CopiedTable& copied : copy->tables) {
    table.AddRow({copied.name, WithThousands(static_cast<double>(copied.rows), 0)});
  }
  std::string text = table.Format(style.rule());
  text += "\n" +
          Wrap(fmt::format("{} now holds what {} holds: all rows were read back and are the "
                           "same. Start the servers with the new store, and none with the "
                           "old one.",
                           Printable(copy->to), Printable(copy->from)),
               style.columns, 0) +
          "\n";
  if (!copy->left_out.empty()) {
    text += Wrap(fmt::format("Not copied, as it is not of Perseus: {}.",
                             Printable(fmt::format("{}", fmt::join(copy->left_out, ", ")))),
                 style.columns, 0) +
            "\n";
  }
  return Printout(text);
}

}  // namespace perseus::cli
