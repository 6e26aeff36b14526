"""Exec helper: a program of fifty instructions that takes its effective user id for good and executes another program.

It stands between the shepherd, which must never have a user's real id (that user could stop or kill it), and the job,
which must have no other. Between its start and the job's own there is no Python, no library and no memory of the
shepherd, so it costs a tenth of what a fork of the shepherd does. It is made in memory, for the machine types in
`CODE`; elsewhere, and if a site forbids programs in memory, there is none.

Called with effective id U and real id 0 as: descriptors (each one character with that number), PATH, ARGV... It makes
the first descriptor close-on-exec, writes itself into the control groups whose files the others are, takes U as real,
effective and saved id, asks the kernel to kill it should the shepherd die, and executes PATH. On failure it writes the
errno (an int) to the first descriptor and exits with 127; when PATH runs, that descriptor is at its end.
"""

import os
import struct

EM_X86_64, EM_AARCH64 = 62, 183

X86_64 = """
    mov 8(%rsp), %r12               # the descriptors
    movzbl (%r12), %ebx
    mov %ebx, %edi
    mov $2, %esi
    mov $1, %edx
    mov $72, %eax                   # fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    syscall
    test %eax, %eax
    jnz 1f
3:  inc %r12
    movzbl (%r12), %edi
    test %edi, %edi
    jz 4f
    push $48
    mov %rsp, %rsi
    mov $1, %edx
    mov $1, %eax                    # write(group, "0", 1)
    syscall
    pop %rcx
    test %eax, %eax
    js 1f
    movzbl (%r12), %edi
    mov $3, %eax                    # close(group)
    syscall
    jmp 3b
4:  mov $102, %eax                  # getuid()
    syscall
    mov %eax, %ebp
    mov $107, %eax                  # geteuid()
    syscall
    cmp %eax, %ebp
    je 2f                           # the id is one that this user namespace may not know
    mov %eax, %edi
    mov %eax, %esi
    mov %eax, %edx
    mov $117, %eax                  # setresuid(U, U, U)
    syscall
    test %eax, %eax
    jnz 1f
2:  mov $1, %edi
    mov $9, %esi
    mov $157, %eax                  # prctl(PR_SET_PDEATHSIG, SIGKILL)
    syscall
    mov (%rsp), %rcx
    mov 16(%rsp), %rdi
    lea 24(%rsp), %rsi
    lea 16(%rsp,%rcx,8), %rdx
    mov $59, %eax                   # execve(PATH, ARGV, the environment)
    syscall
1:  neg %eax
    push %rax
    mov %ebx, %edi
    mov %rsp, %rsi
    mov $4, %edx
    mov $1, %eax                    # write(descriptor, errno, 4)
    syscall
    mov $127, %edi
    mov $60, %eax                   # exit(127)
    syscall
"""
AARCH64 = """
    ldr x21, [sp, #8]               // the descriptors
    ldrb w19, [x21]
    mov w0, w19
    mov x1, #2
    mov x2, #1
    mov x8, #25                     // fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    svc #0
    cbnz w0, 1f
3:  ldrb w0, [x21, #1]!
    cbz w0, 4f
    mov w9, #48
    str w9, [sp, #-16]!
    mov x1, sp
    mov x2, #1
    mov x8, #64                     // write(group, "0", 1)
    svc #0
    add sp, sp, #16
    tbnz w0, #31, 1f
    ldrb w0, [x21]
    mov x8, #57                     // close(group)
    svc #0
    b 3b
4:  mov x8, #174                    // getuid()
    svc #0
    mov w20, w0
    mov x8, #175                    // geteuid()
    svc #0
    cmp w0, w20
    b.eq 2f                         // the id is one that this user namespace may not know
    mov w1, w0
    mov w2, w0
    mov x8, #147                    // setresuid(U, U, U)
    svc #0
    cbnz w0, 1f
2:  mov x0, #1
    mov x1, #9
    mov x8, #167                    // prctl(PR_SET_PDEATHSIG, SIGKILL)
    svc #0
    ldr x3, [sp]
    ldr x0, [sp, #16]
    add x1, sp, #24
    add x2, sp, #16
    add x2, x2, x3, lsl #3
    mov x8, #221                    // execve(PATH, ARGV, the environment)
    svc #0
1:  neg w0, w0
    str w0, [sp, #-16]!
    mov w0, w19
    mov x1, sp
    mov x2, #4
    mov x8, #64                     // write(descriptor, errno, 4)
    svc #0
    mov x0, #127
    mov x8, #93                     // exit(127)
    svc #0
"""
# The assembler's output; a test compares it.
CODE = {
    "x86_64": (
        EM_X86_64,
        "4c8b642408410fb61c2489dfbe02000000ba01000000b8480000000f0585c00f858000000049ffc4410fb63c2485ff74246a304889e6ba"
        "01000000b8010000000f055985c0785e410fb63c24b8030000000f05ebd0b8660000000f0589c5b86b0000000f0539c5741189c789c689"
        "c2b8750000000f0585c0752bbf01000000be09000000b89d0000000f05488b0c24488b7c2410488d742418488d54cc10b83b0000000f05"
        "f7d85089df4889e6ba04000000b8010000000f05bf7f000000b83c0000000f05",
    ),
    "aarch64": (
        EM_AARCH64,
        "f50740f9b3024039e003132a410080d2220080d2280380d2010000d4c0040035a01e4038a001003409068052e90f1fb8e1030091220080"
        "d2080880d2010000d4ff4300918003f837a0024039280780d2010000d4f3ffff17c81580d2010000d4f403002ae81580d2010000d41f00"
        "146bc0000054e103002ae203002a681280d2010000d480010035200080d2210180d2e81480d2010000d4e30340f9e00b40f9e1630091e2"
        "430091420c038ba81b80d2010000d4e003004be00f1fb8e003132ae1030091820080d2080880d2010000d4e00f80d2a80b80d2010000d4",
    ),
}

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_ADDRESS, _ALIGN = 0x400000, 0x10000
_PT_LOAD, _PT_GNU_STACK = 1, 0x6474E551
_MFD_EXEC = 0x10  # from Linux 6.3 on: without it the kernel complains


def image(machine: int, code: bytes) -> bytes:
    """Build an executable file of one segment."""
    start = _HEADER.size + 2 * _SEGMENT.size
    size = start + len(code)
    identity = b"\x7fELF\x02\x01\x01"
    return (
        _HEADER.pack(
            identity, 2, machine, 1, _ADDRESS + start, _HEADER.size, 0, 0, _HEADER.size, _SEGMENT.size, 2, 0, 0, 0
        )
        + _SEGMENT.pack(_PT_LOAD, 5, 0, _ADDRESS, _ADDRESS, size, size, _ALIGN)
        + _SEGMENT.pack(_PT_GNU_STACK, 6, 0, 0, 0, 0, 0, 16)
        + code
    )


def make() -> int:
    """Return a sealed descriptor of the program; -1 if there is none."""
    machine, code = CODE.get(os.uname().machine, (0, ""))
    if not machine:
        return -1
    try:
        descriptor = _memory_file()
    except OSError:  # the site allows none, or none that is executable
        return -1
    os.write(descriptor, image(machine, bytes.fromhex(code)))
    os.fchmod(descriptor, 0o555)
    return descriptor


def _memory_file() -> int:
    try:
        return os.memfd_create("lava-exec", os.MFD_CLOEXEC | _MFD_EXEC)
    except OSError:  # an older kernel
        return os.memfd_create("lava-exec", os.MFD_CLOEXEC)
