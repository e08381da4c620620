# Copyright 2026 The Perseus Authors
# SPDX-License-Identifier: Apache-2.0

# Debian packages of one build, by `cpack`; scripts/package runs it:
#   perseus          the program, its units, man page, completions and pages; the libraries for C
#   libperseus-dev   headers, static libraries, files for CMake and pkg-config
#   python3-perseus  for the system's Python
#   perseus-slurm    Slurm's option --perseus, where Slurm's headers are
if(NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  message(FATAL_ERROR "PERSEUS_DEBIAN needs -DCMAKE_INSTALL_PREFIX=/usr: packages install there.")
endif()
set(debian "${PROJECT_SOURCE_DIR}/packaging/debian")

foreach(name agent relay server)
  install(FILES "${debian}/perseus-${name}" DESTINATION /etc/default COMPONENT program)
endforeach()
install(FILES "${debian}/perseus.conf" DESTINATION lib/sysusers.d COMPONENT program)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/python/perseus" DESTINATION lib/python3/dist-packages
        COMPONENT python PATTERN "__pycache__" EXCLUDE)
# By which Python tells the version.
file(WRITE "${PROJECT_BINARY_DIR}/METADATA"
     "Metadata-Version: 2.1\nName: perseus-energy\nVersion: ${PROJECT_VERSION}\n")
install(FILES "${PROJECT_BINARY_DIR}/METADATA" COMPONENT python
        DESTINATION "lib/python3/dist-packages/perseus_energy-${PROJECT_VERSION}.dist-info")
if(TARGET perseus_told)
  install(TARGETS perseus_told LIBRARY DESTINATION lib/python3/dist-packages/perseus
          COMPONENT python)
endif()
set(components program development python)
set(packages perseus libperseus-dev python3-perseus)
if(TARGET perseus_spank)
  list(APPEND components slurm)
  list(APPEND packages perseus-slurm)
endif()
file(STRINGS "${PROJECT_SOURCE_DIR}/include/perseus/version.h" date REGEX "PERSEUS_VERSION_DATE")
string(REGEX MATCH "[0-9]+-[0-9]+-[0-9]+" date "${date}")
# Debian's own changelog, and compressed pages, as its policy wants them.
execute_process(COMMAND date --utc --rfc-email "--date=${date}"
                OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
foreach(component package IN ZIP_LISTS components packages)
  set(changelog "${PROJECT_BINARY_DIR}/debian/${package}/changelog")
  configure_file("${debian}/changelog.in" "${changelog}" @ONLY)
  execute_process(COMMAND gzip -9nf "${changelog}" COMMAND_ERROR_IS_FATAL ANY)
  install(FILES "${debian}/copyright" "${changelog}.gz"
          DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/${package}" COMPONENT ${component})
  install(FILES "${debian}/overrides/${package}" DESTINATION share/lintian/overrides
          COMPONENT ${component})
endforeach()
install(CODE "
  file(GLOB pages \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_MANDIR}/man1/*.1\")
  execute_process(COMMAND gzip -9nf \${pages} COMMAND_ERROR_IS_FATAL ANY)"
  COMPONENT program)
configure_file("${debian}/shlibs.in" "${PROJECT_BINARY_DIR}/debian/shlibs" @ONLY)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME perseus)
set(CPACK_PACKAGE_CONTACT "The Perseus Authors <perseus@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL ${components})
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# The libraries of `program`, which `development` and `python` need: by name, not by a shlibs file.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS "${PROJECT_BINARY_DIR}/src/training/client"
                                                "${PROJECT_BINARY_DIR}/src/training/planner_c")
set(same "perseus (= ${PROJECT_VERSION})")

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME perseus)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PROGRAM_DESCRIPTION
"Perseus gives each computation of a training pipeline its own GPU clock,
so that training uses less energy and is not slower. This package has the
program, the services of server and nodes, and the libraries for C.")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS "systemd")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_CONTROL_EXTRA
    "${debian}/postinst" "${debian}/prerm" "${debian}/postrm" "${debian}/conffiles"
    "${debian}/triggers" "${PROJECT_BINARY_DIR}/debian/shlibs")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libperseus-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "${same}, libfmt-dev, libexpected-dev")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION
"Perseus as a library, for C++ and C: headers, static libraries, and the
files by which CMake and pkg-config find them.")

set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-perseus)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA "${debian}/python/prerm")
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "${same}, python3 (>= 3.9)")
set(CPACK_DEBIAN_PYTHON_DESCRIPTION
"Perseus for trainers in Python: hooks for PyTorch, Megatron and DeepSpeed,
and the planner. The trainer must run with the Python of the system. Other
environments install the wheel.")

set(CPACK_DEBIAN_SLURM_PACKAGE_NAME perseus-slurm)
set(CPACK_DEBIAN_SLURM_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_SLURM_PACKAGE_DEPENDS "${same}")
set(CPACK_DEBIAN_SLURM_PACKAGE_ENHANCES "slurmd, slurm-client")
set(CPACK_DEBIAN_SLURM_DESCRIPTION
"The option --perseus of Slurm's sbatch, salloc and srun: jobs that ask for
it follow a plan of GPU clocks. It is for the Slurm of this release of the
distribution.")
include(CPack)
