"""The parser of the DSL: from Python source to IR.

One module per subject; `function_parser` holds the state and the two dispatch tables, `entry` is what
decorators call. Importing this package only makes the error classes known (and shows them nicely when nobody
catches them)."""

from __future__ import annotations

from pypto.language.parser.diagnostics import (
    ErrorCategory,
    ErrorCode,
    ErrorRenderer,
    InvalidOperationError,
    ParserError,
    ParserSyntaxError,
    ParserTypeError,
    ScopeIsolationError,
    SSAViolationError,
    UndefinedVariableError,
    UnsupportedFeatureError,
    concise_error_message,
    get_error_code,
    install_excepthook,
)

install_excepthook()

__all__ = [
    "ErrorCategory",
    "ErrorCode",
    "ErrorRenderer",
    "InvalidOperationError",
    "ParserError",
    "ParserSyntaxError",
    "ParserTypeError",
    "SSAViolationError",
    "ScopeIsolationError",
    "UndefinedVariableError",
    "UnsupportedFeatureError",
    "concise_error_message",
    "get_error_code",
]
