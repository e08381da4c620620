// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/framework/outputs.h"
#include "cli/framework/table.h"
#include "cli/framework/terminal.h"
#include "cli/support/redaction.h"
#include "cli/support/support_bundle_flags.h"
#include "cli/support/support_files.h"
#include "cli/support/tar_gz.h"
#include "common/file.h"
#include "common/printable.h"
#include "http/client.h"

namespace perseus::cli {
namespace {

// Those that this process knows to be secrets, wherever they turn up again.
Redactor KnowingSecrets(const ServerFlags& flags) {
  Redactor redactor;
  const Result<std::string> token = http::ReadTokenFile(WithEnvironment(flags).token_file);
  if (token) redactor.AddSecret(*token);
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || !IsSecretName(text.substr(0, equals))) continue;
    redactor.AddSecret(std::string(text.substr(equals + 1)));
  }
  return redactor;
}

std::string Readme(const SupportFiles& files, std::time_t now, int columns) {
  std::string text = fmt::format(
      "What 'perseus support-bundle' of version {} found at {:%Y-%m-%d %H:%M:%S} UTC.\n\n",
      Version(), fmt::gmtime(now));
  text += Wrap(fmt::format("Passwords, tokens and keys were removed ({} times): {} stands in their "
                           "place. Names of jobs, nodes and users were not.",
                           files.removed(), kRemoved),
               columns, 0) +
          "\n\nFiles:\n";
  for (const OutputFile& file : files.files()) text += fmt::format("  {}\n", file.name);
  text += files.missing().empty() ? "\nNothing is missing.\n" : "\nWhat could not be had:\n";
  for (const OutputFile& missing : files.missing()) {
    text += fmt::format("  {}: {}\n", missing.name, missing.bytes);
  }
  return text;
}

}  // namespace

Result<Printout> RunSupportBundle(const SupportBundleFlags& flags, const Style& style) {
  if (flags.output_file.empty()) {
    return InvalidInput(
        "the file is missing: name it, as in 'perseus support-bundle -o "
        "support.tar.gz'");
  }
  std::vector<InputFile> inputs;
  for (const std::string& path : flags.configs) inputs.push_back({"a configuration file", path});
  for (const std::string& path : flags.logs) inputs.push_back({"a log", path});
  if (auto good = CheckOutputFile(flags.output_file, inputs); !good) {
    return tl::unexpected(good.error());
  }
  SupportFiles files(KnowingSecrets(flags.server));
  {
    ProgressLine progress("looking at this machine");
    AddSystem(&files);
    AddConfiguration(flags, &files);
    progress.Announce("looking at GPUs and agent");
    AddNode(flags, &files);
    progress.Announce("asking the server");
    AddServer(flags, &files);
  }
  const std::time_t now = std::time(nullptr);
  constexpr int kColumns = 100;
  std::vector<OutputFile> packed = {{"README.txt", Readme(files, now, kColumns)}};
  packed.insert(packed.end(), files.files().begin(), files.files().end());
  for (OutputFile& file : packed) file.name.insert(0, "perseus-support/");
  const Result<std::string> bytes = PackTarGz(packed, now);
  if (!bytes) return tl::unexpected(bytes.error());
  if (auto written = WriteFileAtomically(flags.output_file, *bytes); !written) {
    return tl::unexpected(written.error());
  }
  std::string text = fmt::format("{}: {}, {:.0f} kB; {} removed.\n", Printable(flags.output_file),
                                 CountOf(static_cast<long long>(packed.size()), "file"),
                                 static_cast<double>(bytes->size() + 999) / 1000,
                                 CountOf(files.removed(), "secret"));
  for (const OutputFile& missing : files.missing()) {
    text +=
        Wrap(fmt::format("Not in it: {}: {}", Printable(missing.name), Printable(missing.bytes)),
             style.columns, 2) +
        "\n";
  }
  text += Wrap("It still has the names of jobs, nodes and users: look at it before you send it.",
               style.columns, 0) +
          "\n";
  return Printout(text, flags.output_file);
}

}  // namespace perseus::cli
