/* Copyright 2026 The Perseus Authors
 * SPDX-License-Identifier: Apache-2.0 */

#ifndef PERSEUS_STATUS_H_
#define PERSEUS_STATUS_H_

/* Comes with perseus::client and perseus::planner. */

/* What perseus/client.h, perseus/simulate.h and perseus/planner_c.h have in common.
 *
 * Errors: a function that can fail returns a status. Where that is not PERSEUS_OK, `*message` (if
 * `message` is not NULL) is one sentence: what is wrong, where, what to do. Free it with the
 * library's ..._free_text(). It is NULL after success, and if there is no memory for a sentence.
 * After an error, an object that was asked for is NULL; structs and arrays are left as they were.
 * No C++ exception leaves these libraries.
 *
 * Structs grow at their ends only. Each begins with its size, as the caller's compiler knows it:
 *
 *   perseus_frontier frontier;
 *   PERSEUS_INIT(&frontier);
 *
 * Structs whose fields have defaults have a function of their own for this. Caller and library may
 * be of different versions. Fields that the caller does not know have their defaults, or are not
 * filled in. Fields that the library does not know must be 0, else it answers PERSEUS_INVALID; in a
 * struct that it fills in, it sets struct_size to what it did fill in. Arrays of structs come with
 * the size of an element.
 *
 * "None": a text or pointer that is not given is NULL, and one that is returned is "". For a number
 * that can be 0 (rank, stage, microbatch, version) it is -1, for a double that can be 0 it is NaN,
 * and for all other numbers it is 0. Each comment says so. Options whose default is not 0 get it
 * from their ..._init().
 *
 * Callbacks: 0 goes on, anything else stops. */

#include <stddef.h> /* NOLINT(modernize-deprecated-headers): C reads this, too. */
#include <stdint.h> /* NOLINT(modernize-deprecated-headers) */
#include <string.h> /* NOLINT(modernize-deprecated-headers) */

#ifdef __cplusplus
extern "C" {
#endif

/* NOLINTBEGIN(readability-identifier-naming,modernize-use-using,modernize-redundant-void-arg):
 * names of C. */

/* In C++ an enum may hold any int, as it may in C: a wrong value is refused, and not undefined. */
#ifdef __cplusplus
#define PERSEUS_ENUM : int
#else
#define PERSEUS_ENUM
#endif

typedef enum perseus_status PERSEUS_ENUM {
  PERSEUS_OK = 0,
  PERSEUS_INVALID = 1,    /* An argument is wrong, or the input malformed or contradictory. */
  PERSEUS_INFEASIBLE = 2, /* It is well formed, but no plan can satisfy it. */
  PERSEUS_IO = 3,         /* A file that it names cannot be read or written. */
  PERSEUS_OVERFLOW = 4,   /* Too large for the exact arithmetic, or for anybody's patience. */
  PERSEUS_CANCELLED = 5,  /* The progress callback asked for it. */
  PERSEUS_NO_MEMORY = 6,
  PERSEUS_INTERNAL = 7,    /* A bug of ours. */
  PERSEUS_UNAVAILABLE = 8, /* The server, the device or the plan cannot be had now. */
  PERSEUS_CLOSED = 9,      /* No client, one that is closed, or one of the parent process. */
} perseus_status;

/* The size of a text that ends with a zero byte. A text that is there but has the size 0 is
 * PERSEUS_INVALID: its size was forgotten. */
#define PERSEUS_TO_ZERO ((size_t)-1)

/* Begins a struct: everything 0, and its size. */
static inline void perseus_init(void* to, size_t struct_size) {
  const uint32_t size = (uint32_t)struct_size; /* NOLINT: C has no other cast. */
  memset(to, 0, struct_size);
  memcpy(to, &size, sizeof(size));
}
#define PERSEUS_INIT(to) perseus_init((to), sizeof(*(to)))

/* NOLINTEND(readability-identifier-naming,modernize-use-using,modernize-redundant-void-arg) */

#ifdef __cplusplus
}
#endif

#endif /* PERSEUS_STATUS_H_ */
