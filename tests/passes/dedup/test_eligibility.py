"""What is never merged, and why: each unit has a reason."""

from __future__ import annotations

import pytest

from pypto import ir, passes
from pypto.passes.dedup.reference_index import index_references
from tests.passes.dedup.programs import dedup, function, kernels, logged, reason, records, ssa

SPAN = ir.Span.unknown()
TENSOR = ir.TensorType([64], ir.DataType.FP32)
BOOL, INDEX = ir.ScalarType(ir.DataType.BOOL), ir.ScalarType(ir.DataType.INDEX)
CONTEXT, EVENT, SESSION = (
    ir.PrefetchAsyncContextType.get(),
    ir.AsyncEventType.get(),
    ir.AsyncSessionType.get(),
)


def op(name: str, args: list[ir.Expr], kind: ir.Type | None = None, **kwargs: object) -> ir.Call:
    return ir.Call(ir.Op(name), args, dict(kwargs), {}, kind or ir.UnknownType.get(), SPAN)


def shaped(extent: ir.Expr) -> ir.Type:
    return ir.TensorType([extent], ir.DataType.FP32)


def viewed(extent: ir.Expr) -> ir.Type:
    view = ir.TensorView(valid_shape=[extent], layout=ir.TensorLayout.ND)
    return ir.TensorType([64], ir.DataType.FP32, None, view)


def assign(name: str, value: ir.Expr, kind: ir.Type | None = None) -> ir.AssignStmt:
    return ir.AssignStmt(ir.Var(name, kind or value.type, SPAN), value, SPAN)


def run(expr: ir.Expr) -> ir.EvalStmt:
    return ir.EvalStmt(expr, SPAN)


def incore(name: str, build: object, **options: object) -> ir.Function:
    """A kernel of one tensor whose statements `build(x)` makes; it returns its parameter."""
    x = ir.Var("x", TENSOR, SPAN)
    body = ir.SeqStmts([*build(x), ir.ReturnStmt([x], SPAN)], SPAN)  # type: ignore[operator]
    return ir.Function(name, [x], [TENSOR], body, SPAN, ir.FunctionType.InCore, **options)  # type: ignore[arg-type]


def twins(build: object, **options: object) -> ir.Program:
    """Kernels `a` and `b` built alike, each called once."""
    x = ir.Var("x", TENSOR, SPAN)
    calls = [run(ir.Call(ir.GlobalVar(name), [x], TENSOR, SPAN)) for name in ("a", "b")]
    main = ir.Function("main", [x], [], ir.SeqStmts(calls, SPAN), SPAN, ir.FunctionType.Orchestration)
    return ir.Program([incore("a", build, **options), incore("b", build, **options), main], "P", SPAN)


def zero() -> ir.Expr:
    return ir.ConstInt(0, ir.DataType.INDEX, SPAN)


# ---- references


def test_an_unreferenced_twin_stays_as_a_possible_entry():
    source = twins(lambda x: [])
    alone = ir.Program([*source.functions_.values(), incore("c", lambda x: [])], "P", SPAN)
    assert kernels(dedup(alone)) == ["a", "c"]
    assert reason(alone, "c") == "unreferenced"


def test_kinds_that_keep_their_identity():
    body = "return x"
    methods = "".join(
        f"\n    @{kind}\n    def {kind}{n}(self, x: T(64)) -> T(64):\n        {body}\n"
        for kind in ("graph", "spmd", "opaque", "aiv")
        for n in (1, 2)
    )
    calls = "".join(
        f"        x = self.{kind}{n}(x)\n" for kind in ("graph", "spmd", "opaque", "aiv") for n in (1, 2)
    )
    source = ssa(f"{methods}\n    @orch\n    def main(self, x: T(64)):\n{calls}")
    assert dedup(source) is source
    for name in ("graph1", "spmd1", "opaque1", "aiv1", "main"):
        assert reason(source, name) == "not_a_candidate_kind"


def test_a_kernel_that_calls_a_function_is_a_helper_graph():
    source = twins(lambda x: [run(ir.Call(ir.GlobalVar("a"), [x], TENSOR, SPAN))])
    assert reason(source, "b") == "helper_call"


