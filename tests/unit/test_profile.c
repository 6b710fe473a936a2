/* Reading recordings: which samples count, how much, and who touched first. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/synthetic.h"

#define SIZE (1 << 20)

static int heap(struct synthetic *s, int site)
{
	synthetic_site(s, site);
	return synthetic_object(s, (struct synthetic_object){
				       .kind = "heap", .site = site, .thread = 1, .size = SIZE });
}

static double weight_of(const struct npg_profile *p, uint32_t object)
{
	double sum = 0.0;

	for (size_t i = 0; i < p->nr_accesses; i++)
		if (p->accesses[i].object == object)
			sum += (double)p->accesses[i].weight;
	return sum;
}

static void test_samples_are_counted(void **state)
{
	struct npg_profile *p;
	struct synthetic s;
	int64_t start;
	int object;

	(void)state;
	synthetic_begin(&s, 2);
	object = heap(&s, 1);
	start = address_of(&s, object);
	for (int i = 0; i < 30; i++) /* thread 2 twice as often as thread 3, one page */
		synthetic_sample(&s, CLOCK, i % 3 == 0 ? 3 : 2, object, start + 8192, 5000000000);
	for (int i = 0; i < 10; i++)
		synthetic_sample(&s, CLOCK, 2, 0, 0x10, 5000000000); /* matches nothing */
	synthetic_end(&s);
	p = synthetic_load(&s, NULL);
	assert_int_equal(p->nr_threads, 3);
	assert_string_equal(p->threads[1].path, "0.0");
	assert_true(fabs(p->nr_samples - 30.0) < 1e-9);
	assert_true(fabs(p->sources[0].seen - 40.0) < 1e-9);
	assert_true(fabs(p->sources[0].matched - 30.0) < 1e-9);
	assert_true(fabs(p->threads[1].samples - 20.0) < 1e-9);
	assert_true(fabs(p->threads[1].busy - 1.0) < 1e-9);
	for (size_t i = 0; i < p->nr_accesses; i++)
		assert_int_equal(p->accesses[i].page, 2);
	assert_true(fabs(weight_of(p, 0) - 30.0) < 1e-3);
	assert_true(p->is_complete);
	assert_true(p->access_is_time);
	assert_true(fabs(p->access_scale - 1e6) < 1e-3);
	npg_profile_free(p);
	synthetic_remove(&s);
}

/* On a loaded machine a busy thread gets little of the time that passes: it stays a busy one. */
static void test_little_cpu_time_is_still_busy(void **state)
{
	struct npg_profile *p;
	struct synthetic s;
	int object;

	(void)state;
	synthetic_begin(&s, 2);
	object = heap(&s, 1);
	for (int i = 0; i < 20; i++)
		synthetic_sample(&s, CLOCK, 2 + i % 2, object, address_of(&s, object), 5000000000);
	sql(&s, "UPDATE thread SET cpu_ns = CASE path WHEN '0' THEN 800000 ELSE 80000000 END");
	synthetic_end(&s); /* a run of 10 s */
	p = synthetic_load(&s, NULL);
	assert_true(p->threads[0].busy < 0.05);
	assert_true(fabs(p->threads[1].busy - 1.0) < 1e-9);
	assert_true(fabs(p->threads[2].busy - 1.0) < 1e-9);
	npg_profile_free(p);
	synthetic_remove(&s);
}

/* Hint faults say who, clock samples how much. */
static void test_hints_do_not_weigh(void **state)
{
	struct npg_profile *p;
	struct synthetic s;
	int hot, cold;

	(void)state;
	synthetic_begin(&s, 1);
	hot = heap(&s, 1);
	cold = heap(&s, 2);
	for (int i = 0; i < 300; i++)
		synthetic_sample(&s, CLOCK, 2, hot, address_of(&s, hot), 5000000000);
	for (int i = 0; i < 3000; i++)
		synthetic_sample(&s, HINT, 2, cold, address_of(&s, cold) + i % 256 * 4096,
				 5000000000);
	synthetic_end(&s);
	p = synthetic_load(&s, NULL);
	assert_true(fabs(weight_of(p, 0) - 300.0) < 0.1);
	assert_true(weight_of(p, 1) < 1.0);
	npg_profile_free(p);
	synthetic_remove(&s);
}

