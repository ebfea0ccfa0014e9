# What `cmake --install` and packages put where: the program with its manual and completions (component program), what
# speaks MPI (mpi), and the library with its headers and the files for find_package(poise) (dev).
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

install(TARGETS poise EXPORT poiseTargets COMPONENT dev INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/poise TYPE INCLUDE COMPONENT dev)
if(POISE_APP)
  install(TARGETS poise_app COMPONENT program)
  # Pages of the manual and completions: the program writes them.
  set(POISE_SHARE ${PROJECT_BINARY_DIR}/share)
  install(CODE "
    execute_process(COMMAND $<TARGET_FILE:poise_app> man --out ${POISE_SHARE}/man COMMAND_ERROR_IS_FATAL ANY)
    foreach(shell bash zsh fish)
      execute_process(COMMAND $<TARGET_FILE:poise_app> completions \${shell} OUTPUT_FILE ${POISE_SHARE}/poise.\${shell}
                      COMMAND_ERROR_IS_FATAL ANY)
    endforeach()" COMPONENT program)
  install(DIRECTORY ${POISE_SHARE}/man/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT program)
  install(FILES ${POISE_SHARE}/poise.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME poise
          COMPONENT program)
  install(FILES ${POISE_SHARE}/poise.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _poise COMPONENT program)
  install(FILES ${POISE_SHARE}/poise.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT program)
endif()
if(TARGET poise_mpi)
  install(TARGETS poise_mpi LIBRARY DESTINATION ${POISE_PLUGIN_FOLDER} COMPONENT mpi)
endif()
if(TARGET poise_cuda_library)
  install(TARGETS poise_cuda_library LIBRARY DESTINATION ${POISE_PLUGIN_FOLDER} COMPONENT cuda)
endif()

set(POISE_PACKAGE ${CMAKE_INSTALL_LIBDIR}/cmake/poise)
install(EXPORT poiseTargets NAMESPACE poise:: DESTINATION ${POISE_PACKAGE} COMPONENT dev)
configure_package_config_file(cmake/poiseConfig.cmake.in ${PROJECT_BINARY_DIR}/poiseConfig.cmake
                              INSTALL_DESTINATION ${POISE_PACKAGE})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/poiseConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/poiseConfig.cmake ${PROJECT_BINARY_DIR}/poiseConfigVersion.cmake
        DESTINATION ${POISE_PACKAGE} COMPONENT dev)

include(${CMAKE_CURRENT_LIST_DIR}/debian.cmake)
