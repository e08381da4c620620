// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/document.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "common/belief.h"
#include "common/printable.h"
#include "report/assets.h"
#include "report/text.h"

namespace perseus::report {
namespace {

// T_min with a real subscript.
std::string InlineHtml(std::string_view text) {
  constexpr std::string_view kFrom = "T_min";
  constexpr std::string_view kTo = "T<sub>min</sub>";
  std::string html = EscapeHtml(text);
  for (std::size_t at = 0; (at = html.find(kFrom, at)) != std::string::npos; at += kTo.size()) {
    html.replace(at, kFrom.size(), kTo);
  }
  return html;
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

// The script of charts draws into the element before its data.
std::string ChartHtml(const nlohmann::ordered_json& chart) {
  return fmt::format(
      "<div><noscript><p class=\"lead\">A chart is here that a script draws.</p></noscript>{}</div>"
      "<script type=\"application/json\">{}</script>\n",
      ReportJs().empty() ? "<p class=\"lead\">This build of Perseus draws no charts "
                           "(PERSEUS_WEB=OFF).</p>"
                         : "",
      ScriptJson(chart));
}

std::string BarHtml(const Bar& bar, std::string_view css, int height) {
  const double span = bar.high > bar.low ? bar.high - bar.low : 1;
  const double zero = -bar.low / span * 100;
  double right = zero, left = zero;
  std::string html = fmt::format(
      "<svg class=\"{}\" viewBox=\"0 0 100 {}\" preserveAspectRatio=\"none\" aria-hidden=\"true\">",
      css, height);
  for (const Bar::Part& part : bar.parts) {
    const double width = std::abs(part.value) / span * 100;
    if (!(width > 0)) continue;
    if (part.value < 0) left -= width;
    html += fmt::format("<rect class=\"{}\" x=\"{:.3f}\" y=\"1\" width=\"{:.3f}\" height=\"{}\"/>",
                        part.css, part.value < 0 ? left : right, width, height - 2);
    if (part.value > 0) right += width;
  }
  if (bar.low < 0) {
    html += fmt::format(
        "<line class=\"zero\" x1=\"{0:.3f}\" y1=\"0\" x2=\"{0:.3f}\" y2=\"{1}\" "
        "vector-effect=\"non-scaling-stroke\"/>",
        zero, height);
  }
  return html + "</svg>";
}

std::string KeysHtml(const std::vector<Fact>& colours) {
  std::string html = "<p class=\"keys\">";
  for (const Fact& colour : colours) {
    html += fmt::format(
        "<span class=\"key\"><svg viewBox=\"0 0 12 12\" aria-hidden=\"true\"><rect class=\"{}\" "
        "width=\"12\" height=\"12\"/></svg>{}</span>",
        colour.name, EscapeHtml(colour.text));
  }
  return html + "</p>\n";
}

std::string TableHtml(const Table& table) {
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
      } else if (cell.bar) {
        attributes = " class=\"drawing\"";
      }
      if (!cell.title.empty()) attributes += fmt::format(" title=\"{}\"", EscapeHtml(cell.title));
      add("<{}{}>{}{}", k == 0 ? "th scope=\"row\"" : "td", attributes, InlineHtml(cell.text),
          cell.bar ? BarHtml(*cell.bar, "bar", 16) : "");
      if (!cell.below.empty()) add("<small>{}</small>", InlineHtml(cell.below));
      html += k == 0 ? "</th>" : "</td>";
      column += columns;
    }
    html += "</tr>\n";
  }
  return html + "</tbody>\n</table></div>\n";
}

std::string BlockHtml(const Block& block) {
  switch (block.kind) {
    case Block::Kind::kHeading:
      break;  // Opens a section: BlocksHtml().
    case Block::Kind::kParagraph:
      return fmt::format("<p{}>{}</p>\n", ClassOf(block.css), InlineHtml(block.text));
    case Block::Kind::kFacts:
      return FactsHtml(block.facts);
    case Block::Kind::kList:
      return ListHtml(block.items);
    case Block::Kind::kTable:
      return TableHtml(block.table);
    case Block::Kind::kChart:
      return ChartHtml(block.chart);
    case Block::Kind::kBar:
      return BarHtml(block.bar, "split", 34) + "\n";
    case Block::Kind::kKeys:
      return KeysHtml(block.facts);
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

std::string HtmlOf(const Document& document) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n"
      "<meta name=\"generator\" content=\"Perseus\">\n"
      "<title>{} \u2013 Perseus</title>\n<style>\n{}</style>\n</head>\n<body>\n<main>\n{}{}"
      "</main>\n<script>\n{}</script>\n</body>\n</html>\n",
      EscapeHtml(document.title), ReportCss(), HeaderHtml(document), BlocksHtml(document.blocks),
      ReportJs());
}

}  // namespace perseus::report
