"""Why a unit is kept: codes for programs, texts for people."""

from __future__ import annotations

import enum
from dataclasses import dataclass

__all__ = ["Kept", "Reason"]


class Reason(enum.Enum):
    """Why a definition stays. The value is the stable code."""

    CANONICAL = "canonical"
    UNIQUE = "unique"
    UNREFERENCED = "unreferenced"
    NOT_A_CANDIDATE_KIND = "not_a_candidate_kind"
    SHARED_MEMBER = "shared_member"
    EXTERNAL_MEMBER_USE = "external_member_use"
    HELPER_CALL = "helper_call"
    FREE_CAPTURE = "free_capture"
    UNKNOWN_TYPE = "unknown_type"
    STORAGE_RESOURCE = "storage_resource"
    ASYNC_HANDLE_ESCAPE = "async_handle_escape"
    EXTERNAL_KERNEL = "external_kernel"
    BUILTIN_KERNEL = "builtin_kernel"
    RUNTIME_BINDING = "runtime_binding"
    SYMBOL_IDENTITY = "symbol_identity"
    PROOF_ARITY = "proof_arity"
    PROOF_BINDING = "proof_binding"
    PROOF_RESULT_TYPE = "proof_result_type"
    PROOF_UNSUPPORTED_TYPE = "proof_unsupported_type"
    BUDGET = "budget"
    BUCKET_FULL = "bucket_full"
    INDEX_INCOMPLETE = "index_incomplete"


@dataclass(frozen=True, slots=True)
class Kept:
    """A reason with its detail: a sentence that names what stands in the way."""

    reason: Reason
    detail: str
