# Tests. A file tests/unit/test_X.c is one cmocka program, tests/fuzz/fuzz_X.c one fuzzer,
# tests/cli/tNNNN-*.sh one script; all but the fuzzers print TAP.
UNIT := $(patsubst tests/unit/%.c,$(B)/unit/%,$(wildcard tests/unit/test_*.c))
FUZZERS := $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_SECONDS ?= 60

$(B)/unit/%: tests/unit/%.c $(B)/libnumapgo.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(TOOL_CFLAGS) -Wno-missing-prototypes -MMD -MP -o $@ $< $(B)/libnumapgo.a $(LIBS) -lcmocka

.PHONY: unit unit-programs targets fuzz fuzzers cli bench check demo
unit-programs: $(UNIT)

unit: $(UNIT)
	$(Q)for t in $(UNIT); do $$t || exit 1; done

# a library of its own: every object is instrumented for coverage
fuzz:
	$(Q)$(MAKE) --no-print-directory CC=clang B=$(B)/fuzzing SAN=address,undefined,fuzzer-no-link fuzzers
	$(Q)sh tests/fuzz.sh $(B)/fuzzing $(FUZZ_SECONDS)

fuzzers: $(FUZZERS)

$(B)/fuzz/%: tests/fuzz/%.c $(B)/libnumapgo.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(TOOL_CFLAGS) -Wno-missing-prototypes -fsanitize=fuzzer -o $@ $< $(B)/libnumapgo.a $(LIBS)

# small programs that the scripts of tests/cli need
TARGETS := $(patsubst tests/targets/%.c,$(B)/targets/%,$(wildcard tests/targets/*.c))

targets: $(TARGETS) $(B)/channel_holder

$(B)/targets/%: tests/targets/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(WORKLOAD_CFLAGS) -o $@ $<

# make cli T=t0201: some scripts only
T ?= t
cli: all workloads targets
	$(Q)mkdir -p $(B)/check && for t in tests/cli/$(T)*.sh; do \
		NUMAPGO=$(CURDIR)/$(B)/numapgo B=$(B) sh tests/run.sh -d $(B)/check cli/$$(basename $$t .sh) \
			sh $$t || failed=1; done; [ -z "$$failed" ]

bench: all workloads
	$(Q)NUMAPGO=$(CURDIR)/$(B)/numapgo B=$(B) python3 tests/bench/overhead

demo: deps
	$(Q)$(MAKE) --no-print-directory -j2 all $(B)/workloads/serial_init
	$(Q)NUMAPGO=$(CURDIR)/$(B)/numapgo B=$(B) sh tests/demo.sh
	$(Q)sh tests/deps.sh lab || true
	$(Q)$(MAKE) --no-print-directory lab-tools
	$(Q)B=$(B) sh tests/lab/demo.sh

check: deps
	$(Q)MAKE="$(MAKE)" B=$(B) NUMAPGO_CI=$(NUMAPGO_CI) sh tests/check.sh

# the smallest recorder, for tests/cases and the hooks' own tests
$(B)/channel_holder: tests/helpers/channel_holder.c $(B)/libnumapgo.a $(B)/libnumapgo-record.so
	@mkdir -p $(@D)
	$(Q)$(CC) $(TOOL_CFLAGS) -o $@ $< $(B)/libnumapgo.a $(LIBS)
