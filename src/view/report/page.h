// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_REPORT_PAGE_H_
#define PERSEUS_SRC_REPORT_PAGE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "perseus/pipeline.h"

namespace perseus::report {

// What all pages share. Arguments named html are put in as they are.

// From the doctype to <main>. A page may do nothing but what `css` and, with
// `scripts`, its own scripts do: no request goes out.
std::string PageHead(std::string_view title_html, std::string_view css, bool scripts);
// From </main> on, with `after_html` behind it.
std::string PageTail(std::string_view after_html);

// A drawing that keeps its size: scrolled where it is wider than the page, with
// the keyboard too.
std::string Scrolled(std::string_view html);

// What stands at the top of a page whose profile calls itself modelled
// (Profile::modelled); "" where it does not.
std::string ModelledWarning(std::string_view modelled);

// How the key figure of a saving looks: as a gain, as a loss, or as neither.
std::string ClassOfSaving(double saving_percent);

// A colour of the page with what it means.
std::string Key(std::string_view css_class, std::string_view text_html);

std::string Plural(std::int64_t count, std::string_view noun);
// "1f1b, 4 ranks, 4 stages, 8 microbatches".
std::string ShapeOf(const PipelineDag& dag);
std::string_view FileName(std::string_view path);

}  // namespace perseus::report

#endif  // PERSEUS_SRC_REPORT_PAGE_H_
