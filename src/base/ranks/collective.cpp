/// Collective calls of ranks, and how an error of one becomes that of all.
#include <poise/collective.hpp>

#include <algorithm>
#include <array>
#include <new>
#include <stdexcept>

#include <poise/types.hpp>

namespace poise {

namespace {

enum Call : std::int32_t { kGatherAll = 1, kGatherRoot, kJoin, kLeave };
enum Kind : std::int64_t { kBadInput, kNoMemory, kOther };

Kind kind_of(const std::exception_ptr& error, std::string& words) {
  try {
    std::rethrow_exception(error);
  } catch (const InputError& known) {
    words = known.what();
    return kBadInput;
  } catch (const std::bad_alloc&) {
    return kNoMemory;
  } catch (const std::exception& known) {
    words = known.what();
  } catch (...) {
    words = "the run was stopped";
  }
  return kOther;
}

}  // namespace

std::vector<Collective::Head> Collective::meet(std::int32_t call, std::size_t bytes, std::span<const std::byte> told) {
  std::vector<Head> heads(static_cast<std::size_t>(size()), Head{});
  Head& mine = heads[static_cast<std::size_t>(rank())];
  mine.call = call;
  mine.bytes = bytes;
  std::copy(told.begin(), told.end(), mine.told.begin());
  exchange_heads(heads);
  const auto failed = std::find_if(heads.begin(), heads.end(), [](const Head& head) { return head.failed != 0; });
  if (failed != heads.end()) {
    failed_ = true;
    hear_error(static_cast<int>(failed - heads.begin()), "", 0);
  }
  const auto is_elsewhere = [&](const Head& head) { return head.call != call || head.bytes != bytes; };
  if (std::none_of(heads.begin(), heads.end(), is_elsewhere)) return heads;
  failed_ = lost_ = true;
  if (std::any_of(heads.begin(), heads.end(), [](const Head& head) { return head.call == kLeave; })) {
    throw std::runtime_error("a rank of this run has ended before the others");
  }
  throw std::logic_error("the ranks of this run have lost each other: they are not at the same place");
}

void Collective::gather_bytes(std::span<std::byte> bytes, std::span<const std::size_t> ends, To to) {
  const auto part = [&](std::size_t r) {
    const std::size_t first = r == 0 ? 0 : ends[r - 1];
    return bytes.subspan(first, ends[r] - first);
  };
  bool has_room = true;
  for (std::size_t r = 0; r < ends.size(); ++r) has_room = has_room && part(r).size() <= sizeof(Head::told);
  const auto call = static_cast<std::int32_t>(to == To::all ? kGatherAll : kGatherRoot);
  if (!has_room) {
    meet(call, bytes.size());
    exchange(bytes, ends, to);
    return;
  }
  const std::vector<Head> heads = meet(call, bytes.size(), part(static_cast<std::size_t>(rank())));
  for (std::size_t r = 0; r < heads.size(); ++r) std::copy_n(heads[r].told.begin(), part(r).size(), part(r).begin());
}

void Collective::join() { meet(kJoin, 0); }

void Collective::leave() noexcept {
  if (failed_) return;
  try {
    meet(kLeave, 0);
  } catch (...) {
    return;  // the others know
  }
}

std::string Collective::of_root(std::string mine) {
  mine.resize(of_root(static_cast<std::uint64_t>(mine.size())));
  gather(std::span<char>(mine), std::vector<std::size_t>(static_cast<std::size_t>(size()), mine.size()));
  return mine;
}

bool Collective::any(bool mine) {
  const std::vector<std::uint8_t> all = of_all(static_cast<std::uint8_t>(mine));
  return std::any_of(all.begin(), all.end(), [](std::uint8_t one) { return one != 0; });
}

std::vector<std::string> Collective::gather_strings(const std::vector<std::string>& mine,
                                                    std::span<const std::size_t> counts, To to) {
  const auto ranks = static_cast<std::size_t>(size());
  std::vector<std::size_t> ends(ranks);
  std::size_t total = 0;
  for (std::size_t r = 0; r < ranks; ++r) ends[r] = total += counts[r];
  const std::size_t first = ends[static_cast<std::size_t>(rank())] - mine.size();
  std::vector<std::uint64_t> lengths(total, 0);
  for (std::size_t k = 0; k < mine.size(); ++k) lengths[first + k] = mine[k].size();
  gather(std::span<std::uint64_t>(lengths), ends);
  std::vector<std::size_t> byte_ends(ranks);
  std::size_t bytes = 0;
  for (std::size_t r = 0, k = 0; r < ranks; ++r) {
    for (; k < ends[r]; ++k) bytes += lengths[k];
    byte_ends[r] = bytes;
  }
  std::string all(bytes, '\0');
  std::size_t at = rank() == 0 ? 0 : byte_ends[static_cast<std::size_t>(rank()) - 1];
  for (const std::string& one : mine) {
    std::copy(one.begin(), one.end(), all.begin() + static_cast<std::ptrdiff_t>(at));
    at += one.size();
  }
  gather(std::span<char>(all), byte_ends, to);
  std::vector<std::string> out(total);
  if (to == To::root && !is_root()) return out;
  at = 0;
  for (std::size_t k = 0; k < total; ++k) {
    out[k] = all.substr(at, lengths[k]);
    at += lengths[k];
  }
  return out;
}

void Collective::say_error(const std::exception_ptr& error) {
  failed_ = true;
  std::string words;
  const Kind kind = kind_of(error, words);
  std::vector<Head> heads(static_cast<std::size_t>(size()), Head{});
  heads[static_cast<std::size_t>(rank())].failed = 1;
  exchange_heads(heads);
  const auto first = std::find_if(heads.begin(), heads.end(), [](const Head& head) { return head.failed != 0; });
  hear_error(static_cast<int>(first - heads.begin()), std::move(words), kind);
}

void Collective::hear_error(int from, std::string words, std::int64_t kind) {
  const auto ranks = static_cast<std::size_t>(size());
  const auto tell = [&](std::span<std::byte> bytes) {
    std::vector<std::size_t> ends(ranks, 0);
    std::fill(ends.begin() + from, ends.end(), bytes.size());
    if (!bytes.empty()) exchange(bytes, ends, To::all);
  };
  std::array<std::int64_t, 2> head = {kind, static_cast<std::int64_t>(words.size())};
  tell(std::as_writable_bytes(std::span(head)));
  words.resize(static_cast<std::size_t>(head[1]));
  tell(std::as_writable_bytes(std::span(words)));
  if (from == rank()) return;
  switch (head[0]) {
    case kBadInput: throw InputError(words);
    case kNoMemory: throw std::bad_alloc();
    default: throw std::runtime_error(words);
  }
}

}  // namespace poise
