/// Chunks by way of HDF5's own functions.
#include "store/chunk_writer.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <utility>

#include <hdf5.h>

#include "store/netcdf_plan.hpp"

namespace poise::netcdf {

namespace {

void check(bool good) {
  if (!good) throw Failure(NC_EHDFERR);
}

/// The file of that name among those that the process has open.
hid_t open_file(const std::string& path) {
  const ssize_t count = H5Fget_obj_count(static_cast<hid_t>(H5F_OBJ_ALL), H5F_OBJ_FILE);
  check(count > 0);
  std::vector<hid_t> files(static_cast<std::size_t>(count));
  check(H5Fget_obj_ids(static_cast<hid_t>(H5F_OBJ_ALL), H5F_OBJ_FILE, files.size(), files.data()) == count);
  for (const hid_t file : files) {
    std::string name(path.size() + 2, '\0');
    const ssize_t length = H5Fget_name(file, name.data(), name.size());
    name.resize(path.size());
    unsigned intent = 0;
    if (length == static_cast<ssize_t>(path.size()) && name == path && H5Fget_intent(file, &intent) >= 0 &&
        (intent & H5F_ACC_RDWR) != 0) {
      return file;
    }
  }
  throw Failure(NC_EHDFERR);
}

}  // namespace

ChunkWriter::ChunkWriter(const std::string& path, Shape shape, const ChunkCoder& coder, unsigned threads)
    : shape_(std::move(shape)),
      variables_(std::accumulate(shape_.inner.begin(), shape_.inner.end(), std::size_t{1}, std::multiplies<>())),
      coder_(coder),
      pool_(std::max(1U, threads)),
      dataset_(H5Dopen2(open_file(path), "/posterior/x", H5P_DEFAULT)) {
  check(dataset_ >= 0);
}

ChunkWriter::~ChunkWriter() { H5Dclose(dataset_); }

void ChunkWriter::write(const DrawBatch& block, std::size_t written) {
  const std::size_t per_chain = (block.count + shape_.chunk_draws - 1) / shape_.chunk_draws;
  std::vector<std::string> streams(shape_.chains * per_chain);
  pool_.for_each(streams.size(), [&](std::size_t k) {
    const std::size_t first = k % per_chain * shape_.chunk_draws;
    const std::size_t draws = std::min(shape_.chunk_draws, block.count - first);
    const std::int8_t* from = block.x.data() + (k / per_chain * block.count + first) * variables_;
    if (draws == shape_.chunk_draws) {
      streams[k] = coder_({from, draws * variables_});
      return;
    }
    // Chunks are whole; what is behind the last draw is never read.
    std::vector<std::int8_t> padded(shape_.chunk_draws * variables_, from[0]);
    std::copy_n(from, draws * variables_, padded.begin());
    streams[k] = coder_(padded);
  });
  std::vector<hsize_t> extent{shape_.chains, written + block.count};
  extent.insert(extent.end(), shape_.inner.begin(), shape_.inner.end());
  check(H5Dset_extent(dataset_, extent.data()) >= 0);
  for (std::size_t k = 0; k < streams.size(); ++k) {
    const std::array<hsize_t, 4> offset{k / per_chain, written + k % per_chain * shape_.chunk_draws, 0, 0};
    check(H5Dwrite_chunk(dataset_, H5P_DEFAULT, 0, offset.data(), streams[k].size(), streams[k].data()) >= 0);
  }
}

}  // namespace poise::netcdf