@pytest.mark.parametrize("place", ["argument", "bound", "attribute", "type", "yield", "function attribute"])
def test_references_are_found_on_every_edge(place: str):
    """A kernel that is named in one place only is referenced, and is redirected there."""
    x = ir.Var("x", TENSOR, SPAN)
    dispatch = ir.Call(ir.GlobalVar("b"), [x], INDEX, SPAN)
    attrs: dict[str, object] = {}
    statements: list[ir.Stmt] = [run(ir.Call(ir.GlobalVar("a"), [x], INDEX, SPAN))]
    match place:
        case "argument":
            statements.append(run(op("tensor.fill", [x, dispatch], TENSOR)))
        case "bound":
            i = ir.Var("i", INDEX, SPAN)
            statements.append(ir.ForStmt(i, zero(), dispatch, zero(), [], ir.SeqStmts([], SPAN), [], SPAN))
        case "attribute":
            call = ir.Call(ir.GlobalVar("a"), [x], {}, {"core_num": dispatch}, INDEX, SPAN)
            statements.append(run(call))
        case "type":
            statements.append(
                assign("t", op("tensor.empty", [], ir.TensorType([dispatch], ir.DataType.FP32)))
            )
        case "yield":
            r = ir.Var("r", INDEX, SPAN)
            branch = ir.YieldStmt([dispatch], SPAN)
            statements.append(ir.IfStmt(ir.ConstBool(True, SPAN), branch, branch, [r], SPAN))
        case "function attribute":
            attrs["core_num"] = dispatch
    main = ir.Function(
        "main", [x], [], ir.SeqStmts(statements, SPAN), SPAN, ir.FunctionType.Orchestration, attrs=attrs
    )
    source = ir.Program([_indexed("a"), _indexed("b"), main], "P", SPAN)
    assert set(index_references(source).sites) == {"a", "b"}
    result = dedup(source)
    assert sorted(result.functions_) == ["a", "main"]
    assert set(index_references(result).sites) == {"a"}


def _indexed(name: str) -> ir.Function:
    x = ir.Var("x", TENSOR, SPAN)
    return ir.Function(name, [x], [INDEX], ir.ReturnStmt([zero()], SPAN), SPAN, ir.FunctionType.InCore)


def test_a_dispatch_node_that_is_shared_stays_one_node():
    x = ir.Var("x", TENSOR, SPAN)
    shared = ir.Call(ir.GlobalVar("b"), [x], INDEX, SPAN)
    statements = [
        run(ir.Call(ir.GlobalVar("a"), [x], INDEX, SPAN)),
        assign("p", ir.Add(shared, zero(), ir.DataType.INDEX, SPAN)),
        assign("q", ir.Mul(shared, zero(), ir.DataType.INDEX, SPAN)),
    ]
    main = ir.Function("main", [x], [], ir.SeqStmts(statements, SPAN), SPAN, ir.FunctionType.Orchestration)
    source = ir.Program([_indexed("a"), _indexed("b"), main], "P", SPAN)
    assert len(index_references(source).sites["b"]) == 1
    _, p, q = function(dedup(source), "main").body.stmts_
    assert p.value.left is q.value.left
    assert p.value.left.op.name == "a"


# ---- closure


def test_a_variable_from_nowhere_is_a_free_capture():
    free = ir.Var("free", TENSOR, SPAN)
    source = twins(lambda x: [assign("y", op("tensor.add", [x, free], TENSOR))])
    assert reason(source, "b") == "free_capture"
    assert "'free'" in records(source)["b"].detail


def test_a_symbol_that_occurs_in_the_type_of_a_local_only_is_a_free_capture():
    m = ir.Var("m", INDEX, SPAN)
    source = twins(lambda x: [assign("y", op("tensor.make", [x], ir.TensorType([m], ir.DataType.FP32)))])
    assert reason(source, "b") == "free_capture"


