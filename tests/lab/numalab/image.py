"""What the guest is made of: Debian's kernel from its package, and an initramfs from the host's
programs with the libraries that they need. Kernel and base are cached outside the tree."""
import glob
import os
import re
import shutil
import stat
import subprocess
import tempfile

from numalab.errors import LabError

KERNEL_PACKAGE = 'linux-image-6.12-cloud-amd64'
BUSYBOX_HINT = 'install it with: apt-get install busybox-static'


def cache_dir():
    base = os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')
    if not os.path.isabs(base) or not os.access(os.path.dirname(base) or '/', os.X_OK):
        base = '/tmp/numapgo-cache-%d' % os.getuid()
    path = os.path.join(base, 'numapgo-lab')
    os.makedirs(path, exist_ok=True)
    return path


def kernel():
    """Path of the kernel image, fetched and unpacked (never installed) on first use."""
    given = os.environ.get('NUMAPGO_LAB_KERNEL')
    if given:
        if not os.path.isfile(given):
            raise LabError('NUMAPGO_LAB_KERNEL=%s: no such file' % given)
        return given
    pattern = os.path.join(cache_dir(), 'kernel', 'vmlinuz-*')
    found = sorted(glob.glob(pattern))
    if not found:
        _fetch_kernel()
        found = sorted(glob.glob(pattern))
    return found[-1]


def _fetch_kernel():
    hint = ('the lab needs the kernel of Debian package %s (apt-get download must work: Debian 12 '
            'with its security archive), or NUMAPGO_LAB_KERNEL=FILE' % KERNEL_PACKAGE)
    with tempfile.TemporaryDirectory(dir=cache_dir()) as tmp:
        os.chmod(tmp, 0o755)
        try:
            text = subprocess.run(['apt-cache', 'depends', KERNEL_PACKAGE], check=True, text=True,
                                  capture_output=True).stdout
            package = re.search(r'Depends: (linux-image-\S+)', text).group(1)
            subprocess.run(['apt-get', '-q', 'download', package], cwd=tmp, check=True, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            deb = glob.glob(os.path.join(tmp, '*.deb'))[0]
            subprocess.run(['dpkg-deb', '-x', deb, os.path.join(tmp, 'x')], check=True)
            image = glob.glob(os.path.join(tmp, 'x/boot/vmlinuz-*'))[0]
        except subprocess.CalledProcessError as e:
            raise LabError('cannot fetch a kernel: %s failed: %s; %s' %
                           (' '.join(e.cmd[:2]), (e.stdout or '').strip()[-300:], hint))
        except (OSError, AttributeError, IndexError):
            raise LabError('cannot fetch a kernel: no package found; ' + hint)
        target = os.path.join(cache_dir(), 'kernel')
        os.makedirs(target, exist_ok=True)
        os.replace(image, os.path.join(target, os.path.basename(image)))


class Cpio:
    """Writer of a 'newc' archive, the initramfs format of the kernel's documentation."""

    def __init__(self, path):
        self.out = open(path, 'wb')
        self.done = set()
        self.inode = 0

    def _entry(self, name, mode, data):
        self.inode += 1
        name_bytes = name.encode() + b'\0'
        head = '070701' + ''.join('%08X' % v for v in (
            self.inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name_bytes), 0))
        for block in (head.encode() + name_bytes, data):
            self.out.write(block + b'\0' * (-len(block) % 4))

    def directory(self, path):
        path = path.strip('/')
        if path and path not in self.done:
            self.directory(os.path.dirname(path))
            self.done.add(path)
            self._entry(path, stat.S_IFDIR | 0o755, b'')

    def symlink(self, path, target):
        self.directory(os.path.dirname(path))
        self.done.add(path.strip('/'))
        self._entry(path.strip('/'), stat.S_IFLNK | 0o777, target.encode())

    def data(self, path, content, mode=0o644):
        path = path.strip('/')
        if path not in self.done:
            self.directory(os.path.dirname(path))
            self.done.add(path)
            self._entry(path, stat.S_IFREG | mode, content)

    def file(self, path, source):
        if path.strip('/') not in self.done:
            with open(source, 'rb') as f:
                self.data(path, f.read(), stat.S_IMODE(os.stat(source).st_mode) | 0o444)

    def close(self):
        self._entry('TRAILER!!!', 0, b'')
        self.out.write(b'\0' * (-self.out.tell() % 512))
        self.out.close()


