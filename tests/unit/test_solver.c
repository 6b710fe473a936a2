/* The solver on problems whose best answer is plain. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyzer/solver.h"
#include "tests/unit/synthetic.h"

#define MIB (UINT64_C(1) << 20)

struct fixture {
	struct npg_topology *topology;
	struct npg_problem problem;
	struct npg_solution solution;
	double busy[64];
	struct npg_use uses[256];
	struct npg_unit units[64], tables[16];
	size_t nr_uses;
};

static void begin(struct fixture *f, int nr_nodes, int cpus, int memory_mib, size_t nr_threads)
{
	memset(f, 0, sizeof(*f));
	f->topology = synthetic_machine(nr_nodes, cpus, memory_mib);
	f->problem.cost = npg_cost_new(f->topology);
	f->problem.nr_threads = nr_threads;
	f->problem.busy = f->busy;
	f->problem.units = f->units;
	f->problem.tables = f->tables;
	for (size_t t = 0; t < nr_threads; t++)
		f->busy[t] = 1.0;
}

/* A unit of 64 pages used by threads first .. first + nr - 1 alike. */
static struct npg_unit unit(struct fixture *f, uint32_t first, uint32_t nr, float weight)
{
	struct npg_unit u = { .uses = &f->uses[f->nr_uses],
			      .nr_uses = nr,
			      .follows = -1,
			      .bytes = 64 * 4096,
			      .can_interleave = true };

	for (uint32_t i = 0; i < nr; i++)
		f->uses[f->nr_uses++] = (struct npg_use){ first + i, weight };
	return u;
}

static void solve(struct fixture *f)
{
	npg_solution_release(&f->solution);
	assert_int_equal(npg_solver_solve(&f->problem, &f->solution), 0);
}

static void end(struct fixture *f)
{
	struct npg_cost *cost = (struct npg_cost *)(uintptr_t)f->problem.cost;

	npg_solution_release(&f->solution);
	npg_cost_free(cost);
	npg_topology_free(f->topology);
}

static void test_private_memory_is_local(void **state)
{
	static struct fixture f;

	(void)state;
	begin(&f, 4, 2, 1024, 4);
	for (uint32_t i = 0; i < 16; i++)
		f.units[f.problem.nr_units++] = unit(&f, i % 4, 1, 10.0F);
	for (uint32_t i = 0; i < 4; i++)
		f.tables[f.problem.nr_tables++] = unit(&f, i, 1, 3.0F);
	solve(&f);
	assert_true(f.solution.score.lar > 0.999);
	assert_true(f.solution.score.remote_walks < 0.001);
	assert_int_equal(f.solution.nr_nodes_used, 4); /* nothing is gained by sharing a node */
	for (size_t u = 0; u < 16; u++)
		assert_int_equal(f.solution.unit_node[u], f.solution.thread_node[u % 4]);
	end(&f);
}

static void test_sharing_threads_come_together(void **state)
{
	static struct fixture f;

	(void)state;
	begin(&f, 4, 2, 1024, 8); /* pairs 0+1, 2+3, ... share; 2 CPUs per node */
	for (uint32_t i = 0; i < 16; i++)
		f.units[f.problem.nr_units++] = unit(&f, i % 4 * 2, 2, 10.0F);
	solve(&f);
	for (int i = 0; i < 8; i += 2)
		assert_int_equal(f.solution.thread_node[i], f.solution.thread_node[i + 1]);
	assert_true(f.solution.score.lar > 0.999);
	end(&f);
}

static void test_shared_memory_is_kept_near(void **state)
{
	static struct fixture f;

	(void)state;
	begin(&f, 4, 4, 1024, 4); /* all fit on one node: everything local there */
	for (int i = 0; i < 4; i++)
		f.units[f.problem.nr_units++] = unit(&f, 0, 4, 10.0F);
	solve(&f);
	assert_int_equal(f.solution.nr_nodes_used, 1);
	assert_true(f.solution.score.lar > 0.999);
	end(&f);
}

static void test_shared_memory_is_interleaved(void **state)
{
	static struct fixture f;

	(void)state;
	begin(&f, 4, 1, 1024, 4); /* one CPU per node: threads on all of them */
	for (int i = 0; i < 4; i++)
		f.units[f.problem.nr_units++] = unit(&f, 0, 4, 10.0F);
	solve(&f);
	for (int u = 0; u < 4; u++)
		assert_int_equal(f.solution.unit_node[u], NPG_SOLVER_INTERLEAVE);
	for (int n = 0; n < 4; n++)
		assert_true(fabs(f.solution.share[n] - 0.25) < 1e-9);
	end(&f);
}

