// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/framework/command_parser.h"
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

// The command that lists what a value may be; empty: none does.
std::string_view ListOf(ValueKind kind) {
  return kind == ValueKind::kJob       ? "job list --names"
         : kind == ValueKind::kProfile ? "profile list --names"
                                       : "";
}

// "job straggler" of "perseus job straggler"; empty of the program itself.
std::string WordsOf(const CommandData& command) {
  const std::size_t space = command.title.find(' ');
  return space == std::string::npos ? "" : command.title.substr(space + 1);
}

std::string BashReply(const OptionData& option) {
  switch (option.kind) {
    case ValueKind::kChoice:
      return fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$cur\"))", Join(option.choices));
    case ValueKind::kFile:
      return "compopt -o filenames; COMPREPLY=($(compgen -f -- \"$cur\"))";
    case ValueKind::kDirectory:
      return "compopt -o filenames; COMPREPLY=($(compgen -d -- \"$cur\"))";
    case ValueKind::kJob:
    case ValueKind::kProfile:
      return fmt::format(
          "COMPREPLY=($(compgen -W \"$(\"${{COMP_WORDS[0]}}\" {} 2>/dev/null)\" -- \"$cur\"))",
          ListOf(option.kind));
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

std::string ZshAction(const OptionData& option, std::string_view program) {
  switch (option.kind) {
    case ValueKind::kChoice:
      return fmt::format("({})", Join(option.choices));
    case ValueKind::kFile:
      return "_files";
    case ValueKind::kDirectory:
      return "_files -/";
    case ValueKind::kJob:
    case ValueKind::kProfile:
      return fmt::format("{{ compadd -- ${{(f)\"$({} {} 2>/dev/null)\"}} }}", program,
                         ListOf(option.kind));
    case ValueKind::kNone:
    case ValueKind::kText:
      break;
  }
  return " ";
}

void AppendZshArguments(std::string* out, const CommandData& command, std::string_view indent) {
  const std::string program = command.title.substr(0, command.title.find(' '));
  int position = 0;
  for (const OptionData& option : command.options) {
    const std::string value = option.value.empty() ? ""
                                                   : fmt::format(":{}:{}", ZshText(option.value),
                                                                 ZshAction(option, program));
    if (option.positional()) {
      *out += fmt::format(
          " \\\n{}{}", indent,
          ShellQuoted(option.repeated ? "*" + value : fmt::format("{}{}", ++position, value)));
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

std::string FishAction(const OptionData& option, std::string_view program) {
  switch (option.kind) {
    case ValueKind::kChoice:
      return " -x -a " + ShellQuoted(Join(option.choices));
    case ValueKind::kFile:
      return " -r -F";
    case ValueKind::kDirectory:
      return " -x -a '(__fish_complete_directories)'";
    case ValueKind::kJob:
    case ValueKind::kProfile:
      return fmt::format(" -x -a '({} {} 2>/dev/null)'", program, ListOf(option.kind));
    case ValueKind::kText:
      return " -x";
    case ValueKind::kNone:
      break;
  }
  return "";
}

// A case for each command and its actions, by the words that name it.
void AppendBashCases(std::string* out, const CommandData& command) {
  const std::string words = WordsOf(command);
  if (!command.commands.empty()) {
    *out += fmt::format("    {}) COMPREPLY=($(compgen -W '{} {}' -- \"$cur\")) ;;\n",
                        ShellQuoted(words), Join(CommandNames(command)), Join(AllNames(command)));
    for (const CommandData& each : command.commands) AppendBashCases(out, each);
    return;
  }
  *out += fmt::format("    {})\n      case \"$prev\" in\n", ShellQuoted(words));
  std::string other;
  for (const OptionData& option : command.options) {
    if (option.positional()) {
      other = other.empty() ? BashReply(option)
                            : fmt::format("if ((COMP_CWORD == depth)); then {}; else {}; fi", other,
                                          BashReply(option));
    } else if (option.kind != ValueKind::kNone) {
      *out += fmt::format("        {}) {}; return ;;\n", fmt::join(NamesOf(option), "|"),
                          BashReply(option));
    }
  }
  *out += fmt::format(
      "      esac\n"
      "      if [[ \"$cur\" == -* ]]; then\n"
      "        COMPREPLY=($(compgen -W '{}' -- \"$cur\"))\n"
      "      else\n"
      "        {}\n"
      "      fi ;;\n",
      Join(AllNames(command)), other.empty() ? "COMPREPLY=()" : other);
}

// Appends the words of each command below `command`.
void AppendPrefixes(const CommandData& command, std::vector<std::string>* words) {
  for (const CommandData& each : command.commands) {
    words->push_back(ShellQuoted(WordsOf(each)));
    AppendPrefixes(each, words);
  }
}

// The body of a function where $words[1] is the name of `command`.
void AppendZshBody(std::string* out, const CommandData& command, const std::string& indent) {
  if (command.commands.empty()) {
    *out += indent + "_arguments";
    AppendZshArguments(out, command, indent + "  ");
    *out += '\n';
    return;
  }
  *out += indent + "commands=(\n";
  for (const CommandData& each : command.commands) {
    *out += fmt::format("{}  {}\n", indent, ShellQuoted(each.name + ":" + ZshText(each.summary)));
  }
  *out += fmt::format("{0})\n{0}if ((CURRENT == 2)); then\n{0}  _arguments", indent);
  AppendZshArguments(out, command, indent + "    ");
  *out += fmt::format(
      " \\\n{0}    '1:command:{{ _describe command commands }}'\n{0}  return\n{0}fi\n"
      "{0}shift words\n{0}((CURRENT--))\n{0}case $words[1] in\n",
      indent);
  for (const CommandData& each : command.commands) {
    *out += fmt::format("{}  {})\n", indent, each.name);
    AppendZshBody(out, each, indent + "    ");
    *out += indent + "    ;;\n";
  }
  *out += indent + "esac\n";
}

void AppendFish(std::string* out, const CommandData& command, std::string_view program) {
  const std::string words = WordsOf(command);
  const bool is_group = !command.commands.empty();
  // Of a group the options are before its actions.
  const std::string condition =
      ShellQuoted(fmt::format("__{}_{} {}", program, is_group ? "at" : "in", words));
  for (const OptionData& option : command.options) {
    *out += fmt::format("complete -c {} -n {}", program, condition);
    if (option.positional()) {
      *out += option.kind == ValueKind::kFile ? " -F" : FishAction(option, program);
      *out += '\n';
      continue;
    }
    if (!option.short_name.empty()) *out += " -s " + option.short_name.substr(1);
    if (!option.long_name.empty()) *out += " -l " + option.long_name.substr(2);
    *out += FishAction(option, program) + " -d " + ShellQuoted(option.help) + "\n";
  }
  for (const CommandData& each : command.commands) {
    *out += fmt::format("complete -c {} -n {} -a {} -d {}\n", program, condition, each.name,
                        ShellQuoted(each.summary));
    AppendFish(out, each, program);
  }
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
  std::vector<std::string> prefixes;
  AppendPrefixes(root, &prefixes);
  std::string out = fmt::format(
      "# bash completion of {0}; load it with: source <({0} completion bash)\n"
      "_{0}() {{\n"
      "  local cur=\"${{COMP_WORDS[COMP_CWORD]}}\" prev=\"${{COMP_WORDS[COMP_CWORD-1]}}\"\n"
      "  local words=\"\" longer depth\n"
      "  for ((depth = 1; depth < COMP_CWORD; ++depth)); do\n"
      "    longer=\"${{words:+$words }}${{COMP_WORDS[depth]}}\"\n"
      "    case \"$longer\" in\n"
      "      {1}) words=\"$longer\" ;;\n"
      "      *) break ;;\n"
      "    esac\n"
      "  done\n"
      "  case \"$words\" in\n",
      root.name, fmt::join(prefixes, "|"));
  AppendBashCases(&out, root);
  out += fmt::format("  esac\n}}\ncomplete -F _{0} {0}\n", root.name);
  return out;
}

std::string FormatZshCompletion(const CommandData& root) {
  std::string out = fmt::format(
      "#compdef {0}\n"
      "# zsh completion of {0}; load it with: source <({0} completion zsh)\n"
      "_{0}() {{\n"
      "  local -a commands\n",
      root.name);
  AppendZshBody(&out, root, "  ");
  out += fmt::format(
      "}}\n"
      "if [[ $funcstack[1] == _{0} ]]; then\n  _{0} \"$@\"\nelse\n  compdef _{0} {0}\nfi\n",
      root.name);
  return out;
}

std::string FormatFishCompletion(const CommandData& root) {
  std::string out = fmt::format(
      "# fish completion of {0}; load it with: {0} completion fish | source\n"
      "complete -c {0} -f\n"
      "# Whether the words before this one are these, or begin with them.\n"
      "function __{0}_at\n"
      "  set -l words (commandline -opc)\n"
      "  set -e words[1]\n"
      "  test \"$words\" = \"$argv\"\n"
      "end\n"
      "function __{0}_in\n"
      "  set -l words (commandline -opc)\n"
      "  set -e words[1]\n"
      "  string match -q -- \"$argv *\" \"$words \"\n"
      "end\n",
      root.name);
  AppendFish(&out, root, root.name);
  return out;
}

namespace {

constexpr std::size_t kColumns = 80;  // Of the source: mandoc objects to more.

// Text as roff takes it: backslashes and hyphens literal, no line that starts
// with a control character. A line that is too long goes on behind `line_end`.
std::string Roff(std::string_view text, std::string_view line_end = "") {
  std::string out;
  std::size_t line = 0;  // Where the newest one starts.
  std::size_t word = 0;  // The same of words.
  const auto end_word = [&] {
    if (word > line && out.size() - line + line_end.size() > kColumns) {
      const std::string mark = std::string(line_end) + "\n";
      out.replace(word - 1, 1, mark);
      line = word - 1 + mark.size();
    }
  };
  for (const char c : text) {
    if (c == ' ' || c == '\n') {
      end_word();
      out += c;
      word = out.size();
      if (c == '\n') line = word;
    } else if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if ((c == '.' || c == '\'') && out.size() == word) {
      out += "\\&";  // The word may get a line of its own.
      out += c;
    } else {
      out += c;
    }
  }
  end_word();
  return out;
}

std::string Bold(std::string_view text) { return "\\fB" + Roff(text) + "\\fR"; }
std::string Italic(std::string_view text) { return "\\fI" + Roff(text) + "\\fR"; }

// "perseus-job-create"
std::string NameOf(const CommandData& command) {
  std::string name = command.title;
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string Reference(std::string_view name) { return Bold(name) + "(1)"; }

std::string Paragraphs(std::string_view text) {
  std::string out;
  for (std::size_t end = 0; !text.empty(); text.remove_prefix(std::min(text.size(), end + 2))) {
    end = std::min(text.find("\n\n"), text.size());
    out += (out.empty() ? "" : ".PP\n") + Roff(text.substr(0, end)) + "\n";
  }
  return out;
}

void AppendOptions(std::string* out, const CommandData& command) {
  std::string_view group;
  *out += ".SH OPTIONS\n";
  for (const OptionData& option : command.options) {
    if (option.group != group && !(group.empty() && option.group == "Options")) {
      *out += fmt::format(".SS \"{}\"\n", Roff(option.group));
    }
    group = option.group;
    std::vector<std::string> names;
    if (!option.short_name.empty()) names.push_back(Bold(option.short_name));
    if (!option.long_name.empty()) names.push_back(Bold(option.long_name));
    std::string line = fmt::format("{}", fmt::join(names, ", "));
    if (!option.value.empty()) line += (line.empty() ? "" : " ") + Italic(option.value);
    *out += fmt::format(".TP\n{}\n{}\n", line, Roff(option.help));
  }
}

void AppendExamples(std::string* out, const CommandData& command) {
  if (command.examples.empty()) return;
  *out += ".SH EXAMPLES\n";
  bool is_first = true;
  for (const ExampleData& example : command.examples) {
    *out += fmt::format("{}{}:\n.PP\n.RS 4\n.nf\n{}\n.fi\n.RE\n", is_first ? "" : ".PP\n",
                        Roff(example.says), Roff(example.command, " \\"));
    is_first = false;
  }
}

// The end of perseus(1): sections that hold for all commands.
constexpr std::string_view kForAll =
    ".SH ENVIRONMENT\n"
    ".TP\n\\fBNO_COLOR\\fR\nNo colour on the terminal when this is set and not empty.\n"
    ".TP\n\\fBCOLUMNS\\fR\nThe width of the text, instead of the terminal's.\n"
    ".SH EXIT STATUS\n"
    ".TP\n\\fB0\\fR\nSuccess.\n"
    ".TP\n\\fB1\\fR\nAn internal error, which is a defect of the program.\n"
    ".TP\n\\fB2\\fR\nBad usage, bad input, a plan that cannot exist, or a file that cannot be\n"
    "read or written.\nOne sentence on standard error says what to do; no file is left\n"
    "half\\-written.\n";

std::string PageOf(const CommandData& command, std::string_view parent,
                   const ManPageFooter& footer) {
  const std::string name = NameOf(command);
  const bool is_program = parent.empty();
  std::string heading = name;
  std::transform(heading.begin(), heading.end(), heading.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  std::string out = fmt::format(
      ".\\\" Made by 'perseus man' from the option data of the program.\n"
      ".TH {} 1 \"{}\" \"perseus {}\" \"User Commands\"\n"
      ".SH NAME\n{}\n"
      ".SH SYNOPSIS\n{}",
      heading, footer.date, footer.version, Roff(name + " - " + command.summary),
      Bold(command.title));
  if (!command.commands.empty()) out += is_program ? " \\fICOMMAND\\fR" : " \\fIACTION\\fR";
  for (const OptionData& option : command.options) {
    if (option.positional()) out += " " + Italic(option.value);
  }
  out += " [\\fIOPTIONS\\fR]\n.SH DESCRIPTION\n" + Paragraphs(command.description);
  if (!command.commands.empty()) {
    out += is_program ? ".SH COMMANDS\n" : ".SH ACTIONS\n";
    for (const CommandData& each : command.commands) {
      out += fmt::format(".TP\n{}\n{}.\n", Reference(NameOf(each)), Roff(each.summary));
    }
  }
  AppendOptions(&out, command);
  AppendExamples(&out, command);
  if (is_program) return out.append(kForAll);
  out += ".SH SEE ALSO\n";
  if (parent != "perseus") out += Reference(parent) + ",\n";
  out += Reference("perseus") + ", which has the exit status of every command\n";
  return out;
}

void AppendPages(std::vector<ManPage>* pages, const CommandData& command, std::string_view parent,
                 const ManPageFooter& footer) {
  const std::string name = NameOf(command);
  pages->push_back({name, PageOf(command, parent, footer)});
  for (const CommandData& each : command.commands) AppendPages(pages, each, name, footer);
}

}  // namespace

std::vector<ManPage> FormatManPages(const CommandData& root, const ManPageFooter& footer) {
  std::vector<ManPage> pages;
  AppendPages(&pages, root, "", footer);
  return pages;
}

}  // namespace perseus::cli