def test_a_definition_in_a_branch_does_not_reach_what_follows():
    def build(x: ir.Var) -> list[ir.Stmt]:
        inner = assign("y", op("tensor.add", [x, x], TENSOR))
        branch = ir.IfStmt(ir.ConstBool(True, SPAN), inner, None, [], SPAN)
        return [branch, assign("z", op("tensor.add", [inner.var, x], TENSOR))]

    assert reason(twins(build), "b") == "free_capture"


def test_a_shared_expression_cannot_carry_a_variable_out_of_its_branch():
    def build(x: ir.Var) -> list[ir.Stmt]:
        inner = assign("y", op("tensor.add", [x, x], TENSOR))
        shared = op("tensor.mul", [inner.var, x], TENSOR)
        body = ir.SeqStmts([inner, run(shared)], SPAN)
        branch = ir.IfStmt(ir.ConstBool(True, SPAN), body, None, [], SPAN)
        return [branch, assign("z", shared)]

    assert reason(twins(build), "b") == "free_capture"


def test_a_shared_expression_without_inner_variables_is_known_after_the_branch():
    def build(x: ir.Var) -> list[ir.Stmt]:
        shared = op("tensor.mul", [x, x], TENSOR)
        branch = ir.IfStmt(ir.ConstBool(True, SPAN), run(shared), run(shared), [], SPAN)
        return [branch, assign("z", shared)]

    assert reason(twins(build), "b") is None


def test_a_definition_in_a_scope_reaches_what_follows():
    def build(x: ir.Var) -> list[ir.Stmt]:
        inner = assign("y", op("tensor.add", [x, x], TENSOR))
        scope = ir.SplitAivScopeStmt(ir.SplitMode.UP_DOWN, body=inner, span=SPAN)
        return [scope, assign("z", op("tensor.add", [inner.var, x], TENSOR))]

    assert reason(twins(build), "b") is None


# ---- what a definition may not own


def windowed() -> ir.Type:
    base = ir.Var("base", ir.PtrType.get(), SPAN)
    buffer = ir.WindowBuffer(base, ir.ConstInt(256, ir.DataType.INT64, SPAN))
    return ir.DistributedTensorType([64], ir.DataType.FP32, window_buffer=buffer)


@pytest.mark.parametrize(
    "build",
    [
        lambda x: [assign("p", op("tile.alloc", [], ir.PtrType.get()))],
        lambda x: [assign("c", op("pld.system.get_comm_ctx", [x], ir.CommCtxType.get()))],
        lambda x: [
            assign(
                "t", op("tensor.make", [x], ir.TensorType([64], ir.DataType.FP32, ir.MemRef("mem_0", 0, 256)))
            )
        ],
        lambda x: [assign("w", op("pld.tensor.alloc_window_buffer", [], ir.WindowBufferType()))],
        lambda x: [assign("w", op("pld.tensor.window", [], windowed()))],
    ],
    ids=["allocation", "communication context", "placed memory", "window", "tensor in a window"],
)
def test_explicit_resources_keep_a_kernel(build: object):
    assert reason(twins(build), "b") == "storage_resource"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"attrs": {"external_source": "/k.cpp"}}, "external_kernel"),
        ({"requires_runtime_binding": True}, "runtime_binding"),
    ],
)
def test_bodies_that_are_not_here_keep_a_kernel(options: dict[str, object], code: str):
    assert reason(twins(lambda x: [], **options), "b") == code


def test_source_text_and_template_kernels_are_kept():
    text = ir.InlineStmt("x", ir.InlineLanguage.Python, SPAN)
    assert reason(twins(lambda x: [text]), "b") == "external_kernel"
    template = twins(lambda x: [run(op("builtin.tensor.barrier", [x], TENSOR))])
    assert reason(template, "b") == "builtin_kernel"


# ---- values of unknown type


@pytest.mark.parametrize(
    "name",
    [
        "pld.tensor.put",
        "pld.tile.remote_store",
        "pld.tensor.remote_store",
        "pld.system.notify",
        "pld.system.wait",
        "pld.system.defer_wait",
        "system.set_ffts",
        "system.sync_set",
        "system.sync_wait",
    ],
)
def test_listed_statements_without_a_value_merge(name: str):
    assert reason(twins(lambda x: [run(op(name, [x]))]), "b") is None


