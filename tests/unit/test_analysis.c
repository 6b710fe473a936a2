/* Whole analyses of synthetic programs with a known best placement. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyzer/plan_make.h"
#include "analyzer/report.h"
#include "analyzer/store.h"
#include "tests/unit/synthetic.h"

#define MIB INT64_C(1048576)

struct result {
	struct npg_profile *profile;
	struct npg_topology *topology;
	struct npg_analysis *analysis;
	struct npg_decisions decisions;
	struct npg_plan *plan;
};

static struct result analyze(struct synthetic *s, struct npg_topology *topology)
{
	struct npg_analysis_options options = { .plan_tables = true };
	struct result r = { .topology = topology };
	struct npg_error err = { "" };

	synthetic_end(s);
	r.profile = synthetic_load(s, NULL);
	must(npg_analysis_run(r.profile, topology, &options, &r.analysis, &err) == 0, err.text);
	assert_int_equal(npg_decisions_make(r.analysis, &r.decisions), 0);
	assert_int_equal(npg_plan_make(r.analysis, &r.decisions, "test.db", &r.plan), 0);
	return r;
}

static void finish(struct synthetic *s, struct result *r)
{
	npg_plan_free(r->plan);
	npg_decisions_release(&r->decisions);
	npg_analysis_free(r->analysis);
	npg_topology_free(r->topology);
	npg_profile_free(r->profile);
	synthetic_remove(s);
}

static double lar(const struct result *r, enum npg_alternative alternative)
{
	return r->analysis->predictions[alternative].score.lar;
}

/* Main fills an array, four workers then use a quarter each. */
static void serial_initialisation(struct synthetic *s, int nr_samples)
{
	int object;

	synthetic_begin(s, 4);
	synthetic_site(s, 1);
	object = synthetic_object(
	    s,
	    (struct synthetic_object){ .kind = "heap", .site = 1, .thread = 1, .size = 64 * MIB });
	synthetic_touch(s, object, 1, 64 * MIB, 8);
	for (int i = 0; i < 60; i++) /* in the middle of initialisation */
		synthetic_sample(s, CLOCK, 1, object, address_of(s, object) + i * MIB, i * 250000);
	for (int i = 0; i < nr_samples; i++) {
		int64_t offset = (int64_t)below(s, 64 * MIB);

		synthetic_sample(s, CLOCK, 2 + (int)(offset / (16 * MIB)), object,
				 address_of(s, object) + offset,
				 INT64_C(2000000000) + i * INT64_C(1000000));
	}
}

static void test_serial_initialisation(void **state)
{
	struct npg_plan_object *o;
	struct synthetic s;
	struct result r;

	(void)state;
	serial_initialisation(&s, 500);
	r = analyze(&s, synthetic_machine(4, 2, 1024));
	assert_true(fabs(lar(&r, NPG_ALTERNATIVE_FIRST_TOUCH) - 0.25) < 0.05);
	assert_true(fabs(lar(&r, NPG_ALTERNATIVE_INTERLEAVE) - 0.25) < 0.01);
	assert_true(lar(&r, NPG_ALTERNATIVE_PLAN) > 0.95);
	assert_false(r.analysis->predictions[NPG_ALTERNATIVE_SINGLE].is_possible);
	assert_false(r.analysis->leave);
	assert_int_equal(r.plan->nr_objects, 1);
	o = &r.plan->objects[0];
	assert_int_equal(o->which, NPG_PLAN_ALL);
	assert_int_equal(o->nr_ranges, 4);
	assert_int_equal(o->nr_table_ranges, 4);
	for (uint64_t i = 0; i < 4; i++) {
		int thread = r.analysis->solution.thread_node[i + 1];

		assert_int_equal(o->ranges[i].first_page, i * 4096);
		assert_int_equal(o->ranges[i].nr_pages, 4096);
		assert_int_equal(o->ranges[i].nodes[0], thread);
		assert_int_equal(o->table_ranges[i].first_region, i * 8);
		assert_int_equal(o->table_ranges[i].node, thread);
	}
	assert_true(o->confidence > 0.95);
	finish(&s, &r);
}

/* What a plan says is what its text says. */
static void test_plan_round_trip(void **state)
{
	struct npg_error err = { "" };
	struct npg_plan *copy = NULL;
	char *text = NULL, *again = NULL;
	struct synthetic s;
	struct result r;
	size_t length;

	(void)state;
	serial_initialisation(&s, 500);
	r = analyze(&s, synthetic_machine(4, 2, 1024));
	must(npg_plan_to_text(r.plan, &text, &length, &err) == 0, err.text);
	must(npg_plan_from_text(text, length, "test", &copy, &err) == 0, err.text);
	must(npg_plan_to_text(copy, &again, &length, &err) == 0, err.text);
	assert_string_equal(text, again);
	assert_string_equal(copy->program, "/bin/prog");
	assert_string_equal(copy->program_build_id, "aabb");
	assert_int_equal(copy->nr_threads, 4 + 1); /* main has samples of the start-up */
	free(text);
	free(again);
	npg_plan_free(copy);
	finish(&s, &r);
}

