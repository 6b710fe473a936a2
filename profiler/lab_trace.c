#include "profiler/lab_trace.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#define MAX_FIELDS 10

struct field {
	const char *text;
	size_t size;
};

/* Return: number of fields separated by single spaces; 0 if there are too many or empty ones. */
static size_t split(const char *line, size_t size, struct field fields[MAX_FIELDS])
{
	size_t nr = 0, start = 0;

	for (size_t i = 0; i <= size; i++) {
		if (i < size && line[i] != ' ')
			continue;
		if (i == start || nr == MAX_FIELDS)
			return 0;
		fields[nr++] = (struct field){ line + start, i - start };
		start = i + 1;
	}
	return nr;
}

static bool is_word(const struct field *f, const char *word)
{
	return f->size == strlen(word) && memcmp(f->text, word, f->size) == 0;
}

static bool number(const struct field *f, unsigned base, uint64_t *value)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < f->size; i++) {
		char c = f->text[i];
		unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
				 : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
							: base;

		if (digit >= base || __builtin_mul_overflow(sum, base, &sum) ||
		    __builtin_add_overflow(sum, digit, &sum))
			return false;
	}
	*value = sum;
	return true;
}

static bool small_number(const struct field *f, int *value)
{
	uint64_t wide;

	if (!number(f, 10, &wide) || wide > INT_MAX)
		return false;
	*value = (int)wide;
	return true;
}

/* load|walk TIME CPU ADDRESS IP R|W NODE CYCLES */
static bool parse_sample(const struct field f[MAX_FIELDS], struct npg_lab_record *r)
{
	r->is_write = is_word(&f[5], "W");
	return number(&f[1], 10, &r->time_ns) && small_number(&f[2], &r->cpu) &&
	       number(&f[3], 16, &r->address) && number(&f[4], 16, &r->ip) &&
	       (r->is_write || is_word(&f[5], "R")) && small_number(&f[6], &r->memory_node) &&
	       number(&f[7], 10, &r->latency_cycles);
}

/* page CPU ADDRESS NODE LOADS STORES MEMORY-LOADS MEMORY-STORES WALKS */
static bool parse_page(const struct field f[MAX_FIELDS], struct npg_lab_record *r)
{
	return small_number(&f[1], &r->cpu) && number(&f[2], 16, &r->address) &&
	       small_number(&f[3], &r->memory_node) && number(&f[4], 10, &r->nr_loads) &&
	       number(&f[5], 10, &r->nr_stores) && number(&f[6], 10, &r->nr_memory_loads) &&
	       number(&f[7], 10, &r->nr_memory_stores) && number(&f[8], 10, &r->nr_walks);
}

static bool parse(const struct field f[MAX_FIELDS], size_t nr, struct npg_lab_record *r)
{
	static const char *const others[] = { "cpu", "access", "walks" };

	if (nr == 8 && (is_word(&f[0], "load") || is_word(&f[0], "walk"))) {
		r->kind = is_word(&f[0], "load") ? NPG_LAB_LOAD : NPG_LAB_WALK;
		return parse_sample(f, r);
	}
	if (nr == 9 && is_word(&f[0], "page")) {
		r->kind = NPG_LAB_PAGE;
		return parse_page(f, r);
	}
	if (nr == 3 && is_word(&f[0], "numalab-trace") && is_word(&f[1], "1")) {
		r->kind = NPG_LAB_TRACE;
		return number(&f[2], 10, &r->period) && r->period > 0;
	}
	r->kind = NPG_LAB_COUNTS;
	if (nr == 2 && is_word(&f[0], "numalab-counts") && is_word(&f[1], "1"))
		return true;
	r->kind = NPG_LAB_OTHER;
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (nr >= 2 && is_word(&f[0], others[i]))
			return true;
	return false;
}

int npg_lab_record_parse(const char *line, size_t size, struct npg_lab_record *record)
{
	struct field fields[MAX_FIELDS];
	size_t nr = split(line, size, fields);

	*record = (struct npg_lab_record){ .cpu = -1, .memory_node = -1 };
	return nr > 0 && parse(fields, nr, record) ? 0 : -EINVAL;
}
