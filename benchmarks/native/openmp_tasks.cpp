// The same graphs as OpenMP tasks with dependences, for comparison.
#include <stdint.h>

extern "C" void openmp_chain(int64_t tasks, int threads) {
    char x = 0;
#pragma omp parallel num_threads(threads)
#pragma omp single
    for (int64_t i = 0; i < tasks; ++i) {
#pragma omp task depend(inout : x)
        asm volatile("" : : "r"(&x));
    }
}

extern "C" void openmp_fan_out(int64_t tasks, int threads) {
    char x = 0;
#pragma omp parallel num_threads(threads)
#pragma omp single
    {
#pragma omp task depend(inout : x)
        asm volatile("" : : "r"(&x));
        for (int64_t i = 1; i < tasks; ++i) {
#pragma omp task depend(in : x)
            asm volatile("" : : "r"(&x));
        }
    }
}
