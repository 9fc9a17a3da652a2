"""Passes, contexts, instruments, pipelines, reports and the diagnostics channel."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import pypto
from pypto import ir, passes
from pypto.passes import (
    CallbackInstrument,
    DiagnosticCheck,
    DiagnosticCheckSet,
    DiagnosticPhase,
    IRProperty,
    IRPropertySet,
    PassContext,
    PassPipeline,
    PassProperties,
    VerificationInstrument,
    VerificationLevel,
    VerificationMode,
)
from pypto.passes.diagnostics import emit_diagnostics
from tests.passes.dsl import program

S = ir.Span.unknown()
SCALAR = ir.ScalarType(ir.DataType.INDEX)

SOURCE = """
@opaque
def main(self, x: T(4, 4)) -> T(4, 4):
    y = pl.add(x, x)
    return y
"""


def property_set(*members: IRProperty) -> IRPropertySet:
    result = IRPropertySet()
    for member in members:
        result.insert(member)
    return result


def identity(name: str = "Identity", **sets: IRPropertySet) -> passes.Pass:
    return passes.create_program_pass(lambda source: source, name, PassProperties(**sets))


def returning(result: ir.Program, name: str = "Broken", **sets: IRPropertySet) -> passes.Pass:
    return passes.create_program_pass(lambda source: result, name, PassProperties(**sets))


def pipeline(*members: passes.Pass) -> PassPipeline:
    result = PassPipeline()
    for member in members:
        result.add_pass(member)
    return result


def not_ssa() -> ir.Program:
    a, n = ir.Var("a", SCALAR, S), ir.Var("n", SCALAR, S)
    body = ir.SeqStmts([ir.AssignStmt(a, n, S), ir.AssignStmt(a, n, S), ir.ReturnStmt([a], S)], S)
    return ir.Program([ir.Function("main", [n], [SCALAR], body, S)], "P", S)


def ill_typed() -> ir.Program:
    n = ir.Var("n", SCALAR, S)
    branch = ir.IfStmt(n, ir.EvalStmt(n, S), None, [], S)
    return ir.Program([ir.Function("main", [n], [], branch, S)], "P", S)


# --- property sets ---


def test_property_sets_print_in_enum_order_and_are_not_hashable() -> None:
    a = property_set(IRProperty.NoNestedCalls, IRProperty.SSAForm)
    assert str(a) == repr(a) == "{SSAForm, NoNestedCalls}" and str(IRPropertySet()) == "{}"
    assert a.to_list() == [IRProperty.SSAForm, IRProperty.NoNestedCalls]
    with pytest.raises(TypeError, match="unhashable"):
        hash(a)


def test_a_set_holds_members_of_its_enum_only() -> None:
    with pytest.raises(TypeError, match="IRPropertySet holds IRProperty, got str"):
        passes.IRPropertySet().insert("SSAForm")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "misuse",
    [
        lambda: PassContext("x"),
        lambda: PassContext([1]),
        lambda: PassContext([], "BASIC"),
        lambda: PassContext([], disabled_diagnostics=[DiagnosticCheck.UnusedVariable]),
        lambda: PassPipeline().add_pass(None),
        lambda: PassPipeline().run(None),
        lambda: passes.create_program_pass(None),
        lambda: passes.create_function_pass(None),
        lambda: passes.create_program_pass(lambda p: p, "x", IRPropertySet()),
        lambda: passes.create_program_pass(lambda p: 3)(ir.Program([], "P", S)),
        lambda: PassProperties(1, 2, 3),
        lambda: IRPropertySet().contains("SSAForm"),
        lambda: IRPropertySet().union_with(DiagnosticCheckSet()),
        lambda: VerificationInstrument("BEFORE"),
        lambda: CallbackInstrument(3),
        lambda: passes.ReportInstrument(3),
        lambda: passes.DiagnosticInstrument([]),
        lambda: passes.run_verifier([]),
        lambda: passes.verify_properties(IRPropertySet(), None, "x"),
        lambda: passes.runtime_kind_to_name("host_build_graph"),
    ],
)
def test_what_is_of_the_wrong_kind_is_refused_where_it_is_given(misuse: Callable[[], object]) -> None:
    with pytest.raises(TypeError):
        misuse()


def test_set_methods_make_new_sets() -> None:
    a, b = property_set(IRProperty.SSAForm), property_set(IRProperty.TypeChecked)
    both = a.union_with(b)
    assert both == property_set(IRProperty.SSAForm, IRProperty.TypeChecked)
    assert both.intersection(a) == a and both.difference(a) == b
    assert both.contains_all(IRPropertySet()) and not a.contains_all(both)
    a.remove(IRProperty.TypeChecked)
    assert a == property_set(IRProperty.SSAForm) and a != b and not a.empty()
    assert passes.get_verified_properties() is not passes.get_verified_properties()
    assert IRProperty.HardSyncallOccupancyValid in passes.get_verified_properties().to_list()


# --- passes ---


def test_a_pass_has_a_name_and_declared_properties() -> None:
    one = passes.flatten_call_expr()
    assert one.get_name() == "FlattenCallExpr"
    assert one.get_required_properties() == property_set(
        IRProperty.SSAForm, IRProperty.NormalizedStmtStructure
    )
    one.get_required_properties().insert(IRProperty.TypeChecked)
    assert not one.get_required_properties().contains(IRProperty.TypeChecked)
    assert passes.create_program_pass(lambda p: p).get_name() == "ProgramPass"
    assert passes.create_function_pass(lambda f: f).get_name() == "FunctionPass"
    with pytest.raises(TypeError):
        passes.Pass()


def test_a_transform_that_returns_nothing_is_an_internal_error_that_names_the_pass() -> None:
    broken = passes.create_program_pass(lambda source: None, "Lost")  # type: ignore[arg-type,return-value]
    with pytest.raises(pypto.InternalError, match="'Lost' returned a null program"):
        broken(program(SOURCE))


def test_a_function_pass_visits_functions_in_name_order() -> None:
    bodies = [ir.Function(name, [], [], ir.ReturnStmt([], S), S) for name in ("b", "a2", "a10", "Z")]
    seen: list[str] = []
    note = passes.create_function_pass(lambda function: seen.append(function.name) or function)
    source = ir.Program(bodies, "P", S)
    assert note(source) is source
    assert seen == ["Z", "a10", "a2", "b"]


def test_exceptions_of_a_transform_keep_their_class() -> None:
    def fail(source: ir.Program) -> ir.Program:
        raise KeyError("mine")

    with pytest.raises(KeyError):
        passes.create_program_pass(fail)(program(SOURCE))


# --- contexts and instruments ---


def test_instruments_fire_in_list_order_before_and_after_a_direct_call() -> None:
    seen: list[str] = []

    def noting(name: str) -> CallbackInstrument:
        return CallbackInstrument(
            lambda p, _: seen.append(f"{name} before {p.get_name()}"),
            lambda p, _: seen.append(f"{name} after"),
            name,
        )

    with PassContext([noting("one"), noting("two")]):
        identity()(program(SOURCE))
    assert seen == ["one before Identity", "two before Identity", "one after", "two after"]


def test_the_inner_context_hides_the_outer_one() -> None:
    seen: list[str] = []
    outer = PassContext([CallbackInstrument(lambda p, _: seen.append("outer"))], VerificationLevel.NONE)
    assert PassContext.current() is None
    with outer as entered:
        assert entered is outer and PassContext.current() is outer
        with PassContext([]) as inner:
            identity()(program(SOURCE))
            assert inner.get_verification_level() is VerificationLevel.BASIC
        assert PassContext.current() is outer
    assert seen == [] and PassContext.current() is None


def test_a_context_is_left_when_its_body_raises_and_must_be_innermost() -> None:
    with pytest.raises(KeyError), PassContext([]):
        raise KeyError("x")
    assert PassContext.current() is None
    outer, inner = PassContext([]), PassContext([])
    outer.__enter__()
    inner.__enter__()
    with pytest.raises(pypto.InternalError):
        outer.__exit__(None, None, None)
    inner.__exit__(None, None, None)
    outer.__exit__(None, None, None)


def test_contexts_belong_to_their_thread() -> None:
    seen: list[object] = []
    with PassContext([]):
        thread = threading.Thread(target=lambda: seen.append(PassContext.current()))
        thread.start()
        thread.join()
    assert seen == [None]


def test_default_settings_of_a_context() -> None:
    context = PassContext([])
    assert context.get_diagnostic_phase() is DiagnosticPhase.PRE_PIPELINE
    assert context.get_disabled_diagnostics().to_list() == [DiagnosticCheck.UnusedControlFlowResult]
    assert context.get_memory_planner() is passes.MemoryPlanner.PYPTO
    assert context.get_enable_pypto_l0c_double_buffer() is False
    assert passes.runtime_kind_to_name(context.get_runtime()) == "tensormap_and_ringbuffer"
    assert passes.runtime_kind_from_name("host_build_graph") is passes.RuntimeKind.HOST_BUILD_GRAPH
    with pytest.raises(ValueError, match="Unknown runtime 'other'"):
        passes.runtime_kind_from_name("other")


def test_instrument_names() -> None:
    assert CallbackInstrument().get_name() == "CallbackInstrument"
    assert CallbackInstrument(name="Mine").get_name() == "Mine"
    assert VerificationInstrument(VerificationMode.NONE).get_name() == "VerificationInstrument"
    assert passes.ReportInstrument("/nowhere").get_output_dir() == "/nowhere"
    with pytest.raises(TypeError):
        passes.PassInstrument()


def test_the_verification_instrument_checks_what_a_pass_requires_and_produces() -> None:
    with (
        PassContext([VerificationInstrument(VerificationMode.BEFORE)]),
        pytest.raises(pypto.Error, match="Pre-verification failed before pass 'FlattenCallExpr':\nIR Verif"),
    ):
        passes.flatten_call_expr()(not_ssa())
    produces = returning(not_ssa(), produced=property_set(IRProperty.SSAForm))
    with (
        PassContext([VerificationInstrument(VerificationMode.AFTER)]),
        pytest.raises(pypto.Error, match="Post-verification failed after pass 'Broken':"),
    ):
        produces(program(SOURCE))
    with PassContext([VerificationInstrument(VerificationMode.NONE)]):
        produces(program(SOURCE))


# --- pipelines ---


def test_an_empty_pipeline_returns_its_input_and_still_verifies_it() -> None:
    source = program(SOURCE)
    assert PassPipeline().run(source) is source
    with pytest.raises(
        pypto.Error, match=r"Verification failed after 'pipeline_input' for properties \{TypeChecked,"
    ):
        PassPipeline().run(ill_typed())
    with PassContext([], VerificationLevel.NONE):
        PassPipeline().run(ill_typed())


def test_a_pass_that_breaks_what_it_produces_is_caught_only_in_a_pipeline() -> None:
    broken = returning(not_ssa(), produced=property_set(IRProperty.SSAForm))
    broken(program(SOURCE))
    with pytest.raises(pypto.Error, match=r"Verification failed after 'Broken' for properties \{SSAForm\}:"):
        pipeline(broken).run(program(SOURCE))
    pipeline(returning(not_ssa())).run(program(SOURCE))
    with PassContext([], VerificationLevel.NONE):
        pipeline(broken).run(program(SOURCE))


def test_a_property_is_verified_once_until_it_is_invalidated() -> None:
    ssa = property_set(IRProperty.SSAForm)
    makes = passes.convert_to_ssa()
    breaks = returning(not_ssa(), "Silent", produced=ssa)
    pipeline(makes, breaks).run(program(SOURCE))
    again = returning(not_ssa(), "Loud", produced=ssa, invalidated=ssa)
    with pytest.raises(pypto.Error, match="'Loud'"):
        pipeline(makes, again).run(program(SOURCE))


def test_pipeline_lists_its_passes() -> None:
    members = [passes.convert_to_ssa(), passes.simplify()]
    result = pipeline(*members)
    assert result.get_pass_names() == ["ConvertToSSA", "Simplify"] and result.get_passes() == members


def test_run_verifier_is_a_pass_that_returns_its_input() -> None:
    verifier = passes.run_verifier()
    source = passes.convert_to_ssa()(program(SOURCE))
    assert verifier.get_name() == "IRVerifier" and verifier(source) is source
    with pytest.raises(pypto.Error, match="SSAVerify"):
        verifier(not_ssa())


# --- reports ---


def test_reports_for_none_one_and_two_findings() -> None:
    report = passes.PropertyVerifierRegistry.generate_report
    assert report([]).endswith("Total diagnostics: 0 (0 errors, 0 warnings)\n\nStatus: PASSED\n")
    severity = passes.DiagnosticSeverity
    error = passes.Diagnostic(severity.Error, "Rule", 7, "bad", ir.Span("f.py", 3, 4))
    warning = passes.Diagnostic(severity.Warning, "Other", 0, "odd", ir.Span.unknown())
    assert report([warning]).endswith("Status: PASSED with 1 warning(s)\n")
    assert report([error, warning]) == (
        "IR Verification Report\n"
        "======================\n"
        "Total diagnostics: 2 (1 errors, 1 warnings)\n"
        "\n"
        "[1] ERROR - Rule\n"
        "  Message: bad\n"
        "  Location: f.py:3:4\n"
        "  Error Code: 7\n"
        "\n"
        "[2] WARNING - Other\n"
        "  Message: odd\n"
        "  Location: :-1:-1\n"
        "  Error Code: 0\n"
        "\n"
        "Status: FAILED (1 error(s) found)\n"
    )


def test_each_rule_is_reported_under_its_name() -> None:
    n, y = ir.Var("n", SCALAR, S), ir.Var("y", SCALAR, S)

    def body(*stmts: ir.Stmt) -> ir.Program:
        kernel = ir.Function(
            "k", [(ir.Var("o", SCALAR, S), ir.ParamDirection.InOut)], [], ir.SeqStmts([], S), S
        )
        return ir.Program([ir.Function("main", [n], [], ir.flatten_stmts(list(stmts), S), S), kernel], "P", S)

    call = ir.Call(ir.GlobalVar("k"), [n], SCALAR, S)
    cases = {
        "SSAVerify": (IRProperty.SSAForm, not_ssa()),
        "TypeCheck": (IRProperty.TypeChecked, ill_typed()),
        "NoNestedCall": (IRProperty.NoNestedCalls, body(ir.AssignStmt(y, ir.add(call, n), S))),
        "BreakContinueCheck": (IRProperty.BreakContinueValid, body(ir.BreakStmt(S))),
        "UseAfterDefCheck": (IRProperty.UseAfterDef, body(ir.EvalStmt(y, S))),
        "InOutUseDiscipline": (IRProperty.InOutUseValid, body(ir.EvalStmt(call, S), ir.ReturnStmt([n], S))),
    }
    for name, (prop, source) in cases.items():
        found = passes.PropertyVerifierRegistry.verify(property_set(prop), source)
        assert {each.rule_name for each in found} == {name}
    acc, result = ir.IterArg("acc", SCALAR, n, S), ir.Var("r", SCALAR, S)
    loop = ir.ForStmt(ir.Var("i", SCALAR, S), n, n, n, [acc], ir.YieldStmt([acc], S), [result], S)
    source = body(ir.AssignStmt(y, n, S), loop)
    registry = passes.DiagnosticCheckRegistry
    warnings = registry.run_checks(registry.get_all_checks(), DiagnosticPhase.PRE_PIPELINE, source)
    assert [each.rule_name for each in warnings] == ["UnusedVariableCheck", "UnusedControlFlowResultCheck"]


# --- the diagnostics channel ---

UNUSED = SOURCE.replace("    return y", "    u = pl.mul(x, x)\n    return y")


def logged(capfd: pytest.CaptureFixture[str], *context: PassContext) -> list[str]:
    source = program(UNUSED)
    capfd.readouterr()
    if context:
        with context[0]:
            PassPipeline().run(source)
    else:
        PassPipeline().run(source)
    return [line.split(" | ", 1)[1] for line in capfd.readouterr().err.splitlines() if " W | " in line]


def test_an_unused_variable_is_one_warning_line(capfd: pytest.CaptureFixture[str]) -> None:
    (line,) = logged(capfd)
    assert line.startswith(
        "[warning] [UnusedVariableCheck] (pipeline_input) Unused variable 'u' in function 'main' at "
    )


def test_an_unused_variable_whose_name_starts_with_an_underscore_is_silent(
    capfd: pytest.CaptureFixture[str],
) -> None:
    PassPipeline().run(program(UNUSED.replace("    u =", "    _u =")))
    assert "Unused variable" not in capfd.readouterr().err


def test_warnings_are_silent_when_the_phase_is_none_or_the_check_is_disabled(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert logged(capfd, PassContext([], diagnostic_phase=DiagnosticPhase.NONE)) == []
    disabled = DiagnosticCheckSet()
    disabled.insert(DiagnosticCheck.UnusedVariable)
    assert logged(capfd, PassContext([], disabled_diagnostics=disabled)) == []


def test_unused_results_of_control_flow_are_silent_unless_a_context_enables_the_check(
    capfd: pytest.CaptureFixture[str],
) -> None:
    text = SOURCE.replace("    return y", "    for i in pl.range(3):\n        x = pl.add(x, y)\n    return y")
    source = passes.convert_to_ssa()(program(text))
    PassPipeline().run(source)
    assert "UnusedControlFlowResultCheck" not in capfd.readouterr().err
    with PassContext([], disabled_diagnostics=DiagnosticCheckSet()):
        PassPipeline().run(source)
    assert (
        "[UnusedControlFlowResultCheck] (pipeline_input) Unused result 'x__rv_v2'" in capfd.readouterr().err
    )


def test_a_diagnostic_instrument_replaces_the_channel(capfd: pytest.CaptureFixture[str]) -> None:
    instrument = passes.DiagnosticInstrument()
    with PassContext([instrument]):
        PassPipeline().run(program(UNUSED))
        assert "UnusedVariableCheck" not in capfd.readouterr().err
        identity()(program(UNUSED))
        assert "(pipeline_input) Unused variable 'u'" in capfd.readouterr().err


def test_performance_hints_go_to_the_log_or_to_the_report(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def hint(span: ir.Span) -> passes.Diagnostic:
        return passes.Diagnostic(passes.DiagnosticSeverity.PerfHint, "Rows", 0, "short", span, "PH001")

    hints = [hint(ir.Span("f.py", 3, 4)), hint(ir.Span("f.py", 3, 4)), hint(ir.Span.unknown())]
    emit_diagnostics(hints[:1], "pipeline_output")
    assert capfd.readouterr().err.endswith("I | [perf_hint PH001] Rows: short at f.py:3:4\n")
    report = tmp_path / "report"
    emit_diagnostics(hints, "pipeline_output", str(report))
    emit_diagnostics(hints[2:], "pipeline_output", str(report))
    written = (report / "perf_hints.log").read_text().splitlines()
    assert (
        written == ["[perf_hint PH001] Rows: short at f.py:3:4"] * 2 + ["[perf_hint PH001] Rows: short"] * 2
    )
    lines = capfd.readouterr().err.splitlines()
    assert lines[0].endswith(f"[perf_hint] 3 hints across 1 site; see {report / 'perf_hints.log'}")
    assert lines[1].endswith(f"[perf_hint] 1 hint; see {report / 'perf_hints.log'}")
    emit_diagnostics(hints[:1], "pipeline_output", str(report / "perf_hints.log"))
    assert "cannot write performance hints" in capfd.readouterr().err


def test_registered_checks() -> None:
    registry = passes.DiagnosticCheckRegistry
    assert registry.get_perf_hint_checks().to_list() == [DiagnosticCheck.TileInnermostDimGranularity]
    assert len(registry.get_warning_checks().to_list()) == 3
    assert len(registry.get_all_checks().to_list()) == 4


def test_a_dropped_write_to_an_output_parameter_is_reported() -> None:
    source = program(
        """
    @opaque
    def main(self, x: T(4, 4), out: pl.Out[T(4, 4)]) -> T(4, 4):
        out = pl.add(x, x)
        return out
    """
    )
    checks = DiagnosticCheckSet()
    checks.insert(DiagnosticCheck.OutParamWriteDropped)
    run = passes.DiagnosticCheckRegistry.run_checks
    (found,) = run(checks, DiagnosticPhase.PRE_PIPELINE, source)
    assert found.error_code == 1003 and "out[:] = <expr>" in found.message
    assert run(checks, DiagnosticPhase.POST_PASS, source) == []


# --- the round-trip instrument ---


def test_the_round_trip_instrument_accepts_what_prints_and_parses_back() -> None:
    with PassContext([ir.make_roundtrip_instrument()]):
        passes.convert_to_ssa()(program(SOURCE))
    assert ir.make_roundtrip_instrument().get_name() == "RoundtripInstrument"


def test_each_failure_of_the_round_trip_has_its_own_text(monkeypatch: pytest.MonkeyPatch) -> None:
    from pypto.language.parser import text_parser

    other = program(SOURCE.replace("pl.add", "pl.mul"))

    def fail(text: str, filename: str) -> ir.Program:
        raise SyntaxError("nope")

    cases = [
        (fail, "Parse failed after pass 'Identity'"),
        (lambda text, filename: 3, "gave a int, not a Program"),
        (lambda text, filename: other, "Structural equality failed after pass 'Identity'"),
    ]
    for parse, message in cases:
        monkeypatch.setattr(text_parser, "parse", parse)
        with PassContext([ir.make_roundtrip_instrument()]), pytest.raises(RuntimeError, match=message):
            identity()(program(SOURCE))


def test_a_printer_failure_is_an_error_and_missing_support_only_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from pypto.passes import roundtrip

    def failing(message: str):
        def fail(node: ir.Program, **options: object) -> str:
            raise ValueError(message)

        return fail

    monkeypatch.setattr(roundtrip, "python_print", failing("broken"))
    with PassContext([ir.make_roundtrip_instrument()]):
        with pytest.raises(RuntimeError, match="Printer failed after pass 'Identity'"):
            identity()(program(SOURCE))
        monkeypatch.setattr(roundtrip, "python_print", failing("X does not support iter_args"))
        with pytest.warns(UserWarning, match="IR not printable after 'Identity'"):
            identity()(program(SOURCE))
