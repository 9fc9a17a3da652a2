"""Programs whose lanes work together: pairs of an AIC and an AIV function, and launches that meet."""
# ruff: noqa: RET504  (a program names what it returns)

from __future__ import annotations

import pypto.language as pl


@pl.program
class Forward:
    """out = max(a @ b, 0): one lane multiplies, the other one does the rest. Two slots, eight tiles."""

    @pl.function(type=pl.FunctionType.AIC)
    def multiply(
        self,
        a: pl.Tensor[[128, 32], pl.FP32],
        b: pl.Tensor[[32, 32], pl.FP32],
        out: pl.Out[pl.Tensor[[128, 32], pl.FP32]],
    ):
        slots = pl.import_peer_buffer(name="slots", peer_func="finish")
        pl.aic_initialize_pipe(slots, 0, dir_mask=1, slot_size=2048, slot_num=2)
        right = pl.load(b, [0, 0], [32, 32], target_memory=pl.MemorySpace.Mat)
        for i in pl.range(8):
            left = pl.load(a, [i * 16, 0], [16, 32], target_memory=pl.MemorySpace.Mat)
            pl.tpush_to_aiv(pl.matmul(left, right), split=0)

    @pl.function(type=pl.FunctionType.AIV)
    def finish(
        self,
        a: pl.Tensor[[128, 32], pl.FP32],
        b: pl.Tensor[[32, 32], pl.FP32],
        out: pl.Out[pl.Tensor[[128, 32], pl.FP32]],
    ) -> pl.Tensor[[128, 32], pl.FP32]:
        slots = pl.reserve_buffer(name="slots", size=4096, base=0)
        pl.aiv_initialize_pipe(slots, 0, dir_mask=1, slot_size=2048, slot_num=2)
        for i, (o,) in pl.range(8, init_values=(out,)):
            t: pl.Tile[[16, 32], pl.FP32, pl.MemorySpace.Vec] = pl.tpop_from_aic(split=0)
            u = pl.maximum(t, 0.0)
            pl.tfree_to_aic(t)
            stored = pl.store(u, [i * 16, 0], o)
            result = pl.yield_(stored)
        return result

    @pl.function(type=pl.FunctionType.Group)
    def pair(
        self,
        a: pl.Tensor[[128, 32], pl.FP32],
        b: pl.Tensor[[32, 32], pl.FP32],
        out: pl.Out[pl.Tensor[[128, 32], pl.FP32]],
    ) -> pl.Tensor[[128, 32], pl.FP32]:
        self.multiply(a, b, out)
        out = self.finish(a, b, out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[128, 32], pl.FP32],
        b: pl.Tensor[[32, 32], pl.FP32],
        out: pl.Out[pl.Tensor[[128, 32], pl.FP32]],
    ) -> pl.Tensor[[128, 32], pl.FP32]:
        out = self.pair(a, b, out)
        return out


