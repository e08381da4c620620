// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "cli/framework/option_data.h"
#include "cli/framework/table.h"

namespace perseus::cli {
namespace {

constexpr int kOptionColumn = 28;

std::string OptionNames(const OptionData& option) {
  if (option.positional()) return option.value;
  std::string names = option.short_name;
  if (!option.long_name.empty()) {
    names = option.short_name.empty() ? "    " + option.long_name
                                      : option.short_name + ", " + option.long_name;
  }
  if (!option.value.empty()) names += " " + option.value;
  return names;
}

void AppendEntry(std::string* out, std::string_view names, std::string_view help, int columns) {
  *out += fmt::format("  {}", names);
  const int used = 2 + DisplayWidth(names);
  if (used + 2 > kOptionColumn) {
    *out += fmt::format("\n{:{}}", "", kOptionColumn);
  } else {
    *out += fmt::format("{:{}}", "", kOptionColumn - used);
  }
  *out += Wrap(help, columns, kOptionColumn);
  *out += '\n';
}

void AppendParagraphs(std::string* out, std::string_view text, int columns) {
  while (!text.empty()) {
    const std::size_t end = text.find("\n\n");
    *out += Wrap(text.substr(0, end), columns, 0);
    *out += "\n\n";
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 2);
  }
}

}  // namespace

std::string FormatHelp(const CommandData& command, int columns, bool all) {
  const auto shown = [all](const OptionData& o) { return all || o.common || o.positional(); };
  const bool is_program = command.title == command.name;
  const std::string_view word = is_program ? "COMMAND" : "ACTION";
  std::string out = "Usage: " + command.title;
  if (!command.commands.empty()) out += fmt::format(" {}", word);
  for (const OptionData& option : command.options) {
    if (option.positional()) out += " " + option.value;
  }
  out += " [OPTIONS]\n\n";
  AppendParagraphs(&out, command.description, columns);
  if (!command.commands.empty()) {
    out += is_program ? "Commands:\n" : "Actions:\n";
    for (const CommandData& each : command.commands) {
      AppendEntry(&out, each.name, each.summary, columns);
    }
    out += '\n';
  }
  std::vector<std::string> groups;
  for (const OptionData& option : command.options) {
    if (!shown(option)) continue;
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end()) {
      groups.push_back(option.group);
    }
  }
  for (const std::string& group : groups) {
    out += group + ":\n";
    for (const OptionData& option : command.options) {
      if (option.group != group || !shown(option)) continue;
      AppendEntry(&out, OptionNames(option), option.help, columns);
    }
    out += '\n';
  }
  if (!std::all_of(command.options.begin(), command.options.end(), shown)) {
    out += fmt::format("'{} --help-all' shows all {} options.\n\n", command.title,
                       std::count_if(command.options.begin(), command.options.end(),
                                     [](const OptionData& o) { return !o.positional(); }));
  }
  if (!command.examples.empty()) {
    out += command.examples.size() == 1 ? "Example:\n" : "Examples:\n";
    for (const ExampleData& example : command.examples) {
      out += fmt::format("  # {}\n  {}\n", example.says, example.command);
    }
    out += '\n';
  }
  if (!command.commands.empty()) {
    out += fmt::format("'{} {} --help' tells more about one of them.\n", command.title, word);
  }
  while (out.size() > 1 && out.ends_with("\n\n")) out.pop_back();
  return out;
}

}  // namespace perseus::cli
