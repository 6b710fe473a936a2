# Tests. A file tests/unit/test_X.c is one cmocka program; tests/cli/tNNNN-*.sh one script (TAP).
UNIT := $(patsubst tests/unit/%.c,$(B)/unit/%,$(wildcard tests/unit/test_*.c))

$(B)/unit/%: tests/unit/%.c $(B)/libnumapgo.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(TOOL_CFLAGS) -Wno-missing-prototypes -MMD -MP -o $@ $< $(B)/libnumapgo.a $(LIBS) -lcmocka

.PHONY: unit
unit: $(UNIT)
	$(Q)for t in $(UNIT); do $$t || exit 1; done
