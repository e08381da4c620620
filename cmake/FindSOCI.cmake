# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

# Finds SOCI 4 (https://soci.sourceforge.net), which brings no CMake package of
# its own in Debian. Makes SOCI::core and, for the components that were asked
# for, SOCI::sqlite3 and SOCI::postgresql.
find_path(SOCI_INCLUDE_DIR soci/soci.h)
find_library(SOCI_core_LIBRARY soci_core)
if(SOCI_INCLUDE_DIR AND EXISTS "${SOCI_INCLUDE_DIR}/soci/version.h")
  file(STRINGS "${SOCI_INCLUDE_DIR}/soci/version.h" line REGEX "#define SOCI_LIB_VERSION ")
  string(REGEX MATCH "[0-9]+_[0-9]+_[0-9]+" SOCI_VERSION "${line}")
  string(REPLACE "_" "." SOCI_VERSION "${SOCI_VERSION}")
endif()

# What the headers of each backend include.
find_path(SOCI_sqlite3_HEADERS sqlite3.h)
find_path(SOCI_postgresql_HEADERS libpq-fe.h PATH_SUFFIXES postgresql)

foreach(backend IN LISTS SOCI_FIND_COMPONENTS)
  find_library(SOCI_${backend}_LIBRARY soci_${backend})
  if(SOCI_${backend}_LIBRARY AND SOCI_${backend}_HEADERS
     AND EXISTS "${SOCI_INCLUDE_DIR}/soci/${backend}/soci-${backend}.h")
    set(SOCI_${backend}_FOUND TRUE)
  endif()
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(SOCI
  REQUIRED_VARS SOCI_core_LIBRARY SOCI_INCLUDE_DIR
  VERSION_VAR SOCI_VERSION
  HANDLE_COMPONENTS)

if(SOCI_FOUND AND NOT TARGET SOCI::core)
  add_library(SOCI::core UNKNOWN IMPORTED)
  set_target_properties(SOCI::core PROPERTIES
    IMPORTED_LOCATION "${SOCI_core_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${SOCI_INCLUDE_DIR}")
  # The library does not export the type information that this check of the
  # undefined-behaviour sanitizer asks for.
  if(PERSEUS_SANITIZE)
    set_property(TARGET SOCI::core PROPERTY INTERFACE_COMPILE_OPTIONS -fno-sanitize=vptr)
  endif()
endif()
foreach(backend IN LISTS SOCI_FIND_COMPONENTS)
  if(SOCI_FOUND AND NOT TARGET SOCI::${backend})
    # The headers of a backend include each other without their folder.
    add_library(SOCI::${backend} UNKNOWN IMPORTED)
    set_target_properties(SOCI::${backend} PROPERTIES
      IMPORTED_LOCATION "${SOCI_${backend}_LIBRARY}"
      INTERFACE_INCLUDE_DIRECTORIES "${SOCI_INCLUDE_DIR};${SOCI_${backend}_HEADERS}"
      INTERFACE_LINK_LIBRARIES SOCI::core)
  endif()
endforeach()
mark_as_advanced(SOCI_INCLUDE_DIR SOCI_core_LIBRARY SOCI_sqlite3_LIBRARY SOCI_postgresql_LIBRARY
                 SOCI_sqlite3_HEADERS SOCI_postgresql_HEADERS)
