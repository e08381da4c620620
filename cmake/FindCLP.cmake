# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

# Finds COIN-OR CLP (https://github.com/coin-or/Clp), a solver of linear programs, which brings no
# CMake package of its own in Debian. Makes CLP::CLP.
find_path(CLP_INCLUDE_DIR ClpSimplex.hpp PATH_SUFFIXES coin coin-or)
find_library(CLP_LIBRARY Clp)
find_library(CLP_CoinUtils_LIBRARY CoinUtils)
if(CLP_INCLUDE_DIR AND EXISTS "${CLP_INCLUDE_DIR}/ClpConfig.h")
  file(STRINGS "${CLP_INCLUDE_DIR}/ClpConfig.h" line REGEX "#define CLP_VERSION ")
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" CLP_VERSION "${line}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CLP
  REQUIRED_VARS CLP_LIBRARY CLP_CoinUtils_LIBRARY CLP_INCLUDE_DIR
  VERSION_VAR CLP_VERSION)

if(CLP_FOUND AND NOT TARGET CLP::CLP)
  add_library(CLP::CoinUtils UNKNOWN IMPORTED)
  set_target_properties(CLP::CoinUtils PROPERTIES IMPORTED_LOCATION "${CLP_CoinUtils_LIBRARY}")
  add_library(CLP::CLP UNKNOWN IMPORTED)
  set_target_properties(CLP::CLP PROPERTIES
    IMPORTED_LOCATION "${CLP_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${CLP_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES CLP::CoinUtils)
endif()
mark_as_advanced(CLP_INCLUDE_DIR CLP_LIBRARY CLP_CoinUtils_LIBRARY)