@pytest.mark.parametrize(
    "build",
    [
        lambda x: [run(op("system.bar_all", []))],
        lambda x: [assign("y", op("pld.system.notify", [x]))],
        lambda x: [run(op("tensor.add", [x, op("pld.system.notify", [x])], TENSOR))],
        lambda x: [run(op("pld.system.wait", [op("pld.system.notify", [x])]))],
        lambda x: [
            run(ir.Call(ir.Op("tensor.add"), [x], {}, {"after": op("pld.system.wait", [])}, TENSOR, SPAN))
        ],
        lambda x: [run(ir.MakeTuple([op("pld.system.notify", [x])], SPAN))],
        lambda x: [ir.YieldStmt([op("pld.system.notify", [x])], SPAN)],
        lambda x: [ir.ReturnStmt([op("pld.system.notify", [x])], SPAN)],
        lambda x: [assign("y", op("tensor.make", [x], shaped(op("pld.system.notify", [x]))))],
        lambda x: [assign("y", op("tensor.make", [x], viewed(op("pld.system.notify", [x]))))],
    ],
    ids=[
        "other op",
        "assigned",
        "operand",
        "operand of a listed statement",
        "attribute",
        "tuple",
        "yielded",
        "returned",
        "extent",
        "valid extent",
    ],
)
def test_an_unknown_value_that_somebody_could_see_keeps_a_kernel(build: object):
    assert reason(twins(build), "b") == "unknown_type"


def test_a_statement_that_is_an_operand_elsewhere_keeps_a_kernel():
    def build(x: ir.Var) -> list[ir.Stmt]:
        shared = op("pld.system.notify", [x])
        return [run(shared), run(op("tensor.add", [x, shared], TENSOR))]

    assert reason(twins(build), "b") == "unknown_type"


def test_an_unknown_result_of_the_signature_keeps_a_kernel():
    def made(name: str) -> ir.Function:
        base = incore(name, lambda x: [])
        return base.replace(return_types=[ir.UnknownType.get()])

    source = twins(lambda x: [])
    source = ir.Program([made("a"), made("b"), function(source, "main")], "P", SPAN)
    assert reason(source, "b") == "unknown_type"


# ---- prefetch handles


def prefetch(x: ir.Var, *, foreign: bool = False) -> list[ir.AssignStmt]:
    first = assign("c", op("prefetch.make_context", [], CONTEXT))
    second = assign("d", op("prefetch.make_context", [], CONTEXT))
    event = assign("e", op("prefetch.async_prefetch", [x, first.var], EVENT))
    session = assign("s", op("prefetch.session", [second.var if foreign else first.var], SESSION))
    done = assign("w", op("prefetch.wait", [event.var, session.var], BOOL))
    return [first, second, event, session, done]


def test_a_local_context_event_and_wait_merge():
    assert reason(twins(prefetch), "b") is None


def test_a_bare_prefetch_merges():
    def build(x: ir.Var) -> list[ir.Stmt]:
        context = assign("c", op("prefetch.make_context", [], CONTEXT))
        return [context, run(op("prefetch.async_prefetch", [x, context.var], EVENT))]

    assert reason(twins(build), "b") is None


def test_an_event_awaited_with_another_context_keeps_a_kernel():
    source = twins(lambda x: prefetch(x, foreign=True))
    assert reason(source, "b") == "async_handle_escape"
    assert "another context" in records(source)["b"].detail