@pl.program
class RoundTrip:
    """out = 2 * ((x + 1) @ w) in blocks of 32 rows that start together.

    Both vector lanes of a block add to their half of the rows and push; the cube lane multiplies; each vector
    lane gets its half of the product back. Both directions, one pipe, four rounds per block.
    """

    @pl.function(type=pl.FunctionType.AIC)
    def multiply(
        self,
        x: pl.Tensor[[128, 32], pl.FP32],
        w: pl.Tensor[[32, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[128, 64], pl.FP32]],
    ):
        v2c = pl.reserve_buffer(name="v2c", size=4096, base=0)
        c2v = pl.import_peer_buffer(name="c2v", peer_func="around")
        pl.aic_initialize_pipe(c2v, v2c, dir_mask=3, slot_size=2048, slot_num=2)
        right = pl.load(w, [0, 0], [32, 64], target_memory=pl.MemorySpace.Mat)
        for _ in pl.range(4):
            left = pl.tpop_from_aiv(shape=[8, 32], dtype=pl.FP32, split=1)
            product = pl.matmul(left, right)
            pl.tfree_to_aiv(left)
            pl.tpush_to_aiv(product, split=1)

    @pl.function(type=pl.FunctionType.AIV)
    def around(
        self,
        x: pl.Tensor[[128, 32], pl.FP32],
        w: pl.Tensor[[32, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[128, 64], pl.FP32]],
    ) -> pl.Tensor[[128, 64], pl.FP32]:
        pl.func_attr({"dual_aiv_dispatch": True})
        c2v = pl.reserve_buffer(name="c2v", size=4096, base=0)
        v2c = pl.import_peer_buffer(name="v2c", peer_func="multiply")
        pl.aiv_initialize_pipe(c2v, v2c, dir_mask=3, slot_size=2048, slot_num=2)
        block = pl.tile.get_block_idx()
        lane = pl.tile.get_subblock_idx()
        for i, (o,) in pl.range(4, init_values=(out,)):
            row = block * 32 + i * 8 + lane * 4
            t = pl.add(pl.load(x, [row, 0], [4, 32]), 1.0)
            pl.tpush_to_aic(t, split=1)
            u = pl.tpop_from_aic(shape=[4, 64], dtype=pl.FP32, split=1)
            v = pl.mul(u, 2.0)
            pl.tfree_to_aic(u)
            stored = pl.store(v, [row, 0], o)
            result = pl.yield_(stored)
        return result

    @pl.function(type=pl.FunctionType.Group)
    def pair(
        self,
        x: pl.Tensor[[128, 32], pl.FP32],
        w: pl.Tensor[[32, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[128, 64], pl.FP32]],
    ) -> pl.Tensor[[128, 64], pl.FP32]:
        self.multiply(x, w, out)
        out = self.around(x, w, out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[128, 32], pl.FP32],
        w: pl.Tensor[[32, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[128, 64], pl.FP32]],
    ) -> pl.Tensor[[128, 64], pl.FP32]:
        with pl.spmd(4, sync_start=True):
            out = self.pair(x, w, out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def loosely(
        self,
        x: pl.Tensor[[128, 32], pl.FP32],
        w: pl.Tensor[[32, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[128, 64], pl.FP32]],
    ) -> pl.Tensor[[128, 64], pl.FP32]:
        with pl.spmd(4):
            out = self.pair(x, w, out)
        return out


@pl.program
class Halves:
    """One tile goes to both vector lanes: as columns (out), and as copies of which one adds (both).

    The columns come back as one tile; of the copies only that of lane 0 does.
    """

    @pl.function(type=pl.FunctionType.AIC)
    def give(
        self,
        x: pl.Tensor[[16, 32], pl.FP16],
        out: pl.InOut[pl.Tensor[[16, 32], pl.FP16]],
        both: pl.InOut[pl.Tensor[[16, 32], pl.FP16]],
        lanes: pl.Out[pl.Tensor[[2, 16, 32], pl.FP16]],
    ):
        t = pl.load(x, [0, 0], [16, 32], target_memory=pl.MemorySpace.Mat)
        pl.tpush_to_aiv(t, split=2, id=0)
        pl.tpush_to_aiv(t, split=0, id=7)
        columns = pl.tpop_from_aiv(shape=[16, 32], dtype=pl.FP16, split=2, id=0)
        out = pl.store(columns, [0, 0], out)
        copy = pl.tpop_from_aiv(shape=[16, 32], dtype=pl.FP16, split=0, id=7)
        both = pl.store(copy, [0, 0], both)

    @pl.function(type=pl.FunctionType.AIV)
    def take(
        self,
        x: pl.Tensor[[16, 32], pl.FP16],
        out: pl.InOut[pl.Tensor[[16, 32], pl.FP16]],
        both: pl.InOut[pl.Tensor[[16, 32], pl.FP16]],
        lanes: pl.Out[pl.Tensor[[2, 16, 32], pl.FP16]],
    ) -> pl.Tensor[[2, 16, 32], pl.FP16]:
        pl.func_attr({"dual_aiv_dispatch": True})
        lane = pl.tile.get_subblock_idx()
        half = pl.tpop_from_aic(shape=[16, 16], dtype=pl.FP16, split=2, id=0)
        pl.tpush_to_aic(pl.add(half, 1.0), split=2, id=0)
        copy = pl.tpop_from_aic(shape=[16, 32], dtype=pl.FP16, split=0, id=7)
        pl.tpush_to_aic(pl.mul(copy, 2.0), split=0, id=7)
        lanes = pl.store(copy, [lane, 0, 0], lanes)
        return lanes

    @pl.function(type=pl.FunctionType.Group)
    def pair(
        self,
        x: pl.Tensor[[16, 32], pl.FP16],
        out: pl.InOut[pl.Tensor[[16, 32], pl.FP16]],
        both: pl.InOut[pl.Tensor[[16, 32], pl.FP16]],
        lanes: pl.Out[pl.Tensor[[2, 16, 32], pl.FP16]],
    ) -> pl.Tensor[[2, 16, 32], pl.FP16]:
        self.give(x, out, both, lanes)
        lanes = self.take(x, out, both, lanes)
        return lanes

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[16, 32], pl.FP16],
        out: pl.InOut[pl.Tensor[[16, 32], pl.FP16]],
        both: pl.InOut[pl.Tensor[[16, 32], pl.FP16]],
        lanes: pl.Out[pl.Tensor[[2, 16, 32], pl.FP16]],
    ) -> pl.Tensor[[2, 16, 32], pl.FP16]:
        lanes = self.pair(x, out, both, lanes)
        return lanes


