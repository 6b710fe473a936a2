/*
 * CPU lists: a small parser over bytes and the set it fills. No locale, no allocation, no stdio,
 * so that it can be used anywhere.
 */
#include <errno.h>

#include "lib/cpulist.h"

struct cursor {
	const char *at;
	const char *end;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\0';
}

static int parse_number(struct cursor *c, int *number)
{
	int value = 0;

	if (c->at == c->end || *c->at < '0' || *c->at > '9')
		return -EINVAL;
	for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
		value = value * 10 + (*c->at - '0');
		if (value >= NPG_CPUSET_SIZE)
			return -ERANGE;
	}
	*number = value;
	return 0;
}

static bool accept(struct cursor *c, char wanted)
{
	if (c->at == c->end || *c->at != wanted)
		return false;
	c->at++;
	return true;
}

/* "N", "N-N" or "N-N:STRIDE" */
static int parse_range(struct cursor *c, struct npg_cpuset *set)
{
	int first, last, stride = 1;
	int ret = parse_number(c, &first);

	if (ret < 0)
		return ret;
	last = first;
	if (accept(c, '-')) {
		ret = parse_number(c, &last);
		if (ret < 0)
			return ret;
		if (accept(c, ':')) {
			ret = parse_number(c, &stride);
			if (ret < 0)
				return ret;
		}
	}
	if (last < first || stride == 0)
		return -EINVAL;
	for (int cpu = first; cpu <= last; cpu += stride)
		npg_cpuset_add(set, cpu);
	return 0;
}

int npg_cpulist_parse(const char *text, size_t length, struct npg_cpuset *set)
{
	struct cursor c = { text, text + length };
	struct npg_cpuset result;
	int ret;

	npg_cpuset_clear(&result);
	while (c.at < c.end && is_blank(*c.at))
		c.at++;
	while (c.end > c.at && is_blank(c.end[-1]))
		c.end--;
	if (c.at < c.end) {
		do {
			ret = parse_range(&c, &result);
			if (ret < 0)
				return ret;
		} while (accept(&c, ','));
		if (c.at < c.end)
			return -EINVAL;
	}
	*set = result;
	return 0;
}

static size_t put_number(char *text, int number)
{
	char digits[12];
	size_t nr = 0;

	do {
		digits[nr++] = (char)('0' + number % 10);
		number /= 10;
	} while (number > 0);
	for (size_t i = 0; i < nr; i++)
		text[i] = digits[nr - 1 - i];
	return nr;
}

size_t npg_cpulist_format(const struct npg_cpuset *set, char *text, size_t size)
{
	size_t total = 0, used = 0;

	for (int first = npg_cpuset_next(set, -1), last; first >= 0;
	     first = npg_cpuset_next(set, last)) {
		char piece[32];
		size_t length = 0;

		for (last = first; npg_cpuset_has(set, last + 1);)
			last++;
		if (total > 0)
			piece[length++] = ',';
		length += put_number(piece + length, first);
		if (last > first) {
			piece[length++] = '-';
			length += put_number(piece + length, last);
		}
		if (used == total && used + length < size) {
			memcpy(text + used, piece, length);
			used += length;
		}
		total += length;
	}
	if (size > 0)
		text[used] = '\0';
	return total;
}

void npg_cpuset_clear(struct npg_cpuset *set)
{
	memset(set, 0, sizeof(*set));
}

void npg_cpuset_add(struct npg_cpuset *set, int cpu)
{
	if (cpu >= 0 && cpu < NPG_CPUSET_SIZE)
		set->words[cpu / 64] |= UINT64_C(1) << (cpu % 64);
}

bool npg_cpuset_has(const struct npg_cpuset *set, int cpu)
{
	return cpu >= 0 && cpu < NPG_CPUSET_SIZE && (set->words[cpu / 64] >> (cpu % 64) & 1) != 0;
}

int npg_cpuset_count(const struct npg_cpuset *set)
{
	int count = 0;

	for (size_t i = 0; i < NPG_ARRAY_SIZE(set->words); i++)
		count += __builtin_popcountll(set->words[i]);
	return count;
}

int npg_cpuset_next(const struct npg_cpuset *set, int after)
{
	for (int cpu = after < 0 ? 0 : after + 1; cpu < NPG_CPUSET_SIZE; cpu++) {
		uint64_t rest = set->words[cpu / 64] >> (cpu % 64);

		if (rest != 0)
			return cpu + __builtin_ctzll(rest);
		cpu |= 63; /* the next word */
	}
	return -1;
}

void npg_cpuset_and(struct npg_cpuset *set, const struct npg_cpuset *other)
{
	for (size_t i = 0; i < NPG_ARRAY_SIZE(set->words); i++)
		set->words[i] &= other->words[i];
}