static void test_hardware_is_preferred(void **state)
{
	struct npg_profile *p;
	struct synthetic s;
	int object;

	(void)state;
	synthetic_begin(&s, 1);
	object = heap(&s, 1);
	for (int i = 0; i < 250; i++) {
		synthetic_sample(&s, LOADS, 2, object, address_of(&s, object), 5000000000);
		synthetic_sample(&s, CLOCK, 2, object, address_of(&s, object), 5000000000);
		synthetic_sample(&s, TLB, 2, object, address_of(&s, object), 5000000000);
	}
	synthetic_end(&s);
	p = synthetic_load(&s, NULL);
	assert_true(p->sources[LOADS - 1].is_used);
	assert_true(p->sources[TLB - 1].is_used);
	assert_false(p->sources[CLOCK - 1].is_used);
	assert_true(fabs(p->nr_samples - 250.0) < 1e-9); /* walks are not accesses */
	assert_false(p->access_is_time);
	assert_true(fabs(p->access_scale - 5000.0) < 1e-3);
	npg_profile_free(p);
	synthetic_remove(&s);
}

static void test_walks_alone_are_accesses(void **state)
{
	struct npg_profile *p;
	struct synthetic s;
	int object;

	(void)state;
	synthetic_begin(&s, 1);
	object = heap(&s, 1);
	for (int i = 0; i < 250; i++)
		synthetic_sample(&s, TLB, 2, object, address_of(&s, object), 5000000000);
	sql(&s, "UPDATE source SET state = 'not asked' WHERE name <> 'tlb'");
	synthetic_end(&s);
	p = synthetic_load(&s, NULL);
	assert_true(p->sources[TLB - 1].is_used);
	assert_true(fabs(p->nr_samples - 250.0) < 1e-9);
	npg_profile_free(p);
	synthetic_remove(&s);
}

static void test_start_up_is_recognised(void **state)
{
	struct npg_profile *p;
	struct synthetic s;
	int object;

	(void)state;
	synthetic_begin(&s, 2);
	object = heap(&s, 1);
	synthetic_touch(&s, object, 1, SIZE, 1); /* pages 0..255 at 0..255 us */
	for (int i = 0; i < 100; i++) {
		synthetic_sample(&s, CLOCK, 1, object, address_of(&s, object), 1000);
		synthetic_sample(&s, CLOCK, 2, object, address_of(&s, object), 5000000000);
		synthetic_sample(&s, CLOCK, 1, object, address_of(&s, object), 5000000000);
	}
	synthetic_end(&s);
	p = synthetic_load(&s, NULL);
	assert_int_equal(p->nr_touches, 256);
	assert_int_equal(p->objects[0].initialiser, 0);
	assert_true(fabs(p->nr_start_samples - 100.0) < 1e-9);
	npg_profile_free(p);
	synthetic_remove(&s);
}

/* Counts instead of samples give the same profile. */
static void test_counts(void **state)
{
	struct npg_profile *p;
	struct synthetic s;
	char text[256];
	int object;

	(void)state;
	synthetic_begin(&s, 2);
	object = heap(&s, 1);
	snprintf(text, sizeof(text),
		 "INSERT INTO page_count VALUES (0, 2, 1, %d, %lld, 5, 6, 0, 11000000),"
		 " (1, 3, 1, %d, %lld, 0, 0, 4, 4000000)",
		 object, (long long)(address_of(&s, object) / 4096 + 3), object,
		 (long long)(address_of(&s, object) / 4096 + 3));
	sql(&s, text);
	synthetic_end(&s);
	p = synthetic_load(&s, NULL);
	assert_true(fabs(p->nr_samples - 15.0) < 1e-9);
	assert_true(fabs(p->threads[1].samples - 11.0) < 1e-9);
	assert_true(fabs(weight_of(p, 0) - 15.0) < 1e-3);
	for (size_t i = 0; i < p->nr_accesses; i++)
		assert_true(p->accesses[i].page == 2 || p->accesses[i].page == 3);
	npg_profile_free(p);
	synthetic_remove(&s);
}