@pl.program
class Signals:
    """Both lanes pass a tensor to and fro; events say whose turn it is. out = ((x + 1) * 2 + 1) * 2 ..."""

    @pl.function(type=pl.FunctionType.AIC)
    def double(self, x: pl.InOut[pl.Tensor[[8, 16], pl.FP32]]):
        for _ in pl.range(4):
            pl.system.sync_wait(3, pipe=pl.PipeType.MTE2)
            t = pl.load(x, [0, 0], [8, 16], target_memory=pl.MemorySpace.Mat)
            x = pl.store(t, [0, 0], x, atomic=pl.AtomicType.Add)
            pl.system.sync_set(5, pipe=pl.PipeType.FIX)

    @pl.function(type=pl.FunctionType.AIV)
    def increment(self, x: pl.InOut[pl.Tensor[[8, 16], pl.FP32]]) -> pl.Tensor[[8, 16], pl.FP32]:
        pl.func_attr({"dual_aiv_dispatch": True})
        row = pl.tile.get_subblock_idx() * 4
        for _, (y,) in pl.range(4, init_values=(x,)):
            t = pl.add(pl.load(y, [row, 0], [4, 16]), 1.0)
            stored = pl.store(t, [row, 0], y)
            pl.system.sync_set(3, pipe=pl.PipeType.MTE3)
            pl.system.sync_wait(5, pipe=pl.PipeType.MTE2)
            result = pl.yield_(stored)
        return result

    @pl.function(type=pl.FunctionType.Group)
    def pair(self, x: pl.InOut[pl.Tensor[[8, 16], pl.FP32]]) -> pl.Tensor[[8, 16], pl.FP32]:
        self.double(x)
        x = self.increment(x)
        return x

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.InOut[pl.Tensor[[8, 16], pl.FP32]]) -> pl.Tensor[[8, 16], pl.FP32]:
        x = self.pair(x)
        return x


@pl.program
class Meeting:
    """Every block writes its row, all blocks meet, and every block sums all rows; twice over."""

    @pl.function(type=pl.FunctionType.AIV)
    def share(
        self,
        rows: pl.InOut[pl.Tensor[[6, 16], pl.FP32]],
        workspace: pl.InOut[pl.Tensor[[64], pl.INT32]],
        sums: pl.Out[pl.Tensor[[6, 16], pl.FP32]],
    ) -> pl.Tensor[[6, 16], pl.FP32]:
        block = pl.tile.get_block_idx()
        for _ in pl.range(2):
            t = pl.load(rows, [block, 0], [1, 16])
            rows = pl.store(pl.add(t, 1.0), [block, 0], rows)
            pl.system.syncall(core_type="aiv_only", mode="soft", gm_workspace=workspace, used_cores=6)
            total = pl.col_sum(pl.load(rows, [0, 0], [6, 16]))
            sums = pl.store(total, [block, 0], sums)
            pl.system.sync_set(1, pipe=pl.PipeType.MTE3, ffts_mode=0)
            pl.system.sync_wait(1, pipe=pl.PipeType.MTE2)
        return sums

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        rows: pl.InOut[pl.Tensor[[6, 16], pl.FP32]],
        workspace: pl.InOut[pl.Tensor[[64], pl.INT32]],
        sums: pl.Out[pl.Tensor[[6, 16], pl.FP32]],
    ) -> pl.Tensor[[6, 16], pl.FP32]:
        with pl.spmd(6, sync_start=True):
            sums = self.share(rows, workspace, sums)
        return sums