static void test_cpus_are_not_overcommitted(void **state)
{
	int count[4] = { 0 };
	static struct fixture f;

	(void)state;
	begin(&f, 4, 2, 1024, 8);
	f.busy[8] = 0.01; /* an idle thread needs no CPU */
	f.problem.nr_threads = 9;
	f.units[f.problem.nr_units++] = unit(&f, 0, 9, 10.0F); /* all want to be together */
	solve(&f);
	for (int t = 0; t < 8; t++)
		count[f.solution.thread_node[t]]++;
	for (int n = 0; n < 4; n++)
		assert_int_equal(count[n], 2);
	end(&f);
}

static void test_memory_capacity(void **state)
{
	uint64_t used[2] = { 0 };
	static struct fixture f;

	(void)state;
	begin(&f, 2, 2, 64, 1); /* one thread, 100 MiB, 64 MiB per node */
	for (uint32_t i = 0; i < 10; i++) {
		f.units[f.problem.nr_units] = unit(&f, 0, 1, (float)(i + 1));
		f.units[f.problem.nr_units].can_interleave = false;
		f.units[f.problem.nr_units++].bytes = 10 * MIB;
	}
	solve(&f);
	for (size_t u = 0; u < 10; u++)
		used[f.solution.unit_node[u]] += 10 * MIB;
	assert_true(used[0] <= 64 * MIB && used[1] <= 64 * MIB);
	assert_false(f.solution.is_over_capacity);
	/* the coldest units are the remote ones */
	for (size_t u = 0; u < 10; u++)
		assert_int_equal(f.solution.unit_node[u] == f.solution.thread_node[0], u >= 4);
	end(&f);
}

static void test_following_units(void **state)
{
	static struct fixture f;

	(void)state;
	begin(&f, 2, 1, 1024, 2);
	f.units[f.problem.nr_units] = unit(&f, 0, 1, 10.0F); /* thread 0's, touched by thread 1 */
	f.units[f.problem.nr_units++].follows = 1;
	solve(&f);
	assert_int_equal(f.solution.unit_node[0], f.solution.thread_node[1]);
	end(&f);
}

static void test_max_nodes_and_repeats(void **state)
{
	static struct fixture f;
	int first[8];

	(void)state;
	begin(&f, 4, 8, 1024, 8);
	f.problem.max_nodes = 2;
	for (uint32_t i = 0; i < 32; i++)
		f.units[f.problem.nr_units++] = unit(&f, i % 8, 1, 10.0F);
	solve(&f);
	assert_true(f.solution.nr_nodes_used <= 2);
	memcpy(first, f.solution.thread_node, sizeof(first));
	solve(&f);
	assert_memory_equal(first, f.solution.thread_node, sizeof(first));
	end(&f);
}

static void test_makespan(void **state)
{
	static struct fixture f;

	(void)state;
	/* thread 0 alone is slow; throughput alone would not mind where its memory is */
	begin(&f, 2, 1, 1024, 2);
	f.problem.objective = NPG_OBJECTIVE_MAKESPAN;
	f.units[f.problem.nr_units++] = unit(&f, 0, 1, 100.0F);
	f.units[f.problem.nr_units++] = unit(&f, 1, 1, 10.0F);
	solve(&f);
	assert_int_equal(f.solution.unit_node[0], f.solution.thread_node[0]);
	end(&f);
}

static void test_no_cpus(void **state)
{
	static struct fixture f;
	struct npg_solution s = { 0 };

	(void)state;
	begin(&f, 2, 1, 1024, 1);
	f.problem.cost->nr_cpus[0] = f.problem.cost->nr_cpus[1] = 0;
	assert_int_equal(npg_solver_solve(&f.problem, &s), -EINVAL);
	end(&f);
}

static void test_spread(void **state)
{
	static struct fixture f;
	int node[6];

	(void)state;
	begin(&f, 3, 2, 1024, 6);
	f.busy[0] = 0.0;
	npg_solver_spread(f.problem.cost, 6, f.busy, NULL, node);
	assert_int_equal(node[0], 0); /* idle */
	for (int t = 1; t < 6; t++)
		assert_int_equal(node[t], (t - 1) % 3);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_private_memory_is_local),
		cmocka_unit_test(test_sharing_threads_come_together),
		cmocka_unit_test(test_shared_memory_is_kept_near),
		cmocka_unit_test(test_shared_memory_is_interleaved),
		cmocka_unit_test(test_cpus_are_not_overcommitted),
		cmocka_unit_test(test_memory_capacity),
		cmocka_unit_test(test_following_units),
		cmocka_unit_test(test_max_nodes_and_repeats),
		cmocka_unit_test(test_makespan),
		cmocka_unit_test(test_no_cpus),
		cmocka_unit_test(test_spread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
