// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/framework/option_data.h"

namespace perseus::cli {
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

// What follows perseus(1) of each command: what holds for all.
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