/* First touch is right already: the plan says so and does nothing. */
static void test_leave(void **state)
{
	struct synthetic s;
	struct result r;

	(void)state;
	synthetic_begin(&s, 4);
	for (int t = 0; t < 4; t++) {
		int object;

		synthetic_site(&s, t + 1);
		object = synthetic_object(
		    &s, (struct synthetic_object){
			    .kind = "heap", .site = t + 1, .thread = t + 2, .size = 4 * MIB });
		synthetic_touch(&s, object, t + 2, 4 * MIB, 1);
		for (int i = 0; i < 200; i++)
			synthetic_sample(&s, CLOCK, t + 2, object,
					 address_of(&s, object) + (int64_t)below(&s, 4 * MIB),
					 3000000000);
	}
	r = analyze(&s, synthetic_machine(4, 2, 1024));
	assert_true(r.analysis->leave);
	assert_true(r.plan->leave);
	assert_non_null(r.plan->leave_reason);
	assert_int_equal(r.plan->nr_objects, 0);
	assert_int_equal(r.plan->nr_threads, 0);
	assert_true(lar(&r, NPG_ALTERNATIVE_PLAN) > 0.99);
	finish(&s, &r);
}

static void test_one_node(void **state)
{
	struct synthetic s;
	struct result r;

	(void)state;
	serial_initialisation(&s, 200);
	r = analyze(&s, synthetic_machine(1, 8, 1024));
	assert_true(r.plan->leave);
	assert_true(lar(&r, NPG_ALTERNATIVE_FIRST_TOUCH) > 0.999);
	finish(&s, &r);
}

/* A table that all threads read at random has no owner: one range, spread over the nodes. */
static void test_shared_table(void **state)
{
	struct npg_plan_range *range;
	struct synthetic s;
	struct result r;
	int object;

	(void)state;
	synthetic_begin(&s, 4);
	synthetic_site(&s, 1);
	object = synthetic_object(
	    &s,
	    (struct synthetic_object){ .kind = "mmap", .site = 1, .thread = 1, .size = 64 * MIB });
	synthetic_touch(&s, object, 1, 64 * MIB, 8);
	for (int i = 0; i < 2000; i++)
		synthetic_sample(&s, CLOCK, 2 + (int)below(&s, 4), object,
				 address_of(&s, object) + (int64_t)below(&s, 64 * MIB), 3000000000);
	r = analyze(&s, synthetic_machine(4, 1, 1024));
	assert_int_equal(r.decisions.decisions[0].pattern, NPG_PATTERN_SHARED);
	assert_int_equal(r.decisions.decisions[0].nr_ranges, 1);
	range = &r.decisions.decisions[0].ranges[0];
	assert_int_equal(range->policy, NPG_POLICY_INTERLEAVE);
	assert_int_equal(range->nr_nodes, 4);
	assert_int_equal(range->weights[0], 0); /* equal nodes */
	assert_int_equal(range->nr_pages, 16384);
	finish(&s, &r);
}

/* Allocation n is used by thread n mod 4, with a few samples each. */
static void test_many_objects(void **state)
{
	struct synthetic s;
	struct result r;
	size_t right = 0;

	(void)state;
	synthetic_begin(&s, 4);
	synthetic_site(&s, 1);
	for (int n = 0; n < 200; n++) {
		int object = synthetic_object(&s, (struct synthetic_object){ .kind = "heap",
									     .site = 1,
									     .thread = 1,
									     .site_ordinal = n,
									     .thread_ordinal = n,
									     .size = 192 * 1024 });

		synthetic_touch(&s, object, 1, 192 * 1024, 4);
		for (int i = 0; i < 4; i++)
			synthetic_sample(&s, CLOCK, 2 + n % 4, object,
					 address_of(&s, object) + (int64_t)below(&s, 192 * 1024),
					 3000000000);
	}
	r = analyze(&s, synthetic_machine(4, 1, 1024));
	assert_int_equal(r.plan->nr_objects, 200);
	for (size_t i = 0; i < 200; i++) {
		const struct npg_plan_object *o = &r.plan->objects[i];

		assert_int_equal(o->which, NPG_PLAN_SITE_ORDINAL);
		right +=
		    o->ranges[0].nodes[0] == r.analysis->solution.thread_node[1 + o->ordinal % 4];
	}
	assert_int_equal(right, 200);
	assert_true(lar(&r, NPG_ALTERNATIVE_PLAN) > 0.85); /* from two samples per object */
	finish(&s, &r);
}

