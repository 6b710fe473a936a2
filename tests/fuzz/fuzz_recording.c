/*
 * Database files: a damaged recording is opened or refused, and what opens can be read. The input
 * is either a whole file or, since a whole one is rarely found by chance, a list of changes of a
 * sound one: 3 bytes of offset and the new byte.
 */
#include <fcntl.h>
#include <unistd.h>

#include "lib/recording.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char path[64];
static uint8_t sound[1 << 19];
static size_t sound_size;

static void make_sound(void)
{
	struct npg_recording r;
	int fd;

	snprintf(path, sizeof(path), "/dev/shm/numapgo-fuzz-%d.db", (int)getpid());
	if (npg_recording_create(path, &r, NULL) < 0 || npg_recording_finish(&r, NULL) < 0)
		abort();
	npg_recording_close(&r);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		abort();
	sound_size = (size_t)read(fd, sound, sizeof(sound));
	close(fd);
}

static void write_file(const uint8_t *data, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	close(fd);
}

static void write_changed(const uint8_t *data, size_t size)
{
	static uint8_t changed[sizeof(sound)];

	memcpy(changed, sound, sound_size);
	for (size_t i = 0; i + 4 <= size; i += 4) {
		size_t at = data[i] | (size_t)data[i + 1] << 8 | (size_t)data[i + 2] << 16;

		changed[at % sound_size] = data[i + 3];
	}
	write_file(changed, sound_size);
}

static void read_all(struct npg_db *db)
{
	struct npg_stmt *stmt;

	if (npg_db_prepare(db, "SELECT * FROM v_sample JOIN v_object USING (id) LIMIT 50", &stmt,
			   NULL) < 0)
		return;
	while (npg_stmt_step(stmt, NULL) == 1)
		npg_stmt_column_text(stmt, 0);
	npg_stmt_finalize(stmt);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct npg_recording recording;

	if (sound_size == 0)
		make_sound();
	if (size > 100 && data[0] == 'S')
		write_file(data, size);
	else
		write_changed(data, size);
	if (npg_recording_open(path, false, &recording, NULL) == 0) {
		read_all(recording.db);
		npg_recording_close(&recording);
	}
	unlink(path);
	return 0;
}
