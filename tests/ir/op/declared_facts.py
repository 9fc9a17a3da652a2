"""What each operator declares, as one table per kind of fact. An operator that a table leaves out declares
nothing of that kind."""

from __future__ import annotations

from pypto import ir

Read, Write, ReadWrite = ir.ArgEffect.Read, ir.ArgEffect.Write, ir.ArgEffect.ReadWrite
Vec, Mat, Left, Right = ir.Mem.Vec, ir.Mem.Mat, ir.Mem.Left, ir.Mem.Right
Acc, Bias, LeftScale, RightScale = ir.Mem.Acc, ir.Mem.Bias, ir.Mem.LeftScale, ir.Mem.RightScale


def spelled(names: str) -> list[str]:
    """The names of a list such as ``"tile.{add,sub} tensor.add"``."""
    found = []
    for part in names.split():
        head, brace, rest = part.partition("{")
        inside, _, tail = rest.partition("}")
        found += spelled(" ".join(head + each + tail for each in inside.split(","))) if brace else [part]
    return found


def by_name(table: dict[str, object]) -> dict[str, object]:
    return {name: fact for names, fact in table.items() for name in spelled(names)}


#: effect per argument of a call without keywords
EFFECTS = by_name({
    "array.update_element {builtin,pld}.tensor.barrier tile.{assemble,batch_matmul_acc,fillpad_inplace}"
    " tile.{gather_row,gemv_acc,matmul_acc,matmul_mx_acc,scatter,scatter_mask,scatter_update,write}"
    " pld.system.notify":
        {0: ReadWrite},
    "{pld,builtin}.tensor.{allreduce,broadcast,reduce_scatter} builtin.tensor.allreduce_ring":
        {0: ReadWrite, 1: ReadWrite},
    "pld.{tensor,tile}.{get,put} tensor.{write,assemble} tile.tget_scale_addr": {0: Write},
    "pld.{tensor,tile}.remote_store": {1: Write},
    "tile.{store,mscatter}": {2: Write},
    "{pld,builtin}.tensor.{allgather,all_to_all}": {1: Write, 2: ReadWrite},
    "{pld,builtin}.tensor.all_to_all_v": {1: Write, 2: ReadWrite, 4: Write},
    "system.syncall": {0: Read}, "tile.mgather": {2: Read},
    "pld.system.{wait,defer_wait} pld.tile.remote_load system.set_ffts tensor.set_validshape":
        dict.fromkeys(range(8), Read),
})  # fmt: skip

ATOMIC = by_name({
    "tensor.assemble pld.{tensor,tile}.put": 0, "pld.{tensor,tile}.remote_store": 1, "tile.store": 2,
})  # fmt: skip

CHANNELS = by_name({
    "tile.{store,mscatter,mgather} tensor.assemble pld.{tensor,tile}.{put,get,remote_store}":
        ir.WriteChannel.Dma,
    "tensor.write": ir.WriteChannel.Scalar,
})  # fmt: skip

#: operands whose buffer the result must not share; `range(8)`: none of them
APART = by_name({
    "tile.{move,extract,transpose,concat,fmod,fmods,ands,ors,xors,prelu,recip,rsqrt,fillpad_expand}"
    " tile.row_{sum,max,min,prod,argmax,argmin} tile.col_{argmax,argmin} tile.{gather,gatherb,gather_mask}"
    " tile.{gather_compare,mgather,sort32,mrgsort_format1,mrgsort_format2}": tuple(range(8)),
    "tile.sel": (0, 3), "tile.sels": (0,), "tile.row_expand_add": (1, 2),
    "tile.row_expand tile.row_expand_{sub,mul,div,max,min,expdif}"
    " tile.col_expand tile.col_expand_{add,sub,mul,div,max,min,expdif}": (1,),
})  # fmt: skip

#: results that share the buffer of their first operand
VIEWS = spelled("tile.{slice,reshape,reinterpret_view,transpose_view,set_validshape}")

AFFINITIES = by_name({
    "tile.{create,get_block_idx,get_block_num}": "shared",
    "pld.{tensor,tile}.{get,put} prefetch.{make_context,async_prefetch,session,wait}"
    " system.{aiv_initialize_pipe,tfree_to_aic} tile.{alloc,get_subblock_idx,tpop_from_aic,tpush_to_aic}":
        "vector",
    "system.{aic_initialize_pipe,tfree_to_aiv} tile.{tpop_from_aiv,tpush_to_aiv}": "cube",
})  # fmt: skip

