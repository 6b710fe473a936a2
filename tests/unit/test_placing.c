/* The placing table: order of its lists, pools, counters, weights, pages shared by statics. */
#include <errno.h>
#include <linux/mempolicy.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/preload/hash.h"
#include "replayer/placing.h"

#define HEAD                                                                                       \
	"{\"format\":\"numapgo-plan\",\"version\":1,\"program\":{\"path\":\"/no/such/app\"},"      \
	"\"machine\":{\"page_size_bytes\":4096,\"nodes\":[{\"memory_bytes\":1,\"nr_cpus\":1},"     \
	"{\"memory_bytes\":1,\"nr_cpus\":1}],\"distance_ns\":[[80,140],[140,80]]},"                \
	"\"modules\":[{\"path\":\"/no/such/app\",\"build_id\":\"00ff\"}],"
#define SITE(n) "\"frames\":[{\"module\":0,\"offset_bytes\":" #n "}]"
#define ON(n)   "\"ranges\":[{\"pages\":[0,1024],\"node\":" #n "}]"

static struct npg_resolution res;
static struct npg_fit fit;
static struct npg_plan *plan;
static struct npg_placing placing;

static const void *list_of(const struct npg_wire_list *list)
{
	return (const char *)placing.image + list->offset_bytes;
}

static void build(const char *objects)
{
	struct npg_placing_options options = { .page_size_bytes = 4096,
					       .memory_bytes = UINT64_C(1) << 30,
					       .max_map_count = 65536 };
	struct npg_error err = { "" };
	char text[8192];

	snprintf(text, sizeof(text), HEAD "%s}", objects);
	if (npg_plan_from_text(text, strlen(text), "test", &plan, &err) < 0)
		fail_msg("%s", err.text);
	memset(&res, 0, sizeof(res));
	res.nr_here = res.nr_planned = 2;
	res.nodes[0].node = 5;
	res.nodes[1].node = 70;
	for (int i = 0; i < 4; i++) {
		npg_cpuset_add(&res.allowed_cpus, i);
		npg_cpuset_add(&res.nodes[i / 2].cpus, i);
	}
	assert_int_equal(npg_fit_check(plan, NULL, &fit, NULL), 0);
	assert_int_equal(npg_placing_build(plan, &res, &fit, &options, &placing, &err), 0);
}

static int tear_down(void **state)
{
	(void)state;
	npg_placing_release(&placing);
	npg_fit_release(&fit);
	npg_plan_free(plan);
	return 0;
}

static void test_lists(void **state)
{
	const struct npg_wire_table *t;
	const struct npg_wire_site *sites;
	const struct npg_wire_object *objects;
	const struct npg_wire_policy *policies;

	(void)state;
	build(
	    "\"objects\":["
	    "{\"kind\":\"heap\",\"size_bytes\":4194304," SITE(9) "," ON(
		0) "},"
		   "{\"kind\":\"heap\",\"size_bytes\":4194304," SITE(9) "," ON(
		       1) ",\"which\":\"thread_ordinal\",\"ordinal\":1,\"creator\":\"0.1\"},"
			  "{\"kind\":\"heap\",\"size_bytes\":4194304," SITE(9) "," ON(
			      1) ",\"which\":\"thread_ordinal\",\"ordinal\":0,\"creator\":\"0.1\"},"
				 "{\"kind\":\"mmap\",\"size_bytes\":4194304," SITE(9) "," ON(
				     1) ",\"which\":\"site_ordinal\",\"ordinal\":7},"
					"{\"kind\":\"heap\",\"size_bytes\":4194304," SITE(
					    10) "," ON(1) "}],"
							  "\"threads\":[{\"path\":\"0.1\",\"node\":"
							  "1}]");
	t = placing.image;
	sites = list_of(&t->sites);
	objects = list_of(&t->objects);
	policies = list_of(&t->policies);
	assert_int_equal(t->sites.nr, 2);
	assert_true(sites[0].hash < sites[1].hash);
	assert_int_equal(sites[0].nr_objects + sites[1].nr_objects, 5);
	assert_int_equal(t->policies.nr, 2);
	assert_int_equal(t->nr_counters, 1);
	assert_int_equal(t->nr_pools, 2); /* one per policy: all are uniform */
	for (uint32_t i = 1; i < t->sites.nr; i++)
		assert_int_equal(sites[i].first_object, sites[i - 1].nr_objects);
	for (uint32_t s = 0; s < 2; s++)
		for (uint32_t i = 1; i < sites[s].nr_objects; i++) {
			const struct npg_wire_object *o = &objects[sites[s].first_object + i];

			assert_true(o->which > o[-1].which || o->ordinal > o[-1].ordinal);
		}
	assert_int_equal(policies[0].mode, MPOL_PREFERRED);
	assert_true(policies[0].nodes[0] == UINT64_C(1) << 5);
	assert_true(policies[1].nodes[1] == UINT64_C(1) << 6); /* node 70 */
	assert_int_equal(t->threads.nr, 1);
	assert_int_equal(t->min_bytes, 2 << 20);
}

