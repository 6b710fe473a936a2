# Man pages. man/*.1.scd hold what is worth explaining; usage, options and examples come from the
# program's own option tables, so that they cannot differ: see man/fill.sh.
MAN := $(patsubst man/%.scd,$(B)/man/%,$(wildcard man/*.1.scd))

.PHONY: man
man: $(MAN)

$(B)/man/%.1: man/%.1.scd man/fill.sh $(B)/numapgo
	@mkdir -p $(@D)
	$(Q)sh man/fill.sh $(B)/numapgo $< >$@.scd && scdoc <$@.scd >$@
