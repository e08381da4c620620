// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_REPORT_DOCUMENT_H_
#define PERSEUS_SRC_REPORT_DOCUMENT_H_

#include <string>
#include <string_view>
#include <vector>

namespace perseus::report {

// A document that can be written as Markdown and as HTML. Texts are plain;
// what the formats need escaped is escaped when they are written.

struct Cell {
  std::string text;
  std::string title{};  // More digits, under the pointer in HTML.
  std::string below{};  // A second, smaller line in HTML; left out of Markdown.
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

struct Block {
  enum class Kind { kHeading, kParagraph, kCode, kList, kTable, kFigure };
  Kind kind = Kind::kParagraph;
  std::string text;  // kFigure: HTML.
  std::vector<std::string> items;
  Table table;
};

struct Document {
  std::string title;
  std::vector<Block> blocks;

  void Heading(std::string text) { Put(Block::Kind::kHeading, std::move(text)); }
  void Paragraph(std::string text) { Put(Block::Kind::kParagraph, std::move(text)); }
  void Code(std::string text) { Put(Block::Kind::kCode, std::move(text)); }
  void Figure(std::string html) { Put(Block::Kind::kFigure, std::move(html)); }
  void List(std::vector<std::string> items) {
    Put(Block::Kind::kList, {});
    blocks.back().items = std::move(items);
  }
  void Put(Table table) {
    Put(Block::Kind::kTable, {});
    blocks.back().table = std::move(table);
  }

 private:
  void Put(Block::Kind kind, std::string text) {
    blocks.emplace_back();
    blocks.back().kind = kind;
    blocks.back().text = std::move(text);
  }
};

// Figures are left out of Markdown.
std::string MarkdownOf(const Document& document);
std::string HtmlOf(const Document& document);

}  // namespace perseus::report

#endif  // PERSEUS_SRC_REPORT_DOCUMENT_H_
