# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

# Each layer is a root of includes: a module is named without its layer, but for those of the server.
set(PERSEUS_SOURCE_ROOTS "${PROJECT_SOURCE_DIR}/src")
foreach(layer IN ITEMS base planner view node training)
  list(APPEND PERSEUS_SOURCE_ROOTS "${PROJECT_SOURCE_DIR}/src/${layer}")
endforeach()

# What every target of ours is compiled with. -ffp-contract=off: the same bits
# on every machine.
add_library(perseus_options INTERFACE)
target_compile_features(perseus_options INTERFACE cxx_std_20)
target_compile_options(perseus_options INTERFACE -Wall -Wextra -Wpedantic -ffp-contract=off)
# g++ 12 sees overlaps in string concatenation that are not there (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(perseus_options INTERFACE -Wno-restrict)
endif()
# Who touches a member says that it holds its lock (src/base/common/mutex.h).
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(perseus_options INTERFACE -Wthread-safety -Wthread-safety-beta)
endif()
if(PERSEUS_WERROR)
  target_compile_options(perseus_options INTERFACE -Werror)
endif()
if(PERSEUS_SANITIZE)
  target_compile_options(perseus_options INTERFACE -fsanitize=${PERSEUS_SANITIZE}
                         -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(perseus_options INTERFACE -fsanitize=${PERSEUS_SANITIZE})
  # g++ sees uninitialised members in std::regex once sanitizers instrument it (GCC bug 105562).
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(perseus_options INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()
if(PERSEUS_BUILD_FUZZERS)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "PERSEUS_BUILD_FUZZERS needs clang (libFuzzer), but the compiler is "
                        "${CMAKE_CXX_COMPILER_ID}: add -DCMAKE_CXX_COMPILER=clang++.")
  endif()
  target_compile_options(perseus_options INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(perseus_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# The objects of one module (a folder of src/): the target perseus_NAME_module.
# Only what include/perseus/ declares is visible outside of a shared library.
# perseus_add_module(NAME [COLD] SOURCES file... [DEPENDS library...])
# COLD: what takes time lies in other modules. At -O1 this one takes little more than half as long to
# compile as at -O3.
function(perseus_add_module name)
  cmake_parse_arguments(PARSE_ARGV 1 MODULE "COLD" "" "SOURCES;DEPENDS")
  add_library(perseus_${name}_module OBJECT ${MODULE_SOURCES})
  set_target_properties(perseus_${name}_module PROPERTIES POSITION_INDEPENDENT_CODE ON
                        CXX_EXTENSIONS OFF CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
                        UNITY_BUILD ${PERSEUS_UNITY_BUILD} UNITY_BUILD_BATCH_SIZE 0)
  # A linker that is asked to (--gc-sections) leaves out what a program never calls.
  target_compile_options(perseus_${name}_module PRIVATE -ffunction-sections -fdata-sections)
  if(MODULE_COLD)
    target_compile_options(perseus_${name}_module PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  if(NOT BUILD_SHARED_LIBS)
    target_compile_definitions(perseus_${name}_module PRIVATE PERSEUS_STATIC)
  endif()
  target_include_directories(perseus_${name}_module PUBLIC "${PROJECT_SOURCE_DIR}/include"
                             PRIVATE ${PERSEUS_SOURCE_ROOTS})
  target_link_libraries(perseus_${name}_module PUBLIC tl::expected
                        PRIVATE perseus_options ${MODULE_DEPENDS})
endfunction()

# A library of whole modules, perseus::NAME. `MODULES` are its own; with the modules
# of `BELOW`, libraries that it builds upon, they are all that it needs. Static
# libraries link those below. A shared one holds their modules itself: what modules
# share among each other stays hidden, and who links one library loads one.
# perseus_NAME_archive is the static one in either case: for programs of this
# repository, which use private functions, too.
# perseus_add_library(NAME MODULES module... [BELOW name...] [PRIVATE library...])
function(perseus_add_library name)
  cmake_parse_arguments(PARSE_ARGV 1 LIBRARY "" "" "MODULES;BELOW;PRIVATE")
  set(own)
  foreach(module IN LISTS LIBRARY_MODULES)
    list(APPEND own $<TARGET_OBJECTS:perseus_${module}_module>)
  endforeach()
  set(all ${own})
  set(private ${LIBRARY_PRIVATE})
  foreach(below IN LISTS LIBRARY_BELOW)
    list(APPEND all ${PERSEUS_${below}_OBJECTS})
    list(APPEND private ${PERSEUS_${below}_PRIVATE})
  endforeach()
  set(PERSEUS_${name}_OBJECTS ${all} PARENT_SCOPE)
  set(PERSEUS_${name}_PRIVATE ${private} PARENT_SCOPE)

  if(BUILD_SHARED_LIBS)
    add_library(perseus_${name} SHARED ${all})
    target_link_options(perseus_${name} PRIVATE
      "LINKER:--gc-sections,--version-script=${PROJECT_SOURCE_DIR}/cmake/perseus.map")
    set_target_properties(perseus_${name} PROPERTIES
      LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/perseus.map")
    add_library(perseus_${name}_archive STATIC EXCLUDE_FROM_ALL ${own})
    set(archive perseus_${name}_archive)
  else()
    add_library(perseus_${name} STATIC ${own})
    target_compile_definitions(perseus_${name} INTERFACE PERSEUS_STATIC)
    add_library(perseus_${name}_archive ALIAS perseus_${name})
    set(archive)
  endif()
  add_library(perseus::${name} ALIAS perseus_${name})
  foreach(library IN ITEMS perseus_${name} ${archive})
    set_target_properties(${library} PROPERTIES
      EXPORT_NAME ${name} LINKER_LANGUAGE CXX
      VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
    target_compile_features(${library} PUBLIC cxx_std_20)
    target_include_directories(${library} PUBLIC
      $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
      $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    target_link_libraries(${library} PUBLIC tl::expected
                          PRIVATE ${private} $<BUILD_INTERFACE:perseus_options>)
  endforeach()
  list(TRANSFORM LIBRARY_BELOW REPLACE "(.+)" "perseus_\\1_archive" OUTPUT_VARIABLE archives)
  list(TRANSFORM LIBRARY_BELOW PREPEND "perseus_")
  if(BUILD_SHARED_LIBS)
    target_link_libraries(perseus_${name}_archive PUBLIC ${archives})
  else()
    target_link_libraries(perseus_${name} PUBLIC ${LIBRARY_BELOW})
  endif()
endfunction()

# Replaces perseus::NAME by the static library of this build, whose private
# functions can be linked, in the list named `variable`.
function(perseus_use_archives variable)
  list(TRANSFORM ${variable} REPLACE "^perseus::(.+)$" "perseus_\\1_archive")
  set(${variable} ${${variable}} PARENT_SCOPE)
endfunction()

# One test binary per module, run from the root of the repository, test by test; but
# for those that FILTER (of --gtest_filter) leaves out.
# HOT: its own code takes time when it runs, so that -O1 pays. The others compile in two thirds of
# that time at -O0, under sanitizers in less than half; the modules that are tested keep their own level.
# perseus_add_test(NAME [HOT] SOURCES file... [LIBRARIES library...] [FILTER filter])
function(perseus_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 TEST "HOT" "FILTER" "SOURCES;LIBRARIES")
  perseus_use_archives(TEST_LIBRARIES)
  add_executable(${name}_test ${TEST_SOURCES})
  # As one file where modules are: most of what a test's file costs is its headers.
  set_target_properties(${name}_test PROPERTIES CXX_EXTENSIONS OFF
                        UNITY_BUILD ${PERSEUS_UNITY_BUILD} UNITY_BUILD_BATCH_SIZE 0)
  target_include_directories(${name}_test PRIVATE ${PERSEUS_SOURCE_ROOTS}
                             "${PROJECT_SOURCE_DIR}/tests")
  target_link_libraries(${name}_test PRIVATE perseus_options ${TEST_LIBRARIES} GTest::gtest_main)
  target_compile_options(${name}_test PRIVATE
                         $<$<NOT:$<CONFIG:Debug>>:$<IF:$<BOOL:${TEST_HOT}>,-O1,-O0>>)
  gtest_discover_tests(${name}_test TEST_PREFIX "${name}." DISCOVERY_TIMEOUT 60
                       TEST_FILTER "${TEST_FILTER}" WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
endfunction()

# One libFuzzer binary, NAME_fuzzer; its corpus is fuzz/corpus/NAME.
# perseus_add_fuzzer(NAME SOURCES file... [LIBRARIES library...])
function(perseus_add_fuzzer name)
  cmake_parse_arguments(PARSE_ARGV 1 FUZZER "" "" "SOURCES;LIBRARIES")
  perseus_use_archives(FUZZER_LIBRARIES)
  add_executable(${name}_fuzzer ${FUZZER_SOURCES})
  set_target_properties(${name}_fuzzer PROPERTIES CXX_EXTENSIONS OFF)
  target_include_directories(${name}_fuzzer PRIVATE ${PERSEUS_SOURCE_ROOTS})
  target_link_libraries(${name}_fuzzer PRIVATE perseus_options ${FUZZER_LIBRARIES})
  target_link_options(${name}_fuzzer PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzzers ${name}_fuzzer)
endfunction()
