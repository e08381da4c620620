// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "report/assets.h"
#include "report/page.h"
#include "report/text.h"

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

void AppendSection(const Block& block, bool* open, int* headings, std::string* html) {
  switch (block.kind) {
    case Block::Kind::kHeading:
      if (*open) *html += "</section>\n";
      *open = true;
      ++*headings;
      *html += fmt::format("<section aria-labelledby=\"h-{0}\">\n<h2 id=\"h-{0}\">{1}</h2>\n",
                           *headings, EscapeHtml(block.text));
      break;
    case Block::Kind::kParagraph:
      *html += fmt::format("<p class=\"lead\">{}</p>\n", EscapeHtml(block.text));
      break;
    case Block::Kind::kCode:
      *html += fmt::format("<p class=\"command\"><code>{}</code></p>\n", EscapeHtml(block.text));
      break;
    case Block::Kind::kList:
      *html += "<ul>\n";
      for (const std::string& item : block.items) {
        *html += fmt::format("<li>{}</li>\n", EscapeHtml(item));
      }
      *html += "</ul>\n";
      break;
    case Block::Kind::kTable:
      *html += HtmlTable(block.table);
      break;
    case Block::Kind::kFigure:
      *html += block.text;
      break;
  }
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
    for (std::size_t k = 0; k < std::max(table.columns.size(), row.cells.size()); ++k) {
      text += k < row.cells.size() ? fmt::format(" {} |", EscapeMarkdown(row.cells[k].text))
                                   : std::string(" |");
    }
  }
  return text + "\n";
}

std::string HtmlTable(const Table& table) {
  std::string html = "<div class=\"scroll\"><table>\n";
  const auto add = [&](auto format, auto&&... args) {
    fmt::format_to(std::back_inserter(html), fmt::runtime(format), args...);
  };
  if (!table.caption.empty()) add("<caption>{}</caption>\n", EscapeHtml(table.caption));
  html += "<thead><tr>";
  const auto css = [&](std::size_t k) {
    return static_cast<int>(k) < table.text_columns ? " class=\"text\"" : "";
  };
  for (std::size_t k = 0; k < table.columns.size(); ++k) {
    add("<th scope=\"col\"{}>{}</th>", css(k), EscapeHtml(table.columns[k]));
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const Row& row : table.rows) {
    html += row.css.empty() ? std::string("<tr>") : fmt::format("<tr class=\"{}\">", row.css);
    for (std::size_t k = 0; k < row.cells.size(); ++k) {
      const Cell& cell = row.cells[k];
      const bool wide = k + 1 == row.cells.size() && row.cells.size() < table.columns.size();
      const std::string span =
          wide ? fmt::format(" colspan=\"{}\" class=\"why\"", table.columns.size() - k)
               : std::string(css(k));
      const std::string title =
          cell.title.empty() ? "" : fmt::format(" title=\"{}\"", EscapeHtml(cell.title));
      add("<{0}{1}{2}>{3}", k == 0 ? "th scope=\"row\"" : "td", span, title, EscapeHtml(cell.text));
      if (!cell.below.empty()) add("<small>{}</small>", EscapeHtml(cell.below));
      html += k == 0 ? "</th>" : "</td>";
    }
    html += "</tr>\n";
  }
  return html + "</tbody>\n</table></div>\n";
}

std::string MarkdownOf(const Document& document) {
  std::string text = fmt::format("# {}\n", EscapeMarkdown(document.title));
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
      case Block::Kind::kList:
        text += "\n";
        for (const std::string& item : block.items) {
          text += fmt::format("- {}\n", EscapeMarkdown(item));
        }
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
  const std::string title = EscapeHtml(document.title);
  std::string html =
      PageHead(title, fmt::format("{}{}", ReportCss(), EmulationCss()), false) +
      fmt::format("<header>\n<h1>{}</h1>\n</header>\n<div class=\"intro\">\n", title);
  bool open = false;
  int headings = 0;
  bool intro = true;
  for (const Block& block : document.blocks) {
    if (intro && block.kind == Block::Kind::kHeading) {
      html += "</div>\n";
      intro = false;
    }
    AppendSection(block, &open, &headings, &html);
  }
  if (intro) html += "</div>\n";
  if (open) html += "</section>\n";
  return html + PageTail();
}

}  // namespace perseus::report
