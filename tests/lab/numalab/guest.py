"""One start of a guest: QEMU's command line, the channels to it, its end."""
import json
import os
import selectors
import shlex
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import time

from numalab import counts, image
from numalab.errors import LabError

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
QEMU = 'qemu-system-x86_64'
WATCH_S = 0.7
ATTEMPTS = 4
# plain page tables (walk.py), fixed kernel addresses, a clock that emulation keeps steady
KERNEL_LINE = ('console=ttyS0 quiet panic=-1 nokaslr nopti no5lvl mitigations=off tsc=reliable '
               'random.trust_cpu=on no_timer_check')


class Options:
    """What a guest is started with; the fields are the options of 'lab run'."""

    def __init__(self, machine, command, **fields):
        self.machine, self.command = machine, command
        self.thp = self.autonuma = self.out = self.plugin = None
        self.files, self.environment = [], {}
        self.timeout_s = 600
        self.shell = self.capture = False
        self.walk = False       # answer requests of the guest for a walk of its page tables
        self.watch = False      # read page tables of what runs about once a second
        self.marks = False      # the plugin's marks around the command
        for name, value in fields.items():
            if name not in self.__dict__:
                raise TypeError(name)
            setattr(self, name, value)

    def pin_threads(self):
        """Bind the command's threads as they start, one node after the other (guest/pin.c)."""
        places = ','.join(map(str, self.machine.spread_cpus()))
        self.files = self.files + [counts.tool('pin.so') + '=/lab/pin.so']
        program = self.command[0]
        if '/' not in program:
            program = image.find_program(program) or program
        first = self.machine.cpus[self.machine.node_of_cpu(self.machine.spread_cpus()[0])]
        self.command = (['env', 'LAB_PIN=' + places, 'LAB_PIN_MAIN=%d' % first[-1],
                         'LD_PRELOAD=/lab/pin.so', program] + self.command[1:])


class EmulatorFault(LabError):
    """The guest's kernel died of a fault of the emulator, see run()."""

    def __init__(self, text, console):
        super().__init__(text)
        self.console = console


class Result:
    """status: the command's, as a shell gives it. stdout, stderr: bytes when captured.
    walks: answers of the page-table walker, one per request; snapshots: {root of a process's
    tables: last seen tables}."""

    def __init__(self):
        self.status, self.stdout, self.stderr = None, b'', b''
        self.boot_s = self.run_s = 0.0
        self.walks, self.snapshots = [], {}


def qemu():
    path = shutil.which(QEMU)
    if not path:
        raise LabError('no %s; install it with: apt-get install qemu-system-x86' % QEMU)
    return path


def _initrd(path, options):
    """The base archive and, behind it, one with what this run needs."""
    cpio = image.Cpio(path)
    cpio.file('init', os.path.join(HERE, 'guest', 'init'))
    for f in options.files:
        source, _, target = f.partition('=')
        if not os.path.exists(source):
            raise LabError('--files %s: no such file' % source)
        image.add_program(cpio, source, target or os.path.join('/work', os.path.basename(source)))
    words = [image.add_word(cpio, word, i == 0) for i, word in enumerate(options.command)]
    mark = ''
    if options.marks:
        image.add_program(cpio, counts.tool('mark'),
                          '/lab/mark')
        mark = '/lab/mark'
    environment = ''.join('export %s=%s\n' % (k, shlex.quote(v))
                          for k, v in sorted(options.environment.items()))
    settings = {'LAB_SHELL': int(options.shell), 'LAB_FILES': int(options.out is not None),
                'LAB_MACHINE': options.machine.name, 'LAB_MARK': mark}
    cpio.data('lab/settings', (''.join('%s=%s\n' % (k, shlex.quote(str(v)))
                                       for k, v in settings.items()) + environment).encode())
    cpio.data('lab/command', ('exec ' + ' '.join(map(shlex.quote, words)) + '\n').encode())
    if os.path.exists('/etc/ld.so.cache'):
        cpio.file('etc/ld.so.cache', '/etc/ld.so.cache')
    cpio.close()
    whole = path + '.all'
    with open(whole, 'wb') as out:
        for part in (image.base(), path):
            with open(part, 'rb') as f:
                shutil.copyfileobj(f, out)
    return whole


