// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <string>

#include "cli/cluster/store_flags.h"
#include "cli/command_options.h"

namespace perseus::cli {

void AddStoreCommand(CommandParser* parser, Invocation* invocation) {
  StoreFlags* flags = &invocation->store;
  parser->AddCommand(
      Command::kStore, "store",
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

}  // namespace perseus::cli
