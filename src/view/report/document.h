// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_REPORT_DOCUMENT_H_
#define PERSEUS_SRC_REPORT_DOCUMENT_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "perseus/note.h"

namespace perseus::report {

// The content of a report: sentences, tables and charts, as data. Texts are plain; only a renderer
// escapes them, for its format.

// Parts side by side, in the range of all bars that are compared; what is below 0 grows to the
// left.
struct Bar {
  struct Part {
    std::string css;
    double value = 0;
  };
  std::vector<Part> parts{};
  double low = 0, high = 1;
};

struct Cell {
  std::string text;
  std::string title{};  // More digits, under the pointer in HTML.
  std::string below{};  // A second, smaller line in HTML.
  std::optional<Bar> bar{};
  int columns = 1;  // That it is wide.
};

struct Row {
  std::vector<Cell> cells;  // Where fewer than columns, the last is as wide as the rest.
  std::string css{};
};

struct Table {
  std::string caption{};
  std::vector<std::string> columns{};
  int text_columns = 1;  // So many first columns are text, the others numbers.
  std::vector<Row> rows{};

  void Add(std::vector<Cell> cells, std::string css = {}) {
    rows.push_back({std::move(cells), std::move(css)});
  }
};

// A term and what it is; a class of colour and what it means.
struct Fact {
  std::string name;
  std::string text;
};

// One of the few figures at the top of a page.
struct KeyFigure {
  std::string name;
  std::string value;
  std::string detail;
  std::string css{};  // "hero", "hero saved", "hero lost".
};

struct Block {
  enum class Kind { kHeading, kParagraph, kFacts, kList, kTable, kChart, kBar, kKeys };
  Kind kind = Kind::kParagraph;
  std::string text{};
  std::string css{};  // Of a heading's section, or of a paragraph.
  std::vector<std::string> items{};
  std::vector<Fact> facts{};  // And of kKeys.
  Table table{};
  Bar bar{};
  nlohmann::ordered_json chart{};  // The ChartData of charts/report.ts, which draws it.
};

struct Document {
  std::string title;
  std::string subtitle;
  std::string warning;      // What must be known before anything else; "": nothing.
  std::vector<Note> notes;  // Likewise: what was found odd in the input.
  std::vector<KeyFigure> figures;
  std::vector<Block> blocks;

  void Heading(std::string text, std::string css = {}) {
    blocks.push_back(
        {.kind = Block::Kind::kHeading, .text = std::move(text), .css = std::move(css)});
  }
  void Paragraph(std::string text, std::string css = "lead") {
    blocks.push_back({.text = std::move(text), .css = std::move(css)});
  }
  void List(std::vector<std::string> items) {
    blocks.push_back({.kind = Block::Kind::kList, .items = std::move(items)});
  }
  void Facts(std::vector<Fact> facts) {
    blocks.push_back({.kind = Block::Kind::kFacts, .facts = std::move(facts)});
  }
  void Keys(std::vector<Fact> colours) {
    blocks.push_back({.kind = Block::Kind::kKeys, .facts = std::move(colours)});
  }
  void Put(Table table) {
    blocks.push_back({.kind = Block::Kind::kTable, .table = std::move(table)});
  }
  void Put(Bar bar) { blocks.push_back({.kind = Block::Kind::kBar, .bar = std::move(bar)}); }
  void Chart(nlohmann::ordered_json chart) {
    blocks.push_back({.kind = Block::Kind::kChart, .chart = std::move(chart)});
  }
};

// A page of its own, which needs no network. Its tables need no script; charts are drawn by one.
std::string HtmlOf(const Document& document);

}  // namespace perseus::report

#endif  // PERSEUS_SRC_REPORT_DOCUMENT_H_