@pytest.mark.parametrize(
    "leak",
    [
        lambda handle: assign("alias", handle),
        lambda handle: run(ir.MakeTuple([handle], SPAN)),
        lambda handle: run(op("tensor.look_at", [handle], TENSOR)),
        lambda handle: ir.YieldStmt([handle], SPAN),
        lambda handle: ir.ReturnStmt([handle], SPAN),
        lambda handle: run(ir.Call(ir.Op("tensor.add"), [], {}, {"dump_vars": [handle]}, TENSOR, SPAN)),
        lambda handle: assign("y", op("tensor.make", [], shaped(op("tensor.look_at", [handle], INDEX)))),
        lambda handle: assign("y", op("tensor.make", [], viewed(handle))),
        lambda handle: assign("made", op("tensor.make_event", [], EVENT)),
        lambda handle: run(
            op("prefetch.wait", [op("prefetch.async_prefetch", [handle, handle], EVENT), handle], BOOL)
        ),
    ],
    ids=[
        "alias",
        "tuple",
        "other operator",
        "yield",
        "return",
        "attribute",
        "extent",
        "valid extent",
        "other maker",
        "nested maker",
    ],
)
def test_a_handle_that_leaves_the_prefetch_operators_keeps_a_kernel(leak: object):
    def build(x: ir.Var) -> list[ir.Stmt]:
        made = prefetch(x)
        return [*made, leak(made[0].var)]  # type: ignore[operator]

    assert reason(twins(build), "b") == "async_handle_escape"


def test_a_handle_in_the_signature_keeps_a_kernel():
    def made(name: str) -> ir.Function:
        base = incore(name, prefetch)
        variables = (*base.params_, ir.Var("c", CONTEXT, SPAN))
        return base.replace(params=[(var, ir.ParamDirection.In) for var in variables])

    source = twins(prefetch)
    source = ir.Program([made("a"), made("b"), function(source, "main")], "P", SPAN)
    assert reason(source, "b") == "async_handle_escape"


# ---- incomplete index


class Opaque:
    """A payload that nobody knows."""


@pytest.mark.parametrize("place", ["call", "function", "statement"])
def test_an_unknown_payload_anywhere_keeps_the_program(place: str, capfd: pytest.CaptureFixture[str]):
    source = twins(lambda x: [])
    main = function(source, "main")
    match place:
        case "call":
            call = main.body.stmts_[0].expr
            stored = ir.Call.make(call.type, call.op, call.args_, {"odd": Opaque()}, {}, SPAN)
            main = main.replace(body=ir.EvalStmt(stored, SPAN))
        case "function":
            fields = list(main._values())
            fields[[f.name for f in ir.Function.FIELDS].index("attrs")] = {"odd": Opaque()}
            main = ir.Function.make(*fields)
        case "statement":
            loop = ir.ForStmt.make(
                ir.Var("i", INDEX, SPAN),
                zero(),
                zero(),
                zero(),
                (),
                ir.SeqStmts([], SPAN),
                (),
                Opaque(),
                {},
                SPAN,
            )
            main = main.replace(body=loop)
    broken = ir.Program([function(source, "a"), function(source, "b"), main], "P", SPAN)
    assert passes.deduplicate_outlined_kernels()(broken) is broken
    found = records(broken)["b"]
    assert found.reason == "index_incomplete"
    class_name, field = {
        "call": ("Call", "odd"),
        "function": ("Function", "odd"),
        "statement": ("ForStmt", "kind"),
    }[place]
    for detail in (found.detail, logged(broken, capfd)):
        assert "function 'main'" in detail
        assert f"field '{field}' of a {class_name} holds a {Opaque.__module__}.Opaque" in detail


def test_a_node_class_that_is_not_described_keeps_the_program():
    class Strange(ir.EvalStmt):
        __slots__ = ()

    source = twins(lambda x: [Strange(x, SPAN)])
    assert passes.deduplicate_outlined_kernels()(source) is source
    assert records(source)["a"].reason == "index_incomplete"


def test_placed_memory_in_the_signature_keeps_a_kernel():
    kind = ir.TensorType([64], ir.DataType.FP32, ir.MemRef("mem_0", 0, 256))
    x = ir.Var("x", kind, SPAN)
    kernels_ = [
        ir.Function(name, [x], [kind], ir.ReturnStmt([x], SPAN), SPAN, ir.FunctionType.InCore)
        for name in "ab"
    ]
    calls = [run(ir.Call(ir.GlobalVar(name), [x], kind, SPAN)) for name in "ab"]
    main = ir.Function("main", [x], [], ir.SeqStmts(calls, SPAN), SPAN, ir.FunctionType.Orchestration)
    assert reason(ir.Program([*kernels_, main], "P", SPAN), "b") == "storage_resource"
