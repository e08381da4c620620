// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_VERSION_H_
#define PERSEUS_VERSION_H_

/* For every library of Perseus. */

/* The version of these headers, in C and in C++. CMake takes the project's version from here. */
#define PERSEUS_VERSION_MAJOR 0
#define PERSEUS_VERSION_MINOR 2
#define PERSEUS_VERSION_PATCH 0
#define PERSEUS_VERSION_STRING "0.2.0"
/* Its day in the changelog. */
#define PERSEUS_VERSION_DATE "2026-11-27"

#endif /* PERSEUS_VERSION_H_ */