static void test_weights(void **state)
{
	const struct npg_wire_range *ranges;
	uint64_t pages[2] = { 0, 0 }, next = 0;

	(void)state;
	build("\"objects\":[{\"kind\":\"heap\",\"size_bytes\":41943040," SITE(
	    9) ",\"ranges\":[{\"pages\":[0,10240],\"interleave\":[0,1],\"weights\":[3,1]}]}]");
	ranges = list_of(&placing.image->ranges);
	assert_in_range(placing.image->ranges.nr, 16, 66);
	for (uint32_t i = 0; i < placing.image->ranges.nr; i++) {
		assert_int_equal(ranges[i].first, next);
		next += ranges[i].nr;
		pages[ranges[i].policy] += ranges[i].nr;
	}
	assert_int_equal(next, 10240);
	assert_in_range(pages[0], 7600, 7760);
}

/* The first ends, and the second begins, in the page at 8192. */
static void check_shared_page(const char *share, uint64_t nr_first, uint64_t first_second)
{
	const struct npg_wire_static *statics;
	const struct npg_wire_range *ranges;
	char text[1024];

	snprintf(text, sizeof(text),
		 "\"objects\":["
		 "{\"kind\":\"static\",\"module\":0,\"offset_bytes\":4096,\"size_bytes\":6144,"
		 "\"share\":%s,\"ranges\":[{\"pages\":[0,2],\"node\":0}]},"
		 "{\"kind\":\"static\",\"module\":0,\"offset_bytes\":10240,\"size_bytes\":10240,"
		 "\"share\":0.1,\"ranges\":[{\"pages\":[0,3],\"node\":1}]}]",
		 share);
	build(text);
	statics = list_of(&placing.image->statics);
	ranges = list_of(&placing.image->ranges);
	assert_int_equal(placing.image->statics.nr, 2);
	assert_int_equal(ranges[statics[0].first_range].first, 0);
	assert_int_equal(ranges[statics[0].first_range].nr, nr_first);
	assert_int_equal(ranges[statics[1].first_range].first, first_second);
	assert_int_equal(ranges[statics[1].first_range].nr, 3 - first_second);
	assert_true(statics[0].check ==
		    npg_hash_frame(NPG_HASH_SEED, npg_hash_build_id("\x00\xff", 2), 4097));
}

static void test_heavy_first(void **state)
{
	(void)state;
	check_shared_page("0.5", 2, 1);
}

static void test_heavy_second(void **state)
{
	(void)state;
	check_shared_page("0.01", 1, 0);
}

static void test_nothing_applies(void **state)
{
	(void)state;
	build("\"objects\":[],\"threads\":[]");
	assert_true(placing.image->min_bytes == UINT64_MAX);
	assert_int_equal(placing.nr_objects + placing.nr_pins, 0);
	assert_int_equal(placing.image->arena_bytes, 0);
}

static void test_shared_memory(void **state)
{
	struct npg_wire_status *status = NULL;
	struct npg_wire_table copy;
	int fd;

	(void)state;
	build("\"objects\":[{\"kind\":\"heap\",\"size_bytes\":4194304," SITE(9) "," ON(0) "}]");
	fd = npg_placing_share(&placing, &status, NULL);
	assert_true(fd >= 0);
	assert_int_equal(status->nr_ranges, 0);
	assert_int_equal(pread(fd, &copy, sizeof(copy), 0), sizeof(copy));
	assert_memory_equal(&copy, placing.image, sizeof(copy));
	assert_int_equal(ftruncate(fd, 0), -1); /* sealed: nobody can pull it away */
	npg_placing_unshare(&placing, status, fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_lists, tear_down),
		cmocka_unit_test_teardown(test_weights, tear_down),
		cmocka_unit_test_teardown(test_heavy_first, tear_down),
		cmocka_unit_test_teardown(test_heavy_second, tear_down),
		cmocka_unit_test_teardown(test_nothing_applies, tear_down),
		cmocka_unit_test_teardown(test_shared_memory, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
