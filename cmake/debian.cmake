# Debian packages by `make deb`: poise, the program; poise-mpi, by which it runs on several machines; poise-cuda, by which it
# runs on a GPU, where there is nvcc; libpoise-dev, the library for programs of one's own.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "the maintainers of Poise <poise@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL program dev)
if(TARGET poise_mpi)
  list(APPEND CPACK_COMPONENTS_ALL mpi)
endif()
if(TARGET poise_cuda_library)
  list(APPEND CPACK_COMPONENTS_ALL cuda)
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS OFF)

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME poise)
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "Ising and Potts models, networks, restricted Boltzmann machines, QUBO, variable
selection: draws, marginals and the best state, with diagnostics and warnings.")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)  # the packages of the libraries that it is linked with
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "poise-mpi, poise-cuda")

set(CPACK_DEBIAN_MPI_PACKAGE_NAME poise-mpi)
set(CPACK_COMPONENT_MPI_DESCRIPTION "Runs of Poise on several machines, by mpirun or srun.")
set(CPACK_DEBIAN_MPI_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "poise (= ${PROJECT_VERSION})")

set(CPACK_DEBIAN_CUDA_PACKAGE_NAME poise-cuda)
set(CPACK_COMPONENT_CUDA_DESCRIPTION "Runs of Poise on NVIDIA GPUs.")
set(CPACK_DEBIAN_CUDA_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "poise (= ${PROJECT_VERSION})")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libpoise-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_COMPONENT_DEV_DESCRIPTION "The library and its headers, for programs with targets and kernels of their own.")
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS
    "libfmt-dev, nlohmann-json3-dev, libpng-dev, zlib1g-dev, libboost-context-dev, libzstd-dev, pkg-config")
include(CPack)