/* Allocations used alike need one entry; those without samples follow their neighbours. */
static void test_site_agrees(void **state)
{
	struct synthetic s;
	struct result r;

	(void)state;
	synthetic_begin(&s, 2);
	synthetic_site(&s, 1);
	for (int n = 0; n < 50; n++) {
		int object = synthetic_object(&s, (struct synthetic_object){ .kind = "heap",
									     .site = 1,
									     .thread = 1,
									     .site_ordinal = n,
									     .thread_ordinal = n,
									     .size = 192 * 1024 });

		synthetic_touch(&s, object, 1, 192 * 1024, 4);
		for (int i = 0; i < n % 3; i++)
			synthetic_sample(&s, CLOCK, 3, object, address_of(&s, object), 3000000000);
	}
	/* thread 0.0 has work of its own, and main is busy on the first node */
	sql(&s, "UPDATE thread SET cpu_ns = 9000000000");
	r = analyze(&s, synthetic_machine(4, 1, 1024));
	assert_int_equal(r.plan->nr_objects, 1);
	assert_int_equal(r.plan->objects[0].which, NPG_PLAN_ALL);
	assert_int_equal(r.plan->objects[0].ranges[0].nodes[0],
			 r.analysis->solution.thread_node[2]);
	finish(&s, &r);
}

/* The analysis tables can be written twice, and a report reads the machine's name from them. */
static void test_store_and_report(void **state)
{
	struct npg_recording recording;
	struct npg_report report;
	struct npg_error err = { "" };
	struct synthetic s;
	struct result r;
	int64_t nr;

	(void)state;
	serial_initialisation(&s, 500);
	r = analyze(&s, synthetic_machine(4, 2, 1024));
	must(npg_recording_open(s.path, true, &recording, &err) == 0, err.text);
	for (int i = 0; i < 2; i++)
		must(npg_store_analysis(recording.db, r.analysis, &r.decisions, &err) == 0,
		     err.text);
	must(npg_db_query_i64(recording.db, "SELECT count(*) FROM v_decision", 0, &nr, &err) == 0,
	     err.text);
	assert_int_equal(nr, 4);
	must(npg_db_query_i64(recording.db, "SELECT round(sum(share) * 1000) FROM node_traffic", 0,
			      &nr, &err) == 0,
	     err.text);
	assert_int_equal(nr, 2000); /* two placements, all accesses each */
	npg_recording_close(&recording);
	must(npg_report_make(&report, s.path, "numa:4 core:2 pu:1", NULL, &err) == 0, err.text);
	assert_true(report.was_analyzed);
	assert_true(fabs(report.matched_share - 1.0) < 1e-9);
	assert_true(fabs(report.overhead - 0.005) < 1e-9);
	assert_int_equal(report.nr_rows, 1);
	assert_int_equal(report.rows[0].pattern, NPG_PATTERN_BLOCKS);
	assert_true(report.first_toucher_share < 0.1); /* only the start-up */
	npg_report_release(&report);
	finish(&s, &r);
}

static void test_no_samples(void **state)
{
	struct npg_analysis_options options = { .plan_tables = true };
	struct npg_topology *t = synthetic_machine(2, 1, 1024);
	struct npg_analysis *analysis;
	struct npg_profile *profile;
	struct npg_error err;
	struct synthetic s;

	(void)state;
	synthetic_begin(&s, 1);
	synthetic_end(&s);
	profile = synthetic_load(&s, NULL);
	assert_int_equal(npg_analysis_run(profile, t, &options, &analysis, &err), -ENODATA);
	npg_profile_free(profile);
	npg_topology_free(t);
	synthetic_remove(&s);
}

static void test_confidence(void **state)
{
	(void)state;
	assert_true(npg_decision_confidence(0, 0) < 0.51);
	assert_true(npg_decision_confidence(1, 0) < 0.51);
	assert_true(npg_decision_confidence(8, 0) > 0.99);
	assert_true(npg_decision_confidence(5, 4) < 0.6);
	assert_true(npg_decision_confidence(600, 400) > 0.999);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_serial_initialisation),
		cmocka_unit_test(test_plan_round_trip),
		cmocka_unit_test(test_leave),
		cmocka_unit_test(test_one_node),
		cmocka_unit_test(test_shared_table),
		cmocka_unit_test(test_many_objects),
		cmocka_unit_test(test_site_agrees),
		cmocka_unit_test(test_store_and_report),
		cmocka_unit_test(test_no_samples),
		cmocka_unit_test(test_confidence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
