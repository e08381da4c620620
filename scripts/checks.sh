# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

# Sections with their times, and checks that take long: what .ci/run and
# scripts/prove share. Sourced after scripts/lib.sh, never run.

name='' started=0 started_cpu=0 durations=()

# Ends the running section, which has passed, and begins the next.
section() {
  end_section
  name=$* started=$SECONDS started_cpu=$(cpu_seconds)
  heading "$name"
}

end_section() {
  if [[ -n $name ]]; then
    durations+=("$(printf '%6d s %6d s of CPU  %s' "$((SECONDS - started))" \
      "$(($(cpu_seconds) - started_cpu))" "$name")")
  fi
  name=''
}

# User and system time of all that this script ran so far.
cpu_seconds() { awk -v hz="$(getconf CLK_TCK)" '{printf "%d", ($16 + $17) / hz}' "/proc/$$/stat"; }

# On the way out: how long each section took, and what came of them.
summary() {
  local status=$? failed=0 line
  if [[ -n $name ]]; then failed=1; fi
  heading "$((SECONDS / 60)) min $((SECONDS % 60)) s"
  for line in "${durations[@]}"; do say "$line"; done
  if ((failed)); then printf '%6d s  FAILED: %s\n' "$((SECONDS - started))" "$name"; fi
  say "${#durations[@]} passed, $failed failed"
  exit "$status"
}
trap summary EXIT

# checked LOG PATTERN COMMAND...: runs COMMAND with its output in build/log/LOG;
# shows the lines with PATTERN when it fails (the end when there are none).
checked() {
  local log=build/log/$1 pattern=$2
  shift 2
  mkdir -p build/log
  if ! "$@" >"$log" 2>&1; then
    sed -i 's/\x1b\[[0-9;]*m//g' "$log"
    if grep -q -E "$pattern" "$log"; then
      grep -E -A 6 "$pattern" "$log" | awk 'NR <= 200' >&2
    else
      tail -n 60 "$log" >&2
    fi
    die "this failed (all output in $log): $*"
  fi
}

# sanitized PRESET MODULE...: builds the tests of these modules and passes them.
sanitized() {
  local preset=$1 names targets arguments=()
  shift
  names=$(IFS='|' && printf '%s' "$*")
  targets=("${@/%/_test}")
  # The example that a test of this module runs.
  if [[ " $* " == *' job '* ]]; then targets+=(plan_a_job); fi
  if [[ $preset == fuzz ]]; then arguments+=("-DCMAKE_CXX_COMPILER=clang++$(llvm_suffix)"); fi
  configure "$preset" "${arguments[@]}"
  checked "$preset-build.log" 'error|FAILED' "${fixed_addresses[@]}" \
    cmake --build "build/$preset" --parallel "$(nproc)" --target "${targets[@]}"
  run_ctest "$preset" -R "^($names)\."
}

# Builds tests/races in build/release, and passes it.
races() {
  configure release "-DPERSEUS_WERROR=$(werror)" "-DPERSEUS_PYTHON=$PWD/build/venv/bin/python" \
    -DPERSEUS_BUILD_RACES=ON
  checked races-build.log 'error|FAILED' "${fixed_addresses[@]}" \
    cmake --build build/release --parallel "$(nproc)" --target races_test
  run_ctest release -R '^races\.'
}

if setarch "$(uname -m)" -R true 2>/dev/null; then
  fixed_addresses=(setarch "$(uname -m)" -R)
fi
export UBSAN_OPTIONS=print_stacktrace=1

# touched_modules COMMITS MOST: the folders of src/ that are compiled as one and that the last COMMITS
# commits touched, at most MOST, those touched last first; all in a copy without git.
touched_modules() {
  local folder
  { git log -n "$1" --format= --name-only -- src 2>/dev/null || find src -type f; } |
    sed -n -E "s,/[^/]*\\.(cc|h)$,,p" | awk '!seen[$0]++' |
    while read -r folder; do
      while [[ $folder == */* && ! -f $folder/CMakeLists.txt ]]; do folder=${folder%/*}; done
      if [[ $folder != src && -f $folder/CMakeLists.txt ]]; then printf '%s\n' "$folder"; fi
    done | awk -v most="$2" '!seen[$0]++ && ++count <= most'
}

# tidy FOLDER...: clang-tidy on what is in these folders. Module by module, as they are compiled: file by
# file takes five times as long, and so do the tests. CONTRIBUTING.md has the command for that.
tidy() {
  local llvm folders made
  llvm=$(llvm_suffix)
  folders=$(IFS='|' && printf '%s' "$*")
  configure tidy "-DCMAKE_CXX_COMPILER=clang++$llvm" -DPERSEUS_UNITY_BUILD=ON
  # Sources that the build makes itself.
  mapfile -t made < <(ninja -C build/tidy -t targets all | sed -nE 's/^(src\/.*\.cc): CUSTOM_COMMAND$/\1/p')
  checked tidy-build.log 'error|FAILED' ninja -C build/tidy "${made[@]}"
  checked tidy.log '(warning|error): ' "run-clang-tidy$llvm" -quiet -p build/tidy -j "$(nproc)" \
    -header-filter "^$PWD/(src|include)/" "^$PWD/(build/tidy/)?($folders)/"
  say "clang-tidy finds nothing in $*."
}

# fuzz_one PARSER SECONDS ARGUMENT...: one fuzzer, with further options of libFuzzer.
fuzz_one() {
  local parser=$1 seconds=$2 corpora words=()
  shift 2
  # New inputs go to the first folder, which is not the repository's.
  mkdir -p "build/fuzz/corpus/$parser"
  corpora=("build/fuzz/corpus/$parser")
  if [[ -d fuzz/corpus/$parser ]]; then corpora+=("fuzz/corpus/$parser"); fi
  if [[ -f fuzz/$parser.dict ]]; then words=("-dict=fuzz/$parser.dict"); fi
  checked "fuzz-$parser.log" 'ERROR|runtime error' "build/fuzz/bin/${parser}_fuzzer" \
    "-max_total_time=$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    "-artifact_prefix=build/fuzz/$parser-" "${words[@]}" "$@" "${corpora[@]}"
  say "$parser: $(awk '/stat::number_of_executed_units/ {print $2}' "build/log/fuzz-$parser.log") inputs, no fault"
}

# fuzz_all SECONDS...: builds all fuzzers and runs each for that long, one on each core, with
# the options of libFuzzer that follow.
fuzz_all() {
  local source running=0 failed=0
  configure fuzz "-DCMAKE_CXX_COMPILER=clang++$(llvm_suffix)"
  build fuzz fuzzers
  # By their sources: in a folder that was kept there may be fuzzers that are no more.
  for source in fuzz/*_fuzzer.cc; do
    if ((running == $(nproc))); then
      wait -n || failed=1
      running=$((running - 1))
    fi
    # Not the summary, which is for the end of all sections.
    (trap - EXIT && fuzz_one "$(basename "$source" _fuzzer.cc)" "$@") &
    running=$((running + 1))
  done
  while ((running > 0)); do
    wait -n || failed=1
    running=$((running - 1))
  done
  if ((failed)); then die "a fuzzer found a fault; it is above."; fi
}
