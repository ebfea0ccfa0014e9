/// Streams, and graphs: launches that are put together once and started together again and again.
#pragma once

#include <utility>

#include "call.hpp"

namespace poise::cuda {

class CudaStream {
 public:
  CudaStream() { check(cudaStreamCreate(&stream_), "a stream was made"); }
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

  /// Of everything that `launch` starts in the stream, and in others that it has wait for it and waits for.
  template <class Launch>
  Graph(cudaStream_t stream, Launch&& launch) {
    cudaGraph_t captured = nullptr;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "launches were put together");
    launch();
    check(cudaStreamEndCapture(stream, &captured), "launches were put together");
    const cudaError_t status = cudaGraphInstantiate(&graph_, captured, 0);
    static_cast<void>(cudaGraphDestroy(captured));
    check(status, "launches were put together");
  }

  [[nodiscard]] bool is_made() const { return graph_ != nullptr; }
  void launch(cudaStream_t stream) const { check(cudaGraphLaunch(graph_, stream), "launches were started"); }

 private:
  cudaGraphExec_t graph_ = nullptr;
};

}  // namespace poise::cuda
