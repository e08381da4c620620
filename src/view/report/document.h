// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_REPORT_DOCUMENT_H_
#define PERSEUS_SRC_REPORT_DOCUMENT_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perseus/note.h"

namespace perseus::report {

// A document that can be written as Markdown and as HTML: every page is one.
// Texts are plain; what the formats need escaped is escaped when they are
// written, here and nowhere else. Only members named html are put in as they
// are: drawings, made of numbers and of what EscapeHtml() made safe.

struct Cell {
  std::string text;
  std::string title{};  // More digits, under the pointer in HTML.
  std::string below{};  // A second, smaller line in HTML; left out of Markdown.
  std::string html{};   // A drawing, behind `text`; left out of Markdown.
  int columns = 1;      // That it is wide.
};

struct Row {
  std::vector<Cell> cells;  // Where fewer than columns, the last is as wide as the rest.
  std::string css{};
};

struct Table {
  std::string caption;
  std::vector<std::string> columns;
  int text_columns = 1;  // So many first columns are text, the others numbers.
  std::vector<Row> rows;

  void Add(std::vector<Cell> cells, std::string css = {}) {
    rows.push_back({std::move(cells), std::move(css)});
  }
};

std::string MarkdownTable(const Table& table);
std::string HtmlTable(const Table& table);

// A term and what it is.
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
  enum class Kind { kHeading, kParagraph, kCode, kFacts, kList, kTable, kFigure };
  Kind kind = Kind::kParagraph;
  std::string text;  // kFigure: HTML.
  std::string css;   // Of a heading's section, or of a paragraph.
  std::vector<std::string> items;
  std::vector<Fact> facts;
  Table table;
};

struct Document {
  std::string title;
  std::string subtitle;
  std::string warning;      // What must be known before anything else; "": nothing.
  std::vector<Note> notes;  // Likewise: what was found odd in the input.
  std::vector<KeyFigure> figures;
  std::vector<Block> blocks;
  bool scripts = false;     // Whether `html_behind` may run some.
  std::string html_behind;  // Behind the page's content.

  void Heading(std::string text, std::string css = {}) {
    Put(Block::Kind::kHeading, std::move(text), std::move(css));
  }
  void Paragraph(std::string text, std::string css = "lead") {
    Put(Block::Kind::kParagraph, std::move(text), std::move(css));
  }
  void Code(std::string text) { Put(Block::Kind::kCode, std::move(text)); }
  void Figure(std::string html) { Put(Block::Kind::kFigure, std::move(html)); }
  void List(std::vector<std::string> items) {
    Put(Block::Kind::kList, {});
    blocks.back().items = std::move(items);
  }
  void Facts(std::vector<Fact> facts) {
    Put(Block::Kind::kFacts, {});
    blocks.back().facts = std::move(facts);
  }
  void Put(Table table) {
    Put(Block::Kind::kTable, {});
    blocks.back().table = std::move(table);
  }

 private:
  void Put(Block::Kind kind, std::string text, std::string css = {}) {
    blocks.emplace_back();
    blocks.back().kind = kind;
    blocks.back().text = std::move(text);
    blocks.back().css = std::move(css);
  }
};

// Figures are left out of Markdown.
std::string MarkdownOf(const Document& document);
std::string HtmlOf(const Document& document);

}  // namespace perseus::report

#endif  // PERSEUS_SRC_REPORT_DOCUMENT_H_
