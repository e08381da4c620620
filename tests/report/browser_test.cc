// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Opens reports in a real browser, where there is one.

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "emulation_fixture.h"
#include "perseus/report.h"
#include "report_fixture.h"

namespace perseus::report {
namespace {

std::string FindBrowser() {
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::size_t colon = rest.find(':');
    const std::filesystem::path folder = rest.substr(0, colon);
    for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
      if (access((folder / name).c_str(), X_OK) == 0) return folder / name;
    }
    rest = colon == std::string_view::npos ? "" : rest.substr(colon + 1);
  }
  return "";
}

std::string OutputOf(const std::string& command) {
  std::string output;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return output;
  std::array<char, 4096> buffer;
  for (std::size_t n; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    output.append(buffer.data(), n);
  }
  pclose(pipe);
  return output;
}

class BrowserTest : public ::testing::Test {
 protected:
  void SetUp() override {
    browser_ = FindBrowser();
    if (browser_.empty()) {
      GTEST_SKIP() << "no chromium on PATH; install it to check the report in a browser";
    }
    std::string folder = (std::filesystem::temp_directory_path() / "perseus-report-XXXXXX");
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  void TearDown() override {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }

  // The page after its script ran, and what the browser logged.
  struct Loaded {
    std::string dom;
    std::string log;
  };
  Loaded Load(const std::string& html) {
    const std::string page = folder_ / "report.html";
    const std::string log = folder_ / "log";
    std::ofstream(page, std::ios::binary) << html;
    Loaded loaded;
    loaded.dom = OutputOf("timeout 120 '" + browser_ +
                          "' --headless=new --no-sandbox --disable-gpu --no-first-run "
                          "--enable-logging=stderr --user-data-dir='" +
                          (folder_ / "profile").string() + "' --dump-dom 'file://" + page +
                          "' 2>'" + log + "'");
    std::ifstream stream(log);
    loaded.log.assign(std::istreambuf_iterator<char>(stream), {});
    return loaded;
  }

  std::filesystem::path folder_;
  std::string browser_;
};

void ExpectRendered(const std::string& dom, const std::string& log) {
  EXPECT_NE(dom.find("data-rendered=\"true\""), std::string::npos) << log;
  EXPECT_EQ(log.find("CONSOLE"), std::string::npos)
      << log.substr(std::min(log.size(), log.find("CONSOLE")));
}

TEST_F(BrowserTest, DrawsWithoutErrors) {
  const auto [dom, log] = Load(*FormatHtmlReport(MakeSample("1f1b", 4, 1, 8).Input()));
  ExpectRendered(dom, log);
  EXPECT_NE(dom.find("Share of busy time that is spent at each clock"), std::string::npos);
}

TEST_F(BrowserTest, DrawsFusedComputationsAndHostileLabels) {
  Sample sample = MakeSample("dualpipev", 8, 2, 16);
  sample.pipeline.knobs_are_numbers = false;
  for (Knob& knob : sample.pipeline.knobs) {
    knob.label += "</script><img src=x onerror=\"document.title='pwned'\">";
  }
  ReportInput input = sample.Input();
  input.title = "<b onclick='x'>\"&</title></script>";
  const auto [dom, log] = Load(*FormatHtmlReport(input));
  ExpectRendered(dom, log);
  EXPECT_EQ(dom.find("<img"), std::string::npos);
  EXPECT_EQ(dom.find("<b onclick"), std::string::npos);
  EXPECT_EQ(dom.find("<title>pwned"), std::string::npos);
}

TEST_F(BrowserTest, DrawsAnEmulatedJob) {
  const auto [dom, log] = Load(*FormatEmulationHtml(MakeEmulatedSample(30, 300).Full()));
  ExpectRendered(dom, log);
  EXPECT_NE(dom.find("least to greatest within a pixel"), std::string::npos);
}

TEST_F(BrowserTest, DrawsALargePipeline) {
  const auto [dom, log] = Load(*FormatHtmlReport(MakeSample("1f1b", 16, 1, 256).Input()));
  ExpectRendered(dom, log);
}

}  // namespace
}  // namespace perseus::report
