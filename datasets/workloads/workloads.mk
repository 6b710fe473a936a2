# Small multi-threaded programs with a known best placement; see datasets/workloads/README.md.
FC       := gfortran
WORKLOADS := $(patsubst datasets/workloads/%.c,$(B)/workloads/%,$(wildcard datasets/workloads/*.c)) \
	$(B)/workloads/fortran_common
WORKLOAD_CFLAGS := -std=c17 -D_GNU_SOURCE -O2 -g -pthread $(WARNINGS)

.PHONY: workloads
workloads: $(WORKLOADS)

$(B)/workloads/omp_%: WORKLOAD_CFLAGS += -fopenmp

$(B)/workloads/%: datasets/workloads/%.c datasets/workloads/workload.h
	@mkdir -p $(@D)
	$(Q)$(CC) $(WORKLOAD_CFLAGS) -o $@ $<

$(B)/workloads/%: datasets/workloads/%.f90
	@mkdir -p $(@D)
	$(Q)$(FC) -std=f2008 -fall-intrinsics -fopenmp -O2 -g -Wall -Wextra -Werror -Wno-do-subscript -o $@ $<
