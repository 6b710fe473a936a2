# The NUMA lab: the plugin that QEMU loads, the programs that run in the guest, the suite.
LAB_PLUGIN := $(B)/lab/numalab.so
LAB_GUEST  := $(patsubst tests/lab/guest/%.c,$(B)/lab/%,$(filter-out %/pin.c,$(wildcard tests/lab/guest/*.c))) \
	$(B)/lab/pin.so

# the header of the plugin interface has names that are not ours
$(LAB_PLUGIN): $(wildcard tests/lab/plugin/*.c tests/lab/plugin/*.h)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c17 -D_GNU_SOURCE -I. -g -O2 $(WARNINGS) -fPIC -fvisibility=hidden -shared \
		-o $@ $(filter %.c,$^) -lpthread

$(B)/lab/%: tests/lab/guest/%.c tests/lab/guest/lab.h
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c17 -D_GNU_SOURCE -I. -g -O2 $(WARNINGS) -o $@ $< -lnuma -lpthread

$(B)/lab/pin.so: tests/lab/guest/pin.c
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c17 -D_GNU_SOURCE -I. -g -O2 $(WARNINGS) -fPIC -shared -o $@ $<

.PHONY: lab-tools lab-deps lab
lab-deps:
	$(Q)sh tests/deps.sh build test lab

lab-tools: $(LAB_PLUGIN) $(LAB_GUEST)

lab: lab-deps all workloads lab-tools
	$(Q)B=$(B) sh tests/lab/run-suite.sh
