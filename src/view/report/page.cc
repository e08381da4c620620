// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/page.h"

#include <fmt/format.h>

namespace perseus::report {

std::string PageHead(std::string_view title_html, std::string_view css, bool scripts) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'{}\">\n"
      "<meta name=\"generator\" content=\"Perseus\">\n"
      "<title>{} \u2013 Perseus</title>\n<style>\n{}</style>\n</head>\n<body>\n<main>\n",
      scripts ? "; script-src 'unsafe-inline'" : "", title_html, css);
}

std::string PageTail(std::string_view after_html) {
  return fmt::format("</main>\n{}</body>\n</html>\n", after_html);
}

std::string Scrolled(std::string_view html) {
  return fmt::format("<div class=\"scroll\" tabindex=\"0\">\n{}</div>\n", html);
}

std::string ModelledWarning(std::string_view modelled) {
  if (modelled.empty()) return "";
  return fmt::format("The profile was not measured on a GPU, so no figure here was: \u201c{}\u201d",
                     modelled);
}

std::string ClassOfSaving(double saving_percent) {
  constexpr double kShown = 0.005;  // Less is written as 0.00 %.
  if (saving_percent >= kShown) return "hero saved";
  return saving_percent <= -kShown ? "hero lost" : "hero";
}

std::string Key(std::string_view css_class, std::string_view text_html) {
  return fmt::format(
      "<span class=\"key\"><svg viewBox=\"0 0 12 12\" aria-hidden=\"true\"><rect class=\"{}\" "
      "width=\"12\" height=\"12\"/></svg>{}</span>",
      css_class, text_html);
}

std::string Plural(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string ShapeOf(const PipelineDag& dag) {
  return fmt::format("{}, {}, {}, {} microbatch{}", dag.schedule_name,
                     Plural(dag.num_ranks, "rank"), Plural(dag.num_stages, "stage"),
                     dag.num_microbatches, dag.num_microbatches == 1 ? "" : "es");
}

std::string_view FileName(std::string_view path) {
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace perseus::report
