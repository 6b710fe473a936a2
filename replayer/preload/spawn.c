/*
 * Programs that a pinned thread starts get the mask that numapgo was started with, not the
 * thread's: the plan is not theirs. fork() is seen by npg_on_fork(); these are the other ways.
 */
#define NPG_RULES_INTERPOSER
#include <dlfcn.h>
#include <spawn.h>
#include <sys/syscall.h>

#include "replayer/preload/agent.h"
#include "replayer/preload/pin.h"
#include "replayer/preload/spawn.h"

typedef int exec_function(const char *, char *const *);
typedef int exec_env_function(const char *, char *const *, char *const *);
typedef int spawn_function(pid_t *, const char *, const posix_spawn_file_actions_t *,
			   const posix_spawnattr_t *, char *const *, char *const *);

static struct {
	exec_env_function *fn_execve;
	exec_function *fn_execv;
	exec_function *fn_execvp;
	exec_env_function *fn_execvpe;
	int (*fn_fexecve)(int, char *const *, char *const *);
	spawn_function *fn_posix_spawn;
	spawn_function *fn_posix_spawnp;
	int (*fn_shell)(const char *);
	void *(*fn_shell_pipe)(const char *, const char *);
} next;

/* Whole pointers are stored, so it does no harm to do this twice at once. */
void npg_spawn_resolve(void)
{
	static const struct {
		const char *name;
		size_t offset;
	} symbols[] = {
#define SYMBOL(name, field) { name, offsetof(__typeof__(next), field) }
		SYMBOL("execve", fn_execve),
		SYMBOL("execv", fn_execv),
		SYMBOL("execvp", fn_execvp),
		SYMBOL("execvpe", fn_execvpe),
		SYMBOL("fexecve", fn_fexecve),
		SYMBOL("posix_spawn", fn_posix_spawn),
		SYMBOL("posix_spawnp", fn_posix_spawnp),
		SYMBOL("system", fn_shell),
		SYMBOL("popen", fn_shell_pipe),
#undef SYMBOL
	};

	for (size_t i = 0; i < NPG_ARRAY_SIZE(symbols); i++) {
		void *found = dlsym(RTLD_NEXT, symbols[i].name);

		memcpy((char *)&next + symbols[i].offset, &found, sizeof(found));
	}
}

/* Call @call with the program's first mask, and go back to the thread's. */
#define WITH_FIRST_MASK(type, function, call)                                                      \
	do {                                                                                       \
		struct npg_wire_cpuset before;                                                     \
		bool is_pinned;                                                                    \
		type result;                                                                       \
                                                                                                   \
		if (next.function == NULL)                                                         \
			npg_spawn_resolve();                                                       \
		is_pinned = npg_replay_is_active() && npg_pin_suspend(&before);                    \
		result = next.function call;                                                       \
		if (is_pinned)                                                                     \
			npg_pin_resume(&before);                                                   \
		return result;                                                                     \
	} while (0)

NPG_EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
	WITH_FIRST_MASK(int, fn_execve, (path, argv, envp));
}

NPG_EXPORT int execv(const char *path, char *const argv[])
{
	WITH_FIRST_MASK(int, fn_execv, (path, argv));
}

NPG_EXPORT int execvp(const char *file, char *const argv[])
{
	WITH_FIRST_MASK(int, fn_execvp, (file, argv));
}

NPG_EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
	WITH_FIRST_MASK(int, fn_execvpe, (file, argv, envp));
}

NPG_EXPORT int fexecve(int fd, char *const argv[], char *const envp[])
{
	WITH_FIRST_MASK(int, fn_fexecve, (fd, argv, envp));
}

NPG_EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
			   const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	WITH_FIRST_MASK(int, fn_posix_spawn, (pid, path, actions, attr, argv, envp));
}

NPG_EXPORT int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
			    const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	WITH_FIRST_MASK(int, fn_posix_spawnp, (pid, file, actions, attr, argv, envp));
}

/* Under other names here, because code of ours must not call them (lib/preload/rules.h). */
int npg_hook_system(const char *command) __asm__("system");
void *npg_hook_popen(const char *command, const char *mode) __asm__("popen");

NPG_EXPORT int npg_hook_system(const char *command)
{
	WITH_FIRST_MASK(int, fn_shell, (command));
}

NPG_EXPORT void *npg_hook_popen(const char *command, const char *mode)
{
	WITH_FIRST_MASK(void *, fn_shell_pipe, (command, mode));
}
