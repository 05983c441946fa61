#include "attention/reference/results.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <utility>

#include "core/device.h"
#include "core/error.h"
#include "core/thread_pool.h"

namespace longca {
namespace {

/// Per-thread state: both precisions, and the emulation's results of the current tile.
struct Worker {
  explicit Worker(const ReferenceProblem& problem)
      : exact(problem),
        same_precision(problem),
        of_dim(static_cast<std::size_t>(kTile * problem.shape.head_dim)),
        of_value_dim(static_cast<std::size_t>(kTile * problem.shape.value_dim())) {}

  TilePasses<double> exact;
  TilePasses<float> same_precision;
  std::vector<float> of_dim;        ///< dq or dk
  std::vector<float> of_value_dim;  ///< o or dv
};

/// Calls body(i, worker) for every i < count; multithreaded.
template <typename Body>
void for_tiles(const ReferenceProblem& problem, std::size_t count, const Body& body) {
  ThreadPool& pool = ThreadPool::global();
  std::vector<std::unique_ptr<Worker>> workers(static_cast<std::size_t>(pool.threads()));
  pool.parallel_for(static_cast<std::int64_t>(count), [&](std::int64_t i, int thread) {
    auto& worker = workers[static_cast<std::size_t>(thread)];
    if (!worker) worker = std::make_unique<Worker>(problem);
    body(static_cast<std::size_t>(i), *worker);
  });
}

template <typename T>
double dot_rows_of(const ConstTensorView& a, const ConstTensorView& b, std::int64_t head,
                   std::int64_t token) {
  const auto dot = [&](const auto* x, const auto* y) {
    double sum = 0;
    for (std::int64_t c = 0; c < a.dim; ++c) sum += double(float(x[c])) * double(float(y[c]));
    return sum;
  };
  const T* row = a.row<T>(token, head);
  return with_type_of(b.dtype, [&]<typename U>(U) { return dot(row, b.row<U>(token, head)); });
}

double dot_rows(const ConstTensorView& a, const ConstTensorView& b, std::int64_t head,
                std::int64_t token) {
  return with_type_of(a.dtype, [&]<typename T>(T) { return dot_rows_of<T>(a, b, head, token); });
}

/// Row statistics of a query tile from a kernel's forward results.
template <typename Real>
RowStatistics<Real> statistics_from(const ConstTensorView& o, const ConstLseView& lse,
                                    const ConstTensorView& dout, bool sink, std::int64_t head,
                                    std::int64_t tile) {
  RowStatistics<Real> rows;
  rows.lse.fill(-std::numeric_limits<Real>::infinity());
  const std::int64_t first = tile * kTile;
  for (std::int64_t i = 0; i < std::min(kTile, o.tokens - first); ++i) {
    rows.lse[i] = static_cast<Real>(lse.head(head)[first + i]);
    rows.delta[i] = static_cast<Real>(dot_rows(o, dout, head, first + i));
    if (!sink) continue;
    const double squared = dot_rows(o, o, head, first + i) * dot_rows(dout, dout, head, first + i);
    rows.delta_magnitude[i] =
        std::max(static_cast<Real>(std::sqrt(squared / static_cast<double>(o.dim))),
                 std::abs(rows.delta[i]));
  }
  return rows;
}

std::uint64_t hash_of(const ConstTensorView& o, const ConstLseView& lse) {
  Device& device = Device::get(DeviceKind::cpu);
  std::uint64_t hash = 0;
  for (std::int64_t head = 0; head < o.heads; ++head) {
    hash = device.hash(hash, lse.head(head), lse.tokens * 4);
    for (std::int64_t token = 0; token < o.tokens; ++token) {
      const void* row = o.row<std::byte>(0, 0) +
                        (token * o.token_stride + head * o.head_stride) * size_of(o.dtype);
      hash = device.hash(hash, row, o.dim * size_of(o.dtype));
    }
  }
  return hash;
}

}  // namespace

ReferenceResults::ReferenceResults(const ReferenceProblem& problem, Selection selection)
    : problem_(problem),
      selection_(std::move(selection)),
      query_tiles_(selection_.queries.size()),
      key_tiles_(selection_.keys.size()),
      first_of_head_(static_cast<std::size_t>(problem.shape.heads_q), -1) {
  const auto values = [&](std::size_t tiles, std::int64_t size) {
    return HostBuffer(static_cast<std::int64_t>(tiles * sizeof(double)) * size);
  };
  o_ = values(query_tiles_.size(), value_size());
  dq_ = values(query_tiles_.size(), key_size());
  dk_ = values(key_tiles_.size(), key_size());
  dv_ = values(key_tiles_.size(), value_size());
  if (selection_.mode == Selection::Mode::tiles) return;
  for (std::size_t i = selection_.queries.size(); i-- > 0;) {
    first_of_head_[selection_.queries[i].head] = static_cast<std::int64_t>(i);
  }
}

std::size_t ReferenceResults::query_index(std::int64_t head_q, std::int64_t tile) const {
  const std::int64_t first = first_of_head_[head_q];
  LONGCA_CHECK(first >= 0, "query head {} is not selected", head_q);
  return static_cast<std::size_t>(first + tile);
}

void ReferenceResults::compute_forward() {
  if (std::exchange(has_forward_, true)) return;
  for_tiles(problem_, query_tiles_.size(), [&](std::size_t i, Worker& worker) {
    const auto [head, tile] = selection_.queries[i];
    QueryTile& out = query_tiles_[i];
    const ForwardMagnitudes magnitudes =
        worker.exact.forward(head, tile, tile_of(o_, i, value_size()).data(), out.rows);
    out.score_magnitude = magnitudes.score;
    worker.same_precision.forward(head, tile, worker.of_value_dim.data(), out.same_precision);
    out.reached = magnitudes.seen;
    out.o = make_bound(o(i), worker.of_value_dim, magnitudes.o, std::popcount(out.reached),
                       problem_.shape.dtype);
  });
}

void ReferenceResults::compute_query_gradients() {
  compute_forward();
  if (std::exchange(has_query_gradients_, true)) return;
  for_tiles(problem_, query_tiles_.size(), [&](std::size_t i, Worker& worker) {
    const auto [head, tile] = selection_.queries[i];
    QueryTile& out = query_tiles_[i];
    const TileTerms terms =
        worker.exact.query_gradient(head, tile, out.rows, tile_of(dq_, i, key_size()).data());
    worker.same_precision.query_gradient(head, tile, out.same_precision, worker.of_dim.data());
    out.dq =
        make_bound(dq(i), worker.of_dim, terms, std::popcount(out.reached), problem_.shape.dtype);
  });
}

void ReferenceResults::compute_key_gradients() {
  LONGCA_CHECK(selection_.mode != Selection::Mode::tiles, "dk and dv need whole heads");
  compute_forward();
  if (std::exchange(has_key_gradients_, true)) return;
  compute_key_tiles([&](std::int64_t head,
                        std::int64_t tile) { return query_tiles_[query_index(head, tile)].rows; },
                    [&](std::int64_t head, std::int64_t tile) {
                      return query_tiles_[query_index(head, tile)].same_precision;
                    });
}

void ReferenceResults::compute_key_gradients_from(const ConstTensorView& o,
                                                  const ConstLseView& lse) {
  const std::uint64_t rows = hash_of(o, lse);
  if (std::exchange(given_, rows) == rows) return;
  const ConstTensorView dout = problem_.inputs->dout.view();
  const bool sink = problem_.shape.sink;
  compute_key_tiles(
      [&](std::int64_t head, std::int64_t tile) {
        return statistics_from<double>(o, lse, dout, sink, head, tile);
      },
      [&](std::int64_t head, std::int64_t tile) {
        return statistics_from<float>(o, lse, dout, sink, head, tile);
      });
}

void ReferenceResults::compute_key_tiles(const RowsOf64& exact, const RowsOf32& same_precision) {
  const DType dtype = problem_.shape.dtype;
  for_tiles(problem_, key_tiles_.size(), [&](std::size_t i, Worker& worker) {
    const auto [head, tile] = selection_.keys[i];
    const auto found =
        worker.exact.key_gradients(head, tile, exact, tile_of(dk_, i, key_size()).data(),
                                   tile_of(dv_, i, value_size()).data());
    worker.same_precision.key_gradients(head, tile, same_precision, worker.of_dim.data(),
                                        worker.of_value_dim.data());
    // Independent rounding errors: one per key or per query row, whichever are fewer.
    const std::int64_t rows = problem_.shape.tokens_q * problem_.shape.group_size();
    const std::int64_t draws = std::min<std::int64_t>(std::popcount(found.seen), rows);
    key_tiles_[i] = {found.seen, make_bound(dk(i), worker.of_dim, found.dk, draws, dtype),
                     make_bound(dv(i), worker.of_value_dim, found.dv, draws, dtype)};
  });
  if (problem_.shape.sink) compute_sink_gradients(exact, same_precision);
}

void ReferenceResults::compute_sink_gradients(const RowsOf64& exact,
                                              const RowsOf32& same_precision) {
  std::vector<std::int64_t> heads;
  for (const Range& range : heads_of(problem_.shape, selection_).q) {
    for (std::int64_t head = range.begin; head < range.end; ++head) heads.push_back(head);
  }
  sink_gradients_.resize(heads.size());
  ThreadPool::global().parallel_for(std::ssize(heads), [&](std::int64_t item, int) {
    const auto i = static_cast<std::size_t>(item);
    sink_gradients_[i] =
        sink_gradient(heads[i], problem_.inputs->sink_logits()[heads[i]], problem_.shape.tokens_q,
                      exact, same_precision, problem_.shape.dtype);
  });
}

std::int64_t ReferenceResults::bytes() const {
  return bytes_for(problem_.shape, selection_);
}

std::int64_t ReferenceResults::bytes_for(const Problem& problem, const Selection& selection) {
  const auto queries = static_cast<std::int64_t>(selection.queries.size());
  const auto keys = static_cast<std::int64_t>(selection.keys.size());
  const std::int64_t tile = kTile * (problem.head_dim + problem.value_dim()) * 8;
  return queries * (tile + static_cast<std::int64_t>(sizeof(QueryTile))) +
         keys * (tile + static_cast<std::int64_t>(sizeof(KeyTile)));
}

}  // namespace longca
