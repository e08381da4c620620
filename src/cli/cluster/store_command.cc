// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <utility>

#include "cli/cluster/store_flags.h"
#include "cli/commands.h"
#include "cli/framework/table.h"
#include "cli/framework/terminal.h"
#include "common/printable.h"
#include "server/store/copy.h"

namespace perseus::cli {

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
