"""Byte offsets inside the communication context that distributed kernels receive."""

RANK_ID_OFFSET = 16
RANK_NUM_OFFSET = 20
WINDOWS_IN_OFFSET = 32
WINDOWS_OUT_OFFSET = 544
WINDOW_SLOT_STRIDE = 8
COMM_CTX_SIZE = 1056