def _arguments(options, directory, pipes):
    line = KERNEL_LINE
    if options.thp:
        line += ' transparent_hugepage=' + options.thp
    if options.autonuma:
        line += ' numa_balancing=' + {'on': 'enable', 'off': 'disable'}[options.autonuma]
    args = [qemu(), '-M', 'q35', '-accel', 'tcg,thread=multi,tb-size=256', '-cpu', 'max',
            '-kernel', image.kernel(), '-initrd', _initrd(os.path.join(directory, 'run.cpio'), options),
            '-append', line, '-display', 'none', '-vga', 'none', '-nic', 'none', '-no-reboot',
            '-nodefaults', '-no-user-config', '-device', 'virtio-serial-pci']
    args += options.machine.qemu_options(options.walk or options.watch)
    if options.shell:
        args += ['-serial', 'mon:stdio']
    else:
        args += ['-serial', 'file:' + os.path.join(directory, 'console')]
        ports = dict(pipes, result=os.path.join(directory, 'result'),
                     status=os.path.join(directory, 'status'))
        for name, path in ports.items():
            args += ['-chardev', 'file,id=%s,path=%s' % (name, path),
                     '-device', 'virtserialport,chardev=%s,name=lab.%s' % (name, name)]
        args += ['-qmp', 'unix:%s,server=on,wait=off' % os.path.join(directory, 'qmp'),
                 '-chardev', 'socket,id=control,server=on,wait=off,path=' +
                 os.path.join(directory, 'control'),
                 '-device', 'virtserialport,chardev=control,name=lab.control']
    if options.plugin:
        args += ['-plugin', options.plugin]
    return args


