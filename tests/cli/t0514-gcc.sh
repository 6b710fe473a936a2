#!/bin/sh
# gcc compiles and links: many short processes, started by vfork.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/real.sh"

program() # OUTPUT-DIRECTORY PREFIX...
{
	directory=$1
	shift
	"$@" gcc -O2 -o "$directory/program" "$tmp/a.c" "$tmp/b.c" "$tmp/c.c" &&
		"$directory/program"
}

for unit in a b c; do
	awk -v unit=$unit 'BEGIN {
		print "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>"
		for (i = 0; i < 400; i++)
			printf "int %s%d(int *v, int n)\n{\n\tint s = %d;\n\tfor (int i = 0; i < n; i++)\n" \
				"\t\tfor (int j = 0; j < i; j++)\n\t\t\ts += v[i] * v[j] ^ (s >> %d);\n" \
				"\treturn s;\n}\n", unit, i, i, i % 7
	}' >"$tmp/$unit.c"
done
cat >>"$tmp/a.c" <<'END'
int b7(int *v, int n);
int c399(int *v, int n);
int main(void)
{
	int v[100];

	for (int i = 0; i < 100; i++)
		v[i] = i * i;
	printf("%d %d %d\n", a3(v, 100), b7(v, 100), c399(v, 100));
	return 0;
}
END
record_and_replay 'gcc compiling three files' 100
ok 'the compiler proper was followed' \
	[ "$(query "$tmp/r.db" "SELECT count(*) FROM v_process WHERE exe LIKE '%/cc1'")" -ge 3 ]
finish
