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

# pkg-config: perseus-core.pc and its like. In the same place as the CMake package, whose folder may
# be moved as a whole.
set(PERSEUS_PKGCONFIG_DIR "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
           BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}/${PERSEUS_PKGCONFIG_DIR}"
           OUTPUT_VARIABLE PERSEUS_PC_PREFIX)
# perseus_install_pc(LIBRARY below [FLAG...]): `below` is what it links of ours, FLAGs what else,
# where it is static.
function(perseus_install_pc library below)
  set(PERSEUS_PC_REQUIRES "")
  set(PERSEUS_PC_FLAGS "")
  set(PERSEUS_PC_LIBS "")
  get_target_property(type perseus_${library} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    set(PERSEUS_PC_REQUIRES "${below}")
    list(JOIN ARGN " " PERSEUS_PC_LIBS)
    set(PERSEUS_PC_FLAGS " -DPERSEUS_STATIC")
    if(NOT below)
      set(PERSEUS_PC_REQUIRES "fmt >= ${PERSEUS_FMT_VERSION}")
    endif()
  endif()
  set(file "${PROJECT_BINARY_DIR}/pkgconfig/perseus-${library}.pc")
  configure_file("${PROJECT_SOURCE_DIR}/cmake/perseus.pc.in" "${file}" @ONLY)
  install(FILES "${file}" DESTINATION "${PERSEUS_PKGCONFIG_DIR}")
endfunction()
perseus_install_pc(model "")
perseus_install_pc(core perseus-model)
perseus_install_pc(report perseus-core)
foreach(library IN ITEMS client planner)
  if(TARGET perseus_${library})
    perseus_install_pc(${library} "")
  endif()
endforeach()

if(TARGET perseus)
  install(TARGETS perseus COMPONENT program)
  add_subdirectory("${PROJECT_SOURCE_DIR}/packaging")
endif()
# From here on, what the package of the program has, too.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME program)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" TYPE DOC)
# Headers name pages of docs/, pages name examples.
install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs" "${PROJECT_SOURCE_DIR}/examples" TYPE DOC
        PATTERN "__pycache__" EXCLUDE)

# What `perseus serve` shows at /docs. The build does not make it: its generator comes from PyPI.
set(PERSEUS_DOCS_SITE "" CACHE PATH "The site that scripts/site has made of docs/, to be installed")
if(PERSEUS_DOCS_SITE)
  if(NOT EXISTS "${PERSEUS_DOCS_SITE}/index.html")
    message(FATAL_ERROR "PERSEUS_DOCS_SITE has no index.html: run scripts/site ${PERSEUS_DOCS_SITE}")
  endif()
  install(DIRECTORY "${PERSEUS_DOCS_SITE}/" DESTINATION "${CMAKE_INSTALL_DOCDIR}/site")
endif()
