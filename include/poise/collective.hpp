/// Processes that make one run together, and what they tell each other.
///
/// Every rank runs the same program and makes the same decisions: what these depend on is told to all, in the order of
/// ranks, as the numbers themselves and never as sums, so that each of them adds up the same numbers in the same order.
/// A call that tells something is made by all ranks at the same place. A rank that cannot continue says so instead of
/// its next call, and all the others end there with its error: none of them waits for ever.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace poise {

/// The ranks of a run as one of them sees them. A call costs one message of all ranks to all.
class Collective {
 public:
  virtual ~Collective() = default;

  /// Number of this process, from 0.
  [[nodiscard]] virtual int rank() const = 0;
  /// How many processes there are.
  [[nodiscard]] virtual int size() const = 0;
  /// Rank 0 talks to the world: files, progress, the clock.
  [[nodiscard]] bool is_root() const { return rank() == 0; }

  enum class To { all, root };

  /// `values` has room for those of all ranks, one rank's behind the other's; ends[r] is the end of rank r's. Each rank
  /// has filled in its own; afterwards all are there, everywhere or at the root.
  template <class T>
  void gather(std::span<T> values, std::span<const std::size_t> ends, To to = To::all) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<std::size_t> bytes(ends.begin(), ends.end());
    for (std::size_t& end : bytes) end *= sizeof(T);
    gather_bytes(std::as_writable_bytes(values), bytes, to);
  }
  /// What each rank says.
  template <class T>
  [[nodiscard]] std::vector<T> of_all(const T& mine) {
    std::vector<T> all(static_cast<std::size_t>(size()), mine);
    std::vector<std::size_t> ends(all.size());
    for (std::size_t r = 0; r < ends.size(); ++r) ends[r] = r + 1;
    gather(std::span<T>(all), ends);
    return all;
  }
  /// What the root says.
  template <class T>
  [[nodiscard]] T of_root(T mine) {
    gather(std::span<T>(&mine, 1), std::vector<std::size_t>(static_cast<std::size_t>(size()), 1));
    return mine;
  }
  /// The same of a text.
  [[nodiscard]] std::string of_root(std::string mine);
  /// Whether any rank says so.
  [[nodiscard]] bool any(bool mine);
  /// Those of all ranks, one rank's behind the other's; `counts` says how many each of them has.
  [[nodiscard]] std::vector<std::string> gather_strings(const std::vector<std::string>& mine,
                                                        std::span<const std::size_t> counts, To to = To::all);

  /// Work of all ranks. An error of one ends that of all, at the next thing they tell each other, or at the end of it;
  /// the others throw it as an InputError, std::bad_alloc or std::runtime_error with the same words.
  template <class Work>
  void together(Work&& work) {
    try {
      work();
      join();
    } catch (...) {
      const Settled settled{*this};
      if (!failed_) say_error(std::current_exception());
      throw;
    }
  }

  /// What the user is told where a rank is killed, behind the words that say so.
  void say_on_loss(std::string words) { words_on_loss_ = std::move(words); }

  /// The last call, before the process ends: others that still wait for this rank hear of it.
  void leave() noexcept;

 protected:
  /// What ranks say when they meet, and as much of what they tell as has room there: few bytes go with the call.
  struct Head {
    std::int32_t failed;  ///< whether the rank cannot continue
    std::int32_t call;
    std::uint64_t bytes;  ///< of all ranks
    std::array<std::byte, 48> told;
  };
  /// Every rank has filled in its own; afterwards all are there. Ranks may wait here for long.
  virtual void exchange_heads(std::span<Head> heads) = 0;
  /// As `gather` does, when all are there.
  virtual void exchange(std::span<std::byte> bytes, std::span<const std::size_t> ends, To to) = 0;
  [[nodiscard]] const std::string& words_on_loss() const { return words_on_loss_; }

 private:
  /// All are out of their work, and may begin another one.
  struct Settled {
    Collective& collective;
    ~Settled() { collective.failed_ = collective.lost_; }
  };

  void gather_bytes(std::span<std::byte> bytes, std::span<const std::size_t> ends, To to);
  /// Before anything is told: throws where a rank has said that it cannot continue.
  std::vector<Head> meet(std::int32_t call, std::size_t bytes, std::span<const std::byte> told = {});
  void join();
  /// Tells the others of an error; throws theirs where a rank before this one has one too.
  void say_error(const std::exception_ptr& error);
  /// Tells, or hears, what went wrong at the rank; throws unless it is this one.
  void hear_error(int from, std::string words, std::int64_t kind);

  std::string words_on_loss_;
  bool failed_ = false;  // all know of an error, and are on their way out
  bool lost_ = false;    // ranks are not at the same place, and will never meet again
};

}  // namespace poise
