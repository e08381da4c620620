// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/document.h"

#include <gtest/gtest.h>

#include <string>

#include "markup.h"

namespace perseus::report {
namespace {

Document MakeDocument(const std::string& text) {
  Document document;
  document.title = text;
  document.Paragraph(text);
  document.Code(text);
  document.Heading(text);
  document.List({text, "second"});
  Table table;
  table.caption = text;
  table.columns = {text, "n", "m"};
  table.Add({{text, text, text}, {"1"}, {"2"}});
  table.Add({{"wide"}, {text}});
  document.Put(table);
  document.Figure("<svg></svg>");
  return document;
}

TEST(DocumentTest, WritesMarkdown) {
  EXPECT_EQ(MarkdownOf(MakeDocument("text")),
            "# text\n\ntext\n\n    text\n\n## text\n\n- text\n- second\n\n"
            "| text | n | m |\n|---|---:|---:|\n| text | 1 | 2 |\n| wide | text | |\n");
}

TEST(DocumentTest, MarkdownEscapes) {
  const std::string markdown = MarkdownOf(MakeDocument("a|b <i> *c* `d` [e] it's\nnext"));
  EXPECT_NE(markdown.find("a\\|b &lt;i&gt; \\*c\\* \\`d\\` \\[e\\] it's next"), std::string::npos);
  EXPECT_EQ(markdown.find("\nnext"), std::string::npos);
}

TEST(DocumentTest, HtmlIsWellFormedWhateverTheText) {
  const std::string html = HtmlOf(MakeDocument("</td><script>\"'&"));
  EXPECT_EQ(UnbalancedTag(Markup(html)), "");
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_EQ(Count(html, "<svg></svg>"), 1);
  EXPECT_EQ(Count(html, "colspan=\"2\""), 1);
}

TEST(DocumentTest, WithoutHeadingsIsWellFormedToo) {
  Document document;
  document.Paragraph("only");
  EXPECT_EQ(UnbalancedTag(Markup(HtmlOf(document))), "");
}

}  // namespace
}  // namespace perseus::report
