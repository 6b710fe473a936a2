# numapgo: build, test, install. Try: make, make demo, make check, make install PREFIX=/usr/local
#
# CC=gcc|clang, B=build directory, WERROR=0 for packagers, SAN=address,undefined or thread,
# V=1 for full commands.

CC       ?= gcc
ifeq ($(origin CC),default)
CC       := gcc
endif
B        ?= build
PREFIX   ?= /usr/local
DESTDIR  ?=
WERROR   ?= 1
SAN      ?=
V        ?= 0
Q        := $(if $(filter 1,$(V)),,@)

VERSION  := 0.1.0

WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	-Wold-style-definition -Wvla -Walloca -Wwrite-strings -Wpointer-arith -Wcast-qual \
	-Wcast-align -Wformat=2 -Wundef -Wimplicit-fallthrough -Wswitch-enum -Wdouble-promotion \
	-Wredundant-decls -Wconversion -Wsign-conversion -Wframe-larger-than=16384 -fno-common
ifneq (,$(findstring clang,$(CC)))
WARNINGS += -Wthread-safety -Wconditional-uninitialized -Wcomma -Wassign-enum
else
WARNINGS += -Wjump-misses-init -Wlogical-op -Wduplicated-cond -Wduplicated-branches
endif
ifeq ($(WERROR),1)
WARNINGS += -Werror
endif

SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
FORTIFY  := $(if $(SAN),,-D_FORTIFY_SOURCE=2)
BASE     := -std=c17 -D_GNU_SOURCE -DNPG_VERSION='"$(VERSION)"' -I. -I$(B)/gen -g -O2 \
	-fstack-protector-strong $(FORTIFY) $(WARNINGS)
CFLAGS   ?=
TOOL_CFLAGS    := $(BASE) $(SANFLAGS) -include lib/banned.h $(CFLAGS)
# Inside the user's program: see lib/preload/rules.h. Never sanitised.
PRELOAD_CFLAGS := $(BASE) -fPIC -fvisibility=hidden -ftls-model=initial-exec -fno-builtin-malloc \
	-fno-builtin-calloc -fno-builtin-realloc -fno-builtin-free $(CFLAGS)
LDFLAGS  ?=
HARDEN   := -Wl,-z,relro,-z,now
LIBS     := -lsqlite3 -lhwloc -lelf -lZydis -ljansson -lnuma -lpthread -lm

TOOL_SRC := $(wildcard lib/*.c profiler/*.c analyzer/*.c replayer/*.c)
MAIN_SRC := cli/main.c
TOOL_OBJ := $(TOOL_SRC:%.c=$(B)/%.o) $(B)/gen/schemas.o
RECORD_SRC := $(wildcard lib/preload/*.c profiler/preload/*.c)
REPLAY_SRC := $(wildcard lib/preload/*.c replayer/preload/*.c)
RECORD_OBJ := $(RECORD_SRC:%.c=$(B)/pic/%.o)
REPLAY_OBJ := $(REPLAY_SRC:%.c=$(B)/pic/%.o)
PROGRAMS := $(B)/numapgo $(B)/libnumapgo-record.so $(B)/libnumapgo-replay.so

.PHONY: all deps install uninstall clean
all: $(PROGRAMS)

include tests/tests.mk
include tests/lab/lab.mk
include datasets/workloads/workloads.mk
-include man/man.mk

deps:
	$(Q)sh ./tests/deps.sh

$(B)/numapgo: $(B)/cli/main.o $(B)/libnumapgo.a
	$(Q)$(CC) $(SANFLAGS) $(LDFLAGS) $(HARDEN) -o $@ $^ $(LIBS)

$(B)/libnumapgo.a: $(TOOL_OBJ)
	$(Q)rm -f $@ && ar rcs $@ $^

$(B)/libnumapgo-record.so: $(RECORD_OBJ) profiler/preload/record.map
	$(Q)$(CC) -shared $(LDFLAGS) $(HARDEN) -Wl,-z,defs -static-libgcc \
		-Wl,--version-script,profiler/preload/record.map -o $@ $(RECORD_OBJ) $(PRELOAD_LIBS)

$(B)/libnumapgo-replay.so: $(REPLAY_OBJ) replayer/preload/replay.map
	$(Q)$(CC) -shared $(LDFLAGS) $(HARDEN) -Wl,-z,defs -static-libgcc \
		-Wl,--version-script,replayer/preload/replay.map -o $@ $(REPLAY_OBJ) $(PRELOAD_LIBS)

# the unwinder of the compiler's own runtime, linked in: no library is loaded into the program
PRELOAD_LIBS := -Wl,--push-state,-Bstatic -lgcc_eh -Wl,--pop-state -lgcc

$(B)/gen/schemas.c: schemas/recording.sql schemas/analysis.sql schemas/plan.schema.json Makefile
	@mkdir -p $(@D)
	$(Q){ echo '#include "lib/schemas.h"'; \
	  for f in recording.sql analysis.sql plan.schema.json; do \
	    echo "const char npg_$$(echo $$f | tr . _)[] ="; \
	    sed 's/\\/\\\\/g; s/"/\\"/g; s/^/"/; s/$$/\\n"/' schemas/$$f; echo ';'; \
	  done; } > $@

$(B)/gen/schemas.o: $(B)/gen/schemas.c
	$(Q)$(CC) -std=c17 -I. -g -O2 $(SANFLAGS) -c -o $@ $<

$(B)/pic/%.o: %.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(PRELOAD_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(TOOL_CFLAGS) -MMD -MP -c -o $@ $<

-include $(shell find $(B) -name '*.d' 2>/dev/null)

# where replay finds the preload objects and analyze the machines: beside bin/
install: all man
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/numapgo \
		$(DESTDIR)$(PREFIX)/share/numapgo/machines $(DESTDIR)$(PREFIX)/share/man/man1 \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions
	install -m 755 $(B)/numapgo $(DESTDIR)$(PREFIX)/bin/
	install -m 644 $(B)/libnumapgo-record.so $(B)/libnumapgo-replay.so \
		$(DESTDIR)$(PREFIX)/lib/numapgo/
	install -m 644 $(wildcard datasets/machines/*.json) $(DESTDIR)$(PREFIX)/share/numapgo/machines/
	install -m 644 $(MAN) $(DESTDIR)$(PREFIX)/share/man/man1/
	install -m 644 cli/completion.bash \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/numapgo

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/numapgo $(patsubst $(B)/man/%,$(DESTDIR)$(PREFIX)/share/man/man1/%,$(MAN)) \
		$(DESTDIR)$(PREFIX)/share/bash-completion/completions/numapgo
	rm -rf $(DESTDIR)$(PREFIX)/lib/numapgo $(DESTDIR)$(PREFIX)/share/numapgo

clean:
	rm -rf build
