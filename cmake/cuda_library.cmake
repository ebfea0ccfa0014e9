# The GPU back end, a library that is loaded at run time where it is installed: nothing else has code for a GPU or needs
# the CUDA runtime. It has the parts of libpoise that it uses, and shows one function.
file(GLOB_RECURSE cuda CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/engines/cuda/*.cpp ${PROJECT_SOURCE_DIR}/src/engines/cuda/*.cu)
set(rooms ${POISE_ROOMS})
poise_room(cuda TOGETHER 8 SOURCES ${cuda})
set(POISE_ROOMS ${rooms})  # not one of libpoise
target_link_libraries(poise_cuda PRIVATE CUDA::cudart_static)
target_compile_options(poise_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-Xfatbin=-compress-all>)

add_library(poise_cuda_library MODULE $<TARGET_OBJECTS:poise_cuda>)
set_target_properties(poise_cuda_library PROPERTIES OUTPUT_NAME poise_cuda LINKER_LANGUAGE CXX)
target_link_libraries(poise_cuda_library PRIVATE poise poise_runtime poise_shared CUDA::cudart_static)
target_link_options(poise_cuda_library PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/cuda_library.map)
set_target_properties(poise_cuda_library PROPERTIES LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/cuda_library.map)
