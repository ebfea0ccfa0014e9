/// Streams, and graphs: launches that are put together once and started together again and again.
#pragma once

#include <utility>

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
    check(cudaStreamCreateWithPriority(&stream_, flags, priority == StreamPriority::high ? highest : lowest),
          "a stream was made");
  }
  ~CudaStream() { static_cast<void>(cudaStreamDestroy(stream_)); }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  // NOLINTNEXTLINE(google-explicit-constructor): it stands for what it holds
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Graph {
 public:
  Graph() = default;
  ~Graph() {
    if (graph_ != nullptr) static_cast<void>(cudaGraphExecDestroy(graph_));
  }
  Graph(Graph&& other) noexcept : graph_(std::exchange(other.graph_, nullptr)) {}
  Graph& operator=(Graph&& other) noexcept {
    std::swap(graph_, other.graph_);
    return *this;
  }

  /// A graph of everything that launch(stream) starts in the stream it is given. That is one of its own which does not
  /// wait for the default stream: otherwise no thread of the process could use the latter meanwhile.
  template <class Launch>
  explicit Graph(Launch&& launch) {
    constexpr const char* kWhat = "launches were put together";
    struct Captured {
      cudaStream_t stream = nullptr;
      cudaGraph_t graph = nullptr;
      ~Captured() {
        if (graph != nullptr) static_cast<void>(cudaGraphDestroy(graph));
        static_cast<void>(cudaStreamDestroy(stream));
      }
    } captured;
    check(cudaStreamCreateWithFlags(&captured.stream, cudaStreamNonBlocking), kWhat);
    check(cudaStreamBeginCapture(captured.stream, cudaStreamCaptureModeThreadLocal), kWhat);
    try {
      launch(captured.stream);
    } catch (...) {
      static_cast<void>(cudaStreamEndCapture(captured.stream, &captured.graph));
      throw;
    }
    check(cudaStreamEndCapture(captured.stream, &captured.graph), kWhat);
    check(cudaGraphInstantiate(&graph_, captured.graph, 0), kWhat);
  }

  [[nodiscard]] bool is_made() const { return graph_ != nullptr; }
  void launch(cudaStream_t stream) const { check(cudaGraphLaunch(graph_, stream), "launches were started"); }

 private:
  cudaGraphExec_t graph_ = nullptr;
};

}  // namespace poise::cuda
