// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <string>

#include "cli/commands.h"
#include "cli/table.h"
#include "perseus/file.h"
#include "perseus/synth.h"

namespace perseus::cli {

Result<std::string> RunSynth(const SynthFlags& flags, const Style& style) {
  const Result<SynthResult> synth = Synthesize(flags.spec);
  if (!synth) return tl::unexpected(synth.error());
  if (flags.output_directory.empty()) return synth->profile_csv;
  const std::string& directory = flags.output_directory;
  const Result<void> written = WriteFilesAtomically(
      directory, {{"profile.csv", synth->profile_csv}, {"job.toml", synth->job_toml}});
  if (!written) return tl::unexpected(written.error());
  Table table({"stage", "layers", "forward ms", "backward ms"}, {});
  for (std::size_t stage = 0; stage < synth->stages.size(); ++stage) {
    const SynthStage& each = synth->stages[stage];
    table.AddRow({fmt::format("{}", stage), fmt::format("{}", each.layers),
                  WithThousands(1e3 * each.forward_seconds, 3),
                  WithThousands(1e3 * each.backward_seconds, 3)});
  }
  return fmt::format(
      "{}\n{}\nModelled, not measured. The slowest stage takes {:.3f} times the mean.\nWritten  "
      "{}: profile.csv, job.toml.\nNext     perseus plan {}/job.toml\n",
      style.Bold("One microbatch at the highest clock"), table.Format(style.rule()),
      synth->imbalance, directory, directory);
}

}  // namespace perseus::cli
