# Installs the build in BUILD, then configures, builds and runs the project beside this file with what was installed.
set(prefix ${BUILD}/external/installed)
set(project ${BUILD}/external/project)
file(REMOVE_RECURSE ${prefix} ${project})

function(must)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

must(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
must(${prefix}/bin/poise --version)
must(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${project} -G Ninja -DCMAKE_PREFIX_PATH=${prefix}
     -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_BUILD_TYPE=Debug)
must(${CMAKE_COMMAND} --build ${project})
must(${project}/external)
