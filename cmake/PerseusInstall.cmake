# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

# Installs the library, its headers, its CMake package and the command line:
# find_package(perseus) and target_link_libraries(app PRIVATE perseus::core).
include(CMakePackageConfigHelpers)

set(PERSEUS_CMAKE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/perseus")

install(TARGETS perseus_model perseus_core perseus_report EXPORT perseusTargets)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/perseus" TYPE INCLUDE FILES_MATCHING PATTERN "*.h")
install(EXPORT perseusTargets NAMESPACE perseus:: DESTINATION "${PERSEUS_CMAKE_DIR}")

get_target_property(PERSEUS_CORE_TYPE perseus_core TYPE)
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/perseusConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/perseusConfig.cmake" INSTALL_DESTINATION "${PERSEUS_CMAKE_DIR}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/perseusConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/perseusConfig.cmake"
              "${PROJECT_BINARY_DIR}/perseusConfigVersion.cmake"
        DESTINATION "${PERSEUS_CMAKE_DIR}")

if(TARGET perseus)
  install(TARGETS perseus)
  add_subdirectory("${PROJECT_SOURCE_DIR}/packaging")
endif()
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" TYPE DOC)
