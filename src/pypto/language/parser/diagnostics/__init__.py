"""Errors of the DSL front end: classes, codes, rendering."""

from __future__ import annotations

from pypto.language.parser.diagnostics.codes import ErrorCategory, ErrorCode, get_error_code
from pypto.language.parser.diagnostics.concise import concise_error_message
from pypto.language.parser.diagnostics.exceptions import (
    InvalidOperationError,
    ParserError,
    ParserSyntaxError,
    ParserTypeError,
    ScopeIsolationError,
    SSAViolationError,
    UndefinedVariableError,
    UnsupportedFeatureError,
    span_to_dict,
)
from pypto.language.parser.diagnostics.hook import install_excepthook
from pypto.language.parser.diagnostics.renderer import ErrorRenderer

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
    "install_excepthook",
    "span_to_dict",
]
