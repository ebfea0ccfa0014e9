/// Streams, and graphs: launches that are put together once and started together again and again.
#pragma once

#include "engines/cuda/common/call.hpp"

namespace poise::cuda {

/// Whether a stream and the default stream wait for each other.
enum class StreamOrder { with_default, apart };
/// Blocks of launches in a stream of high priority are begun first, where there is room for one.
enum class StreamPriority { usual, high };

class CudaStream {
 public:
  explicit CudaStream(StreamOrder order = StreamOrder::with_default, StreamPriority priority = StreamPriority::usual) {
    const unsigned flags = order == StreamOrder::apart ? cudaStreamNonBlocking : cudaStreamDefault;
    int lowest = 0, highest = 0;
    check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "a stream was made");
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithPriority(&stream, flags, priority == StreamPriority::high ? highest : lowest),
          "a stream was made");
    stream_.reset(stream);
  }

  // NOLINTNEXTLINE(google-explicit-constructor): it stands for what it holds
  operator cudaStream_t() const { return stream_.get(); }

 private:
  Owned<cudaStream_t, cudaStreamDestroy> stream_;
};

class Graph {
 public:
  Graph() = default;

  /// A graph of everything that launch(stream) starts in the stream it is given. That is one of its own which does not
  /// wait for the default stream: otherwise no thread of the process could use the latter meanwhile.
  template <class Launch>
  explicit Graph(Launch&& launch) {
    constexpr const char* kWhat = "launches were put together";
    const CudaStream stream(StreamOrder::apart);
    Owned<cudaGraph_t, cudaGraphDestroy> captured;
    const auto end = [&] {
      cudaGraph_t graph = nullptr;
      const cudaError_t status = cudaStreamEndCapture(stream, &graph);
      captured.reset(graph);
      return status;
    };
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), kWhat);
    try {
      launch(static_cast<cudaStream_t>(stream));
    } catch (...) {
      static_cast<void>(end());
      throw;
    }
    check(end(), kWhat);
    cudaGraphExec_t made = nullptr;
    check(cudaGraphInstantiate(&made, captured.get(), 0), kWhat);
    graph_.reset(made);
  }

  [[nodiscard]] bool is_made() const { return graph_ != nullptr; }
  void launch(cudaStream_t stream) const { check(cudaGraphLaunch(graph_.get(), stream), "launches were started"); }

 private:
  Owned<cudaGraphExec_t, cudaGraphExecDestroy> graph_;
};

}  // namespace poise::cuda
