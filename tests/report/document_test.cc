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

TEST(DocumentTest, HoldsWhatAPageHas) {
  Document document;
  document.title = "A page";
  document.subtitle = "of <one>";
  document.warning = "Mind T_min";
  document.figures = {{"Energy", "-1 %", "2 J", "hero saved"}};
  document.Heading("Rests on", "small");
  document.Facts({{"Profile", "a&b"}});
  Table table;
  table.columns = {"a", "b", "c", "d"};
  table.Add({{"x"}, {.text = "both", .columns = 2}, {.text = "", .html = "<svg></svg>"}});
  document.Put(table);
  const std::string html = HtmlOf(document);
  EXPECT_EQ(UnbalancedTag(Markup(html)), "");
  for (const char* part :
       {"<p class=\"subtitle\">of &lt;one&gt;</p>", "role=\"note\">Mind T<sub>min</sub></p>",
        "<dd class=\"value hero saved\">-1 %</dd>", "<section class=\"small\"",
        "<dt>Profile</dt><dd>a&amp;b</dd>", "colspan=\"2\" class=\"why\">both</td>",
        "<td class=\"drawing\"><svg></svg></td>"}) {
    EXPECT_NE(html.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(
      MarkdownOf(document),
      "# A page\n\nof &lt;one&gt;\n\n**Mind T_min**\n\n- Energy: -1 % (2 J)\n\n## Rests on\n\n"
      "- Profile: a&amp;b\n\n| a | b | c | d |\n|---|---:|---:|---:|\n| x | both | |  |\n");
}

TEST(DocumentTest, WithoutHeadingsIsWellFormedToo) {
  Document document;
  document.Paragraph("only");
  EXPECT_EQ(UnbalancedTag(Markup(HtmlOf(document))), "");
}

}  // namespace
}  // namespace perseus::report
