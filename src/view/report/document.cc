// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/document.h"

#include <fmt/format.h>

#include <iterator>

#include "common/belief.h"
#include "common/html_text.h"
#include "report/assets.h"
#include "report/page.h"

namespace perseus::report {
namespace {

// On one line, with nothing in it that Markdown would read as its own.
std::string EscapeMarkdown(std::string_view text) {
  std::string escaped;
  for (const char c : EscapeHtml(text)) {
    if (std::string_view("\\`*[]|").find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  // An apostrophe is safe where there are no quoted attributes.
  for (const auto& [from, to] : {std::pair<std::string_view, std::string_view>{"&#39;", "'"},
                                 std::pair<std::string_view, std::string_view>{"&quot;", "\""}}) {
    for (std::size_t at = 0; (at = escaped.find(from, at)) != std::string::npos; at += to.size()) {
      escaped.replace(at, from.size(), to);
    }
  }
  return escaped;
}

std::string OneLine(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return text;
}

// T_min and T_economic with a real subscript.
std::string InlineHtml(std::string_view text) {
  std::string html = EscapeHtml(text);
  for (const std::string_view name : {"min", "economic"}) {
    const std::string from = fmt::format("T_{}", name);
    const std::string to = fmt::format("T<sub>{}</sub>", name);
    for (std::size_t at = 0; (at = html.find(from, at)) != std::string::npos; at += to.size()) {
      html.replace(at, from.size(), to);
    }
  }
  return html;
}

// With its place, but no folders: the page is the same on every machine.
std::string NoteLine(Note note) {
  note.source = FileName(note.source);
  return NoteText(note);
}

std::string ClassOf(std::string_view css) {
  return css.empty() ? std::string() : fmt::format(" class=\"{}\"", css);
}

std::string FactsHtml(const std::vector<Fact>& facts) {
  std::string html = "<dl class=\"facts\">\n";
  for (const Fact& fact : facts) {
    html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", InlineHtml(fact.name), InlineHtml(fact.text));
  }
  return html + "</dl>\n";
}

std::string ListHtml(const std::vector<std::string>& items) {
  std::string html = "<ul>\n";
  for (const std::string& item : items) html += fmt::format("<li>{}</li>\n", InlineHtml(item));
  return html + "</ul>\n";
}

std::string BlockHtml(const Block& block) {
  switch (block.kind) {
    case Block::Kind::kHeading:
      break;  // Opens a section: BlocksHtml().
    case Block::Kind::kParagraph:
      return fmt::format("<p{}>{}</p>\n", ClassOf(block.css), InlineHtml(block.text));
    case Block::Kind::kCode:
      return fmt::format("<p class=\"command\"><code>{}</code></p>\n", EscapeHtml(block.text));
    case Block::Kind::kFacts:
      return FactsHtml(block.facts);
    case Block::Kind::kList:
      return ListHtml(block.items);
    case Block::Kind::kTable:
      return HtmlTable(block.table);
    case Block::Kind::kFigure:
      return block.text;
  }
  return "";
}

// A section from each heading to the next; what comes before is an introduction.
std::string BlocksHtml(const std::vector<Block>& blocks) {
  std::string html;
  std::string_view close;
  int headings = 0;
  for (const Block& block : blocks) {
    if (block.kind == Block::Kind::kHeading) {
      ++headings;
      html += close;
      html += fmt::format("<section{1} aria-labelledby=\"h-{0}\">\n<h2 id=\"h-{0}\">{2}</h2>\n",
                          headings, ClassOf(block.css), InlineHtml(block.text));
      close = "</section>\n";
      continue;
    }
    if (close.empty()) {
      html += "<div class=\"intro\">\n";
      close = "</div>\n";
    }
    html += BlockHtml(block);
  }
  html += close;
  return html;
}

std::string HeaderHtml(const Document& document) {
  std::string html = fmt::format("<header>\n<h1>{}</h1>\n", EscapeHtml(document.title));
  if (!document.subtitle.empty()) {
    html += fmt::format("<p class=\"subtitle\">{}</p>\n", EscapeHtml(document.subtitle));
  }
  if (!document.warning.empty()) {
    html +=
        fmt::format("<p class=\"warning\" role=\"note\">{}</p>\n", InlineHtml(document.warning));
  }
  for (const Note& note : document.notes) {
    html += fmt::format("<p class=\"warning {0}\" role=\"note\"><strong>{0}</strong>: {1}</p>\n",
                        SeverityName(note.severity), EscapeHtml(NoteLine(note)));
  }
  const bool believable = AreBelievable(document.notes);
  if (!believable) {
    html += fmt::format("<p class=\"warning implausible\" role=\"note\">{}: {}.</p>\n",
                        kNotBelievable, kCorrectFirst);
  }
  html += "</header>\n";
  if (document.figures.empty() || !believable) return html;
  html += "<dl class=\"figures\">\n";
  for (const KeyFigure& figure : document.figures) {
    html += fmt::format(
        "<div><dt>{}</dt><dd class=\"value{}{}\">{}</dd><dd class=\"detail\">{}</dd></div>\n",
        InlineHtml(figure.name), figure.css.empty() ? "" : " ", figure.css,
        InlineHtml(figure.value), InlineHtml(figure.detail));
  }
  return html + "</dl>\n";
}

}  // namespace

std::string MarkdownTable(const Table& table) {
  std::string text = "|";
  for (const std::string& column : table.columns) {
    text += fmt::format(" {} |", EscapeMarkdown(column));
  }
  text += "\n|";
  for (std::size_t k = 0; k < table.columns.size(); ++k) {
    text += static_cast<int>(k) < table.text_columns ? "---|" : "---:|";
  }
  for (const Row& row : table.rows) {
    text += "\n|";
    std::size_t column = 0;
    for (const Cell& cell : row.cells) {
      text += fmt::format(" {} |", EscapeMarkdown(cell.text));
      for (int k = 1; k < cell.columns; ++k) text += " |";
      column += static_cast<std::size_t>(cell.columns);
    }
    for (; column < table.columns.size(); ++column) text += " |";
  }
  return text + "\n";
}

std::string HtmlTable(const Table& table) {
  // A table that is wider than the page is scrolled, with the keyboard too.
  std::string html = "<div class=\"scroll\" tabindex=\"0\"><table>\n";
  const auto add = [&](auto format, auto&&... args) {
    fmt::format_to(std::back_inserter(html), fmt::runtime(format), args...);
  };
  if (!table.caption.empty()) add("<caption>{}</caption>\n", InlineHtml(table.caption));
  html += "<thead><tr>";
  const auto css = [&](std::size_t k) {
    return static_cast<int>(k) < table.text_columns ? " class=\"text\"" : "";
  };
  for (std::size_t k = 0; k < table.columns.size(); ++k) {
    add("<th scope=\"col\"{}>{}</th>", css(k), InlineHtml(table.columns[k]));
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const Row& row : table.rows) {
    html += fmt::format("<tr{}>", ClassOf(row.css));
    std::size_t column = 0;
    for (std::size_t k = 0; k < row.cells.size(); ++k) {
      const Cell& cell = row.cells[k];
      const auto columns = static_cast<std::size_t>(cell.columns);
      const bool is_rest = k + 1 == row.cells.size() && column + columns < table.columns.size();
      std::string attributes = css(column);
      if (columns > 1 || is_rest) {
        attributes = fmt::format(" colspan=\"{}\" class=\"why\"",
                                 is_rest ? table.columns.size() - column : columns);
      } else if (!cell.html.empty()) {
        attributes = " class=\"drawing\"";
      }
      if (!cell.title.empty()) attributes += fmt::format(" title=\"{}\"", EscapeHtml(cell.title));
      add("<{}{}>{}{}", k == 0 ? "th scope=\"row\"" : "td", attributes, InlineHtml(cell.text),
          cell.html);
      if (!cell.below.empty()) add("<small>{}</small>", InlineHtml(cell.below));
      html += k == 0 ? "</th>" : "</td>";
      column += columns;
    }
    html += "</tr>\n";
  }
  return html + "</tbody>\n</table></div>\n";
}

std::string MarkdownOf(const Document& document) {
  std::string text = fmt::format("# {}\n", EscapeMarkdown(document.title));
  if (!document.subtitle.empty()) text += fmt::format("\n{}\n", EscapeMarkdown(document.subtitle));
  if (!document.warning.empty()) {
    text += fmt::format("\n**{}**\n", EscapeMarkdown(document.warning));
  }
  for (const Note& note : document.notes) {
    text +=
        fmt::format("\n**{}**: {}\n", SeverityName(note.severity), EscapeMarkdown(NoteLine(note)));
  }
  const auto list = [&](const auto& items, const auto& line) {
    text += "\n";
    for (const auto& item : items) text += fmt::format("- {}\n", EscapeMarkdown(line(item)));
  };
  if (!AreBelievable(document.notes)) {
    text += fmt::format("\n{}: {}.\n", kNotBelievable, kCorrectFirst);
  } else if (!document.figures.empty()) {
    list(document.figures, [](const KeyFigure& figure) {
      return fmt::format("{}: {} ({})", figure.name, figure.value, figure.detail);
    });
  }
  for (const Block& block : document.blocks) {
    switch (block.kind) {
      case Block::Kind::kHeading:
        text += fmt::format("\n## {}\n", EscapeMarkdown(block.text));
        break;
      case Block::Kind::kParagraph:
        text += fmt::format("\n{}\n", EscapeMarkdown(block.text));
        break;
      case Block::Kind::kCode:
        text += fmt::format("\n    {}\n", OneLine(block.text));
        break;
      case Block::Kind::kFacts:
        list(block.facts,
             [](const Fact& fact) { return fmt::format("{}: {}", fact.name, fact.text); });
        break;
      case Block::Kind::kList:
        list(block.items, [](const std::string& item) { return item; });
        break;
      case Block::Kind::kTable:
        text += "\n" + MarkdownTable(block.table);
        break;
      case Block::Kind::kFigure:
        break;
    }
  }
  return text;
}

std::string HtmlOf(const Document& document) {
  return PageHead(EscapeHtml(document.title), fmt::format("{}{}", ReportCss(), EmulationCss()),
                  document.scripts) +
         HeaderHtml(document) + BlocksHtml(document.blocks) + PageTail(document.html_behind);
}

}  // namespace perseus::report