def base():
    """The part that every guest has: busybox and its links, the skeleton of directories."""
    busybox = shutil.which('busybox')
    if not busybox:
        raise LabError('no busybox; ' + BUSYBOX_HINT)
    with open(busybox, 'rb') as f:
        if b'/ld-linux' in f.read():
            raise LabError('%s is not static; %s' % (busybox, BUSYBOX_HINT))
    path = os.path.join(cache_dir(), 'base-%d.cpio' % int(os.stat(busybox).st_mtime))
    if os.path.exists(path):
        return path
    cpio = Cpio(path + '.%d' % os.getpid())
    for link in ('bin', 'sbin', 'lib', 'lib64'):
        cpio.symlink(link, 'usr/' + link)
    for d in ('proc', 'sys', 'dev', 'tmp', 'run', 'root', 'work', 'etc', 'var/tmp', 'lab', 'usr/bin',
              'usr/sbin', 'usr/lib', 'usr/lib64', 'usr/lib/x86_64-linux-gnu'):
        cpio.directory(d)
    cpio.data('etc/passwd', b'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n')
    cpio.data('etc/group', b'root:x:0:\nnogroup:x:65534:\n')
    cpio.data('etc/hostname', b'numalab\n')
    cpio.file('usr/bin/busybox', busybox)
    applets = subprocess.run([busybox, '--list'], check=True, text=True, capture_output=True).stdout
    for applet in applets.split():
        if applet != 'busybox':
            cpio.symlink('usr/bin/' + applet, 'busybox')
    cpio.close()
    os.replace(path + '.%d' % os.getpid(), path)
    return path


# found by dlopen(3), so unknown to ldd: what glibc and OpenMP runtimes load by name
DLOPENED = ('libgcc_s.so.1', 'libnss_files.so.2')


def real_path(path):
    """A path with its directories resolved (the guest has one /usr), its last name kept."""
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def _libraries(path):
    result = subprocess.run(['ldd', path], text=True, capture_output=True)
    missing = re.findall(r'^\s*(\S+) => not found', result.stdout, re.M)
    if missing:
        raise LabError('%s needs %s, which is not on this host' % (path, ' '.join(missing)))
    found = re.findall(r'(/\S+) \(0x', result.stdout)
    if found:
        for directory in {os.path.dirname(p) for p in found}:
            found += [os.path.join(directory, n) for n in DLOPENED
                      if os.path.exists(os.path.join(directory, n))]
    return found


def add_program(cpio, path, target=None):
    """A host file at its own path in the guest (or at @target); what it needs to run with it."""
    if os.path.isdir(path):
        for top, _, files in os.walk(path):
            for name in files:
                inside = os.path.relpath(os.path.join(top, name), path)
                add_program(cpio, os.path.join(top, name), os.path.join(target or real_path(path), inside))
        return
    cpio.file(target or real_path(path), path)
    with open(path, 'rb') as f:
        head = f.read(256)
    if head.startswith(b'\x7fELF'):
        for library in _libraries(path):
            cpio.file(real_path(library), library)
        for companion in glob.glob(os.path.join(os.path.dirname(path), 'libnumapgo-*.so')):
            if os.path.basename(path) == 'numapgo':
                add_program(cpio, companion, os.path.join(os.path.dirname(target or real_path(path)),
                                                          os.path.basename(companion)))
    elif head.startswith(b'#!'):
        # the interpreter, and the program that env(1) is asked for
        for word in head[2:].split(b'\n')[0].decode(errors='replace').split():
            found = find_program(word)
            if found:
                add_program(cpio, found)


def add_word(cpio, word, is_command):
    """A word of the command line: if it names a host file, that goes in, where the word means it:
    relative names below /work, the guest's current directory. The word as the guest needs it."""
    path = find_program(word) if is_command or '/' in word else None
    if path is None:
        return word
    inside = '/' in word and not os.path.isabs(word) and '..' not in word.split('/')
    add_program(cpio, path, os.path.join('/work', word) if inside else None)
    return word if inside or os.path.isabs(word) else real_path(path)


def find_program(name):
    path = name if '/' in name else shutil.which(name)
    if path and os.path.isfile(path):
        return os.path.abspath(path)
    return None
