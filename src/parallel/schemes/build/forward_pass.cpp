#include "parallel/schemes/build/plan_parts.h"

namespace longca {
namespace {

/// The results of one chunk, and which rows of them were written.
struct Output {
  Region o;    ///< the CP rank's tokens: the result, or a float32 sum
  Region lse;  ///< the CP rank's tokens
  Coverage coverage{};
  Coverage overwritten{};  ///< by the first Attend, and not cleared before
};

/// Whether some row of the chunk has more than one Attend.
bool needs_merging(const PlanParts& parts, int chunk) {
  Coverage coverage;
  for (int step = 0; step < parts.context->steps(); ++step) {
    for (const Work& work : parts.work(step, chunk)) {
      if (coverage.add(work.rows) != std::vector<Range>{work.rows}) return true;
    }
  }
  return false;
}

void bring_in(PlanParts& parts) {
  using enum TensorRole;
  std::vector<std::vector<HeadPart>> exchanges;
  for (int chunk = 0; chunk < parts.chunks(); ++chunk) {
    std::vector<HeadPart>& in = exchanges.emplace_back(1, HeadPart{q, chunk});
    const int group = parts.group_of(chunk);
    const bool comes_first = chunk == 0 || parts.group_of(chunk - 1) != group;
    if (comes_first) in.insert(in.end(), {{k, group}, {v, group}});
  }
  parts.heads.bring_in(exchanges, 0);
}

void attend(PlanParts& parts, int step, int chunk, Output& output) {
  const Region q = parts.heads.held({TensorRole::q, chunk});
  for (const Work& work : parts.work(step, chunk)) {
    const Region results[] = {output.o, output.lse};
    const bool first = begins(parts.writer, output.coverage, work.rows, results, step);
    if (first) output.overwritten.add(work.rows);
    const KeyPair keys = parts.context->keys(step, work.block, parts.group_of(chunk));
    parts.writer.add(
        Attend{with_rows(q, work.rows), with_rows(keys.k, work.keys), with_rows(keys.v, work.keys),
               with_rows(output.o, work.rows), with_rows(output.lse, work.rows), work.mask, first,
               parts.first_head(chunk)},
        step);
  }
}

void finish(PlanParts& parts, int step, int chunk, const Output& output) {
  const Region results[] = {output.o, output.lse};
  clear_gaps(parts.writer, output.coverage, results, step);
  const HeadPart part[] = {{TensorRole::o, chunk}};
  const Region rounded = parts.result(part[0], false);
  if (output.o.buffer != rounded.buffer) parts.writer.add(Convert{output.o, rounded}, step);
  if (parts.problem.problem.sink) {
    for (const Range rows : output.overwritten.gaps({0, rounded.tokens.size()})) {
      parts.writer.add(
          JoinSinks{with_rows(rounded, rows), with_rows(output.lse, rows), parts.first_head(chunk)},
          step);
    }
  }
  parts.heads.send_out(part, step);
}

}  // namespace

void write_forward(PlanParts& parts) {
  bring_in(parts);
  std::vector<Output> outputs;
  for (int chunk = 0; chunk < parts.chunks(); ++chunk) {
    outputs.push_back({parts.result({TensorRole::o, chunk}, needs_merging(parts, chunk)),
                       parts.result({TensorRole::lse, chunk}, false)});
  }
  for (int step = 0; step < parts.context->steps(); ++step) {
    parts.context->fetch(step);
    for (int chunk = 0; chunk < parts.chunks(); ++chunk) {
      Output& output = outputs[static_cast<std::size_t>(chunk)];
      attend(parts, step, chunk, output);
      if (step + 1 == parts.context->steps()) finish(parts, step, chunk, output);
    }
  }
  parts.heads.end_pass();
  parts.heads.place(TensorRole::o);
  parts.heads.place(TensorRole::lse);
}

}  // namespace longca