class Monitor:
    """QEMU's machine protocol: stop, go on, and the registers of all CPUs."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.lines = self.socket.makefile('rw')
        self.lines.readline()
        self.ask('qmp_capabilities')

    def ask(self, command, **arguments):
        self.lines.write(json.dumps({'execute': command, 'arguments': arguments}) + '\n')
        self.lines.flush()
        while True:
            answer = json.loads(self.lines.readline())
            if 'return' in answer or 'error' in answer:
                return answer.get('return')

    def human(self, line):
        return self.ask('human-monitor-command', **{'command-line': line})


class _Guest:
    def __init__(self, options, directory):
        self.options, self.directory = options, directory
        self.result = Result()
        self.walker = None
        self.next_look = 0.0
        self.has_output = False

    def path(self, name):
        return os.path.join(self.directory, name)

    def run(self):
        readers, pipes, writers = {}, {}, []
        for name in ('stdout', 'stderr'):
            r, w = os.pipe()
            os.set_inheritable(w, True)
            readers[name], pipes[name] = r, '/dev/fd/%d' % w
            writers.append(w)
        args = _arguments(self.options, self.directory, pipes)
        start = time.monotonic()
        with open(self.path('qemu-messages'), 'wb') as messages:
            process = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=messages,
                                       stderr=messages, pass_fds=writers)
        for w in writers:
            os.close(w)
        try:
            in_time = self._serve(process, readers, start)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
            for r in readers.values():
                os.close(r)
        self.result.run_s = time.monotonic() - start
        self._finish(in_time)
        return self.result

    def _serve(self, process, readers, start):
        """Copy output and answer requests until QEMU ends; False when the time is up."""
        with selectors.DefaultSelector() as selector:
            for name, fd in readers.items():
                selector.register(fd, selectors.EVENT_READ, name)
            control, open_streams = None, 2
            while open_streams:
                left = start + self.options.timeout_s - time.monotonic()
                if left <= 0:
                    return False
                if not self.result.boot_s and os.path.exists(self.path('result')) and \
                        os.path.getsize(self.path('result')):
                    self.result.boot_s = time.monotonic() - start
                if (self.options.walk or self.options.watch) and not control and self.result.boot_s:
                    control = self._connect_control(process, selector)
                if self.options.watch and control:
                    self._watch()
                for key, _ in selector.select(min(left, 0.2)):
                    data = os.read(key.fd, 65536)
                    if key.data == 'control':
                        self._answer(control, data)
                    elif not data:
                        selector.unregister(key.fd)
                        open_streams -= 1
                    else:
                        self._output(key.data, data)
        return True

    def _output(self, name, data):
        self.has_output |= not self.options.capture
        if self.options.capture:
            setattr(self.result, name, getattr(self.result, name) + data)
        else:
            stream = getattr(sys, name).buffer
            stream.write(data)
            stream.flush()

    def _connect_control(self, process, selector):
        from numalab import walk
        control = socket.socket(socket.AF_UNIX)
        control.connect(self.path('control'))
        selector.register(control.fileno(), selectors.EVENT_READ, 'control')
        self.walker = walk.Walker(self.options.machine, Monitor(self.path('qmp')), process.pid)
        return control

    def _answer(self, control, data):
        """A request is a line 'walk COOKIE-ADDRESS COOKIE' (hexadecimal), see guest/lab.h."""
        for line in data.decode(errors='replace').splitlines():
            word, address, cookie = (line.split() + ['', '', ''])[:3]
            if word == 'walk':
                self.result.walks.append(self.walker.find(int(address, 16), int(cookie, 16)))
                control.sendall(b'.')

    def _watch(self):
        if time.monotonic() < self.next_look:
            return
        try:
            self.result.snapshots.update(self.walker.snapshot())
        except (OSError, ValueError):
            pass                              # QEMU has ended meanwhile
        self.next_look = time.monotonic() + WATCH_S

    def _finish(self, in_time):
        if not in_time:
            raise LabError('the guest did not end within %d s and was killed; its console: %s' %
                           (self.options.timeout_s, self._keep_console()), 124)
        try:
            with open(self.path('status')) as f:
                self.result.status = int(f.read().split()[1])
        except (OSError, IndexError, ValueError):
            with open(self.path('qemu-messages'), errors='replace') as f:
                said = f.read().strip()[-400:]
            raise self._death(said)
        if self.options.out is not None:
            self._unpack()

    def _death(self, said):
        kept = self._keep_console()
        text = ('the guest ended without a result%s; its console: %s' %
                (', QEMU said: ' + said if said else '', kept))
        with open(kept, errors='replace') as f:
            if 'Oops: int3' in f.read():
                return EmulatorFault(text, kept)
        return LabError(text)

    def _keep_console(self):
        fd, kept = tempfile.mkstemp(prefix='numalab-console-', suffix='.txt')
        with os.fdopen(fd, 'wb') as out:
            for name in ('console', 'qemu-messages'):
                if os.path.exists(self.path(name)):
                    with open(self.path(name), 'rb') as f:
                        shutil.copyfileobj(f, out)
        return kept

    def _unpack(self):
        os.makedirs(self.options.out, exist_ok=True)
        with open(self.path('result'), 'rb') as f:
            if f.readline() != b'started\n' or f.readline() != b'files\n':
                raise LabError('the guest sent no files')
            if not f.peek(1):
                return
            with tarfile.open(fileobj=f, ignore_zeros=True) as tar:
                for member in tar:
                    name = os.path.normpath(member.name)
                    if member.isfile() and not name.startswith(('/', '..')):
                        tar.extract(member, self.options.out)


def run(options):
    """Boot, run the command, power off. LabError when that is not possible.

    The emulator now and then translates a kernel instruction in the middle of being patched by
    another CPU (the kernel then dies with "Oops: int3"), mostly while booting: such a guest is
    started again, as long as nothing of its command has been seen."""
    if options.shell:
        with tempfile.TemporaryDirectory(prefix='numalab-') as directory:
            return subprocess.call(_arguments(options, directory, {}))
    for attempt in range(ATTEMPTS):
        with tempfile.TemporaryDirectory(prefix='numalab-') as directory:
            started = _Guest(options, directory)
            try:
                return started.run()
            except EmulatorFault as fault:
                if attempt == ATTEMPTS - 1 or started.has_output:
                    raise
                os.unlink(fault.console)
