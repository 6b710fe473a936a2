/* interleave CMD [ARGS]: run CMD with its memory interleaved over all nodes (as numactl does). */
#include <numa.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc < 2 || numa_available() < 0) {
		fprintf(stderr, "usage: interleave CMD [ARGS], on a kernel with NUMA\n");
		return 125;
	}
	numa_set_interleave_mask(numa_all_nodes_ptr);
	execvp(argv[1], argv + 1);
	perror(argv[1]);
	return 127;
}