@pl.program
class Uneven:
    """The cube lane pops `first` tiles, pushes `pushes` and reads row `row`; the vector lane pops `pops`.

    Two slots. Right when `first` is 0, `pushes` equals `pops` and `row` is below 16.
    """

    @pl.function(type=pl.FunctionType.AIC)
    def push(
        self,
        x: pl.Tensor[[16, 16], pl.FP32],
        out: pl.InOut[pl.Tensor[[16, 16], pl.FP32]],
        first: pl.Scalar[pl.INDEX],
        pushes: pl.Scalar[pl.INDEX],
        pops: pl.Scalar[pl.INDEX],
        row: pl.Scalar[pl.INDEX],
    ):
        pl.aic_initialize_pipe(0, 0, dir_mask=3, slot_size=1024, slot_num=2)
        for _ in pl.range(first):
            early = pl.tpop_from_aiv(shape=[16, 16], dtype=pl.FP32, split=0)
            pl.tfree_to_aiv(early)
        t = pl.load(x, [0, 0], [16, 16], target_memory=pl.MemorySpace.Mat)
        for _ in pl.range(pushes):
            pl.tpush_to_aiv(t, split=0)
        last = pl.load(x, [row, 0], [1, 16], target_memory=pl.MemorySpace.Mat)
        out = pl.store(last, [15, 0], out)

    @pl.function(type=pl.FunctionType.AIV)
    def pop(
        self,
        x: pl.Tensor[[16, 16], pl.FP32],
        out: pl.InOut[pl.Tensor[[16, 16], pl.FP32]],
        first: pl.Scalar[pl.INDEX],
        pushes: pl.Scalar[pl.INDEX],
        pops: pl.Scalar[pl.INDEX],
        row: pl.Scalar[pl.INDEX],
    ) -> pl.Tensor[[16, 16], pl.FP32]:
        pl.aiv_initialize_pipe(0, 0, dir_mask=3, slot_size=1024, slot_num=2)
        for _, (o,) in pl.range(pops, init_values=(out,)):
            t = pl.tpop_from_aic(shape=[16, 16], dtype=pl.FP32, split=0)
            stored = pl.store(t, [0, 0], o)
            result = pl.yield_(stored)
        return result

    @pl.function(type=pl.FunctionType.Group)
    def pair(
        self,
        x: pl.Tensor[[16, 16], pl.FP32],
        out: pl.InOut[pl.Tensor[[16, 16], pl.FP32]],
        first: pl.Scalar[pl.INDEX],
        pushes: pl.Scalar[pl.INDEX],
        pops: pl.Scalar[pl.INDEX],
        row: pl.Scalar[pl.INDEX],
    ) -> pl.Tensor[[16, 16], pl.FP32]:
        self.push(x, out, first, pushes, pops, row)
        out = self.pop(x, out, first, pushes, pops, row)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[16, 16], pl.FP32],
        out: pl.InOut[pl.Tensor[[16, 16], pl.FP32]],
        first: pl.Scalar[pl.INDEX],
        pushes: pl.Scalar[pl.INDEX],
        pops: pl.Scalar[pl.INDEX],
        row: pl.Scalar[pl.INDEX],
    ) -> pl.Tensor[[16, 16], pl.FP32]:
        out = self.pair(x, out, first, pushes, pops, row)
        return out


