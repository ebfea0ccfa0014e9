# What `cmake --install` puts where: the library with its headers, the program, and files for find_package(poise).
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

install(TARGETS poise EXPORT poiseTargets INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/poise TYPE INCLUDE)
if(POISE_APP)
  install(TARGETS poise_app)
endif()
if(TARGET poise_mpi)
  install(TARGETS poise_mpi LIBRARY DESTINATION ${POISE_PLUGIN_FOLDER})
endif()

set(POISE_PACKAGE ${CMAKE_INSTALL_LIBDIR}/cmake/poise)
install(EXPORT poiseTargets NAMESPACE poise:: DESTINATION ${POISE_PACKAGE})
configure_package_config_file(cmake/poiseConfig.cmake.in ${PROJECT_BINARY_DIR}/poiseConfig.cmake
                              INSTALL_DESTINATION ${POISE_PACKAGE})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/poiseConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/poiseConfig.cmake ${PROJECT_BINARY_DIR}/poiseConfigVersion.cmake
        DESTINATION ${POISE_PACKAGE})
