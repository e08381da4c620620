// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Preloaded: the time of day goes by as many seconds as the file PERSEUS_TEST_CLOCK holds.
// All other clocks, and the kernel, know nothing of it.

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace {

using GetTime = int (*)(clockid_t, timespec*);

long OffsetSeconds() {
  const char* const path = std::getenv("PERSEUS_TEST_CLOCK");
  std::FILE* const file = path == nullptr ? nullptr : std::fopen(path, "re");
  if (file == nullptr) return 0;
  long seconds = 0;
  if (std::fscanf(file, "%ld", &seconds) != 1) seconds = 0;
  std::fclose(file);
  return seconds;
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  static const auto real = reinterpret_cast<GetTime>(dlsym(RTLD_NEXT, "clock_gettime"));
  const int result = real(clock, time);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    time->tv_sec += OffsetSeconds();
  }
  return result;
}
