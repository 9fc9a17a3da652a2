"""Stable codes of front-end errors."""

from __future__ import annotations

from enum import Enum

from pypto.language.parser.diagnostics.exceptions import (
    InvalidOperationError,
    ParserSyntaxError,
    ParserTypeError,
    SSAViolationError,
    UndefinedVariableError,
    UnsupportedFeatureError,
)


class ErrorCategory(Enum):
    """The first two characters of a code."""

    SYNTAX = "E0"
    TYPE = "E1"
    NAME = "E2"
    OPERATION = "E3"


class ErrorCode(str, Enum):
    """Every code that the front end assigns."""

    INVALID_SYNTAX = "E001"
    MISSING_ANNOTATION = "E002"
    INVALID_DECORATOR = "E003"
    TYPE_MISMATCH = "E101"
    INVALID_ANNOTATION = "E102"
    INVALID_DTYPE = "E103"
    UNDEFINED_VARIABLE = "E200"
    SSA_VIOLATION = "E201"
    SCOPE_VIOLATION = "E202"
    INVALID_OPERATION = "E300"
    UNSUPPORTED_FEATURE = "E301"
    INVALID_ARGUMENT = "E302"
    INVALID_LOOP = "E303"
    INVALID_SCOPE = "E304"
    INVALID_CALL = "E305"


_CODE_OF_CLASS: dict[type[BaseException], ErrorCode] = {
    ParserSyntaxError: ErrorCode.INVALID_SYNTAX,
    ParserTypeError: ErrorCode.TYPE_MISMATCH,
    UndefinedVariableError: ErrorCode.UNDEFINED_VARIABLE,
    SSAViolationError: ErrorCode.SSA_VIOLATION,
    UnsupportedFeatureError: ErrorCode.UNSUPPORTED_FEATURE,
    InvalidOperationError: ErrorCode.INVALID_OPERATION,
}


def get_error_code(error_class: type[BaseException]) -> ErrorCode | None:
    """The code of an error class, or None for a class without one."""
    return _CODE_OF_CLASS.get(error_class)