#: spaces per argument (empty: any), and the space of the result
MEMORY = by_name({
    "tile.{matmul,gemv,batch_matmul}": ([[Left], [Right]], Acc),
    "tile.{matmul_acc,gemv_acc,batch_matmul_acc}": ([[Acc], [Left], [Right]], Acc),
    "tile.{matmul_bias,gemv_bias}": ([[Left], [Right], [Bias]], Acc),
    "tile.matmul_mx": ([[Left], [LeftScale], [Right], [RightScale]], Acc),
    "tile.matmul_mx_bias": ([[Left], [LeftScale], [Right], [RightScale], [Bias]], Acc),
    "tile.matmul_mx_acc": ([[Acc], [Left], [LeftScale], [Right], [RightScale]], Acc),
    "tile.{add,sub,mul,div,maximum,minimum,fmod,and,or,shl,shr,cmp,concat,gatherb,rsqrt,scatter_mask,sort32}"
    " tile.part_{add,mul,max,min} tile.row_{sum,max,min,prod,argmax,argmin,expand}"
    " tile.row_expand_{sub,mul,div,max,min,expdif} tile.col_{sum,argmax,argmin,expand}"
    " tile.col_expand_{add,sub,mul,div,max,min,expdif}": ([[Vec], [Vec]], Vec),
    "tile.{abs,neg,exp,log,sqrt,recip,relu,sin,cos,not,cast,expands,fillpad,fillpad_expand,fillpad_inplace}"
    " tile.{write,gather_mask,mrgsort_format1,lrelu,adds,subs,muls,divs,fmods,maximums,minimums,ands,ors}"
    " tile.{shls,shrs,cmps,col_max,col_min,col_prod}": ([[Vec]], Vec),
    "tile.{addc,subc,rem,prelu,xor,sels,gather,scatter,scatter_update,row_expand_add}": ([[Vec]] * 3, Vec),
    "tile.{addsc,subsc,rems,xors,gather_compare}": ([[Vec], [], [Vec]], Vec),
    "tile.sel": ([[Vec]] * 4, Vec),
    "tile.mrgsort_format2": ([[Vec]] * 5, Vec),
    "tile.{move,extract,full,ci,random,tri,mgather,aiv_shard}": ([], Vec),
    "tile.aic_gather": ([], Mat),
    "tile.{load,create}": ([], "deferred"),
    "tile.{slice,reshape,transpose,transpose_view,assemble,set_validshape,reinterpret_view,tget_scale_addr}"
    " tensor.{slice,reshape,view,reinterpret_view,set_validshape}": ([], "inherit_from_input"),
    "tile.store pld.tile.remote_store": ([[Vec, Acc]], None),
    "tile.read": ([[Vec]], None),
    "tile.mscatter": ([[Vec], [Vec]], None),
})  # fmt: skip

#: keywords
SCHEMAS = by_name({
    "test.op": "int_attr string_attr bool_attr",
    "tensor.matmul": "a_trans b_trans c_matrix_nz out_dtype", "tensor.matmul_acc": "a_trans b_trans",
    "tile.{gemv,gemv_acc,gemv_bias}": "acc_phase",
    "tile.store tensor.assemble pld.tile.put pld.{tensor,tile}.remote_store": "atomic",
    "pld.tensor.put": "atomic chunk_rows chunk_cols pipeline",
    "pld.tensor.get": "chunk_rows chunk_cols pipeline",
    "tensor.{row,col}_{sum,max,min,prod,argmax,argmin}": "axis keep_dim",
    "tile.move": "target_memory blayout slayout", "tile.load": "target_memory clamp",
    "tile.create": "target_memory dtype flat_layout transpose", "tile.extract": "target_memory",
    "tile.mgather": "target_memory coalesce gather_oob", "{tensor,tile}.cast": "mode target_type",
    "tensor.create": "dtype init_value layout manual_dep", "tensor.create_l1": "dtype transpose",
    "array.create {tensor,tile}.{full,reinterpret_view} pld.tensor.window": "dtype",
    "builtin.tensor.{all_to_all,all_to_all_v,allgather}": "dtype",
    "{tensor,tile}.ci": "dtype descending", "{tensor,tile}.random": "dtype rounds", "tile.tri": "dtype upper",
    "tensor.slice": "clamp pad_value",
    "tile.{slice,fillpad_inplace} {tensor,tile}.{fillpad,fillpad_expand}": "pad_value",
    "tensor.{gather,scatter,scatter_update} tile.scatter_update": "dim",
    "{tensor,tile}.gather_row": "transpose",
    "{tensor,tile}.scatter_mask": "mask_pattern", "{tensor,tile}.gather_mask": "mask_pattern output_dtype",
    "tile.gatherb": "output_dtype", "tensor.cmp tile.{cmp,cmps}": "cmp_type",
    "{tensor,tile}.gather_compare": "cmp_mode count_dtype offset out_cols",
    "{tensor,tile}.mrgsort_format2": "exhausted",
    "tensor.{div,log,recip,rsqrt} tile.{div,log,recip}": "high_precision", "tensor.view": "layout",
    "tensor.paged_gather": "block_size col_off is_b_matrix is_trans max_indices size space",
    "tile.alloc": "pinned", "{tensor,tile}.aic_gather tensor.aiv_shard": "split",
    "tile.aiv_shard": "split lane_stride",
    "tile.{tpush_to_aic,tpop_from_aiv} system.{tfree_to_aic,tfree_to_aiv}": "id split",
    "tile.{tpush_to_aiv,tpop_from_aic}": "id split lane_stride",
    "system.{aic,aiv}_initialize_pipe": "dir_mask id local_slot_num slot_num slot_size",
    "system.reserve_buffer": "base name size", "system.import_peer_buffer": "name peer_func",
    "system.{sync_src,sync_dst}": "set_pipe wait_pipe event_id",
    "system.sync_wait": "core_type event_id pipe", "system.sync_set": "core_type event_id pipe ffts_mode",
    "system.syncall": "core_type mode", "pld.system.notify pld.tensor.reduce_scatter": "op",
    "pld.system.{wait,defer_wait}": "cmp", "pld.tensor.allreduce": "core_num mode op",
    "pld.tensor.broadcast": "root", "pld.tensor.alloc_window_buffer": "name",
    "pld.tile.remote_load": "allow_physical_tail_padding",
    "builtin.tensor.{allreduce_ring,reduce_scatter}": "dtype op",
    "builtin.tensor.allreduce": "dtype op core_num",
    "builtin.tensor.broadcast": "dtype root",
})  # fmt: skip
