// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "cli/option_data.h"

namespace perseus::cli {
namespace {

std::string Join(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

std::vector<std::string> NamesOf(const OptionData& option) {
  std::vector<std::string> names;
  if (!option.short_name.empty()) names.push_back(option.short_name);
  if (!option.long_name.empty()) names.push_back(option.long_name);
  return names;
}

std::vector<std::string> AllNames(const CommandData& command) {
  std::vector<std::string> all;
  for (const OptionData& option : command.options) {
    for (const std::string& name : NamesOf(option)) all.push_back(name);
  }
  return all;
}

std::vector<std::string> CommandNames(const CommandData& root) {
  std::vector<std::string> names;
  for (const CommandData& command : root.commands) names.push_back(command.name);
  return names;
}

std::string BashReply(const OptionData& option) {
  switch (option.kind) {
    case ValueKind::kChoice:
      return fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$cur\"))", Join(option.choices));
    case ValueKind::kFile:
      return "compopt -o filenames; COMPREPLY=($(compgen -f -- \"$cur\"))";
    case ValueKind::kDirectory:
      return "compopt -o filenames; COMPREPLY=($(compgen -d -- \"$cur\"))";
    case ValueKind::kNone:
    case ValueKind::kText:
      break;
  }
  return "COMPREPLY=()";
}

// ':' and brackets separate the fields of zsh's argument specifications.
std::string ZshText(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == ':' || c == '[' || c == ']' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string ZshAction(const OptionData& option) {
  switch (option.kind) {
    case ValueKind::kChoice:
      return fmt::format("({})", Join(option.choices));
    case ValueKind::kFile:
      return "_files";
    case ValueKind::kDirectory:
      return "_files -/";
    case ValueKind::kNone:
    case ValueKind::kText:
      break;
  }
  return " ";
}

void AppendZshArguments(std::string* out, const CommandData& command, std::string_view indent) {
  int position = 0;
  for (const OptionData& option : command.options) {
    const std::string value =
        option.value.empty() ? "" : fmt::format(":{}:{}", ZshText(option.value), ZshAction(option));
    if (option.positional()) {
      *out += fmt::format(" \\\n{}{}", indent, ShellQuoted(fmt::format("{}{}", ++position, value)));
      continue;
    }
    const std::vector<std::string> names = NamesOf(option);
    const std::string exclusive = option.repeated    ? "*"
                                  : names.size() > 1 ? fmt::format("({})", Join(names))
                                                     : "";
    for (const std::string& name : names) {
      *out += fmt::format(
          " \\\n{}{}", indent,
          ShellQuoted(fmt::format("{}{}[{}]{}", exclusive, name, ZshText(option.help), value)));
    }
  }
}

std::string FishAction(const OptionData& option) {
  switch (option.kind) {
    case ValueKind::kChoice:
      return " -x -a " + ShellQuoted(Join(option.choices));
    case ValueKind::kFile:
      return " -r -F";
    case ValueKind::kDirectory:
      return " -x -a '(__fish_complete_directories)'";
    case ValueKind::kText:
      return " -x";
    case ValueKind::kNone:
      break;
  }
  return "";
}

}  // namespace

std::string ShellQuoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string ShellWord(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:=+%@";
  const bool is_plain = !text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos;
  return is_plain ? std::string(text) : ShellQuoted(text);
}

std::string FormatBashCompletion(const CommandData& root) {
  std::string out = fmt::format(
      "# bash completion of {0}; load it with: source <({0} completion bash)\n"
      "_{0}() {{\n"
      "  local cur=\"${{COMP_WORDS[COMP_CWORD]}}\" prev=\"${{COMP_WORDS[COMP_CWORD-1]}}\" "
      "cmd=\"\"\n"
      "  ((COMP_CWORD > 1)) && cmd=\"${{COMP_WORDS[1]}}\"\n"
      "  case \"$cmd\" in\n"
      "    '') COMPREPLY=($(compgen -W '{1} {2}' -- \"$cur\")) ;;\n",
      root.name, Join(CommandNames(root)), Join(AllNames(root)));
  for (const CommandData& command : root.commands) {
    out += fmt::format("    {})\n      case \"$prev\" in\n", command.name);
    std::string other;
    for (const OptionData& option : command.options) {
      if (option.positional()) {
        other = other.empty() ? BashReply(option)
                              : fmt::format("if ((COMP_CWORD == 2)); then {}; else {}; fi", other,
                                            BashReply(option));
      } else if (option.kind != ValueKind::kNone) {
        out += fmt::format("        {}) {}; return ;;\n", fmt::join(NamesOf(option), "|"),
                           BashReply(option));
      }
    }
    out += fmt::format(
        "      esac\n"
        "      if [[ \"$cur\" == -* ]]; then\n"
        "        COMPREPLY=($(compgen -W '{}' -- \"$cur\"))\n"
        "      else\n"
        "        {}\n"
        "      fi ;;\n",
        Join(AllNames(command)), other.empty() ? "COMPREPLY=()" : other);
  }
  out += fmt::format("  esac\n}}\ncomplete -F _{0} {0}\n", root.name);
  return out;
}

std::string FormatZshCompletion(const CommandData& root) {
  std::string out = fmt::format(
      "#compdef {0}\n"
      "# zsh completion of {0}; load it with: source <({0} completion zsh)\n"
      "_{0}() {{\n"
      "  local -a commands=(\n",
      root.name);
  for (const CommandData& command : root.commands) {
    out += fmt::format("    {}\n", ShellQuoted(command.name + ":" + ZshText(command.summary)));
  }
  out += "  )\n  if ((CURRENT == 2)); then\n    _arguments";
  AppendZshArguments(&out, root, "      ");
  out +=
      " \\\n      '1:command:{ _describe command commands }'\n"
      "    return\n  fi\n"
      "  local cmd=$words[2]\n  shift words\n  ((CURRENT--))\n"
      "  case $cmd in\n";
  for (const CommandData& command : root.commands) {
    out += fmt::format("    {})\n      _arguments", command.name);
    AppendZshArguments(&out, command, "        ");
    out += "\n      ;;\n";
  }
  out += fmt::format(
      "  esac\n}}\n"
      "if [[ $funcstack[1] == _{0} ]]; then\n  _{0} \"$@\"\nelse\n  compdef _{0} {0}\nfi\n",
      root.name);
  return out;
}

std::string FormatFishCompletion(const CommandData& root) {
  std::string out = fmt::format(
      "# fish completion of {0}; load it with: {0} completion fish | source\n"
      "complete -c {0} -f\n",
      root.name);
  const auto append = [&](const CommandData& command, const std::string& condition) {
    for (const OptionData& option : command.options) {
      out += fmt::format("complete -c {} -n {}", root.name, ShellQuoted(condition));
      if (option.positional()) {
        out += option.kind == ValueKind::kFile ? " -F" : FishAction(option);
        out += '\n';
        continue;
      }
      if (!option.short_name.empty()) out += " -s " + option.short_name.substr(1);
      if (!option.long_name.empty()) out += " -l " + option.long_name.substr(2);
      out += FishAction(option) + " -d " + ShellQuoted(option.help) + "\n";
    }
  };
  append(root, "__fish_use_subcommand");
  for (const CommandData& command : root.commands) {
    out += fmt::format("complete -c {} -n __fish_use_subcommand -a {} -d {}\n", root.name,
                       command.name, ShellQuoted(command.summary));
    append(command, "__fish_seen_subcommand_from " + command.name);
  }
  return out;
}

}  // namespace perseus::cli