@pl.program
class Regions:
    """out = (2 * (a @ b) + lane) @ b in one kernel, whose vector work is split over the lanes.

    `side` keeps what the lanes computed. `columns` splits the other way, in two rounds; `odd` splits 15 rows.
    """

    @pl.function(type=pl.FunctionType.Orchestration)
    def rows(
        self,
        a: pl.Tensor[[32, 32], pl.FP32],
        b: pl.Tensor[[32, 32], pl.FP32],
        side: pl.InOut[pl.Tensor[[32, 32], pl.FP32]],
        out: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            c = pl.matmul(a, b)
            for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
                half = pl.aiv_shard(c)
                changed = pl.add(pl.mul(half, 2.0), pl.cast(lane, pl.FP32))
                side = pl.assemble(side, changed, [lane * 16, 0])
                whole = pl.aic_gather(changed)
            out = pl.assemble(out, pl.matmul(whole, b), [0, 0])
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def columns(
        self,
        a: pl.Tensor[[32, 32], pl.FP32],
        b: pl.Tensor[[32, 32], pl.FP32],
        side: pl.InOut[pl.Tensor[[32, 32], pl.FP32]],
        out: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            for i in pl.range(2):
                c = pl.matmul(a[i * 16 : i * 16 + 16, :], b)
                for lane in pl.split_aiv(2, mode=pl.SplitMode.LEFT_RIGHT):
                    half = pl.aiv_shard(c)
                    changed = pl.add(pl.mul(half, 2.0), pl.cast(lane, pl.FP32))
                    side = pl.assemble(side, changed, [i * 16, lane * 16])
                    whole = pl.aic_gather(changed)
                out = pl.assemble(out, pl.matmul(whole, b), [i * 16, 0])
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def odd(
        self,
        a: pl.Tensor[[15, 32], pl.FP32],
        b: pl.Tensor[[32, 32], pl.FP32],
        side: pl.InOut[pl.Tensor[[16, 32], pl.FP32]],
        out: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
    ) -> pl.Tensor[[16, 32], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            c = pl.matmul(a, b)
            for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
                half = pl.aiv_shard(c)
                changed = pl.add(pl.mul(half, 2.0), pl.cast(lane, pl.FP32))
                side = pl.assemble(side, changed, [lane * 8, 0])
                whole = pl.aic_gather(changed)
            out = pl.assemble(out, pl.matmul(whole, b), [0, 0])
        return out


@pl.program
class Lookup:
    """Each block copies the row of a table whose number it finds in `index`: right below 8."""

    @pl.function(type=pl.FunctionType.InCore)
    def copy_row(
        self,
        table: pl.Tensor[[8, 16], pl.FP32],
        index: pl.Tensor[[4], pl.INT32],
        out: pl.Out[pl.Tensor[[4, 16], pl.FP32]],
    ) -> pl.Tensor[[4, 16], pl.FP32]:
        block = pl.tile.get_block_idx()
        row = pl.cast(pl.read(index, [block]), pl.INDEX)
        out = pl.store(pl.load(table, [row, 0], [1, 16]), [block, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        table: pl.Tensor[[8, 16], pl.FP32],
        index: pl.Tensor[[4], pl.INT32],
        out: pl.Out[pl.Tensor[[4, 16], pl.FP32]],
    ) -> pl.Tensor[[4, 16], pl.FP32]:
        with pl.spmd(4):
            out = self.copy_row(table, index, out)
        return out


@pl.program
class Odds:
    """Thirteen valid rows go to the vector lanes and back; vector lanes without a cube lane; a lone lane."""

    @pl.function(type=pl.FunctionType.AIC)
    def give(self, x: pl.Tensor[[13, 32], pl.FP32], out: pl.InOut[pl.Tensor[[13, 32], pl.FP32]]):
        t = pl.load(x, [0, 0], [16, 32], valid_shape=[13, 32], target_memory=pl.MemorySpace.Mat)
        pl.tpush_to_aiv(t, split=1)
        u: pl.Tile[[16, 32], pl.FP32, pl.MemorySpace.Mat, pl.TileView(valid_shape=[13, 32])] = (
            pl.tpop_from_aiv(split=1)
        )
        out = pl.store(u, [0, 0], out)

    @pl.function(type=pl.FunctionType.AIV)
    def take(
        self, x: pl.Tensor[[13, 32], pl.FP32], out: pl.InOut[pl.Tensor[[13, 32], pl.FP32]]
    ) -> pl.Tensor[[13, 32], pl.FP32]:
        pl.func_attr({"dual_aiv_dispatch": True})
        t = pl.tpop_from_aic(shape=[8, 32], dtype=pl.FP32, split=1)
        pl.tpush_to_aic(t, split=1)
        return out

    @pl.function(type=pl.FunctionType.Group)
    def pair(
        self, x: pl.Tensor[[13, 32], pl.FP32], out: pl.InOut[pl.Tensor[[13, 32], pl.FP32]]
    ) -> pl.Tensor[[13, 32], pl.FP32]:
        self.give(x, out)
        out = self.take(x, out)
        return out

    @pl.function(type=pl.FunctionType.AIV)
    def number(self, out: pl.InOut[pl.Tensor[[2, 32], pl.INT32]]) -> pl.Tensor[[2, 32], pl.INT32]:
        pl.func_attr({"dual_aiv_dispatch": True})
        lane = pl.tile.get_subblock_idx()
        t = pl.add(pl.load(out, [lane, 0], [1, 32]), pl.cast(lane + 5, pl.INT32))
        out = pl.store(t, [lane, 0], out)
        return out

    @pl.function(type=pl.FunctionType.AIV)
    def listen(self, out: pl.InOut[pl.Tensor[[2, 32], pl.INT32]]) -> pl.Tensor[[2, 32], pl.INT32]:
        t = pl.tpop_from_aic(shape=[2, 32], dtype=pl.INT32, split=0)
        out = pl.store(t, [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def valid_part(
        self, x: pl.Tensor[[13, 32], pl.FP32], out: pl.InOut[pl.Tensor[[13, 32], pl.FP32]]
    ) -> pl.Tensor[[13, 32], pl.FP32]:
        out = self.pair(x, out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def vector_pair(self, out: pl.InOut[pl.Tensor[[2, 32], pl.INT32]]) -> pl.Tensor[[2, 32], pl.INT32]:
        out = self.number(out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def alone(self, out: pl.InOut[pl.Tensor[[2, 32], pl.INT32]]) -> pl.Tensor[[2, 32], pl.INT32]:
        out = self.listen(out)
        return out