/* Constants in program text match an object, but say nothing about where data belongs. */
static void test_text_is_left_out(void **state)
{
	struct npg_profile *p;
	struct synthetic s;
	int data, code;

	(void)state;
	synthetic_begin(&s, 1);
	data = heap(&s, 1);
	code = synthetic_object(
	    &s, (struct synthetic_object){ .kind = "code", .thread = 1, .size = SIZE });
	for (int i = 0; i < 10; i++) {
		synthetic_sample(&s, CLOCK, 2, data, address_of(&s, data), 1);
		synthetic_sample(&s, CLOCK, 2, code, address_of(&s, code), 1);
	}
	synthetic_end(&s);
	p = synthetic_load(&s, NULL);
	assert_true(fabs(p->sources[0].matched - 20.0) < 1e-9);
	assert_true(fabs(p->nr_text_samples - 10.0) < 1e-9);
	assert_true(fabs(p->nr_samples - 10.0) < 1e-9);
	assert_true(fabs(weight_of(p, 0) - 10.0) < 1e-3);
	assert_true(weight_of(p, 1) < 1e-9);
	npg_profile_free(p);
	synthetic_remove(&s);
}

static void test_choice_of_process(void **state)
{
	struct npg_profile_options missing = { "999" };
	struct npg_profile *p = NULL;
	struct npg_recording recording;
	struct npg_error err;
	struct synthetic s;
	int object;

	(void)state;
	synthetic_begin(&s, 1);
	object = heap(&s, 1);
	sql(&s, "INSERT INTO process (id, run_id, pid, exe_id, agent) VALUES"
		" (2, 1, 200, 2, 'active'), (3, 1, 300, 6, 'static');"
		"INSERT INTO thread (id, process_id, tid, path) VALUES (50, 2, 200, '0'),"
		" (60, 3, 300, '0')");
	for (int i = 0; i < 10; i++) {
		synthetic_sample(&s, CLOCK, 2, object, address_of(&s, object), 1);
		synthetic_sample(&s, CLOCK, 60, 0, 4096, 1);
	}
	synthetic_sample(&s, CLOCK, 2, object, address_of(&s, object), 1);
	synthetic_sample(&s, CLOCK, 50, 0, 4096, 1);
	synthetic_end(&s);
	p = synthetic_load(&s, NULL);
	assert_int_equal(p->program_pid, 100);
	assert_int_equal(p->nr_other_processes, 2);
	assert_true(fabs(p->other_samples - 11.0) < 1e-9);
	assert_true(fabs(p->same_program_samples - 1.0) < 1e-9);
	npg_profile_free(p);
	p = synthetic_load(&s, "all");
	assert_int_equal(p->nr_processes, 2);
	npg_profile_free(p);
	p = synthetic_load(&s, "300");
	assert_string_equal(p->agent, "static");
	npg_profile_free(p);
	assert_int_equal(npg_recording_open(s.path, false, &recording, &err), 0);
	assert_int_equal(npg_profile_load(recording.db, &missing, &p, &err), -ENOENT);
	assert_non_null(strstr(err.text, "999"));
	npg_recording_close(&recording);
	synthetic_remove(&s);
}

static void test_pages_and_regions(void **state)
{
	struct npg_profile_object heap_object = { .kind = NPG_OBJECT_HEAP,
						  .start_address = 0x200000 - 4080,
						  .size_bytes = 8192 };
	struct npg_profile_object symbol = heap_object;

	(void)state;
	symbol.kind = NPG_OBJECT_STATIC;
	/* a heap object will begin at a page border, a static one stays where it is */
	assert_int_equal(npg_object_nr_pages(&heap_object, 4096), 2);
	assert_int_equal(npg_object_nr_pages(&symbol, 4096), 3);
	assert_int_equal(npg_object_page(&heap_object, 0x200000, 4096), 0);
	assert_int_equal(npg_object_page(&symbol, 0x200000, 4096), 1);
	assert_int_equal(npg_object_page(&symbol, 0, 4096), 0); /* outside: the first */
	assert_int_equal(npg_object_region(&heap_object, 1, 4096), 0);
	assert_int_equal(npg_object_region(&symbol, 0, 4096), 0);
	assert_int_equal(npg_object_region(&symbol, 1, 4096), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_samples_are_counted),
		cmocka_unit_test(test_little_cpu_time_is_still_busy),
		cmocka_unit_test(test_hints_do_not_weigh),
		cmocka_unit_test(test_hardware_is_preferred),
		cmocka_unit_test(test_walks_alone_are_accesses),
		cmocka_unit_test(test_start_up_is_recognised),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_text_is_left_out),
		cmocka_unit_test(test_choice_of_process),
		cmocka_unit_test(test_pages_and_regions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
