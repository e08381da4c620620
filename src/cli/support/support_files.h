// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_SUPPORT_SUPPORT_FILES_H_
#define PERSEUS_CLI_SUPPORT_SUPPORT_FILES_H_

#include <string>
#include <utility>
#include <vector>

#include "cli/support/redaction.h"
#include "cli/support/support_bundle_flags.h"
#include "common/file.h"
#include "perseus/result.h"

namespace perseus::cli {

// The files of a bundle, and what could not be had. Nothing comes in with its secrets.
class SupportFiles {
 public:
  explicit SupportFiles(Redactor redactor) : redactor_(std::move(redactor)) {}

  // `name`: "server/jobs.json".
  void Add(const std::string& name, const std::string& text) {
    files_.push_back({name, redactor_.Redact(text)});
  }
  void AddMissing(const std::string& name, const std::string& why) {
    missing_.push_back({name, redactor_.Redact(why)});
  }
  // The text, or why there is none.
  void AddResult(const std::string& name, const Result<std::string>& text) {
    text ? Add(name, *text) : AddMissing(name, text.error().message);
  }

  const std::vector<OutputFile>& files() const { return files_; }
  // Of each its name, and why it is not there.
  const std::vector<OutputFile>& missing() const { return missing_; }
  long long removed() const { return redactor_.removed(); }

 private:
  Redactor redactor_;
  std::vector<OutputFile> files_;
  std::vector<OutputFile> missing_;
};

// What each place has to say. None of these fails: what is not there is missing.
void AddSystem(SupportFiles* files);
void AddNode(const SupportBundleFlags& flags, SupportFiles* files);
void AddConfiguration(const SupportBundleFlags& flags, SupportFiles* files);
void AddServer(const SupportBundleFlags& flags, SupportFiles* files);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_SUPPORT_SUPPORT_FILES_H_
